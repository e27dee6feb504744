//! Tests of the crate through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod attack;
mod claims;
mod command_reach;
mod command_tables;
mod dialects;
mod disk_compare;
mod disk_gate;
mod everyday;
mod file_model;
mod file_tracker;
mod file_truth;
mod forms;
mod huge_numbers;
mod powershell;
mod samples;
#[cfg(unix)]
mod shell_lines;
mod told;
mod tool_says;
