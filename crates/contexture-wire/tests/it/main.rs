//! Tests of the crate through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod formats;
mod transcript;
