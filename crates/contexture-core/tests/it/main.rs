//! Tests of the core at its doors.

mod stores;
