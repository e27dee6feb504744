//! Tests of the core at its doors.

mod kit;
mod lifecycle;
mod recall;
mod stores;
