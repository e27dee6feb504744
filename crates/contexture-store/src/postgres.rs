//! A store in PostgreSQL, shared by many machines.
//!
//! Tables, indexes and a sequence whose names begin with `contexture_` are made at the first use, in the first schema of
//! the search path. Only plain SQL is used, without named prepared statements, so that poolers in transaction mode and
//! databases that speak PostgreSQL's protocol can be between.

mod error;
mod pause;
mod schema;
mod connection;
mod commit;
mod lease;
mod outcome;
mod search;
mod vectors;
#[cfg(feature = "sqlite")]
mod look;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture_core::clock::Clock;
use contexture_core::store::{
    Batch, Change, Fence, Lease, LeaseRequest, MAX_KEY_BYTES, Record, StorageAdapter, StoreError, Version,
};
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;

pub use error::PostgresError;
pub use search::PostgresIndex;

use commit::Commit;
use connection::Database;

/// How many bytes of a key are indexed in order: an entry of an index holds about 2 700 bytes.
const PREFIX_BYTES: usize = 1_024;

/// Keeps records in PostgreSQL. Cheap to clone; clones share their connections.
///
/// - A batch is one transaction at the isolation level `SERIALIZABLE`, sent at once and acknowledged once. What fails for
///   a moment (a conflict of serialisation, a deadlock, a lost connection, a server that restarts) is tried again.
/// - If the response to a commit is lost, the store asks whether the batch is there before it does anything else: every
///   record names the batch that wrote it.
/// - Leases expire by the clock of the database, and are checked in the transaction of the batch that names them.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<SharedDatabase>,
}

struct SharedDatabase {
    database: Database,
    /// What tells the time in place of the database, in tests.
    clock: Option<Arc<dyn Clock>>,
    /// Leases that are being released.
    releases: Mutex<Vec<JoinHandle<()>>>,
}

impl PostgresStore {
    /// The store in a database: `postgres://user:password@host:port/database`.
    ///
    /// Nothing is connected before the first use; [`check`](Self::check) does it at once.
    ///
    /// # Errors
    /// The address is not one of PostgreSQL.
    pub fn open(url: &str) -> Result<Self, PostgresError> {
        Ok(Self::with(Database::new(url)?, None))
    }

    /// As [`open`](Self::open), but nothing is created: a database without a store is an error at the first use.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_existing(url: &str) -> Result<Self, PostgresError> {
        Ok(Self::with(Database::new(url)?.existing(), None))
    }

    /// As [`open`](Self::open), with the clock by which leases expire. All who use the database must go by the same.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_clock(url: &str, clock: Arc<dyn Clock>) -> Result<Self, PostgresError> {
        Ok(Self::with(Database::new(url)?, Some(clock)))
    }

    fn with(database: Database, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { shared: Arc::new(SharedDatabase { database, clock, releases: Mutex::default() }) }
    }

    /// Connects, and makes the tables if they are not there.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the login, or has tables of a newer version.
    pub async fn check(&self) -> Result<(), PostgresError> {
        self.shared.database.check().await
    }

    /// The size of all records whose keys begin with `prefix`: their keys and values, in bytes.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn bytes(&self, prefix: &str) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(COALESCE(sum(octet_length(key) + octet_length(value)), 0) AS BIGINT) \
                   FROM contexture_records WHERE prefix >= $1 AND ($2 IS NULL OR prefix < $2)";
        let start = &prefix.as_bytes()[..prefix.len().min(PREFIX_BYTES)];
        let parameters: connection::Parameters<'_> = &[(&start, Type::BYTEA), (&after(start), Type::BYTEA)];
        let rows = self.shared.database.query(|| format!("measure `{prefix}`"), sql, parameters).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
    }

    /// The search index in the same database.
    pub fn index(&self) -> PostgresIndex {
        PostgresIndex::new(self.shared.database.clone())
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("database", &self.shared.database).finish_non_exhaustive()
    }
}

/// What identifies a key: keys are longer than an index entry may be.
fn hash(key: &str) -> Vec<u8> {
    blake3::hash(key.as_bytes()).as_bytes().to_vec()
}

fn version(number: i64) -> Version {
    Version(number.unsigned_abs())
}

impl SharedDatabase {
    async fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Record>>, StoreError> {
        let hashes: Vec<Vec<u8>> = keys.iter().map(|key| hash(key)).collect();
        let doing = || match keys {
            [key] => format!("read `{key}`"),
            _ => format!("read {} records", keys.len()),
        };
        let sql = "SELECT hash, value, version FROM contexture_records WHERE hash = ANY($1)";
        let rows = self.database.query(doing, sql, &[(&hashes, Type::BYTEA_ARRAY)]).await?;
        let mut found: std::collections::HashMap<Vec<u8>, Record> = rows
            .into_iter()
            .map(|row| (row.get(0), Record { value: row.get(1), version: version(row.get(2)) }))
            .collect();
        let is_last = |at: usize| !hashes[at + 1..].contains(&hashes[at]);
        Ok((0..hashes.len())
            .map(|at| if is_last(at) { found.remove(&hashes[at]) } else { found.get(&hashes[at]).cloned() })
            .collect())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let start = &prefix.as_bytes()[..prefix.len().min(PREFIX_BYTES)];
        let doing = || format!("list `{prefix}`");
        let rows = match after(start) {
            Some(end) => {
                let sql = "SELECT key FROM contexture_records WHERE prefix >= $1 AND prefix < $2";
                self.database.query(doing, sql, &[(&start, Type::BYTEA), (&end, Type::BYTEA)]).await?
            }
            None => {
                let sql = "SELECT key FROM contexture_records WHERE prefix >= $1";
                self.database.query(doing, sql, &[(&start, Type::BYTEA)]).await?
            }
        };
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let key: Vec<u8> = row.get(0);
            let key = String::from_utf8(key).map_err(|_| StoreError::Corrupt {
                key: prefix.to_owned(),
                reason: "a key that starts with it is not text".to_owned(),
            })?;
            if key.starts_with(prefix) {
                keys.push(key);
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Waits until leases that were dropped are released.
    async fn settle(&self) {
        let releases = std::mem::take(&mut *self.releases.lock().unwrap_or_else(PoisonError::into_inner));
        for release in releases {
            // A release that failed is over when the lease expires.
            let _ = release.await;
        }
    }
}

/// The first bytes that come after all that start with these; `None` if there are none.
fn after(start: &[u8]) -> Option<Vec<u8>> {
    let mut end = start.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

impl StorageAdapter for PostgresStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let mut records = self.shared.get_many(&[key.to_owned()]).await?;
            Ok(records.pop().flatten())
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(self.shared.list(prefix))
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(async move {
            let keys = batch.changes.iter().map(|change| match change {
                Change::Set { key, .. } | Change::Delete { key } => key,
            });
            if let Some(key) = keys.into_iter().find(|key| key.len() > MAX_KEY_BYTES) {
                return Err(StoreError::key_too_long(key));
            }
            if batch.fence.is_some() {
                // A lease that was dropped is over, even if the database does not know yet.
                self.shared.settle().await;
            }
            let now_ms = self.shared.now_ms();
            Commit::new(batch, now_ms).run(&self.shared.database).await
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(self.shared.get_many(keys))
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move {
            self.shared.settle().await;
            lease::acquire(&self.shared, request).await
        })
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.shared.settle().await;
            lease::renew(&self.shared, fence, duration).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::after;

    #[test]
    fn the_end_of_a_prefix_is_found() {
        assert_eq!(after(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(after(&[255]), None);
        assert_eq!(after(b""), None);
    }
}
