//! Finds the conversation that a request continues.

pub(crate) mod hashes;
pub(crate) mod index;
