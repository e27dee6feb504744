//! Sums of rows, by which damage is noticed that the database itself does not see.

use rusqlite::types::ValueRef;

use super::error::StoreError;

/// A sum of the parts of a row.
pub(super) fn sum(parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}

/// The parts of a number.
pub(super) fn number(n: i64) -> [u8; 8] {
    n.to_le_bytes()
}

/// A value of a row as a part.
pub(super) fn part(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Integer(n) => number(n).to_vec(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        ValueRef::Null | ValueRef::Real(_) => Vec::new(),
    }
}

/// Parts as they are summed.
pub(super) fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// Fails if a row is not what was written. Rows of older versions have no sum.
pub(super) fn verified(found: Option<Vec<u8>>, parts: &[&[u8]], what: &str) -> Result<(), StoreError> {
    match found {
        Some(found) if found != sum(parts) => Err(StoreError::Damaged(format!("{what} is not what was written"))),
        _ => Ok(()),
    }
}
