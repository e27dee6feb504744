//! Damage of a store: what tells of it, and what is found while the store is used. The next start looks through the whole
//! file for that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use contexture_store::database::{is_damage, quick_check};
use rusqlite::{Connection, InterruptHandle};

use super::tables;
use crate::write::error::StoreError;

/// The damage of a store, as far as it was found.
pub(super) struct NotedDamage {
    path: PathBuf,
    said: Mutex<Option<String>>,
}

impl NotedDamage {
    /// Nothing is known, or that a damaged store was put aside.
    pub(super) fn new(path: &Path, note: Option<String>) -> Self {
        Self { path: path.to_owned(), said: Mutex::new(note) }
    }

    /// What is said of it.
    pub(super) fn said(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes an error, if it tells of damage.
    pub(super) fn note(&self, error: &StoreError) {
        let Some(damage) = damage_of(error) else { return };
        let damage = format!(
            "the store `{}` is damaged ({damage}): the next start keeps what is whole; `contexture store check` names what is \
             damaged",
            self.path.display()
        );
        tracing::warn!("{damage}");
        // If it cannot be written, the next start finds only what it reads.
        let _ = fs::write(mark_of(&self.path), &damage);
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(damage);
    }

    /// Looks through a file in a thread of its own: it is so large that a start does not wait for it.
    pub(super) fn look(self: Arc<Self>, connection: Connection) -> io::Result<InterruptHandle> {
        let handle = connection.get_interrupt_handle();
        std::thread::Builder::new().name("store-check".to_owned()).spawn(move || {
            if let Err(error) = look_through(&connection) {
                self.note(&error);
            }
        })?;
        Ok(handle)
    }
}

/// Fails if the file is not what was written.
pub(super) fn look_through(connection: &Connection) -> Result<(), StoreError> {
    if let Some(found) = quick_check(connection)? {
        return Err(StoreError::Damaged(found));
    }
    match tables::damaged_rows(connection, 1)?.1.pop() {
        Some(row) => Err(StoreError::Damaged(row)),
        None => Ok(()),
    }
}

/// What an error says about damage, if it does.
pub(super) fn damage_of(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Damaged(damage) => Some(damage.clone()),
        StoreError::Unreadable(error) => Some(format!("something in it cannot be read: {error}")),
        StoreError::Database(
            error @ (rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)),
        ) => Some(format!("something in it cannot be read: {error}")),
        StoreError::Database(error) if is_damage(error) => Some(error.to_string()),
        _ => None,
    }
}

/// The file that says that a store was found to be damaged.
pub(super) fn mark_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-damaged");
    PathBuf::from(name)
}
