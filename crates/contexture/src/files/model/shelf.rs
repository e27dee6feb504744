//! The files of a model, with what tells that one of them may have changed.

use std::ops::{Deref, Index};

use super::{FileState, Line};

/// Files in the order in which they were first seen. Access that can change one also changes its revision.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    files: Vec<FileState>,
    revisions: Vec<u64>,
}

impl Shelf {
    /// Adds a file; returns its place.
    pub(super) fn add(&mut self, file: FileState) -> usize {
        self.files.push(file);
        self.revisions.push(0);
        self.files.len() - 1
    }

    /// Files that are put back, as they were; revisions begin anew.
    pub(super) fn of(files: Vec<FileState>) -> Self {
        Self { revisions: vec![0; files.len()], files }
    }

    /// The revision of a file.
    pub(super) fn revision(&self, file: usize) -> u64 {
        self.revisions[file]
    }

    /// Counts a file's bytes again, which changes nothing of what is known.
    pub(super) fn recount(&mut self, file: usize) {
        self.files[file].count_bytes();
    }

    /// A file, to be changed.
    pub(super) fn change(&mut self, file: usize) -> &mut FileState {
        self.revisions[file] += 1;
        &mut self.files[file]
    }

    /// The lines of a segment, to be marked as shown: that changes nothing of what is known.
    pub(super) fn lines_to_mark(&mut self, file: usize, segment: usize) -> Option<&mut [Line]> {
        Some(&mut self.files.get_mut(file)?.segments.get_mut(segment)?.lines)
    }
}

impl Deref for Shelf {
    type Target = [FileState];

    fn deref(&self) -> &[FileState] {
        &self.files
    }
}

impl Index<usize> for Shelf {
    type Output = FileState;

    fn index(&self, file: usize) -> &FileState {
        &self.files[file]
    }
}
