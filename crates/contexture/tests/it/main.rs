//! Tests of the crate at its doors.

mod dialects;
mod file_history;
mod file_model;
mod file_tracker;
mod fold;
