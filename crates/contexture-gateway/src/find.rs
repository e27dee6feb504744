//! Finds the conversation that a request continues.

mod held;
pub(crate) mod index;
