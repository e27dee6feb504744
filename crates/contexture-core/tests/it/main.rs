//! Tests of the core at its doors.

#![allow(clippy::unwrap_used, reason = "a test may end where something is not as it must be")]

mod conversation;
mod faults;
mod formats;
mod keys;
mod restore;
mod states;
mod stores;
mod two_executions;
