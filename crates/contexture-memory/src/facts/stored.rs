//! The facts in a store, read and changed without an engine.

use std::sync::Arc;

use contexture_core::error::BoxError;
use contexture_core::store::{Batch, Key, StorageAdapter, StoreError, Version, layer_prefix, unescape_segment};
use serde::{Deserialize, Serialize};

use super::by_hand::move_fact;
use super::fact::FactId;
use super::refusal::Refusal;
use super::set::Facts;

/// The format of a state record, as the engine writes it.
const FORMAT: u32 = 1;
/// How often a change is tried again because another writer was first.
const MAX_TRIES: usize = 8;

/// Where facts are kept: the state of one layer in one scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The layer's id.
    pub layer: String,
    /// The kind of the scope: `thread`, `resource` (of a user), `resource.project`, `global`.
    pub scope: String,
    /// The thread or the resource.
    pub owner: String,
}

impl Place {
    /// The state of a layer in a scope.
    pub fn new(layer: impl Into<String>, scope: impl Into<String>, owner: impl Into<String>) -> Self {
        Self { layer: layer.into(), scope: scope.into(), owner: owner.into() }
    }

    /// The key of the state's record.
    pub fn key(&self) -> String {
        format!("{}state", layer_prefix(&self.layer, &self.scope, &self.owner))
    }

    /// The key that a search index has the documents of this scope under: `resource:ann`.
    pub fn scope_key(&self) -> String {
        let scope = contexture_core::store::escape_segment(&self.scope).replace(':', "%3A");
        format!("{scope}:{}", self.owner)
    }
}

/// Why facts in a store could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The change is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The facts in a store.
#[derive(Clone)]
pub struct Remembered {
    store: Arc<dyn StorageAdapter>,
}

#[derive(Serialize, Deserialize)]
struct FactsRecord<S> {
    format: u32,
    state: S,
}

impl Remembered {
    /// The facts of a store.
    pub fn new(store: Arc<dyn StorageAdapter>) -> Self {
        Self { store }
    }

    /// All places where facts are kept, in order.
    ///
    /// # Errors
    /// The store failed.
    pub async fn places(&self) -> Result<Vec<Place>, StoreError> {
        let mut places = Vec::new();
        for key in self.store.list(&Key::new("layers").into_prefix()).await? {
            let segments: Option<Vec<String>> = key.split('/').map(unescape_segment).collect();
            let Some([_, layer, scope, owner, name]) = segments.as_deref() else { continue };
            if name == "state" {
                let place = Place { layer: layer.clone(), scope: scope.clone(), owner: owner.clone() };
                if self.load(&place).await?.is_some() {
                    places.push(place);
                }
            }
        }
        places.sort();
        Ok(places)
    }

    /// The facts at a place; `None` if nothing is kept there, or something else.
    ///
    /// # Errors
    /// The store failed.
    pub async fn load(&self, place: &Place) -> Result<Option<Facts>, StoreError> {
        let record = self.store.get(&place.key()).await?;
        Ok(record.and_then(|record| parsed(&record.value)))
    }

    /// Changes the facts at a place, all or nothing, and also if others write at the same time.
    ///
    /// # Errors
    /// The change is refused, or the store failed.
    pub async fn change<T>(
        &self,
        place: &Place,
        mut change: impl FnMut(&mut Facts) -> Result<T, Refusal>,
    ) -> Result<T, ChangeError> {
        let mut tries = 0;
        loop {
            let (mut facts, version) = self.read(place).await?;
            let done = change(&mut facts)?;
            match self.store.apply(with(Batch::new(), place, version, &facts)?).await {
                Ok(_) => return Ok(done),
                Err(StoreError::Conflict { .. }) if tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves a current fact to another place; see [`move_fact`](super::move_fact). Both change together or not at all.
    ///
    /// # Errors
    /// It was not confirmed, it is refused, or the store failed.
    pub async fn move_fact(
        &self,
        from: &Place,
        to: &Place,
        id: &FactId,
        is_confirmed: bool,
        at_ms: u64,
    ) -> Result<FactId, ChangeError> {
        let mut tries = 0;
        loop {
            let (mut source, source_version) = self.read(from).await?;
            let (mut target, target_version) = self.read(to).await?;
            let moved = move_fact(&mut source, &mut target, id, is_confirmed, at_ms)?;
            let batch = with(Batch::new(), from, source_version, &source)?;
            match self.store.apply(with(batch, to, target_version, &target)?).await {
                Ok(_) => return Ok(moved),
                Err(StoreError::Conflict { .. }) if tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn read(&self, place: &Place) -> Result<(Facts, Option<Version>), StoreError> {
        let key = place.key();
        match self.store.get(&key).await? {
            Some(record) => Ok((parsed(&record.value).ok_or_else(|| corrupt(&key))?, Some(record.version))),
            None => Ok((Facts::default(), None)),
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn StorageAdapter> {
        &self.store
    }
}

/// A batch that also writes facts, if nobody changed them since they had this version.
fn with(batch: Batch, place: &Place, version: Option<Version>, facts: &Facts) -> Result<Batch, StoreError> {
    let key = place.key();
    let value = serde_json::to_vec(&FactsRecord { format: FORMAT, state: facts })
        .map_err(|error| StoreError::Io { doing: format!("write `{key}` as JSON"), source: error.into() })?;
    Ok(batch.expect(key.clone(), version).set(key, value))
}

fn parsed(record: &[u8]) -> Option<Facts> {
    let stored: FactsRecord<Facts> = serde_json::from_slice(record).ok()?;
    (stored.format == FORMAT).then_some(stored.state)
}

fn corrupt(key: &str) -> StoreError {
    let source: BoxError = "it is not what this version writes".into();
    StoreError::Io { doing: format!("read `{key}`"), source }
}
