//! Finds the conversation that a request continues.

pub(crate) mod hashes;
mod held;
pub(crate) mod index;
