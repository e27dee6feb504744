//! Tests of the crate through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod episodic;
mod forgetting;
mod redaction;
mod semantic_recall;

/// Waits for a future on a runtime of its own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
