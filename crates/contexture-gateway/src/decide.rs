//! Decides what is sent for a request.

pub(crate) mod reason;
pub(crate) mod outgoing;
pub(crate) mod prepared;
pub(crate) mod progress;
pub(crate) mod policy;
mod referenced;
mod typed;
pub(crate) mod notes;
mod texts;
mod text_bytes;
mod past;
mod plain;
mod folding;
pub(crate) mod rewriting;
pub(crate) mod decider;
