//! Copies a store into an empty one of any kind.

use std::collections::HashSet;

use contexture_core::search::{SearchDocument, SearchError};
use contexture_core::store::{Batch, StoreError};
use serde::{Deserialize, Serialize};

use super::whole::{ExistingError, WholeStore};
use super::{OpenError, Place};

/// The record that marks a store as an unfinished copy.
const MARK: &str = "copy/unfinished";

/// Records that are read and written at once.
const RECORDS: usize = 100;

/// Documents that are read and written at once.
const DOCUMENTS: usize = 100;

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// Whether the copy is being compared with its original already.
    pub is_checking: bool,
    /// Records that are done.
    pub done: usize,
    /// Records in all.
    pub total: usize,
}

/// What was copied, as counted in both stores afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Copied {
    /// Records.
    pub records: usize,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Documents of the search index.
    pub documents: usize,
    /// Records and documents that were there already, from a copy that was interrupted.
    pub already: usize,
    /// The digest of everything, the same in both stores.
    pub digest: String,
}

/// Why a copy could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The original cannot be opened.
    #[error("{0}")]
    From(String, #[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The target cannot be opened.
    #[error(transparent)]
    To(#[from] OpenError),
    /// Both are the same.
    #[error("`{0}` cannot be copied into itself\nhint: name another store to copy to")]
    Same(String),
    /// The original is itself an unfinished copy.
    #[error("`{from}` is an unfinished copy of `{of}`\nhint: finish it first, with the same command that began it")]
    Unfinished {
        /// The original.
        from: String,
        /// What it is a copy of.
        of: String,
    },
    /// The target has records that the copy would mix with, or replace.
    #[error("`{0}` is not empty\nhint: copy into a new file or an empty database")]
    NotEmpty(String),
    /// The target is an unfinished copy of something else.
    #[error(
        "`{to}` is an unfinished copy of `{of}`\nhint: finish that one, or copy into a new file or an empty database"
    )]
    OtherCopy {
        /// The target.
        to: String,
        /// What it is a copy of.
        of: String,
    },
    /// The copy differs from the original, which was written to meanwhile.
    #[error(
        "the copy in `{to}` differs from `{from}`, which has changed meanwhile\nhint: stop what uses it, and repeat the command"
    )]
    Differs {
        /// The original.
        from: String,
        /// The copy.
        to: String,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A search index failed.
    #[error(transparent)]
    Search(#[from] SearchError),
}

impl From<ExistingError> for CopyError {
    fn from(error: ExistingError) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| cause.to_string().into());
        CopyError::From(error.to_string(), cause)
    }
}

#[derive(Serialize, Deserialize)]
struct CopyMark {
    format: u32,
    from: String,
}

/// Copies all records and documents of a store into an empty one. Leases are not copied.
///
/// Nothing else may write to either store meanwhile. If it is interrupted, the same call goes on where it was; until
/// then the target has the record `copy/unfinished`. At the end both are read again and compared.
///
/// # Errors
/// See [`CopyError`]. The original is never changed.
pub async fn copy(from: &Place, to: &Place, told: &mut (dyn FnMut(CopyProgress) + Send)) -> Result<Copied, CopyError> {
    if name(from) == name(to) {
        return Err(CopyError::Same(from.to_string()));
    }
    let source = WholeStore::existing(from).await?;
    let target = WholeStore::open(to).await?;
    begin(from, to, &source, &target).await?;
    let records = copy_records(&source, &target, told).await?;
    let documents = copy_documents(&source, &target).await?;
    let (one, other) = (total(&source, told).await?, total(&target, told).await?);
    if one != other {
        return Err(CopyError::Differs { from: from.to_string(), to: to.to_string() });
    }
    target.records.apply(Batch::new().delete(MARK)).await?;
    let Total { records: count, bytes, documents: indexed, digest } = one;
    Ok(Copied { records: count, bytes, documents: indexed, already: records + documents, digest })
}

/// A name that is the same for the same store, without a password.
fn name(place: &Place) -> String {
    match place {
        Place::File(path) => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        Place::Postgres(_) => place.to_string(),
    }
}

/// Marks the target, unless it has been marked for the same copy.
async fn begin(from: &Place, to: &Place, source: &WholeStore, target: &WholeStore) -> Result<(), CopyError> {
    if let Some(of) = mark(source).await? {
        return Err(CopyError::Unfinished { from: from.to_string(), of });
    }
    match mark(target).await? {
        Some(of) if of == name(from) => return Ok(()),
        Some(of) => return Err(CopyError::OtherCopy { to: to.to_string(), of }),
        None => {}
    }
    if !target.records.list("").await?.is_empty() || !target.scopes().await?.is_empty() {
        return Err(CopyError::NotEmpty(to.to_string()));
    }
    let mark = serde_json::json!({ "format": 1, "from": name(from) }).to_string();
    target.records.apply(Batch::new().expect(MARK, None).set(MARK, mark)).await?;
    Ok(())
}

/// What a store is an unfinished copy of.
async fn mark(store: &WholeStore) -> Result<Option<String>, StoreError> {
    let Some(record) = store.records.get(MARK).await? else { return Ok(None) };
    let read: Option<CopyMark> = serde_json::from_slice(&record.value).ok();
    Ok(Some(read.map_or_else(|| "something else".to_owned(), |mark| mark.from)))
}

/// Returns how many records were there already.
async fn copy_records(
    source: &WholeStore,
    target: &WholeStore,
    told: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<usize, CopyError> {
    let keys = source.records.list("").await?;
    let known: HashSet<&String> = keys.iter().collect();
    let there = target.records.list("").await?;
    let surplus = there.iter().filter(|key| *key != MARK && !known.contains(key));
    let surplus = surplus.fold(Batch::new(), |batch, key| batch.delete(key));
    if !surplus.changes.is_empty() {
        target.records.apply(surplus).await?;
    }
    let is_new = there.iter().all(|key| key == MARK);
    let (mut done, mut already) = (0, 0);
    for chunk in keys.chunks(RECORDS) {
        let values = source.records.get_many(chunk).await?;
        let held = if is_new { vec![None; chunk.len()] } else { target.records.get_many(chunk).await? };
        let mut batch = Batch::new();
        for ((key, value), held) in chunk.iter().zip(values).zip(held) {
            // A record that was deleted meanwhile makes the comparison fail.
            let Some(record) = value else { continue };
            match held {
                Some(held) if held.value == record.value => already += 1,
                _ => batch = batch.set(key, record.value),
            }
        }
        if !batch.changes.is_empty() {
            target.records.apply(batch).await?;
        }
        done += chunk.len();
        told(CopyProgress { is_checking: false, done, total: keys.len() });
    }
    Ok(already)
}

/// Returns how many documents were there already.
async fn copy_documents(source: &WholeStore, target: &WholeStore) -> Result<usize, CopyError> {
    let scopes = source.scopes().await?;
    for scope in target.scopes().await?.iter().filter(|scope| !scopes.contains(scope)) {
        target.index().clear(scope).await?;
    }
    let mut already = 0;
    for scope in &scopes {
        let mut after: Option<String> = None;
        loop {
            let page = source.documents(scope, after.as_deref(), DOCUMENTS).await?;
            let held = target.documents(scope, after.as_deref(), DOCUMENTS).await?;
            let end = if page.len() < DOCUMENTS { None } else { page.last().map(|last| last.id.clone()) };
            let in_page = |document: &&SearchDocument| end.as_ref().is_none_or(|end| document.id <= *end);
            let surplus = held.iter().filter(in_page).filter(|held| page.iter().all(|one| one.id != held.id));
            let surplus: Vec<String> = surplus.map(|document| document.id.clone()).collect();
            if !surplus.is_empty() {
                target.index().remove(scope, &surplus).await?;
            }
            let missing: Vec<SearchDocument> = page.iter().filter(|one| !held.contains(one)).cloned().collect();
            already += page.len() - missing.len();
            if !missing.is_empty() {
                target.index().add(scope, missing).await?;
            }
            after = end;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(already)
}

#[derive(Debug, PartialEq, Eq)]
struct Total {
    records: usize,
    bytes: u64,
    documents: usize,
    digest: String,
}

/// Counts everything in a store and computes its digest.
async fn total(store: &WholeStore, told: &mut (dyn FnMut(CopyProgress) + Send)) -> Result<Total, CopyError> {
    let mut hasher = blake3::Hasher::new();
    let mut feed = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    let (mut records, mut bytes, mut documents) = (0, 0, 0);
    let keys: Vec<String> = store.records.list("").await?.into_iter().filter(|key| key != MARK).collect();
    for chunk in keys.chunks(RECORDS) {
        for (key, record) in chunk.iter().zip(store.records.get_many(chunk).await?) {
            let Some(record) = record else { continue };
            feed(key.as_bytes());
            feed(&record.value);
            records += 1;
            bytes += (key.len() + record.value.len()) as u64;
        }
        told(CopyProgress { is_checking: true, done: records, total: keys.len() });
    }
    for scope in store.scopes().await? {
        let mut after: Option<String> = None;
        loop {
            let page = store.documents(&scope, after.as_deref(), DOCUMENTS).await?;
            for document in &page {
                feed(scope.as_bytes());
                feed(document.id.as_bytes());
                feed(document.metadata.to_string().as_bytes());
                feed(document.text.as_bytes());
            }
            documents += page.len();
            match page.last() {
                Some(last) if page.len() == DOCUMENTS => after = Some(last.id.clone()),
                _ => break,
            }
        }
    }
    Ok(Total { records, bytes, documents, digest: hasher.finalize().to_hex()[..32].to_owned() })
}
