//! A state that is being changed, which is copied only once something does change.

use std::sync::{Arc, OnceLock};

use contexture_core::host::{FileError, FileErrorCode, FileStamp};

use super::contents::SketchedText;
use super::mentions::FileMention;
use super::state::{FileReferences, FileStatus, Memo, TrackedFile};

/// A state while it is being changed.
pub(super) struct ReferencesDraft<'a> {
    base: &'a FileReferences,
    changed: Option<FileReferences>,
    /// Whether the change is visible to the model.
    pub(super) visible: bool,
}

/// The result of checking a tracked file.
#[derive(Debug, PartialEq)]
pub(super) enum FileCheck {
    /// It is unchanged.
    Same,
    /// It has to be read to find out.
    Read,
    /// It has this status, without being read.
    Now(FileStatus),
}

/// The result of reading a file.
pub(super) enum FileReadResult {
    /// Its text.
    Text(Arc<SketchedText>, FileStamp),
    /// An error, and the file's stamp if that is available.
    Refused(FileError, Option<FileStamp>),
}

impl<'a> ReferencesDraft<'a> {
    pub(super) fn new(base: &'a FileReferences) -> Self {
        Self { base, changed: None, visible: false }
    }

    /// The current state.
    pub(super) fn state(&self) -> &FileReferences {
        self.changed.as_ref().unwrap_or(self.base)
    }

    /// The new state, if it changed.
    pub(super) fn into_changed(self) -> Option<FileReferences> {
        self.changed
    }

    fn edit(&mut self) -> &mut FileReferences {
        self.changed.get_or_insert_with(|| self.base.clone())
    }

    /// Changes one file.
    pub(super) fn update(&mut self, index: usize, change: impl FnOnce(&mut TrackedFile)) {
        change(Arc::make_mut(&mut self.edit().files[index]));
    }

    /// Adds named files, and returns their indices.
    pub(super) fn name(&mut self, mentions: Vec<FileMention>, turn: u64) -> Vec<usize> {
        if mentions.is_empty() {
            return Vec::new();
        }
        self.visible = true;
        let paths: Vec<String> = mentions.iter().map(|mention| mention.path.clone()).collect();
        let mut fresh = Vec::new();
        for mention in mentions {
            match self.state().position(&mention.path) {
                Ok(index) => self.update(index, |file| mention.renew(file, turn)),
                Err(_) => fresh.push(mention.into_file(turn)),
            }
        }
        if !fresh.is_empty() {
            self.edit().insert(fresh);
        }
        paths.iter().filter_map(|path| self.state().position(path).ok()).collect()
    }

    /// Records that a tool was called on files.
    pub(super) fn touch(&mut self, touched: Vec<usize>, turn: u64, ageing_turns: u64) {
        for index in touched {
            let file = &self.state().files[index];
            if file.active_turn != turn {
                self.visible |= file.age(turn) > ageing_turns;
                self.update(index, |file| file.active_turn = turn);
            }
        }
    }

    /// Sets the status of a file.
    pub(super) fn find(&mut self, index: usize, status: FileStatus, turn: u64) {
        self.visible = true;
        self.update(index, |file| {
            file.status = status;
            file.active_turn = turn;
            file.text_words = Memo::default();
        });
    }

    /// Applies the result of reading a file.
    pub(super) fn read(&mut self, index: usize, outcome: FileReadResult, turn: u64) {
        let file = &self.state().files[index];
        let status = outcome.status(&file.status);
        match (&file.status, &status) {
            (old, new) if old == new => {}
            // Only the stamp is new: what the model sees does not change.
            (FileStatus::Present { hash: old, .. }, FileStatus::Present { hash: new, .. }) if old == new => {
                self.update(index, |file| file.status = status);
            }
            (FileStatus::Refused { code: old, .. }, FileStatus::Refused { code: new, .. }) if old == new => {
                self.update(index, |file| file.status = status);
            }
            _ => self.find(index, status, turn),
        }
        if let FileReadResult::Text(content, _) = outcome {
            let known: &OnceLock<_> = &self.state().files[index].text_words.0;
            // It may have been set already, to the same value.
            let _ = known.set(content.words.clone());
        }
    }
}

impl FileMention {
    fn into_file(self, turn: u64) -> TrackedFile {
        let mut file = TrackedFile::new(self.path, self.written, turn);
        file.mentions = 1;
        file.lines = self.lines;
        if let Some(error) = self.refusal {
            file.status = FileStatus::Refused { code: error.code, message: error.message, stamp: None };
        }
        file
    }

    /// The newest message decides which lines are shown.
    fn renew(self, file: &mut TrackedFile, turn: u64) {
        file.mentions = file.mentions.saturating_add(1);
        file.active_turn = turn;
        file.lines = self.lines;
    }
}

impl FileReadResult {
    /// The status of a file after this, given its previous one.
    fn status(&self, before: &FileStatus) -> FileStatus {
        match self {
            FileReadResult::Text(content, stamp) => {
                FileStatus::Present { hash: content.hash, stamp: *stamp, line_count: content.line_count }
            }
            FileReadResult::Refused(error, stamp) => refused(error, *stamp, before),
        }
    }
}

/// The status of a file that can't be read, given its previous one: a file that existed is deleted.
fn refused(error: &FileError, stamp: Option<FileStamp>, before: &FileStatus) -> FileStatus {
    match before {
        FileStatus::Present { .. } | FileStatus::Deleted if error.code == FileErrorCode::NotFound => {
            FileStatus::Deleted
        }
        _ => FileStatus::Refused { code: error.code, message: error.message.clone(), stamp },
    }
}

/// What a tracked file's current stamp means for it.
pub(super) fn judge(status: &FileStatus, looked: &Result<FileStamp, FileError>) -> FileCheck {
    match (status, looked) {
        (FileStatus::Unread, _) | (FileStatus::Deleted, Ok(_)) => FileCheck::Read,
        (FileStatus::Present { stamp, .. }, Ok(now)) => same_if(stamp.settled && stamp.matches(now)),
        // A failed read may succeed the next time; a file that is forbidden or not text stays so until it changes.
        (FileStatus::Refused { code: FileErrorCode::ReadFailed, .. }, Ok(_)) => FileCheck::Read,
        (FileStatus::Refused { stamp, .. }, Ok(now)) => {
            same_if(stamp.is_some_and(|stamp| stamp.settled && stamp.matches(now)))
        }
        (FileStatus::Refused { code, .. }, Err(error)) if *code == error.code => FileCheck::Same,
        (FileStatus::Deleted, Err(error)) if error.code == FileErrorCode::NotFound => FileCheck::Same,
        (before, Err(error)) => FileCheck::Now(refused(error, None, before)),
    }
}

fn same_if(same: bool) -> FileCheck {
    if same { FileCheck::Same } else { FileCheck::Read }
}
