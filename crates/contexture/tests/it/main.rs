//! Tests of the crate through its public API.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(feature = "sqlite")]
#[path = "../../../contexture-core/tests/it/conversation.rs"]
#[allow(dead_code, reason = "the tests of the core use all of it")]
mod conversation;
#[cfg(feature = "sqlite")]
mod engine_kill;
mod episodic;
#[cfg(feature = "bpe")]
mod attack;
mod cap;
mod decisions;
mod dialogue;
#[cfg(unix)]
mod disk_engine;
#[cfg(unix)]
mod disk_rig;
#[cfg(unix)]
mod disk_project;
mod dialects;
mod disk_compare;
mod disk_replay;
mod everyday;
mod examples;
mod file_history;
mod file_history_engine;
mod file_model;
mod file_reference;
mod file_reference_budget;
mod file_reference_engine;
#[cfg(unix)]
mod file_reference_fresh;
mod claims;
mod command_reach;
mod client;
mod command_tables;
#[cfg(unix)]
mod file_rig;
mod file_tracker;
mod file_truth;
mod fold;
mod forgetting;
mod forms;
mod guides;
mod fold_rest;
#[cfg(feature = "bpe")]
mod fold_properties;
#[cfg(feature = "sqlite")]
mod huge_numbers;
mod kill;
mod layer_docs;
mod layer_suite;
#[cfg(unix)]
mod local_fs;
#[cfg(unix)]
mod local_fs_race;
#[cfg(unix)]
mod local_fs_tree;
mod narrow;
mod pins;
#[cfg(unix)]
mod postgres;
mod powershell;
mod records;
mod redaction;
mod references;
#[cfg(feature = "sqlite")]
mod reopened;
mod samples;
#[cfg(feature = "sqlite")]
mod searching;
mod second_instance;
#[cfg(feature = "sqlite")]
mod semantic_recall;
#[cfg(unix)]
mod shell_lines;
#[cfg(feature = "sqlite")]
mod sqlite_index;
#[cfg(feature = "sqlite")]
mod sqlite_leases;
#[cfg(feature = "sqlite")]
mod sqlite_store;
#[cfg(unix)]
mod mcp_http;
mod tool_says;
mod tool_cost;
mod tools;
mod transcript;

/// Waits for a future on a runtime of its own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
