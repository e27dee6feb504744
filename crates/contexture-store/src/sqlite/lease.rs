//! Leases in the file: a row for each, and a lock next to the file that shows whether its owner is alive.

use std::path::Path;
use std::time::Duration;

use contexture_core::store::{Fence, Holder, LeaseRequest, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::lease_lock::{LeaseLock, is_dead};
use super::store_error;

/// A row of the table.
struct LeaseRow {
    token: i64,
    expires_at: Duration,
    /// Whether its owner holds a lock; if the file system has none, only the expiry counts.
    is_locked: bool,
    owner: String,
}

/// An acquired lease, with the lock of its owner.
pub(super) struct AcquiredLease {
    pub(super) fence: Fence,
    pub(super) lock: Option<LeaseLock>,
}

/// Acquires the lease, unless a living owner holds one that has not expired.
pub(super) fn acquire(
    connection: &mut Connection,
    path: &Path,
    request: &LeaseRequest,
    now: Duration,
) -> Result<AcquiredLease, StoreError> {
    let failed = |error| store_error(&format!("take the lease on `{}`", request.key), &request.key, path, error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let before = find(&transaction, &request.key).map_err(failed)?;
    if let Some(row) = &before
        && row.expires_at > now
        && !(row.is_locked && is_dead(path, row.token))
    {
        return Err(StoreError::Held(Box::new(row.holder(&request.key, now))));
    }
    let last: i64 = transaction.query_row("SELECT last_version FROM counter", [], |row| row.get(0)).map_err(failed)?;
    let token = last + 1;
    // Locked before the row is visible, so that everyone who sees the row can check whether its owner is alive.
    let lock = LeaseLock::take(path, token);
    let row = LeaseRow {
        token,
        expires_at: now.saturating_add(request.duration),
        is_locked: lock.is_some(),
        owner: request.owner.clone(),
    };
    give(transaction, &request.key, &row).map_err(failed)?;
    if let Some(row) = before {
        LeaseLock::remove(path, row.token);
    }
    Ok(AcquiredLease { fence: Fence { key: request.key.clone(), token: token.unsigned_abs() }, lock })
}

/// Extends a lease to `duration` from `now`, unless another owner has acquired it.
pub(super) fn renew(
    connection: &Connection,
    path: &Path,
    fence: &Fence,
    duration: Duration,
    now: Duration,
) -> Result<(), StoreError> {
    let renewed = connection
        .prepare_cached("UPDATE leases SET expires_ms = ?3 WHERE key = ?1 AND token = ?2")
        .and_then(|mut statement| {
            let expires_ms = milliseconds(now.saturating_add(duration));
            statement.execute(params![fence.key.as_bytes(), fence.token.cast_signed(), expires_ms])
        });
    match renewed {
        Ok(0) => Err(StoreError::LeaseLost { key: fence.key.clone() }),
        Ok(_) => Ok(()),
        Err(error) => Err(store_error(&format!("renew the lease on `{}`", fence.key), &fence.key, path, error)),
    }
}

/// Removes the row of a released lease.
pub(super) fn release(connection: &Connection, fence: &Fence) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM leases WHERE key = ?1 AND token = ?2")?;
    statement.execute(params![fence.key.as_bytes(), fence.token.cast_signed()])?;
    Ok(())
}

/// Whether the lease is in force.
pub(super) fn is_in_force(connection: &Connection, fence: &Fence, now: Duration) -> rusqlite::Result<bool> {
    let row = find(connection, &fence.key)?;
    Ok(row.is_some_and(|row| row.token.unsigned_abs() == fence.token && row.expires_at > now))
}

fn find(connection: &Connection, key: &str) -> rusqlite::Result<Option<LeaseRow>> {
    let mut statement =
        connection.prepare_cached("SELECT token, expires_ms, is_locked, owner FROM leases WHERE key = ?1")?;
    let row = |row: &rusqlite::Row<'_>| {
        let (expires_ms, owner): (i64, Vec<u8>) = (row.get(1)?, row.get(3)?);
        Ok(LeaseRow {
            token: row.get(0)?,
            expires_at: Duration::from_millis(expires_ms.unsigned_abs()),
            is_locked: row.get(2)?,
            owner: String::from_utf8_lossy(&owner).into_owned(),
        })
    };
    statement.query_row([key.as_bytes()], row).optional()
}

fn give(transaction: Transaction<'_>, key: &str, row: &LeaseRow) -> rusqlite::Result<()> {
    let LeaseRow { token, expires_at, is_locked, owner } = row;
    transaction
        .prepare_cached("REPLACE INTO leases (key, token, expires_ms, is_locked, owner) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![key.as_bytes(), token, milliseconds(*expires_at), is_locked, owner.as_bytes()])?;
    transaction.execute("UPDATE counter SET last_version = ?1", [token])?;
    transaction.commit()
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl LeaseRow {
    fn holder(&self, key: &str, now: Duration) -> Holder {
        Holder {
            key: key.to_owned(),
            owner: self.owner.clone(),
            expires_at: Some(self.expires_at),
            remaining: Some(self.expires_at.saturating_sub(now)),
        }
    }
}
