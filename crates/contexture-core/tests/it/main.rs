//! Tests of the core at its doors.

mod conversation;
mod faults;
mod stores;
mod two_executions;
