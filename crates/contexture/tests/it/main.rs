//! Tests of the front door.

#![allow(clippy::unwrap_used, reason = "a test may end where something is not as it must be")]

#[cfg(feature = "sqlite")]
#[path = "../../../contexture-core/tests/it/conversation.rs"]
#[allow(dead_code, reason = "the tests of the core use all of it")]
mod conversation;
#[cfg(feature = "sqlite")]
mod engine_kill;
#[cfg(feature = "sqlite")]
mod kill;
#[cfg(feature = "sqlite")]
mod sqlite_store;
