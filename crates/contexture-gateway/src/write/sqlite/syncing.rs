//! The thread that makes what was committed safe from an end of the machine. It syncs the write-ahead log once for all who
//! wait at the same time, and no commit waits for it.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use crate::write::error::StoreError;
use crate::write::saving::Writing;

/// A way to the thread, which ends when all of them are dropped.
#[derive(Clone)]
pub(super) struct Syncer(Sender<Writing>);

impl Syncer {
    /// Starts the thread for a file.
    pub(super) fn start(path: &Path) -> io::Result<Self> {
        let (send, receive) = channel::<Writing>();
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        std::thread::Builder::new().name("contexture-sync".to_owned()).spawn(move || {
            while let Ok(first) = receive.recv() {
                let waiting: Vec<Writing> = [first].into_iter().chain(receive.try_iter()).collect();
                let outcome = sync(&log);
                for writing in waiting {
                    writing.tell(outcome.as_ref().copied().map_err(|error| StoreError::NotSynced(error.to_string())));
                }
            }
        })?;
        Ok(Self(send))
    }

    /// Tells a write of its success once everything that is committed by now is safe.
    pub(super) fn tell_when_synced(&self, writing: Writing) {
        // If the thread has ended, who waits learns that nothing more is written.
        let _ = self.0.send(writing);
    }
}

fn sync(log: &OsString) -> io::Result<()> {
    match OpenOptions::new().write(true).open(log) {
        Ok(file) => file.sync_data(),
        // Its content was moved into the file, which is synced with that.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
