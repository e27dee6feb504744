//! The files of a model, with revisions that show when one of them may have changed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{Deref, Index};

use super::{FileState, Grade, Line, Now, normalize};
use crate::path::folded;

/// Files in the order in which they were first seen. Mutable access to a file changes its revision.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFiles {
    files: Vec<FileState>,
    revisions: Vec<u64>,
    /// The revision at which each was last compared with the disk.
    compared: Vec<Option<u64>>,
    /// The normal path of each, where it is not the path itself.
    normals: Vec<Option<Box<str>>>,
    /// The normal path of each as systems compare it that ignore letter case, where that is not the normal path itself.
    folded: Vec<Option<Box<str>>>,
    /// Those that are not known to be in doubt as a whole: in a long conversation that is few of them.
    undoubted: BTreeSet<usize>,
}

impl KnownFiles {
    /// Adds a file; returns its place.
    pub(super) fn add(&mut self, file: FileState) -> usize {
        self.normals.push(normal_of(&file));
        self.folded.push(folded_of(&file));
        self.undoubted.insert(self.files.len());
        self.files.push(file);
        self.revisions.push(0);
        self.compared.push(None);
        self.files.len() - 1
    }

    /// Restores files, each with whether it is still as it was compared with the disk. Revisions start again.
    pub(super) fn of(files: Vec<(FileState, bool)>) -> Self {
        let (files, compared): (Vec<FileState>, Vec<bool>) = files.into_iter().unzip();
        let compared = compared.into_iter().map(|is_as_compared| is_as_compared.then_some(0)).collect();
        Self {
            revisions: vec![0; files.len()],
            undoubted: (0..files.len()).collect(),
            normals: files.iter().map(normal_of).collect(),
            folded: files.iter().map(folded_of).collect(),
            compared,
            files,
        }
    }

    /// The normal path of a file.
    pub(super) fn normal(&self, file: usize) -> &str {
        self.normals[file].as_deref().unwrap_or(&self.files[file].path)
    }

    /// The normal path of a file as systems compare it that ignore letter case.
    pub(super) fn folded(&self, file: usize) -> &str {
        self.folded[file].as_deref().unwrap_or_else(|| self.normal(file))
    }

    /// The revision of a file.
    pub(super) fn revision(&self, file: usize) -> u64 {
        self.revisions[file]
    }

    /// Counts a file's bytes again, without changing its revision.
    pub(super) fn recount(&mut self, file: usize) {
        self.files[file].count_bytes();
    }

    /// A file, to be changed.
    pub(super) fn change(&mut self, file: usize) -> &mut FileState {
        self.revisions[file] += 1;
        self.undoubted.insert(file);
        &mut self.files[file]
    }

    /// A file, to note something that does not affect its lines.
    pub(super) fn note(&mut self, file: usize) -> &mut FileState {
        &mut self.files[file]
    }

    /// Notes that a file was compared with the disk in its current state.
    pub(super) fn note_compared(&mut self, file: usize) {
        self.compared[file] = Some(self.revisions[file]);
    }

    /// Whether a file was compared with the disk and nothing was learnt since.
    pub(super) fn is_as_compared(&self, file: usize) -> bool {
        self.compared.get(file).is_some_and(|compared| *compared == Some(self.revisions[file]))
    }

    /// Notes that a file is there and all of it is in doubt, so that further doubts change nothing.
    pub(super) fn note_doubted(&mut self, file: usize) {
        self.undoubted.remove(&file);
    }

    /// Whether that was noted and nothing was learnt since.
    pub(super) fn is_doubted(&self, file: usize) -> bool {
        !self.undoubted.contains(&file)
    }

    /// Those of which that was not noted, or something was learnt since, in order.
    pub(super) fn undoubted(&self) -> impl Iterator<Item = usize> {
        self.undoubted.iter().copied()
    }

    /// Notes that all known lines of a file are on the disk, which changes only their grade.
    pub(super) fn regrade(&mut self, file: usize, now: Now) {
        self.undoubted.insert(file);
        for line in self.files[file].segments.iter_mut().flat_map(|segment| &mut segment.lines) {
            (line.grade, line.certain_at) = (Grade::Verified, now.count);
        }
    }

    /// The lines of a segment, to be marked as shown, which does not change what is known.
    pub(super) fn lines_to_mark(&mut self, file: usize, segment: usize) -> Option<&mut [Line]> {
        Some(&mut self.files.get_mut(file)?.segments.get_mut(segment)?.lines)
    }
}

/// The normal path of a file, if it is not the path itself.
fn normal_of(file: &FileState) -> Option<Box<str>> {
    Some(normalize(&file.path)).filter(|normal| *normal != file.path).map(String::into_boxed_str)
}

/// The normal path of a file as systems compare it, if it is not the normal path itself.
fn folded_of(file: &FileState) -> Option<Box<str>> {
    match folded(&normalize(&file.path)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(folded) => Some(folded.into_boxed_str()),
    }
}

impl Deref for KnownFiles {
    type Target = [FileState];

    fn deref(&self) -> &[FileState] {
        &self.files
    }
}

impl Index<usize> for KnownFiles {
    type Output = FileState;

    fn index(&self, file: usize) -> &FileState {
        &self.files[file]
    }
}
