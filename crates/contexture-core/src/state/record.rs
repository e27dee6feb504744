//! The stored form of a layer's state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::layer::{StateCodec, StateValue};
use crate::store::{BACKUP_PREFIX, STATE_KEY, ScopedStorage, Version};

/// The format number of a state record.
const STATE_FORMAT: u32 = 1;

/// The full key of a layer's state.
pub(crate) fn state_key(storage: &ScopedStorage) -> String {
    storage.key(STATE_KEY)
}

/// The key of the backup of an unreadable record, named after its version.
pub(crate) fn backup_key(storage: &ScopedStorage, version: Version) -> String {
    storage.key(&format!("{BACKUP_PREFIX}{}", version.0))
}

/// Encodes a state as a record.
///
/// # Errors
/// Says why it cannot be serialised.
pub(crate) fn encode_record(state: &StateValue) -> Result<Vec<u8>, String> {
    let state = guard(|| state.encode().map_err(|error| error.to_string()))?;
    let mut record = format!("{{\"format\":{STATE_FORMAT},\"state\":").into_bytes();
    record.extend(state);
    record.push(b'}');
    Ok(record)
}

/// Reads the state of a record.
///
/// # Errors
/// Says why it is not a valid record, or not a state of this layer.
pub(crate) fn decode_record(layer: &dyn StateCodec, record: &[u8]) -> Result<StateValue, String> {
    let state = state_of(record)?;
    guard(|| layer.decode(state.as_bytes()))
}

/// The JSON of the state within a record.
fn state_of(record: &[u8]) -> Result<&str, String> {
    #[derive(Deserialize)]
    struct StateRecordFormat {
        format: u32,
    }
    #[derive(Deserialize)]
    struct StoredState<'a> {
        #[serde(borrow)]
        state: &'a RawValue,
    }
    let StateRecordFormat { format } = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    if format != STATE_FORMAT {
        return Err(format!("it has format {format}, and this program knows {STATE_FORMAT}"));
    }
    let StoredState { state } = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    Ok(state.get())
}

/// Runs code of a layer; a panic becomes an error.
pub(super) fn guard<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("the layer panicked".to_owned()))
}
