//! Applies changes to what is known of all files.

use std::collections::HashSet;

use super::edit::TextEdit;
use super::format::FormatterRun;
use super::{FileModel, Now, extension_of, is_beneath, normalize};
use crate::observation::Observation;
use crate::path::{Places, folded, is_beneath_folded, last_part};

/// Most links that are followed.
const MAX_LINKS: usize = 500;

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
            Observation::Insert { path, after, text } => self.open(path, at).insert(now, *after, text),
            Observation::Patch { path, hunks } => self.open(path, at).patch(now, hunks),
            Observation::Rewrite { path, changes, by } => self.open(path, at).rewrite(now, changes, by),
            Observation::Changed { path, by } => self.open(path, at).change_somehow(now, by),
            Observation::Doubted { path, by } => {
                if let Some(index) = self.place(path) {
                    self.doubt(index, now, by);
                }
            }
            Observation::Swept { under, extensions, by } => self.sweep(now, under.as_deref(), extensions, by),
            Observation::Formatted { under, extensions, formatter, is_local, is_proven, by } => {
                let run = FormatterRun { formatter, is_local: *is_local, is_proven: *is_proven, by };
                self.format(now, under.as_deref(), extensions, run);
            }
            Observation::Made { path } => self.make(now, path),
            Observation::Delete { path } => self.delete(now, path),
            Observation::Copy { from, to, into } => self.copy(now, from, to, *into),
            Observation::Move { from, to } => {
                self.copy(now, from, to, true);
                self.delete_unless(now, from, self.destination(from, to).0);
            }
            _ => {}
        }
        for path in change.paths() {
            self.doubt_others(now, path);
        }
    }

    /// Puts those files in doubt that may be the same file as the one that changed.
    fn doubt_others(&mut self, now: Now, path: &str) {
        let normal = normalize(path);
        for index in self.index.others(&normal) {
            self.doubt(index, now, "a change of a file that may be this one");
        }
        self.doubt_linked(now, &normal, false, "a change through a link", Some(&normal));
    }

    /// Puts every file in doubt that a link may lead to from a path.
    fn doubt_linked(&mut self, now: Now, path: &str, is_directory: bool, by: &str, but: Option<&str>) {
        if self.files.undoubted().next().is_none() {
            return;
        }
        let names = self.linked_names(path, is_directory);
        if !names.is_empty() {
            self.doubt_beneath(now, &names.iter().map(String::as_str).collect(), &[], by, but);
        }
    }

    /// Returns names that may lead to the same place as a path, through any number of links. For a directory this
    /// includes names of what is in it.
    fn linked_names(&self, path: &str, is_directory: bool) -> Vec<String> {
        if self.links.is_empty() {
            return Vec::new();
        }
        let mut known: HashSet<&str> = HashSet::new();
        let mut names: Vec<String> = Vec::new();
        let mut open = vec![folded(path).into_owned()];
        while let Some(name) = open.pop() {
            let is_wide = is_directory || !names.is_empty();
            for ((one, other), [first, second]) in self.links.compared() {
                for (here, there, compared) in [(first, other, second), (second, one, first)] {
                    let leads = is_beneath_folded(&name, here) || (is_wide && is_beneath_folded(here, &name));
                    if leads && known.insert(there) {
                        names.push(there.clone());
                        open.push(compared.clone());
                    }
                }
            }
        }
        names
    }

    /// Notes that a link may still be one after it was copied or moved.
    fn copy_links(&mut self, from: &str, to: &str) {
        let from = normalize(from);
        let is_it = |name: &str| is_beneath(name, &from) || is_beneath(&from, name);
        let others: Vec<String> = self
            .links
            .iter()
            .flat_map(|(one, other)| [(one, other), (other, one)])
            .filter(|(name, _)| is_it(name))
            .map(|(_, other)| other.clone())
            .collect();
        for other in others {
            if self.links.len() < MAX_LINKS {
                self.link(&other, to);
            } else if self.links.last().is_some_and(|(last, _)| !last.is_empty()) {
                // Too many links to follow: an empty name matches every path.
                self.links.push((String::new(), String::new()));
            }
        }
    }

    /// Whether a path leaves a directory with `..` where that directory may be a link.
    pub(super) fn leads_through_link(&self, path: &str) -> bool {
        let ups = path.match_indices("/..").filter(|(at, _)| matches!(path.as_bytes().get(at + 3), None | Some(b'/')));
        ups.into_iter().any(|(at, _)| {
            let before = normalize(&path[..at]);
            self.links.iter().any(|(one, other)| [one, other].into_iter().any(|name| is_beneath(&before, name)))
        })
    }

    /// Notes that from now on two names lead to the same file or directory.
    pub(super) fn link(&mut self, from: &str, to: &str) {
        let (from, to) = (normalize(from), normalize(to));
        // If `to` is a directory, the link is in it and has the last part of `from` as its name.
        let inside = format!("{to}/{}", last_part(&from));
        // The target of a symbolic link is relative to the directory of the link.
        let parent = to.rsplit_once('/').map_or("", |(parent, _)| parent);
        let beside = normalize(&format!("{parent}/{}", last_part(&from)));
        for link in [(from.clone(), to.clone()), (from, inside), (beside, to)] {
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
    }

    /// Puts every file in doubt that a command may have changed.
    fn sweep(&mut self, now: Now, under: Option<&str>, extensions: &[String], by: &str) {
        let under = under.map(normalize).unwrap_or_default();
        self.doubt_beneath(now, &Places::from_iter([&*under]), extensions, by, None);
        // What may be anywhere was every file.
        if !(under.is_empty() && extensions.is_empty()) {
            self.doubt_linked(now, &under, true, by, None);
        }
    }

    /// Takes in that a formatter ran over files.
    fn format(&mut self, now: Now, under: Option<&str>, extensions: &[String], run: FormatterRun<'_>) {
        let under = under.map(normalize).unwrap_or_default();
        let places = Places::from_iter([&*under]);
        for index in 0..self.files.len() {
            match self.files[index].deleted {
                _ if !self.is_beneath(index, &places, extensions) => {}
                true => self.doubt(index, now, run.by),
                false => self.files.change(index).format(now, run),
            }
        }
        self.doubt_linked(now, &under, true, run.by, None);
    }

    /// Whether a file is at or beneath one of some paths and has one of some extensions.
    fn is_beneath(&self, index: usize, under: &Places, extensions: &[String]) -> bool {
        let path = self.files.normal(index);
        let is_of_kind = extensions.is_empty() || extensions.iter().any(|extension| extension_of(path) == extension);
        is_of_kind && under.have_folded(self.files.folded(index))
    }

    fn doubt_beneath(&mut self, now: Now, under: &Places, extensions: &[String], by: &str, but: Option<&str>) {
        let is_reached = |index: &usize| {
            self.is_beneath(*index, under, extensions) && but.is_none_or(|but| self.files.normal(*index) != but)
        };
        let reached: Vec<usize> = self.files.undoubted().filter(is_reached).collect();
        for index in reached {
            self.doubt(index, now, by);
        }
    }

    fn doubt(&mut self, index: usize, now: Now, by: &str) {
        if self.files.is_doubted(index) {
            return;
        }
        let file = &self.files[index];
        if file.deleted || !file.is_all_in_doubt() {
            let file = self.files.change(index);
            file.deleted = false;
            file.raise_doubt(now, by);
        }
        if self.files[index].is_all_in_doubt() {
            self.files.note_doubted(index);
        }
    }

    /// Notes that a file exists; it is empty if it did not exist before.
    fn make(&mut self, now: Now, path: &str) {
        if let Some(index) = self.place(path).filter(|index| self.files[*index].deleted) {
            self.files.change(index).write(now, "");
        }
    }

    fn delete(&mut self, now: Now, path: &str) {
        self.delete_unless(now, path, None);
    }

    /// Deletes the file of a path and everything beneath it, except for one file.
    fn delete_unless(&mut self, now: Now, path: &str, but: Option<usize>) {
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
                self.doubt(index, now, "a deletion that may be of this file");
            }
        }
    }

    /// Returns where a copy goes: the file, if it is known, its path, and whether that is certain.
    fn destination(&self, from: &str, to: &str) -> (Option<usize>, String, bool) {
        let inside = format!("{}/{}", to.trim_end_matches('/'), last_part(from.trim_end_matches('/')));
        let normal = normalize(to);
        let is_inside = |index: usize| {
            let rest = self.files.normal(index).strip_prefix(normal.as_str());
            !self.files[index].deleted && rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if to.ends_with('/') || last_part(to) == "." || last_part(to) == ".." || (0..self.files.len()).any(is_inside) {
            return (self.place(&inside), inside, true);
        }
        // A file that may have changed since it was seen may be a directory now.
        let is_file = |index: &usize| !self.files[*index].deleted && !self.files[*index].is_all_in_doubt();
        let known = self.place(to).filter(is_file);
        (known, to.to_owned(), known.is_some())
    }

    fn copy(&mut self, now: Now, from: &str, to: &str, into: bool) {
        let (_, path, is_certain) = match into {
            true => self.destination(from, to),
            false => (None, to.to_owned(), true),
        };
        let by = "a copy over it";
        self.copy_links(from, to);
        if !is_certain {
            self.doubt_beneath(now, &Places::from_iter([&*normalize(to)]), &[], by, None);
        }
        let known =
            self.place(from).filter(|index| !self.files[*index].deleted && !self.files[*index].segments.is_empty());
        let Some(source) = known else {
            // What is copied is unknown, or a directory.
            return self.doubt_beneath(now, &Places::from_iter([&*normalize(to)]), &[], by, None);
        };
        if self.place(&path) == Some(source) {
            // If output is redirected to the file that it is read from, the file is emptied first.
            return self.doubt(source, now, by);
        }
        let source = &self.files[source];
        let (mut segments, whole, doubts, end) =
            (source.segments.clone(), source.whole, source.doubts.clone(), source.end);
        let has_returns = source.has_returns;
        for line in segments.iter_mut().flat_map(|segment| &mut segment.lines) {
            line.shown = 0;
        }
        let file = self.open(&path, now.at);
        (file.segments, file.whole, file.doubts, file.end) = (segments, whole, doubts, end);
        (file.deleted, file.has_returns) = (false, has_returns);
        file.formatted = None;
        file.mark_edited(now.at);
        if !is_certain {
            file.raise_doubt(now, "a copy whose place is not certain");
        }
    }
}
