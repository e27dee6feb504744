//! Tests of the crate through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cap;
mod decisions;
mod dialogue;
mod disk_replay;
#[cfg(unix)]
mod file_rig;
mod fold;
mod fold_properties;
mod fold_rest;
mod pins;
mod records;
mod steps;
mod views;

/// Whether there is time for everything: for whole rigs, and for more cases.
const IS_LONG: bool = cfg!(feature = "long-tests");
