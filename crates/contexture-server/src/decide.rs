//! Decides what is sent for a request.

pub(crate) mod referenced;
pub(crate) mod decider;
