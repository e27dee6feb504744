//! Removes a thread from the store: its log, its decisions, and the states of layers in its scope.

use super::roster::Roster;
use crate::id::ThreadId;
use crate::layer::MemoryScope;
use crate::state::MAX_CONFLICTS;
use crate::store::{Batch, Fence, Key, StorageAdapter, StoreError, layer_prefix};

/// Removes a thread in one batch; `false` if it did not exist.
///
/// With a fence, only while that lease is held. Only records of the layers in the roster are removed: those of unknown
/// layers cannot be found.
pub(crate) async fn remove_thread(
    store: &dyn StorageAdapter,
    roster: &Roster,
    thread: &ThreadId,
    fence: Option<&Fence>,
) -> Result<bool, StoreError> {
    let of_thread = Key::new("threads").then(thread.as_str());
    let head = of_thread.clone().then("head").into_string();
    let mut prefixes = vec![of_thread.into_prefix()];
    prefixes.extend(
        roster
            .by_slot()
            .map(|layer| layer_prefix(layer.spec().id.as_str(), MemoryScope::Thread.as_str(), thread.as_str())),
    );
    let mut conflicts = 0;
    loop {
        let version = store.get(&head).await?.map(|record| record.version);
        let mut batch = Batch::new().expect(head.clone(), version);
        batch.fence = fence.cloned();
        for prefix in &prefixes {
            batch = store.list(prefix).await?.into_iter().fold(batch, Batch::delete);
        }
        if batch.changes.is_empty() {
            return Ok(false);
        }
        match store.apply(batch).await {
            // Another writer changed it in the meantime, and there may be more to remove now.
            Err(StoreError::Conflict { .. }) if conflicts < MAX_CONFLICTS => conflicts += 1,
            applied => return applied.map(|_| true),
        }
    }
}
