//! Tests of the crate through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kill;
#[cfg(unix)]
mod postgres;
mod sqlite_index;
mod sqlite_leases;
mod sqlite_store;
