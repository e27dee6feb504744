//! Commits a batch as one transaction.

use std::collections::{BTreeMap, HashMap};

use contexture_core::store::{Batch, Change, Expectation, Fence, StoreError, Version};
use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::connection::{Database, Parameters, Retries, Trouble, is_passing, is_undone};
use super::{PREFIX_BYTES, hash, version};

/// The time of the database, unless another one is given.
pub(super) const NOW_MS: &str = "COALESCE($1, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))";

/// Divides by zero if the lease is not held. The lock keeps others from acquiring it before the transaction ends.
fn check_fence() -> String {
    format!(
        "SELECT 1 / count(*) FROM (SELECT token FROM contexture_leases \
         WHERE hash = $2 AND token = $3 AND expires_ms > {NOW_MS} FOR SHARE) AS held"
    )
}

/// Divides by zero unless all these records have these versions.
const CHECK_VERSIONS: &str = "SELECT 1 / (CASE WHEN count(*) = $3 THEN 1 ELSE 0 END) FROM \
     (SELECT r.hash FROM contexture_records AS r JOIN unnest($1, $2) AS e (hash, version) \
      ON r.hash = e.hash AND r.version = e.version FOR UPDATE OF r) AS expected";

/// Divides by zero if any of these records exists.
const CHECK_ABSENT: &str =
    "SELECT 1 / (CASE WHEN count(*) = 0 THEN 1 ELSE 0 END) FROM contexture_records WHERE hash = ANY($1)";

const NEXT_VERSION: &str = "SELECT nextval('contexture_versions')";

const SET: &str = "INSERT INTO contexture_records (hash, version, writer, prefix, key, value) \
     SELECT s.hash, currval('contexture_versions'), $1, s.prefix, s.key, s.value \
     FROM unnest($2, $3, $4, $5) AS s (hash, prefix, key, value) \
     ON CONFLICT (hash) DO UPDATE SET version = EXCLUDED.version, writer = EXCLUDED.writer, value = EXCLUDED.value";

const DELETE: &str = "DELETE FROM contexture_records WHERE hash = ANY($1)";

/// A batch that can be sent repeatedly.
pub(super) struct Commit {
    /// Identifies the batch, so that a record shows whether this batch wrote it.
    writer: Vec<u8>,
    fence: Option<Fence>,
    now_ms: Option<i64>,
    expectations: Vec<Expectation>,
    sets: RecordColumns,
    deleted: Vec<Vec<u8>>,
    /// For error messages.
    first_key: String,
}

/// Columns of the records that are set.
#[derive(Default)]
struct RecordColumns {
    hashes: Vec<Vec<u8>>,
    prefixes: Vec<Vec<u8>>,
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

/// The result of an attempt.
enum Tried {
    Done(Version),
    /// A condition does not hold.
    Refused,
    /// It was rolled back, or never started.
    Undone(Trouble),
    /// It is not known whether it was committed.
    Lost(Trouble),
}

impl Commit {
    pub(super) fn new(batch: Batch, now_ms: Option<i64>) -> Self {
        let Batch { fence, expectations, changes } = batch;
        let first_key = changes.first().map(|change| match change {
            Change::Set { key, .. } | Change::Delete { key } => key.clone(),
        });
        // The last change of a key wins. Sorted, so that two batches lock records in the same order.
        let mut last: BTreeMap<Vec<u8>, (String, Option<Vec<u8>>)> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Set { key, value } => last.insert(hash(&key), (key, Some(value))),
                Change::Delete { key } => last.insert(hash(&key), (key, None)),
            };
        }
        let (mut sets, mut deleted) = (RecordColumns::default(), Vec::new());
        for (hash, (key, value)) in last {
            match value {
                Some(value) => sets.push(hash, key, value),
                None => deleted.push(hash),
            }
        }
        let writer = uuid::Uuid::now_v7().into_bytes().to_vec();
        let first_key = first_key.or_else(|| Some(expectations.first()?.key.clone())).unwrap_or_default();
        Self { writer, fence, now_ms, expectations, sets, deleted, first_key }
    }

    pub(super) async fn run(&self, database: &Database) -> Result<Version, StoreError> {
        let (mut retries, mut may_be_there) = (Retries::default(), false);
        loop {
            let trouble = match self.attempt(database, may_be_there).await {
                Tried::Done(version) => return Ok(version),
                Tried::Refused if may_be_there => {
                    // It may have been applied, and its records replaced by another writer since.
                    let unknown = "the response to a commit was lost, and whether it was applied is not known";
                    return Err(self.unknown(database, unknown));
                }
                Tried::Refused => return Err(self.reason(database).await?),
                Tried::Undone(trouble) => trouble,
                Tried::Lost(trouble) => {
                    may_be_there = true;
                    trouble
                }
            };
            retries.after(trouble).await.map_err(|trouble| database.failed(self.doing(), trouble))?;
        }
    }

    fn doing(&self) -> String {
        format!("write `{}`", self.first_key)
    }

    fn unknown(&self, database: &Database, what: &str) -> StoreError {
        StoreError::Io { doing: format!("{} in {database:?}", self.doing()), source: what.into() }
    }

    async fn attempt(&self, database: &Database, may_be_there: bool) -> Tried {
        let client = match database.client().await {
            Ok(client) => client,
            Err(trouble) => return Tried::Undone(trouble),
        };
        if may_be_there {
            match self.find(&client).await {
                Ok(Some(version)) => return Tried::Done(version),
                Ok(None) => {}
                Err(error) => return Tried::Lost(Trouble::Query(error)),
            }
        }
        match self.send(&client).await {
            Ok(version) => Tried::Done(version),
            Err(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => Tried::Refused,
            Err(error) if is_passing(&error) && !is_undone(&error) => Tried::Lost(Trouble::Query(error)),
            Err(error) => Tried::Undone(Trouble::Query(error)),
        }
    }

    /// The version of this batch, if it was committed.
    async fn find(&self, client: &Client) -> Result<Option<Version>, Error> {
        let Some(hash) = self.sets.hashes.first() else { return Ok(None) };
        // The lock waits for a transaction that is still in progress on the lost connection.
        let sql = "SELECT version FROM contexture_records WHERE hash = $1 AND writer = $2 FOR SHARE";
        let rows = client.query_typed(sql, &[(hash, Type::BYTEA), (&self.writer, Type::BYTEA)]).await?;
        Ok(rows.first().map(|row| version(row.get(0))))
    }

    /// Sends the whole transaction at once. The first failure makes the server roll it back, even if the rest has
    /// arrived already.
    async fn send(&self, client: &Client) -> Result<Version, Error> {
        let (held, held_versions, absent) = self.expected();
        let count = i64::try_from(held.len()).unwrap_or(i64::MAX);
        let mut statements: Vec<BoxFuture<'_, Result<Option<i64>, Error>>> = Vec::new();
        statements.push(plain(client, "BEGIN ISOLATION LEVEL SERIALIZABLE"));
        if let Some(fence) = &self.fence {
            statements.push(Box::pin(self.check_fence(client, fence)));
        }
        if !held.is_empty() {
            let parameters = (&held, &held_versions, count);
            statements.push(Box::pin(async move {
                let (hashes, versions, count) = parameters;
                let parameters: Parameters<'_> =
                    &[(hashes, Type::BYTEA_ARRAY), (versions, Type::INT8_ARRAY), (&count, Type::INT8)];
                client.query_typed(CHECK_VERSIONS, parameters).await.map(|_| None)
            }));
        }
        if !absent.is_empty() {
            let absent = &absent;
            statements.push(Box::pin(async move {
                client.query_typed(CHECK_ABSENT, &[(absent, Type::BYTEA_ARRAY)]).await.map(|_| None)
            }));
        }
        statements.push(Box::pin(async move {
            let rows = client.query_typed(NEXT_VERSION, &[]).await?;
            Ok(rows.first().map(|row| row.get(0)))
        }));
        if !self.sets.hashes.is_empty() {
            statements.push(Box::pin(self.set(client)));
        }
        if !self.deleted.is_empty() {
            statements.push(Box::pin(async move {
                client.query_typed(DELETE, &[(&self.deleted, Type::BYTEA_ARRAY)]).await.map(|_| None)
            }));
        }
        statements.push(plain(client, "COMMIT"));
        // Each is sent when it is first polled, in this order, without waiting for the previous one.
        let mut made = None;
        for result in join_all(statements).await {
            made = result?.or(made);
        }
        Ok(version(made.unwrap_or_default()))
    }

    async fn check_fence(&self, client: &Client, fence: &Fence) -> Result<Option<i64>, Error> {
        let (hash, token) = (hash(&fence.key), fence.token.cast_signed());
        let parameters: Parameters<'_> = &[(&self.now_ms, Type::INT8), (&hash, Type::BYTEA), (&token, Type::INT8)];
        client.query_typed(&check_fence(), parameters).await.map(|_| None)
    }

    async fn set(&self, client: &Client) -> Result<Option<i64>, Error> {
        let RecordColumns { hashes, prefixes, keys, values } = &self.sets;
        let parameters: Parameters<'_> = &[
            (&self.writer, Type::BYTEA),
            (hashes, Type::BYTEA_ARRAY),
            (prefixes, Type::BYTEA_ARRAY),
            (keys, Type::BYTEA_ARRAY),
            (values, Type::BYTEA_ARRAY),
        ];
        client.query_typed(SET, parameters).await.map(|_| None)
    }

    /// Records that must have a version, and those that must not exist.
    fn expected(&self) -> (Vec<Vec<u8>>, Vec<i64>, Vec<Vec<u8>>) {
        let (mut held, mut absent) = (BTreeMap::new(), Vec::new());
        for Expectation { key, version } in &self.expectations {
            match version {
                Some(version) => {
                    let number = version.0.cast_signed();
                    // One record cannot have two expected versions, so this never matches.
                    let other = held.insert(hash(key), number);
                    if other.is_some_and(|other| other != number) {
                        held.insert(hash(key), -1);
                    }
                }
                None => absent.push(hash(key)),
            }
        }
        let (held, versions) = held.into_iter().unzip();
        (held, versions, absent)
    }

    /// Finds the condition that does not hold.
    async fn reason(&self, database: &Database) -> Result<StoreError, StoreError> {
        if let Some(fence) = &self.fence {
            let (hash, token) = (hash(&fence.key), fence.token.cast_signed());
            let sql =
                format!("SELECT token FROM contexture_leases WHERE hash = $2 AND token = $3 AND expires_ms > {NOW_MS}");
            let parameters: Parameters<'_> = &[(&self.now_ms, Type::INT8), (&hash, Type::BYTEA), (&token, Type::INT8)];
            if database.query(|| self.doing(), &sql, parameters).await?.is_empty() {
                return Ok(StoreError::LeaseLost { key: fence.key.clone() });
            }
        }
        let hashes: Vec<Vec<u8>> = self.expectations.iter().map(|expectation| hash(&expectation.key)).collect();
        let sql = "SELECT hash, version FROM contexture_records WHERE hash = ANY($1)";
        let rows = database.query(|| self.doing(), sql, &[(&hashes, Type::BYTEA_ARRAY)]).await?;
        let found: HashMap<Vec<u8>, Version> = rows.iter().map(|row| (row.get(0), version(row.get(1)))).collect();
        let broken = self
            .expectations
            .iter()
            .zip(&hashes)
            .find(|(expected, hash)| found.get(*hash) != expected.version.as_ref());
        // By now all may hold again, but the attempt failed, so it is still a conflict.
        let key = broken.map(|(expected, _)| &expected.key).or(self.expectations.first().map(|expected| &expected.key));
        Ok(StoreError::Conflict { key: key.unwrap_or(&self.first_key).clone() })
    }
}

impl RecordColumns {
    fn push(&mut self, hash: Vec<u8>, key: String, value: Vec<u8>) {
        let key = key.into_bytes();
        self.hashes.push(hash);
        self.prefixes.push(key[..key.len().min(PREFIX_BYTES)].to_vec());
        self.keys.push(key);
        self.values.push(value);
    }
}

fn plain<'a>(client: &'a Client, statement: &'a str) -> BoxFuture<'a, Result<Option<i64>, Error>> {
    Box::pin(async move { client.batch_execute(statement).await.map(|()| None) })
}
