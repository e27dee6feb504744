//! What the layer remembers: which files were named, and how they were found.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use contexture_core::host::{FileError, FileErrorCode, FileStamp, relative_path};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::words::{PathSketch, TextSketch};
use crate::reference::LineRange;
use crate::reference::anchor;
use crate::reference::kinds::AllowList;

/// How many files are tracked at the same time; the least recently used one is removed to make room.
pub const MAX_TRACKED_FILES: usize = 4096;

/// How many anchors of removed files are kept, so that they are not reused.
const MAX_RETIRED_ANCHORS: usize = 4096;

/// The files that were named in a thread. This is the durable state of the layer.
///
/// It contains no texts: contents are kept in memory only, and read again when needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileReferences {
    #[serde(default)]
    version: Version1,
    /// Sorted by path.
    pub(super) files: Vec<Arc<TrackedFile>>,
    /// Anchors of files that are no longer tracked, with their paths: old messages still link to them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    retired: BTreeMap<String, String>,
}

/// A file that was named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrackedFile {
    /// The path below the base, or the reference as written if it can't be a path.
    pub path: String,
    /// The reference as first written, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// The target of links, unique within the thread.
    pub anchor: String,
    /// The lines requested by the newest message that names it; empty means all lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineRange>,
    /// Its status when it was last checked.
    pub status: FileStatus,
    /// How relevant it is to the conversation, from 0 to 100.
    pub priority: u8,
    /// How often it was named.
    pub mentions: u32,
    /// The turn in which it was last named, read by a tool, or changed.
    pub active_turn: u64,
    /// The words of its path.
    #[serde(skip)]
    pub(super) path_words: Memo<OnceLock<PathSketch>>,
    /// The words of its text, if known.
    #[serde(skip)]
    pub(super) text_words: Memo<OnceLock<Arc<TextSketch>>>,
}

/// The status of a tracked file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileStatus {
    /// It has not been checked yet.
    #[default]
    Unread,
    /// It exists.
    Present {
        /// The hash of its text.
        hash: ContentHash,
        /// Its stamp when the text was read.
        stamp: FileStamp,
        /// How many lines it has.
        line_count: u32,
    },
    /// It existed and was deleted.
    Deleted,
    /// It can't be read.
    Refused {
        /// The code of the error.
        code: FileErrorCode,
        /// The reason in plain words, without any path of the host.
        message: String,
        /// Its stamp then, if available.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<FileStamp>,
    },
}

impl FileReferences {
    /// All tracked files, sorted by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &TrackedFile> {
        self.files.iter().map(|file| &**file)
    }

    /// The file with this path or written reference.
    pub fn find(&self, name: &str) -> Option<&TrackedFile> {
        let name = name.strip_prefix('#').unwrap_or(name);
        let by_path = self.position(name).ok().map(|index| &*self.files[index]);
        by_path.or_else(|| self.files().find(|file| file.written.as_deref() == Some(name) || file.anchor == name))
    }

    /// Applies another list of allowed files: files not on it are refused, and refused files now on it become unread.
    pub(super) fn under(mut self, allow_list: &AllowList) -> Self {
        for file in &mut self.files {
            let is_disallowed = file.status.code() == Some(FileErrorCode::DisallowedExtension);
            let is_path = relative_path(&file.path).is_ok();
            match (is_path, allow_list.allows(&file.path), is_disallowed) {
                (true, true, true) => Arc::make_mut(file).status = FileStatus::Unread,
                (true, false, false) => {
                    let error = disallowed(&file.path, allow_list);
                    let status = FileStatus::Refused { code: error.code, message: error.message, stamp: None };
                    Arc::make_mut(file).status = status;
                }
                _ => {}
            }
        }
        self
    }

    /// The index of the file with this path, or where it would be inserted.
    pub(super) fn position(&self, path: &str) -> Result<usize, usize> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path))
    }

    /// Adds files that are not tracked yet, each with its own anchor. Those that do not fit are left out.
    pub(super) fn insert(&mut self, files: Vec<TrackedFile>) {
        let mut taken: HashSet<String> = self.files.iter().map(|file| file.anchor.clone()).collect();
        for mut file in files {
            if self.files.len() >= MAX_TRACKED_FILES && !self.make_room(file.active_turn) {
                return;
            }
            let Err(index) = self.position(&file.path) else { continue };
            file.anchor = self.distinct_anchor(&file.path, &taken);
            taken.insert(file.anchor.clone());
            self.files.insert(index, Arc::new(file));
        }
    }

    /// Removes the least recently used file, if its last use was before `turn`.
    fn make_room(&mut self, turn: u64) -> bool {
        let oldest = (0..self.files.len()).min_by_key(|index| self.files[*index].active_turn);
        match oldest {
            Some(index) if self.files[index].active_turn < turn => {
                self.remove(index);
                true
            }
            _ => false,
        }
    }

    /// Removes a file, but keeps its anchor reserved.
    pub(super) fn remove(&mut self, index: usize) -> Arc<TrackedFile> {
        let file = self.files.remove(index);
        if self.retired.len() < MAX_RETIRED_ANCHORS {
            self.retired.insert(file.anchor.clone(), file.path.clone());
        }
        file
    }

    fn distinct_anchor(&self, path: &str, taken: &HashSet<String>) -> String {
        // Once retired anchors had to be dropped, a plain slug might be one of them; a hash cannot.
        let forgetful = self.retired.len() >= MAX_RETIRED_ANCHORS;
        let slug = anchor::slug(path);
        anchor::distinct(path, |anchor| {
            let retired = self.retired.get(anchor).is_some_and(|owner| owner != path);
            retired || (forgetful && anchor == slug) || taken.contains(anchor)
        })
    }

    /// The state that a child execution starts with: the files in use, relative to the child's own turns.
    pub(super) fn for_child(&self, ageing_turns: u64) -> FileReferences {
        let newest = self.newest_turn();
        let mut child = self.clone();
        child.files.retain(|file| file.age(newest) <= ageing_turns);
        for file in &mut child.files {
            Arc::make_mut(file).active_turn = 0;
        }
        child
    }

    /// Merges two states: all files of both; for a file in both, the more recently used one.
    pub(super) fn united(&self, other: &FileReferences) -> FileReferences {
        let mut united = self.clone();
        for (anchor, path) in &other.retired {
            if united.retired.len() < MAX_RETIRED_ANCHORS {
                united.retired.entry(anchor.clone()).or_insert_with(|| path.clone());
            }
        }
        let mut fresh = Vec::new();
        for file in &other.files {
            match united.position(&file.path) {
                Ok(index) if united.files[index].active_turn < file.active_turn => {
                    let anchor = united.files[index].anchor.clone();
                    united.files[index] = Arc::new(TrackedFile { anchor, ..(**file).clone() });
                }
                Ok(_) => {}
                Err(_) => fresh.push((**file).clone()),
            }
        }
        united.insert(fresh);
        united
    }

    /// Adds the files that a child named and this state does not have.
    pub(super) fn with_files_of_child(&self, child: &FileReferences) -> Option<FileReferences> {
        let active_turn = self.newest_turn();
        let fresh = child.files().filter(|file| self.position(&file.path).is_err());
        let fresh: Vec<_> = fresh.map(|file| TrackedFile { active_turn, ..file.clone() }).collect();
        if fresh.is_empty() {
            return None;
        }
        let mut state = self.clone();
        state.insert(fresh);
        Some(state)
    }

    fn newest_turn(&self) -> u64 {
        self.files().map(|file| file.active_turn).max().unwrap_or(0)
    }
}

impl FileStatus {
    /// Why it can't be read.
    pub fn code(&self) -> Option<FileErrorCode> {
        match self {
            FileStatus::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl TrackedFile {
    /// A file that was named for the first time.
    pub(super) fn new(path: String, written: Option<String>, active_turn: u64) -> Self {
        Self {
            path,
            written,
            anchor: String::new(),
            lines: Vec::new(),
            status: FileStatus::Unread,
            priority: 0,
            mentions: 0,
            active_turn,
            path_words: Memo::default(),
            text_words: Memo::default(),
        }
    }

    /// The reference as written.
    pub fn written(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.path)
    }

    /// The words of its path.
    pub(super) fn path_words(&self) -> &PathSketch {
        self.path_words.0.get_or_init(|| PathSketch::of(&self.path))
    }

    /// For how many turns it was not used.
    pub(super) fn age(&self, turn: u64) -> u64 {
        turn.saturating_sub(self.active_turn)
    }
}

/// A derived value that may be missing; it does not affect equality.
#[derive(Clone, Default)]
pub(super) struct Memo<T>(pub(super) T);

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

/// The BLAKE3 hash of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(pub(super) [u8; 32]);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(&hex).map_err(serde::de::Error::custom)?;
        Ok(Self(*hash.as_bytes()))
    }
}

/// The version of the stored form; any other than 1 is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Version1;

impl Serialize for Version1 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(1)
    }
}

impl<'de> Deserialize<'de> for Version1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            1 => Ok(Self),
            other => Err(serde::de::Error::custom(format!("file references of version {other}; this program knows 1"))),
        }
    }
}

/// The message for a file that may not be read.
pub(super) fn disallowed(written: &str, allow_list: &AllowList) -> FileError {
    let message = match allow_list.hides(written) {
        true => "its name says that it holds secrets",
        false => "files with this ending are not on the list of those that may be read",
    };
    FileError::new(FileErrorCode::DisallowedExtension, written, message)
}
