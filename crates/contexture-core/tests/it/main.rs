//! Tests of the core at its doors.

mod stores;
mod window;
mod window_engine;
