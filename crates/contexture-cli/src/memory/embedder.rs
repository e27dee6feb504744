//! The embedder of the configuration, by which the memory is searched besides its words.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contexture::client::{ApiKey, Embeddings};
use contexture::host::SystemClock;
use contexture::recall::SharedEmbedder;

use crate::config::ConfigFlags;
use crate::environment::variable;
use crate::failure::Failure;
use crate::settings::{Command, Config};
use crate::source;

/// How long a search waits for a vector: a model that is not loaded yet takes some seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The embedder of a configuration, if it has one.
///
/// # Errors
/// Its address, model or key is missing or cannot be used.
pub(crate) fn embedder_of(config: &Config) -> Result<Option<SharedEmbedder>, Failure> {
    let (url, model) = match (config.memory_embedder_url(), config.memory_embedder_model()) {
        (None, None) => return Ok(None),
        (Some(url), Some(model)) => (url, model),
        _ => {
            return Err(Failure::usage("an embedder needs an address and a model")
                .hint("write `url = \"http://127.0.0.1:11434/v1\"` and `model = \"nomic-embed-text\"` below `[memory.embedder]`"));
        }
    };
    let key = match config.memory_embedder_key_env() {
        None => None,
        Some(name) => {
            let key = variable(&name).filter(|key| !key.trim().is_empty()).ok_or_else(|| {
                Failure::usage(format!("the variable `{name}` has no key for the embedder"))
                    .hint(format!("write it as `export {name}=…`"))
            })?;
            Some(ApiKey::new(key))
        }
    };
    let embeddings = Embeddings::new(&url, model, key).map_err(|error| {
        Failure::usage(error.to_string()).hint("check the section [memory.embedder] of the configuration")
    })?;
    let embedder = SharedEmbedder::new(Arc::new(embeddings));
    Ok(Some(embedder.with_patience(PATIENCE, Arc::new(SystemClock::new()))))
}

/// The embedder of a command without flags for the configuration.
///
/// # Errors
/// The configuration cannot be read, or its embedder cannot be used.
pub(crate) fn configured_embedder(command: Command) -> Result<Option<SharedEmbedder>, Failure> {
    embedder_of(&ConfigFlags::none().load(command, Path::new("."))?)
}

/// Says once that an embedder failed.
pub(crate) fn tell_trouble(embedder: Option<&SharedEmbedder>) {
    if let Some(trouble) = embedder.and_then(SharedEmbedder::new_trouble) {
        source::say(&format!("contexture: {}", without_meaning(&trouble)));
    }
}

/// What is said of an embedder that failed.
pub(crate) fn without_meaning(trouble: &str) -> String {
    format!("warning: the embedder failed, so the memory is searched by its words alone: {trouble}")
}
