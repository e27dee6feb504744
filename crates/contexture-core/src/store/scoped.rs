//! The part of a store that belongs to one layer.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Record, StorageAdapter, StoreError, escape_segment};
use crate::percent;

/// The records of one layer in one scope.
///
/// Keys may be any text and do not collide with those of other layers or scopes. Values are JSON.
/// What a layer writes here is durable when the call returns, independent of the step it runs in. Data that should be
/// committed together with the log belongs in the layer's state instead.
///
/// The engine stores the layer's state here too, under `state`, and backups of unreadable states under `state.backup.…`.
/// These keys are reserved; only backups can be read.
#[derive(Clone)]
pub struct ScopedStorage {
    store: Arc<dyn StorageAdapter>,
    prefix: Arc<str>,
}

impl ScopedStorage {
    /// The records below `prefix`, which ends with `/`; see [`layer_prefix`](super::layer_prefix).
    pub fn new(store: Arc<dyn StorageAdapter>, prefix: impl Into<Arc<str>>) -> Self {
        Self { store, prefix: prefix.into() }
    }

    /// Returns the value under `key`.
    ///
    /// # Errors
    /// The store failed, or what is stored does not parse as `T`.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StoreError> {
        check_read(key)?;
        let key = self.key(key);
        let record = self.store.get(&key).await?;
        record.map(|record| parse(key, &record)).transpose()
    }

    /// Returns the values under `keys`, in their order, all from one moment.
    ///
    /// # Errors
    /// The store failed, or what is stored under one of them does not parse as `T`.
    pub async fn get_many<T: DeserializeOwned>(
        &self,
        keys: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Option<T>>, StoreError> {
        keys.iter().try_for_each(|key| check_read(key.as_ref()))?;
        let keys: Vec<String> = keys.iter().map(|key| self.key(key.as_ref())).collect();
        let records = self.store.get_many(&keys).await?;
        let values = keys.into_iter().zip(records);
        values.map(|(key, record)| record.map(|record| parse(key, &record)).transpose()).collect()
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// The store failed, or the value cannot be serialised.
    pub async fn set<T: Serialize>(&self, key: &str, value: &T) -> Result<(), StoreError> {
        check_write(key)?;
        let key = self.key(key);
        let value = serde_json::to_vec(value)
            .map_err(|error| StoreError::Io { doing: format!("write `{key}` as JSON"), source: error.into() })?;
        self.store.set(&key, value).await.map(|_| ())
    }

    /// Removes `key` if it exists.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        check_write(key)?;
        self.store.delete(&self.key(key)).await
    }

    /// Returns the layer's keys that start with `prefix` (empty: all), in byte order of their stored form.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let keys = self.store.list(&self.prefix).await?;
        let own = keys.iter().filter_map(|key| unescape_segment(key.strip_prefix(&*self.prefix)?));
        Ok(own.filter(|key| key.starts_with(prefix)).collect())
    }

    /// The full key of the layer's `key`.
    pub fn key(&self, key: &str) -> String {
        format!("{}{}", self.prefix, escape_segment(key))
    }

    /// The underlying store.
    pub fn adapter(&self) -> &Arc<dyn StorageAdapter> {
        &self.store
    }
}

/// The key of the layer's state.
pub(crate) const STATE_KEY: &str = "state";
/// The prefix of the keys of backups.
pub(crate) const BACKUP_PREFIX: &str = "state.backup.";

fn check_read(key: &str) -> Result<(), StoreError> {
    if key == STATE_KEY { Err(StoreError::Reserved { key: key.to_owned() }) } else { Ok(()) }
}

fn check_write(key: &str) -> Result<(), StoreError> {
    let is_reserved = key == STATE_KEY || key.starts_with(BACKUP_PREFIX);
    if is_reserved { Err(StoreError::Reserved { key: key.to_owned() }) } else { Ok(()) }
}

fn parse<T: DeserializeOwned>(key: String, record: &Record) -> Result<T, StoreError> {
    serde_json::from_slice(&record.value).map_err(|error| StoreError::Corrupt { key, reason: error.to_string() })
}

/// Reverses [`escape_segment`]; `None` for text that is not a result of it.
pub fn unescape_segment(segment: &str) -> Option<String> {
    if segment == "%" {
        return Some(String::new());
    }
    percent::decoded(segment)
}
