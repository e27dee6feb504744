//! Files that exist only in memory, for tests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use crate::host::{
    DirEntry, EntryKind, FileError, FileErrorCode, FileStamp, FileText, FsAdapter, ReadLimits, relative_path,
};

/// An [`FsAdapter`] with files in memory that counts accesses.
///
/// ```
/// use contexture_core::testing::MemoryFs;
/// let fs = MemoryFs::new();
/// fs.set("src/main.rs", "fn main() {}");
/// assert_eq!(fs.reads(), 0);
/// ```
#[derive(Debug, Default)]
pub struct MemoryFs {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Counts changes; used for inodes and time stamps.
    ticks: AtomicI64,
    stats: AtomicU64,
    reads: AtomicU64,
}

#[derive(Clone, Debug)]
enum Entry {
    File { text: String, stamp: FileStamp },
    Broken(FileErrorCode),
}

impl MemoryFs {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a file: with the same inode if it exists, with a new one otherwise.
    pub fn set(&self, path: &str, text: impl Into<String>) {
        let (text, tick) = (text.into(), self.tick());
        let mut entries = self.entries();
        let inode = match entries.get(path) {
            Some(Entry::File { stamp, .. }) => stamp.inode,
            _ => tick.unsigned_abs(),
        };
        let stamp =
            FileStamp { device: 1, inode, size: text.len() as u64, modified_ns: tick, changed_ns: tick, settled: true };
        entries.insert(path.to_owned(), Entry::File { text, stamp });
    }

    /// Writes a file within the same tick of the clock, so that only its size can change the stamp.
    ///
    /// Does nothing if the file does not exist.
    pub fn set_unnoticed(&self, path: &str, new_text: impl Into<String>) {
        if let Some(Entry::File { text, stamp }) = self.entries().get_mut(path) {
            *text = new_text.into();
            stamp.size = text.len() as u64;
        }
    }

    /// Sets whether the stamp of a file is settled.
    pub fn set_settled(&self, path: &str, settled: bool) {
        if let Some(Entry::File { stamp, .. }) = self.entries().get_mut(path) {
            stamp.settled = settled;
        }
    }

    /// Changes the inode of a file but not its text, as `touch` and `chmod` do.
    pub fn touch(&self, path: &str) {
        let tick = self.tick();
        if let Some(Entry::File { stamp, .. }) = self.entries().get_mut(path) {
            stamp.changed_ns = tick;
        }
    }

    /// Makes every access to a path fail with this code.
    pub fn set_error(&self, path: &str, code: FileErrorCode) {
        self.entries().insert(path.to_owned(), Entry::Broken(code));
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        self.entries().remove(path);
    }

    /// The number of stamps that were taken.
    pub fn stats(&self) -> u64 {
        self.stats.load(Ordering::Relaxed)
    }

    /// The number of reads, including failed ones.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn tick(&self) -> i64 {
        self.ticks.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, path: &str, limits: ReadLimits) -> Result<(String, FileStamp), FileError> {
        let relative = relative_path(path)?;
        let entries = self.entries();
        let (text, stamp) = match entries.get(&*relative) {
            Some(Entry::File { text, stamp }) => (text, *stamp),
            Some(Entry::Broken(code)) => return Err(FileError::new(*code, path, "set by the test")),
            None => return Err(FileError::new(FileErrorCode::NotFound, path, "there is no such file")),
        };
        if stamp.size > limits.max_bytes {
            let message = format!("it is larger than {} bytes", limits.max_bytes);
            return Err(FileError::new(FileErrorCode::FileTooLarge, path, message));
        }
        Ok((text.clone(), stamp))
    }

    fn names_in(&self, path: &str, max_entries: usize) -> Result<Vec<DirEntry>, FileError> {
        let prefix = if path == "." { String::new() } else { format!("{}/", relative_path(path)?) };
        let entries = self.entries();
        let beneath = entries.range(prefix.clone()..).map_while(|(path, _)| path.strip_prefix(&prefix));
        let mut found: Vec<DirEntry> = beneath.map(entry_of).collect();
        if found.is_empty() && !prefix.is_empty() {
            return Err(FileError::new(FileErrorCode::NotFound, path, "there is no such directory"));
        }
        found.sort();
        found.dedup();
        found.truncate(max_entries);
        Ok(found)
    }
}

/// What a directory has where one of its files has the rest of a path.
fn entry_of(rest: &str) -> DirEntry {
    match rest.split_once('/') {
        Some((name, _)) => DirEntry { name: name.to_owned(), kind: EntryKind::Directory },
        None => DirEntry { name: rest.to_owned(), kind: EntryKind::File },
    }
}

impl FsAdapter for MemoryFs {
    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        self.stats.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(self.find(path, limits)?.1) })
    }

    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let (text, stamp) = self.find(path, limits)?;
            Ok(FileText { text, stamp, linked_name: None })
        })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        max_entries: usize,
        _: ReadLimits,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, FileError>> {
        Box::pin(async move { self.names_in(path, max_entries) })
    }
}
