//! Removes a thread from the store: its log, its decisions, and the states of layers in its scope.

use super::roster::Roster;
use super::thread::{ChildRecord, child_record};
use crate::id::{LayerId, ThreadId};
use crate::layer::MemoryScope;
use crate::state::MAX_CONFLICTS;
use crate::store::{Batch, Fence, Key, StorageAdapter, StoreError, layer_prefix, unescape_segment};

/// Removes a thread in one batch; `false` if it did not exist.
///
/// With a fence, only while that lease is held. Only records of these layers are removed: those of unknown layers cannot
/// be found.
pub(crate) async fn remove_thread(
    store: &dyn StorageAdapter,
    layers: &[LayerId],
    thread: &ThreadId,
    fence: Option<&Fence>,
) -> Result<bool, StoreError> {
    let of_thread = Key::new("threads").then(thread.as_str());
    let head = of_thread.clone().then("head").into_string();
    let mut prefixes = vec![of_thread.into_prefix()];
    let of_layer = |id: &LayerId| layer_prefix(id.as_str(), MemoryScope::Thread.as_str(), thread.as_str());
    prefixes.extend(layers.iter().map(of_layer));
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

/// Removes the threads of children of this thread that were not joined, and of their children.
pub(crate) async fn remove_children(store: &dyn StorageAdapter, thread: &ThreadId) -> Result<(), StoreError> {
    // Their names begin with this one, but so may those of threads that the program named.
    let prefix = Key::new("threads").then(&format!("{thread}/")).into_string();
    let heads: Vec<String> = store.list(&prefix).await?.into_iter().filter(|key| key.ends_with("/head")).collect();
    for (key, head) in heads.iter().zip(store.get_many(&heads).await?) {
        let Some(ChildRecord { ancestors, layers }) = head.as_ref().and_then(child_record) else { continue };
        let name = key.split('/').nth(1).and_then(unescape_segment);
        if let Some(name) = name.filter(|_| ancestors.contains(thread)) {
            remove_thread(store, &layers, &ThreadId::from(name), None).await?;
        }
    }
    Ok(())
}

impl Roster {
    /// The ids of all layers.
    pub(crate) fn ids(&self) -> Vec<LayerId> {
        self.by_registration().map(|layer| layer.spec().id.clone()).collect()
    }
}
