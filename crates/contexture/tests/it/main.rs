//! Tests of the front door.

mod kill;
mod sqlite_store;
