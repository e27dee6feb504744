//! Tests of the core at its doors.

mod conversation;
mod faults;
mod formats;
mod keys;
mod restore;
mod stores;
mod two_executions;
