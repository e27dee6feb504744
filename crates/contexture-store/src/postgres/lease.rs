//! Leases by the clock of the database.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use contexture_core::store::{Fence, Holder, Lease, LeaseRequest, StoreError};
use tokio_postgres::types::Type;

use super::commit::NOW_MS;
use super::connection::Parameters;
use super::{SharedDatabase, hash};

impl SharedDatabase {
    /// The time of the clock that replaces the database's.
    pub(super) fn now_ms(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| milliseconds(clock.now()))
    }
}

/// Acquires a lease that nobody holds or that has expired.
pub(super) async fn acquire(shared: &Arc<SharedDatabase>, request: LeaseRequest) -> Result<Lease, StoreError> {
    let (hash, key, owner) = (hash(&request.key), request.key.as_bytes(), request.owner.as_bytes());
    let (now, duration) = (shared.now_ms(), milliseconds(request.duration));
    let take = format!(
        "INSERT INTO contexture_leases (hash, key, token, expires_ms, owner) \
         VALUES ($2, $3, nextval('contexture_versions'), {NOW_MS} + $4, $5) \
         ON CONFLICT (hash) DO UPDATE SET token = EXCLUDED.token, expires_ms = EXCLUDED.expires_ms, owner = EXCLUDED.owner \
         WHERE contexture_leases.expires_ms <= {NOW_MS} RETURNING token"
    );
    let look = format!("SELECT owner, expires_ms, {NOW_MS} FROM contexture_leases WHERE hash = $2");
    let doing = || format!("take the lease on `{}`", request.key);
    loop {
        let parameters: Parameters<'_> = &[
            (&now, Type::INT8),
            (&hash, Type::BYTEA),
            (&key, Type::BYTEA),
            (&duration, Type::INT8),
            (&owner, Type::BYTEA),
        ];
        // If the response is lost, the lease may be acquired without anyone knowing; then it expires.
        let rows = shared.database.query(doing, &take, parameters).await?;
        if let Some(row) = rows.first() {
            let token: i64 = row.get(0);
            let fence = Fence { key: request.key.clone(), token: token.unsigned_abs() };
            return Ok(Lease::new(fence.clone(), PostgresLease { shared: shared.clone(), fence }));
        }
        let parameters: Parameters<'_> = &[(&now, Type::INT8), (&hash, Type::BYTEA)];
        let rows = shared.database.query(doing, &look, parameters).await?;
        // It may have been released between the two statements.
        if let Some(row) = rows.first() {
            let (owner, expires_ms, now_ms): (Vec<u8>, i64, i64) = (row.get(0), row.get(1), row.get(2));
            let (expires_at, now) = (duration_of(expires_ms), duration_of(now_ms));
            return Err(StoreError::Held(Box::new(Holder {
                key: request.key.clone(),
                owner: String::from_utf8_lossy(&owner).into_owned(),
                expires_at: Some(expires_at),
                remaining: Some(expires_at.saturating_sub(now)),
            })));
        }
    }
}

/// Extends a lease, unless it was released or someone else has acquired it.
pub(super) async fn renew(shared: &SharedDatabase, fence: &Fence, duration: Duration) -> Result<(), StoreError> {
    let (hash, token) = (hash(&fence.key), fence.token.cast_signed());
    let (now, duration) = (shared.now_ms(), milliseconds(duration));
    let sql = format!(
        "UPDATE contexture_leases SET expires_ms = {NOW_MS} + $4 WHERE hash = $2 AND token = $3 RETURNING token"
    );
    let parameters: Parameters<'_> =
        &[(&now, Type::INT8), (&hash, Type::BYTEA), (&token, Type::INT8), (&duration, Type::INT8)];
    let doing = || format!("renew the lease on `{}`", fence.key);
    let rows = shared.database.query(doing, &sql, parameters).await?;
    match rows.is_empty() {
        true => Err(StoreError::LeaseLost { key: fence.key.clone() }),
        false => Ok(()),
    }
}

/// Releases a lease when it is dropped.
struct PostgresLease {
    shared: Arc<SharedDatabase>,
    fence: Fence,
}

impl Drop for PostgresLease {
    fn drop(&mut self) {
        // Without a runtime the lease is not released; it expires.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, fence) = (self.shared.clone(), self.fence.clone());
        let release = runtime.spawn(async move {
            let (hash, token) = (hash(&fence.key), fence.token.cast_signed());
            let sql = "DELETE FROM contexture_leases WHERE hash = $1 AND token = $2";
            let doing = || format!("release the lease on `{}`", fence.key);
            let parameters: Parameters<'_> = &[(&hash, Type::BYTEA), (&token, Type::INT8)];
            // If releasing fails, the lease expires.
            let _ = shared.database.query(doing, sql, parameters).await;
        });
        let mut releases = self.shared.releases.lock().unwrap_or_else(PoisonError::into_inner);
        releases.retain(|release| !release.is_finished());
        releases.push(release);
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4)
}

fn duration_of(milliseconds: i64) -> Duration {
    Duration::from_millis(milliseconds.unsigned_abs())
}
