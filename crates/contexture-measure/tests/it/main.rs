//! Tests of the crate through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod judge;
mod plot;
mod policies;
mod said;
