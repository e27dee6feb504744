//! Durable storage: the contract of the core, and the embedded store.

pub use contexture_core::store::*;

#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{OpenError, SqliteIndex, SqliteStore};
