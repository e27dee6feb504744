//! Tests of the crate through its public API.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(feature = "sqlite")]
#[path = "../../../contexture-core/tests/it/conversation.rs"]
#[allow(dead_code, reason = "the tests of the core use all of it")]
mod conversation;
#[cfg(feature = "sqlite")]
mod engine_kill;
#[cfg(unix)]
mod disk_engine;
#[cfg(unix)]
mod disk_rig;
#[cfg(unix)]
mod disk_project;
mod examples;
mod file_history;
mod file_history_engine;
mod file_reference;
mod file_reference_budget;
mod file_reference_engine;
#[cfg(unix)]
mod file_reference_fresh;
mod client;
#[cfg(feature = "bpe")]
mod fold_counters;
mod guides;
mod layer_docs;
mod layer_suite;
#[cfg(unix)]
mod local_fs;
mod longer_past;
#[cfg(unix)]
mod local_fs_race;
#[cfg(unix)]
mod local_fs_tree;
mod promises;
mod references;
#[cfg(feature = "sqlite")]
mod reopened;
mod second_instance;
#[cfg(unix)]
mod mcp_http;
mod tool_cost;
mod tools;
#[path = "../../../contexture-store/tests/it/kill.rs"]
#[allow(dead_code, reason = "the tests of stores use all of it")]
mod kill;
#[cfg(unix)]
#[path = "../../../contexture-store/tests/it/postgres/server.rs"]
mod server;
#[cfg(unix)]
mod shared;
#[path = "../../../contexture-fold/tests/it/records.rs"]
#[allow(dead_code, reason = "the tests of folding use all of it")]
mod records;
#[path = "../../../contexture-fold/tests/it/steps.rs"]
#[allow(dead_code, reason = "the tests of folding use all of it")]
mod steps;

/// Waits for a future on a runtime of its own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
