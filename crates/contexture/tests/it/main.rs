//! Tests of the crate at its doors.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used)]

mod file_reference;
mod file_reference_budget;
#[cfg(unix)]
mod file_reference_fresh;
#[cfg(unix)]
mod local_fs;
#[cfg(unix)]
mod local_fs_race;
#[cfg(unix)]
mod local_fs_tree;
mod references;

use contexture::tokens::TokenCounter;

/// Waits for a future on a runtime of its own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Real tokens.
struct O200k;

impl TokenCounter for O200k {
    fn name(&self) -> &str {
        "o200k"
    }

    fn count(&self, text: &str) -> u64 {
        tiktoken::get_encoding("o200k_base").unwrap().count(text) as u64
    }
}
