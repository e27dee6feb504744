//! A lock that is held as long as the owner of a lease is alive.
//!
//! It is an advisory lock on a small file next to the store, named after the lease. The system releases it when the
//! process ends, however it ends. Process ids are not enough: they are reused, and have no meaning in another container
//! that shares the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The lock of one lease. Dropping it releases it and removes its file.
#[derive(Debug)]
pub(super) struct LeaseLock {
    path: PathBuf,
    /// Closing it releases the lock.
    _locked: File,
}

impl LeaseLock {
    /// Locks the file of a new lease; `None` if the file system has no locks.
    pub(super) fn take(store: &Path, token: i64) -> Option<Self> {
        let path = lock_path(store, token);
        // An existing file of that name was left by an owner that died before its lease was visible.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).ok()?;
        match file.try_lock() {
            Ok(()) => Some(Self { path, _locked: file }),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
        }
    }

    /// Removes the file of an ended lease.
    pub(super) fn remove(store: &Path, token: i64) {
        // It was removed already unless its owner died.
        let _ = std::fs::remove_file(lock_path(store, token));
    }
}

impl Drop for LeaseLock {
    fn drop(&mut self) {
        // Remove the name first, so that nobody finds an unlocked file and takes its owner for dead.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether the owner of a locked lease is certainly dead.
pub(super) fn is_dead(store: &Path, token: i64) -> bool {
    match File::open(lock_path(store, token)) {
        // A shared lock, so that two processes that check at once do not take each other for the owner.
        Ok(file) => file.try_lock_shared().is_ok(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn lock_path(store: &Path, token: i64) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(format!("-lease-{token}"));
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_dead_when_its_lock_is_free_or_gone() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("agent.db");
        let lock = LeaseLock::take(&store, 7).unwrap();
        assert!(!is_dead(&store, 7));
        assert!(LeaseLock::take(&store, 7).is_none());
        drop(lock);
        assert!(is_dead(&store, 7) && std::fs::read_dir(directory.path()).unwrap().next().is_none());

        // A killed process leaves the file without a lock.
        std::fs::write(lock_path(&store, 8), "").unwrap();
        assert!(is_dead(&store, 8));
        assert!(LeaseLock::take(&store, 8).is_some());
    }
}
