//! Engine builders with defaults.

use std::sync::Arc;

use contexture_core::engine::{Engine, EngineBuilder};
use contexture_core::memory::MemoryConfig;

use crate::host::{SystemClock, UuidIds};
use crate::store::Place;

/// Returns the builder of an engine whose threads, states and search index are in the SQLite file at `place`, which is
/// created if it does not exist, or in PostgreSQL, shared by many machines: `postgres://user:password@host/database`.
///
/// A database is connected at the first use, so an address that cannot be reached is an error of the first execution;
/// [`PostgresStore::check`](crate::store::PostgresStore::check) connects at once.
/// Everything else has its default: the system's clock, real token counts, windows of 128 000 tokens, and the files
/// below the current directory, which layers read if a message names one. [`EngineBuilder::fs`] sets other files.
///
/// # Errors
/// The file cannot be opened, or is not a store; the address is not one of PostgreSQL, or the feature `postgres` is off.
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(unused_variables, reason = "without a store there is nothing to build an engine with")
)]
pub fn open<Ls>(
    place: impl AsRef<std::path::Path>,
    memory: MemoryConfig<Ls>,
) -> Result<EngineBuilder<Ls>, crate::store::OpenError> {
    match Place::new(place) {
        #[cfg(feature = "sqlite")]
        Place::File(path) => {
            let store = crate::store::SqliteStore::open(&path)?;
            let index = crate::store::SqliteIndex::new(path);
            Ok(with_files(in_memory(memory)).store(Arc::new(store)).search(Arc::new(index)))
        }
        #[cfg(not(feature = "sqlite"))]
        Place::File(path) => Err(crate::store::OpenError::WithoutSqlite { path: path.display().to_string() }),
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => {
            let store = crate::store::PostgresStore::open(&url)?;
            let index = store.index();
            let owner = format!("process {} on {}", std::process::id(), crate::host::machine());
            Ok(with_files(in_memory(memory)).store(Arc::new(store)).search(Arc::new(index)).owner(owner))
        }
        #[cfg(not(feature = "postgres"))]
        place @ Place::Postgres(_) => Err(crate::store::OpenError::WithoutPostgres { place: place.to_string() }),
    }
}

/// Adds the files below the current directory, if it can be opened.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn with_files<Ls>(builder: EngineBuilder<Ls>) -> EngineBuilder<Ls> {
    match crate::fs::LocalFs::open(".") {
        Ok(files) => builder.fs(Arc::new(files)),
        Err(_) => builder,
    }
}

/// Returns the builder of an engine without durable storage and without files.
pub fn in_memory<Ls>(memory: MemoryConfig<Ls>) -> EngineBuilder<Ls> {
    let builder = Engine::builder(memory, Arc::new(SystemClock::new()), Arc::new(UuidIds));
    let builder = builder.search(Arc::new(contexture_text::search::MemoryIndex::new()));
    let builder = builder.owner(format!("process {}", std::process::id()));
    #[cfg(feature = "bpe")]
    let builder = builder.counter(Arc::new(crate::bpe::Bpe::o200k()));
    builder
}
