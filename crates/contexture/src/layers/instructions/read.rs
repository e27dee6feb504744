//! Files that were read, kept while they do not change.

use std::collections::HashMap;
use std::sync::Arc;

use contexture_core::host::{DirEntry, EntryKind, FileError, FileErrorCode, FileStamp, FsAdapter, ReadLimits};

/// Largest file that is read; larger than the limit for all instructions together.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How many files are cached. The cache is cleared as a whole, since files are quickly read again.
const MAX_KEPT: usize = 512;
/// How many entries of a directory are read.
const MAX_ENTRIES: usize = 200;

pub(super) const LIMITS: ReadLimits = ReadLimits { max_bytes: MAX_FILE_BYTES, follow_symlinks: true };

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileOwner {
    User,
    Project,
}

/// Cached texts with their stamps, and the last block.
#[derive(Clone, Default)]
pub(super) struct InstructionCache {
    files: HashMap<(FileOwner, String), (FileStamp, Arc<str>)>,
    block: Option<([u8; 32], Option<String>)>,
}

impl InstructionCache {
    /// The current text of a file; `None` if it does not exist.
    pub(super) async fn read(
        &mut self,
        fs: &dyn FsAdapter,
        owner: FileOwner,
        path: &str,
    ) -> Result<Option<Arc<str>>, FileError> {
        let stamp = match fs.stat(path, LIMITS).await {
            Ok(stamp) => stamp,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let key = (owner, path.to_owned());
        let is_current = |(kept, _): &&(FileStamp, Arc<str>)| kept.settled && kept.matches(&stamp);
        if let Some((_, text)) = self.files.get(&key).filter(is_current) {
            return Ok(Some(text.clone()));
        }
        let read = match fs.read(path, LIMITS).await {
            Err(error) if is_absent(&error) => return Ok(None),
            read => read?,
        };
        if self.files.len() >= MAX_KEPT {
            self.files.clear();
        }
        let text: Arc<str> = read.text.into();
        self.files.insert(key, (read.stamp, text.clone()));
        Ok(Some(text))
    }

    pub(super) fn block(&self, key: &[u8; 32]) -> Option<Option<String>> {
        self.block.as_ref().filter(|(kept, _)| kept == key).map(|(_, block)| block.clone())
    }

    pub(super) fn keep_block(&mut self, key: [u8; 32], block: Option<String>) {
        self.block = Some((key, block));
    }
}

/// Whether the file does not exist, as opposed to being unreadable. An engine without files has none.
fn is_absent(error: &FileError) -> bool {
    matches!(error.code, FileErrorCode::NotFound | FileErrorCode::NotAFile | FileErrorCode::NoFiles)
}

/// The Markdown files of a directory and its subdirectories down to `depth`.
pub(super) async fn markdown_beneath(fs: &dyn FsAdapter, directory: &str, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![(directory.to_owned(), 0)];
    while let Some((directory, level)) = directories.pop() {
        let Ok(entries) = fs.list(&directory, MAX_ENTRIES, LIMITS).await else { continue };
        for DirEntry { name, kind } in entries {
            let path = format!("{directory}/{name}");
            match kind {
                EntryKind::Directory if level < depth => directories.push((path, level + 1)),
                EntryKind::File | EntryKind::Link if name.ends_with(".md") => found.push(path),
                _ => {}
            }
        }
        if found.len() >= MAX_ENTRIES {
            break;
        }
    }
    found.sort();
    found.truncate(MAX_ENTRIES);
    found
}
