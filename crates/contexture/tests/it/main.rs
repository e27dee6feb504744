//! Tests of the front door.

mod examples;
#[cfg(feature = "sqlite")]
mod kill;
#[cfg(feature = "sqlite")]
mod sqlite_store;
mod transcript;
