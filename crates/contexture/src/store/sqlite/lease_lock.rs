//! A lock that lives as long as the owner of a lease.
//!
//! It is an advisory lock of the system on a small file beside the store, named after the lease. The system frees it
//! when the process dies, however it dies. Numbers of processes would not do: they are used again, and mean nothing in
//! another container that shares the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The lock of one lease. Dropping it frees it and removes its file.
#[derive(Debug)]
pub(super) struct LeaseLock {
    path: PathBuf,
    /// Closing it frees the lock.
    _locked: File,
}

impl LeaseLock {
    /// Takes the lock of a new lease; `None` where the file system has no locks.
    pub(super) fn take(store: &Path, token: i64) -> Option<Self> {
        let path = lock_path(store, token);
        // A file of that name can only be left of an owner that died before anyone knew of its lease.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).ok()?;
        match file.try_lock() {
            Ok(()) => Some(Self { path, _locked: file }),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
        }
    }

    /// Removes the file of a lease that is over.
    pub(super) fn remove(store: &Path, token: i64) {
        // It is gone already unless its owner died.
        let _ = std::fs::remove_file(lock_path(store, token));
    }
}

impl Drop for LeaseLock {
    fn drop(&mut self) {
        // First the name, so that nobody finds a file that is free and takes its owner for dead while it is tidied up.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether the owner of a lease, who took its lock, is certain to live no more.
pub(super) fn is_dead(store: &Path, token: i64) -> bool {
    match File::open(lock_path(store, token)) {
        // Shared, so that two who look at once do not take each other for the owner.
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

        // What a killed process leaves: the file, and no lock.
        std::fs::write(lock_path(&store, 8), "").unwrap();
        assert!(is_dead(&store, 8));
        assert!(LeaseLock::take(&store, 8).is_some());
    }
}
