//! What a model wrote for itself, read in a store without an engine: the files of `tool-memory` and the notes of
//! `working-memory`.

use contexture_core::store::{Batch, Key, StorageAdapter, StoreError, unescape_segment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::Place;
use crate::layers::tool_memory::{self, ToolMemoryState};
use crate::layers::working_memory::{self, Notes};

/// The format of a state record, as the engine writes it.
const FORMAT: u32 = 1;
/// How often a change is tried again because another writer was first.
const MAX_TRIES: usize = 100;

/// A text that a model keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// Where it is kept.
    pub place: Place,
    /// The path of a file, or `notes`.
    pub name: String,
    /// What it says.
    pub text: String,
}

#[derive(Serialize, Deserialize)]
struct NotesRecord<S> {
    format: u32,
    state: S,
}

/// All files and notes in a store, in order.
///
/// # Errors
/// The store failed.
pub async fn notes(store: &dyn StorageAdapter) -> Result<Vec<Note>, StoreError> {
    let mut notes = Vec::new();
    for key in store.list(&Key::new("layers").into_prefix()).await? {
        let segments: Option<Vec<String>> = key.split('/').map(unescape_segment).collect();
        let Some([_, layer, scope, owner, name]) = segments.as_deref() else { continue };
        if name != "state" {
            continue;
        }
        let Some(record) = store.get(&key).await? else { continue };
        let place = Place::new(layer.as_str(), scope.as_str(), owner.as_str());
        notes.extend(texts(layer, &record.value).into_iter().map(|(name, text)| Note {
            place: place.clone(),
            name,
            text,
        }));
    }
    notes.sort_by(|one, other| (&one.place, &one.name).cmp(&(&other.place, &other.name)));
    Ok(notes)
}

/// The texts of a state, by name; none of other layers, or of another format.
fn texts(layer: &str, record: &[u8]) -> Vec<(String, String)> {
    if layer == tool_memory::ID {
        let stored = serde_json::from_slice::<NotesRecord<ToolMemoryState>>(record).ok();
        let state = stored.filter(|stored| stored.format == FORMAT).map(|stored| stored.state);
        return state.iter().flat_map(ToolMemoryState::texts).collect();
    }
    let Some(NotesRecord { format: FORMAT, state }) = serde_json::from_slice::<NotesRecord<Value>>(record).ok() else {
        return Vec::new();
    };
    // Such a layer may have another id; a state that is a text is that of no other layer.
    let notes = match state {
        Value::String(text) => Notes::Text(text),
        Value::Object(object) if layer.starts_with(working_memory::ID) => Notes::Object(object),
        _ => return Vec::new(),
    };
    if notes.is_empty() { Vec::new() } else { vec![("notes".to_owned(), notes.to_text())] }
}

/// Deletes a file of `tool-memory`, or a directory with all that is in it; `false` if it is not there.
///
/// # Errors
/// The store failed.
pub async fn delete_file(store: &dyn StorageAdapter, place: &Place, path: &str) -> Result<bool, StoreError> {
    let key = place.key();
    for _ in 0..MAX_TRIES {
        let Some(record) = store.get(&key).await? else { return Ok(false) };
        let Ok(mut stored) = serde_json::from_slice::<NotesRecord<ToolMemoryState>>(&record.value) else {
            return Ok(false);
        };
        if stored.format != FORMAT || !stored.state.delete(path) {
            return Ok(false);
        }
        let value = serde_json::to_vec(&stored)
            .map_err(|error| StoreError::Io { doing: format!("write `{key}` as JSON"), source: error.into() })?;
        match store.apply(Batch::new().expect(key.clone(), Some(record.version)).set(key.clone(), value)).await {
            Err(StoreError::Conflict { .. }) => {}
            applied => return applied.map(|_| true),
        }
    }
    Err(StoreError::Conflict { key })
}
