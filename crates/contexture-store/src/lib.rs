//! Durable stores and search indexes: the embedded one in SQLite, and PostgreSQL for many machines.

mod system_clock;
mod place;
mod open_error;
mod paired;

#[cfg(feature = "sqlite")]
pub mod database;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
mod postgres;

// Copies and checks know both kinds of stores.
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod judge;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod whole;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod copy;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod check;

#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub use check::{CheckError, check};
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub use copy::{Copied, CopyError, CopyProgress, copy};
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub use judge::{Checked, Finding};
pub use open_error::OpenError;
pub use paired::PairedStore;
pub use place::Place;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresError, PostgresIndex, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteIndex, SqliteStore};
pub use system_clock::SystemClock;
