//! Engine builders with defaults.

use std::sync::Arc;

use contexture_core::engine::{Engine, EngineBuilder};
use contexture_core::memory::MemoryConfig;

use crate::host::{SystemClock, UuidIds};

/// Returns the builder of an engine whose threads, states and search index are in the SQLite file at `path`, which is
/// created if it does not exist.
///
/// Everything else has its default: the system's clock, real token counts, windows of 128 000 tokens.
///
/// # Errors
/// The file cannot be opened, or is not a store.
#[cfg(feature = "sqlite")]
pub fn open<Ls>(
    path: impl AsRef<std::path::Path>,
    memory: MemoryConfig<Ls>,
) -> Result<EngineBuilder<Ls>, crate::store::OpenError> {
    let store = crate::store::SqliteStore::open(&path)?;
    let index = crate::store::SqliteIndex::new(path.as_ref());
    Ok(in_memory(memory).store(Arc::new(store)).search(Arc::new(index)))
}

/// Returns the builder of an engine without durable storage.
pub fn in_memory<Ls>(memory: MemoryConfig<Ls>) -> EngineBuilder<Ls> {
    let builder = Engine::builder(memory, Arc::new(SystemClock::new()), Arc::new(UuidIds));
    let builder = builder.search(Arc::new(contexture_core::search::MemoryIndex::new()));
    let builder = builder.owner(format!("process {}", std::process::id()));
    #[cfg(feature = "bpe")]
    let builder = builder.counter(Arc::new(crate::bpe::Bpe::o200k()));
    builder
}
