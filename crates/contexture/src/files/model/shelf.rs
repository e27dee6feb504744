//! The files of a model, with what tells that one of them may have changed.

use std::ops::{Deref, Index, IndexMut};

use super::{FileState, Line};

/// Files in the order in which they were first seen. Whoever can change one also changes its revision.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    files: Vec<FileState>,
    revisions: Vec<u64>,
}

impl Shelf {
    /// Adds a file; answers its place.
    pub(super) fn add(&mut self, file: FileState) -> usize {
        self.files.push(file);
        self.revisions.push(0);
        self.files.len() - 1
    }

    /// The revision of a file.
    pub(super) fn revision(&self, file: usize) -> u64 {
        self.revisions[file]
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

impl IndexMut<usize> for Shelf {
    fn index_mut(&mut self, file: usize) -> &mut FileState {
        self.revisions[file] += 1;
        &mut self.files[file]
    }
}
