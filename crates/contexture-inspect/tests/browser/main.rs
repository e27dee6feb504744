//! The inspector's page in a real browser, used as a person would.
//!
//! Needs `chromium` and `chromedriver`, and axe-core beside the page's sources (`npm ci` in `inspector/`):
//! `cargo test -p contexture-inspect --features browser --test browser -- --test-threads=1`.
//! With `INSPECTOR_PICTURES=DIR` it also takes the pictures of the documentation, with `INSPECTOR_FIGURES=1` it prints
//! how fast the page is on a long conversation.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../contexture-gateway/tests/it/agent.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod agent;
mod driver;
#[path = "../../../contexture-gateway/tests/it/provider.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod provider;

mod access;
mod export;
mod figures;
mod hostile;
mod live;
mod questions;
mod scene;
