//! The files of a model, with revisions that show when one of them may have changed.

use std::ops::{Deref, Index};

use super::{FileState, Known, Line, Now, normalize};

/// Files in the order in which they were first seen. Mutable access to a file changes its revision.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFiles {
    files: Vec<FileState>,
    revisions: Vec<u64>,
    /// The revision at which each was last compared with the disk.
    compared: Vec<Option<u64>>,
    /// The normal path of each, where it is not the path itself.
    normals: Vec<Option<Box<str>>>,
}

impl KnownFiles {
    /// Adds a file; returns its place.
    pub(super) fn add(&mut self, file: FileState) -> usize {
        self.normals.push(normal_of(&file));
        self.files.push(file);
        self.revisions.push(0);
        self.compared.push(None);
        self.files.len() - 1
    }

    /// Restores files, each with whether it is still as it was compared with the disk. Revisions start again.
    pub(super) fn of(files: Vec<(FileState, bool)>) -> Self {
        let (files, compared): (Vec<FileState>, Vec<bool>) = files.into_iter().unzip();
        let compared = compared.into_iter().map(|is_as_compared| is_as_compared.then_some(0)).collect();
        Self { revisions: vec![0; files.len()], normals: files.iter().map(normal_of).collect(), compared, files }
    }

    /// The normal path of a file.
    pub(super) fn normal(&self, file: usize) -> &str {
        self.normals[file].as_deref().unwrap_or(&self.files[file].path)
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

    /// Notes that all known lines of a file are on the disk, which changes only what is said of them.
    pub(super) fn confirm(&mut self, file: usize, now: Now) {
        let file = &mut self.files[file];
        (file.whole_at, file.not_compared) = (now.count, None);
        for line in file.segments.iter_mut().flat_map(|segment| &mut segment.lines) {
            (line.known, line.certain_at) = (Known::Verified, now.count);
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
