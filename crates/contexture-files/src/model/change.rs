//! Applies changes to what is known of all files.

use super::edit::TextEdit;
use super::{FileModel, Now, Who, normalize};
use crate::observation::Observation;
use crate::path::{is_beneath, last_part};

/// The reason given for a file that a copy was put over.
const COPIED_OVER: &str = "a copy over it";

impl FileModel {
    /// Takes in an observation that changes files.
    pub(super) fn change(&mut self, now: Now, change: &Observation) {
        let at = now.at;
        match change {
            Observation::Write { path, text } => self.open(path, at).write(now, text),
            Observation::Append { path, text } => self.open(path, at).append(now, text),
            Observation::Edit { path, old, new, all, takes_feed } => {
                let edit = TextEdit::new(old, new, *takes_feed);
                self.open(path, at).edit(now, &edit, *all);
            }
            // What follows goes by numbers, or by the order of lines.
            Observation::Insert { path, after, text } => self.open_placed(path, at).insert(now, *after, text),
            Observation::Patch { path, hunks } => self.open_placed(path, at).patch(now, hunks),
            Observation::Changed { path, by, who: Who::Agent } => self.open(path, at).change_somehow(now, by),
            Observation::Changed { path, by, .. } => self.change_elsewhere(now, path, by),
            Observation::CouldWrite { path: None, .. } => self.written_at = now.count,
            Observation::CouldWrite { path: Some(path), .. } => self.could_write(now, path, None),
            Observation::Linked => self.has_links = true,
            Observation::Made { path } => self.make(now, path),
            Observation::Delete { path } => self.delete(now, path, None),
            Observation::Copy { from, to, into } => self.copy(now, from, to, *into),
            Observation::Move { from, to } => {
                let inside = self.destination(from, to).0;
                self.copy(now, from, to, true);
                self.delete(now, from, self.place(&inside));
            }
            _ => {}
        }
        for path in change.paths() {
            for other in self.index.others(&normalize(path)) {
                self.files.note(other).written_at = now.count;
            }
        }
        // What was changed, or could be, may have other names by now.
        if self.has_links {
            self.written_at = now.count;
        }
    }

    /// Notes that something could write what is at or beneath a path, except for one file.
    fn could_write(&mut self, now: Now, path: &str, but: Option<usize>) {
        let under = normalize(path);
        for index in (0..self.files.len()).filter(|index| Some(*index) != but) {
            if is_beneath(self.files.normal(index), &under) {
                self.files.note(index).written_at = now.count;
            }
        }
    }

    /// Notes that someone else changed a file.
    fn change_elsewhere(&mut self, now: Now, path: &str, by: &str) {
        let Some(index) = self.index.find_like(&normalize(path)) else { return self.could_write(now, path, None) };
        let file = self.files.change(index);
        file.deleted = false;
        file.note_change_elsewhere();
        file.mark_changed(now, by);
    }

    /// Notes that a file exists; it is empty if it did not exist before.
    fn make(&mut self, now: Now, path: &str) {
        let Some(index) = self.place(path).filter(|index| self.files[*index].deleted) else { return };
        if self.files[index].whole_at >= self.written_at_of(index) {
            self.files.change(index).write(now, "");
        } else {
            self.files.change(index).deleted = false;
        }
    }

    /// Deletes the file of a path and everything beneath it, except for one file.
    fn delete(&mut self, now: Now, path: &str, but: Option<usize>) {
        let under = normalize(path);
        for index in (0..self.files.len()).filter(|index| Some(*index) != but) {
            let file = self.files.normal(index);
            let is_inside = file.strip_prefix(under.as_str()).is_some_and(|rest| rest.starts_with('/'));
            // With a slash at the end, only a directory is removed.
            if is_inside || (file == under && !path.ends_with('/')) {
                let file = self.files.change(index);
                file.delete(now);
                file.touched = now.at;
            } else if is_beneath(file, &under) {
                self.files.note(index).written_at = now.count;
            }
        }
    }

    /// Returns where a copy goes, and whether that is certain.
    fn destination(&self, from: &str, to: &str) -> (String, bool) {
        let inside = format!("{}/{}", to.trim_end_matches('/'), last_part(from.trim_end_matches('/')));
        let normal = normalize(to);
        let is_inside = |index: usize| {
            let rest = self.files.normal(index).strip_prefix(normal.as_str());
            !self.files[index].deleted && rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if to.ends_with('/') || last_part(to) == "." || last_part(to) == ".." || (0..self.files.len()).any(is_inside) {
            return (inside, true);
        }
        // A file that may have changed since it was seen may be a directory now.
        let is_file =
            |index: usize| !self.files[index].deleted && self.files[index].certain_at() >= self.written_at_of(index);
        (to.to_owned(), self.place(to).is_some_and(is_file))
    }

    fn copy(&mut self, now: Now, from: &str, to: &str, into: bool) {
        let (path, is_certain) = if into { self.destination(from, to) } else { (to.to_owned(), true) };
        let known =
            self.place(from).filter(|index| !self.files[*index].deleted && !self.files[*index].segments.is_empty());
        if !is_certain {
            self.could_write(now, to, known);
        }
        let Some(source) = known else {
            // What is copied is unknown, or a directory.
            self.could_write(now, to, None);
            if let Some(index) = self.place(&path).filter(|_| is_certain) {
                self.files.change(index).change_somehow(now, COPIED_OVER);
            }
            return;
        };
        if self.place(&path) == Some(source) {
            // If output is redirected to the file that it is read from, the file is emptied first.
            return self.files.change(source).change_somehow(now, COPIED_OVER);
        }
        let written_at = if is_certain { self.written_at_of(source) } else { now.count };
        let mut copied = self.files[source].clone();
        for line in copied.segments.iter_mut().flat_map(|segment| &mut segment.lines) {
            line.shown = 0;
        }
        let file = self.open(&path, now.at);
        (file.segments, file.whole, file.changes, file.end) =
            (copied.segments, copied.whole, copied.changes, copied.end);
        (file.deleted, file.has_returns) = (false, copied.has_returns);
        (file.whole_at, file.loosened_at, file.written_at) = (copied.whole_at, copied.loosened_at, written_at);
        file.mark_edited(now.at);
    }
}
