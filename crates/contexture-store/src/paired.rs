//! Two stores behind one door: conversations in one file, and what is remembered of them in another that more programs share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture_core::store::{
    Batch, Change, Expectation, Fence, Lease, LeaseRequest, Record, StorageAdapter, StoreError, Version,
};
use futures_util::future::BoxFuture;

/// Set in the versions of the second store's records, so that they are told apart from those of the first.
const OF_SECOND: u64 = 1 << 62;
/// No record has this version, in either store.
const NEVER: Version = Version(u64::MAX);

type IsSecond = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A store whose records are in one of two stores, by their keys. Leases are in the first.
///
/// A batch that changes both is applied to the second store first. If the first one refuses its part, or the process dies
/// in between, the second part stays: so only records that bear it belong there, such as facts, which are merged with what
/// is found and are the same when they are written again.
#[derive(Clone)]
pub struct PairedStore {
    first: Arc<dyn StorageAdapter>,
    second: Arc<dyn StorageAdapter>,
    is_second: IsSecond,
    /// What the records of the second store were said to have as their version when a batch changed both, with the version
    /// that they have. Only the newest of a record can still be the right one.
    said: Arc<Mutex<HashMap<String, (Version, Version)>>>,
}

impl PairedStore {
    /// Records whose keys are chosen are in the second store, all others in the first.
    pub fn new(
        first: Arc<dyn StorageAdapter>,
        second: Arc<dyn StorageAdapter>,
        is_second: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { first, second, is_second: Arc::new(is_second), said: Arc::default() }
    }

    fn said(&self) -> MutexGuard<'_, HashMap<String, (Version, Version)>> {
        // Every change is a single insertion.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, key: &str) -> &dyn StorageAdapter {
        if (self.is_second)(key) { &*self.second } else { &*self.first }
    }

    /// The version that a record of the second store must have, or that it cannot be the expected one.
    fn expected(&self, expectation: Expectation) -> Result<Expectation, StoreError> {
        let Expectation { key, version } = expectation;
        let version = match version {
            None | Some(NEVER) => version,
            Some(Version(version)) if version & OF_SECOND != 0 => Some(Version(version & !OF_SECOND)),
            Some(told) => match self.said().get(&key) {
                Some((said, real)) if *said == told => Some(*real),
                _ => return Err(StoreError::Conflict { key }),
            },
        };
        Ok(Expectation { key, version })
    }

    /// The part of a batch for each store.
    fn split(&self, batch: Batch) -> Result<(Batch, Batch), StoreError> {
        let (mut first, mut second) = (Batch::new().fenced(batch.fence), Batch::new());
        for expectation in batch.expectations {
            if (self.is_second)(&expectation.key) {
                second.expectations.push(self.expected(expectation)?);
            } else {
                first.expectations.push(expectation);
            }
        }
        for change in batch.changes {
            let part = if (self.is_second)(key_of(&change)) { &mut second } else { &mut first };
            part.changes.push(change);
        }
        Ok((first, second))
    }

    async fn apply_both(&self, batch: Batch) -> Result<Version, StoreError> {
        let (first, second) = self.split(batch)?;
        if second.changes.is_empty() && second.expectations.is_empty() {
            return self.first.apply(first).await;
        }
        let is_alone = first.fence.is_none() && first.changes.is_empty() && first.expectations.is_empty();
        let keys: Vec<String> = second.changes.iter().map(|change| key_of(change).to_owned()).collect();
        let real = self.second.apply(second).await?;
        if is_alone {
            return Ok(of_second(real));
        }
        let version = self.first.apply(first).await?;
        self.said().extend(keys.into_iter().map(|key| (key, (version, real))));
        Ok(version)
    }
}

fn key_of(change: &Change) -> &str {
    match change {
        Change::Set { key, .. } | Change::Delete { key } => key,
    }
}

fn of_second(version: Version) -> Version {
    Version(version.0 | OF_SECOND)
}

fn marked(record: Record) -> Record {
    Record { version: of_second(record.version), ..record }
}

impl StorageAdapter for PairedStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let record = self.of(key).get(key).await?;
            Ok(if (self.is_second)(key) { record.map(marked) } else { record })
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let mut keys = self.first.list(prefix).await?;
            keys.retain(|key| !(self.is_second)(key));
            keys.extend(self.second.list(prefix).await?.into_iter().filter(|key| (self.is_second)(key)));
            keys.sort_unstable();
            Ok(keys)
        })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(self.apply_both(batch))
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move {
            let is_second: Vec<bool> = keys.iter().map(|key| (self.is_second)(key)).collect();
            let of = |wanted: bool| -> Vec<String> {
                keys.iter().zip(&is_second).filter(|(_, is)| **is == wanted).map(|(key, _)| key.clone()).collect()
            };
            let (first, second) = (of(false), of(true));
            let mut first = self.first.get_many(&first).await?.into_iter();
            let second = if second.is_empty() { Vec::new() } else { self.second.get_many(&second).await? };
            let mut second = second.into_iter();
            let next = |is_second: bool| match is_second {
                true => second.next().flatten().map(marked),
                false => first.next().flatten(),
            };
            Ok(is_second.into_iter().map(next).collect())
        })
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.first.acquire_lease(request)
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.first.renew_lease(fence, duration)
    }

    fn scrub(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.first.scrub().await?;
            self.second.scrub().await
        })
    }
}

#[cfg(test)]
mod tests {
    use contexture_core::store::MemoryStore;
    use contexture_core::testing::store_conformance;

    use super::*;

    fn paired(is_second: fn(&str) -> bool) -> PairedStore {
        PairedStore::new(Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()), is_second)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn is_a_store_for_all_that_is_on_one_side() {
        store_conformance(async |_| Arc::new(paired(|key| key.starts_with("facts/")))).await;
    }

    #[tokio::test]
    async fn what_a_batch_wrote_to_both_is_expected_by_the_version_that_it_returned() {
        let store = paired(|key| key.starts_with("facts/"));
        let both = |version| Batch::new().expect("facts/a", version).set("facts/a", "one").set("log", "one");
        let version = store.apply(both(None)).await.unwrap();
        let again = store.apply(both(Some(version))).await.unwrap();
        assert!(
            matches!(store.apply(both(Some(version))).await, Err(StoreError::Conflict { key }) if key == "facts/a")
        );
        let read = store.get("facts/a").await.unwrap().unwrap().version;
        assert_ne!(read, again, "versions of the two stores are never mixed up");
        let alone = store.compare_and_set("facts/a", Some(read), b"two".to_vec()).await.unwrap();
        assert!(matches!(store.apply(both(Some(again))).await, Err(StoreError::Conflict { .. })), "it is older");
        store.apply(both(Some(alone))).await.unwrap();
        let keys = ["facts/a".to_owned(), "log".to_owned(), "facts/b".to_owned()];
        let found = store.get_many(&keys).await.unwrap();
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(store.list("").await.unwrap(), ["facts/a", "log"]);
    }

    #[tokio::test]
    async fn a_refused_part_changes_nothing_in_the_first_store() {
        let store = paired(|key| key.starts_with("facts/"));
        store.set("facts/a", b"theirs".to_vec()).await.unwrap();
        let batch = Batch::new().expect("facts/a", None).set("facts/a", "ours").set("log", "ours");
        assert!(matches!(store.apply(batch).await, Err(StoreError::Conflict { .. })));
        assert!(store.get("log").await.unwrap().is_none());
        assert_eq!(store.get("facts/a").await.unwrap().unwrap().value, b"theirs");
    }
}
