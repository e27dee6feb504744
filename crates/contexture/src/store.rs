//! Durable storage: the contract of the core, and the embedded store.

pub use contexture_core::store::*;

#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
mod postgres;

#[cfg(feature = "postgres")]
pub use postgres::{PostgresError, PostgresIndex, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{OpenError, SqliteIndex, SqliteStore};
