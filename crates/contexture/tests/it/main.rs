//! Tests of the crate at its doors.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used)]

#[cfg(unix)]
mod local_fs;
#[cfg(unix)]
mod local_fs_race;
mod references;
