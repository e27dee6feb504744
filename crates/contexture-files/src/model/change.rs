//! Applies changes to what is known of files.

use std::borrow::Cow;
use std::collections::HashSet;

use super::format::Run;
use super::state::End;
use super::{FileModel, FileState, Grade, Now, Segment, extension_of, is_beneath, normalize, splice};
use crate::numbering::Passage;
use crate::observation::Observation;
use crate::patch::Hunk;
use crate::path::{Places, folded, is_beneath_folded, last_part};

/// Most links that are followed.
const MAX_LINKS: usize = 500;

/// The reason given for lines that a change may or may not have touched.
pub(super) const UNPLACED: &str = "an edit at a place that is not known";

impl FileModel {
    /// Takes in an observation that changes files.
    pub(super) fn change(&mut self, now: Now, change: &Observation) {
        let at = now.at;
        match change {
            Observation::Write { path, text } => self.open(path, at).write(now, text),
            Observation::Append { path, text } => self.open(path, at).append(now, text),
            Observation::Edit { path, old, new, all, takes_feed } => {
                let edit = Edit::new(old, new, *takes_feed);
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
                let run = Run { formatter, is_local: *is_local, is_proven: *is_proven, by };
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
        let links: Vec<[Cow<'_, str>; 2]> =
            self.links.iter().map(|(one, other)| [folded(one), folded(other)]).collect();
        let mut known: HashSet<&str> = HashSet::new();
        let mut names: Vec<String> = Vec::new();
        let mut open = vec![folded(path).into_owned()];
        while let Some(name) = open.pop() {
            let is_wide = is_directory || !names.is_empty();
            for ((one, other), [first, second]) in self.links.iter().zip(&links) {
                for (here, there, compared) in [(first, other, second), (second, one, first)] {
                    let leads = is_beneath_folded(&name, here) || (is_wide && is_beneath_folded(here, &name));
                    if leads && known.insert(there) {
                        names.push(there.clone());
                        open.push(compared.to_string());
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
    fn format(&mut self, now: Now, under: Option<&str>, extensions: &[String], run: Run<'_>) {
        let under = under.map(normalize).unwrap_or_default();
        for index in self.beneath(&Places::from_iter([&*under]), extensions) {
            match self.files[index].deleted {
                true => self.doubt(index, now, run.by),
                false => self.files.change(index).format(now, run),
            }
        }
        self.doubt_linked(now, &under, true, run.by, None);
    }

    /// The files at or beneath one of some paths that have one of some extensions.
    fn beneath(&self, under: &Places, extensions: &[String]) -> Vec<usize> {
        let is_it = |index: &usize| {
            let path = self.normal(*index);
            let is_of_kind =
                extensions.is_empty() || extensions.iter().any(|extension| extension_of(&path) == extension);
            is_of_kind && under.have(&path)
        };
        (0..self.files.len()).filter(is_it).collect()
    }

    fn doubt_beneath(&mut self, now: Now, under: &Places, extensions: &[String], by: &str, but: Option<&str>) {
        for index in self.beneath(under, extensions) {
            if but.is_none_or(|but| self.normal(index) != but) {
                self.doubt(index, now, by);
            }
        }
    }

    fn doubt(&mut self, index: usize, now: Now, by: &str) {
        let file = &self.files[index];
        if file.deleted || !file.is_all_in_doubt() {
            let file = self.files.change(index);
            file.deleted = false;
            file.raise_doubt(now, by);
        }
    }

    /// The normal path of a file.
    fn normal(&self, index: usize) -> String {
        normalize(&self.files[index].path)
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
            let file = self.normal(index);
            let is_inside = file.strip_prefix(under.as_str()).is_some_and(|rest| rest.starts_with('/'));
            // With a slash at the end, only a directory is removed.
            if is_inside || (file == under && !path.ends_with('/')) {
                let file = self.files.change(index);
                file.delete(now);
                file.touched = now.at;
            } else if is_beneath(&file, &under) {
                self.doubt(index, now, "a deletion that may be of this file");
            }
        }
    }

    /// Returns where a copy goes: the file, if it is known, its path, and whether that is certain.
    fn destination(&self, from: &str, to: &str) -> (Option<usize>, String, bool) {
        let inside = format!("{}/{}", to.trim_end_matches('/'), last_part(from.trim_end_matches('/')));
        let normal = normalize(to);
        let is_inside = |file: &super::FileState| {
            let path = normalize(&file.path);
            !file.deleted && path.strip_prefix(normal.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        if to.ends_with('/') || last_part(to) == "." || last_part(to) == ".." || self.files.iter().any(is_inside) {
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

/// A piece of text and what replaces it.
pub(super) struct Edit {
    old: String,
    new: String,
    takes_feed: bool,
    /// How many lines the file grows by.
    grown: isize,
}

impl Edit {
    fn new(old: &str, new: &str, takes_feed: bool) -> Self {
        let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
        let feeds = |text: &str| text.matches('\n').count() as isize;
        let grown = feeds(&new) - feeds(&old);
        Self { old, new, takes_feed, grown }
    }

    /// Whether the piece ends with the last line feed of a segment, so that its replacement is joined with a line that
    /// is not in the segment.
    fn runs_on(&self, segment: &Segment) -> bool {
        if !self.old.ends_with('\n') || self.new.ends_with('\n') {
            return false;
        }
        let text = super::join_lines(&segment.lines) + "\n";
        let Some(before) = text.strip_suffix(self.old.as_str()) else { return false };
        !(self.new.is_empty() && (before.is_empty() || before.ends_with('\n')))
    }

    /// Returns the lines that the piece touches, and those that replace them. If the piece begins or ends with a line
    /// feed, the line beyond it is not touched, provided that the replacement has the line feed too or the whole piece
    /// is removed.
    fn pieces(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut old, mut new) = (self.old.as_str(), self.new.as_str());
        if let (Some(bare), Some(bare_new)) =
            (old.strip_suffix('\n'), new.strip_suffix('\n').or(Some(new).filter(|new| new.is_empty())))
        {
            (old, new) = (bare, bare_new);
        }
        if let (Some(bare), Some(bare_new)) = (old.strip_prefix('\n'), new.strip_prefix('\n')) {
            (old, new) = (bare, bare_new);
        }
        (old.split('\n').collect(), new.split('\n').filter(|_| !new.is_empty()).collect())
    }
}

impl FileState {
    fn write(&mut self, now: Now, text: &str) {
        self.formatted = None;
        self.segments = vec![Segment::new(now, now.at, &Passage::plain(Some(1), text))];
        self.deleted = false;
        self.whole = true;
        self.doubts.clear();
        self.end = if text.is_empty() || text.ends_with('\n') { End::Closed } else { End::Open };
        self.has_returns = text.contains("\r\n");
        self.mark_edited(now.at);
    }

    fn delete(&mut self, now: Now) {
        self.segments.clear();
        self.deleted = true;
        self.whole = false;
        self.doubts.clear();
        self.end = End::Unknown;
        self.mark_edited(now.at);
    }

    /// Notes that its text is unknown now; the lines known before are often still right.
    fn change_somehow(&mut self, now: Now, by: &str) {
        self.deleted = false;
        self.mark_edited(now.at);
        self.raise_doubt(now, by);
    }

    fn append(&mut self, now: Now, text: &str) {
        if self.deleted {
            return self.write(now, text);
        }
        self.mark_edited(now.at);
        let mut added = Segment::new(now, now.at, &Passage::plain(None, text));
        if added.lines.is_empty() {
            return;
        }
        let end = std::mem::replace(&mut self.end, if text.ends_with('\n') { End::Closed } else { End::Open });
        let whole = self.segments.first_mut().filter(|_| self.whole);
        match (end, whole) {
            (End::Closed, Some(whole)) => whole.lines.extend(added.lines),
            (End::Open, Some(whole)) if !whole.lines.is_empty() => {
                // The added text continues the last line.
                let first = added.lines.remove(0);
                if let Some(last) = whole.lines.last_mut() {
                    last.text = format!("{}{}", last.text, first.text).into();
                    (last.seen, last.edited, last.shown, last.is_computed) = (now.at, now.at, 0, true);
                }
                whole.lines.extend(added.lines);
            }
            (end, whole) if end == End::Unknown && whole.as_ref().is_some_and(|whole| whole.lines.is_empty()) => {
                self.write(now, text);
            }
            (end, _) => self.append_somewhere(now, added, end),
        }
    }

    /// Adds lines to the end of a file whose end is unknown.
    fn append_somewhere(&mut self, now: Now, mut added: Segment, end: End) {
        self.whole = false;
        if end != End::Closed {
            // The last line of any run may be the file's last line, and the text may continue it.
            let lasts = self.segments.iter_mut().filter_map(|segment| segment.lines.last_mut());
            lasts.for_each(|line| line.grade = Grade::InDoubt);
            added.lines.first_mut().into_iter().for_each(|line| line.grade = Grade::InDoubt);
        }
        self.segments.push(added);
        self.settle(now, UNPLACED);
    }

    fn insert(&mut self, now: Now, after: usize, text: &str) {
        self.mark_edited(now.at);
        let added = Segment::new(now, now.at, &Passage::plain(Some(after + 1), text));
        let count = added.lines.len();
        // Lines without numbers may be on both sides of the place.
        let unnumbered = self.segments.iter_mut().filter(|segment| segment.first.is_none() && segment.lines.len() > 1);
        unnumbered.flat_map(|segment| &mut segment.lines).for_each(|line| line.grade = Grade::InDoubt);
        self.segments =
            std::mem::take(&mut self.segments).into_iter().flat_map(|segment| segment.split(after)).collect();
        self.whole = false;
        // It may be at the end of the file.
        self.end = End::Unknown;
        if text.ends_with('\n') || text.is_empty() {
            // Some tools insert an empty line for the last line feed.
            let later = self.segments.iter_mut().filter(|segment| segment.first.is_some_and(|first| first > after));
            later.for_each(Segment::distrust);
            self.segments.push(added);
        } else {
            self.shift_numbers(after, count as isize);
            splice::insert(&mut self.segments, added);
        }
        self.settle(now, UNPLACED);
    }

    /// Replaces a piece of text that the file has once, or all occurrences.
    fn edit(&mut self, now: Now, edit: &Edit, all: bool) {
        self.deleted = false;
        self.mark_edited(now.at);
        let (old, new) = edit.pieces();
        self.note_cut(&old, &new);
        let counts: Vec<usize> = self.segments.iter().map(|segment| splice::occurrences(segment, &edit.old)).collect();
        let numbered =
            counts.iter().zip(&self.segments).filter(|(count, segment)| **count > 0 && segment.first.is_some());
        let is_ambiguous = counts.iter().any(|count| *count > 1) || numbered.count() > 1;
        let runs_on = !self.whole && self.segments.iter().any(|segment| edit.runs_on(segment));
        match () {
            () if edit.old.is_empty() || (all && edit.takes_feed) => self.raise_doubt(now, UNPLACED),
            () if all => self.edit_all(now, edit),
            // The tool reports that the piece occurred once, so some of what is known is wrong.
            () if is_ambiguous => {
                self.edit_once(now, edit, &counts);
                self.raise_doubt(now, UNPLACED);
            }
            () if counts.iter().all(|count| *count == 0) => self.edit_unknown(now, edit),
            () => self.edit_once(now, edit, &counts),
        }
        if runs_on {
            self.raise_doubt(now, UNPLACED);
        }
        self.settle_end(now, edit);
    }

    /// Notes what an edit may have done to the end of the file.
    fn settle_end(&mut self, now: Now, edit: &Edit) {
        if self.end != End::Closed && edit.new.ends_with('\n') && !edit.old.ends_with('\n') {
            // If the file ended without a line feed, the new one ends its last line and begins no other.
            let lasts = self.segments.iter_mut().filter_map(|segment| segment.lines.last_mut());
            let is_new = |line: &&mut super::Line| line.text.is_empty() && line.edited == now.at;
            lasts.filter(is_new).for_each(|line| line.grade = Grade::InDoubt);
            self.settle(now, UNPLACED);
        }
        let takes_last = edit.old.ends_with('\n') && !edit.new.ends_with('\n');
        if self.end == End::Open || edit.takes_feed || takes_last {
            self.end = End::Unknown;
        }
    }

    fn edit_once(&mut self, now: Now, edit: &Edit, counts: &[usize]) {
        let is_placed = counts.iter().zip(&self.segments).any(|(count, segment)| {
            *count > 0 && segment.first.is_some() && segment.lines.iter().all(super::Line::is_sure)
        });
        let (old, _) = edit.pieces();
        let mut segments = Vec::with_capacity(self.segments.len() + 1);
        let mut moved: Option<(usize, Option<isize>)> = None;
        for (mut segment, count) in std::mem::take(&mut self.segments).into_iter().zip(counts) {
            if *count == 0 {
                if !(is_placed && segment.first.is_some()) {
                    splice::doubt_edges(&mut segment, &old);
                }
                segments.push(segment);
                continue;
            }
            let number = segment.first;
            let mut replaced = splice::replace_once(segment, now, &edit.old, &edit.new, edit.takes_feed);
            if !replaced.is_sure {
                // What was found may be an old copy of lines that are known beside it.
                splice::doubt_edges(&mut replaced.head, &old);
                replaced.tail.iter_mut().for_each(|tail| splice::doubt_edges(tail, &old));
            }
            let is_exact = replaced.tail.is_none();
            let place = number.filter(|_| replaced.is_sure).map(|first| first + replaced.line);
            moved = moved.or(place.map(|place| (place, is_exact.then_some(edit.grown))));
            segments.push(replaced.head);
            if let Some(tail) = replaced.tail {
                self.whole = false;
                segments.push(tail);
            }
        }
        self.segments = segments;
        match moved {
            Some((place, Some(grown))) => self.shift_numbers(place, grown),
            Some((place, None)) => self.distrust_after(place),
            None if edit.grown != 0 || edit.takes_feed => self.distrust_numbers(self.start()),
            None => {}
        }
        self.finish(now);
    }

    fn edit_all(&mut self, now: Now, edit: &Edit) {
        let is_whole = self.whole;
        let start = self.start();
        let old: Vec<&str> = edit.old.split('\n').collect();
        for segment in &mut self.segments {
            splice::replace_all(segment, now, &edit.old, &edit.new);
            if !is_whole && old.len() > 1 {
                splice::doubt_edges(segment, &old);
            }
        }
        if edit.grown != 0 && !is_whole {
            self.distrust_numbers(start);
        }
        self.finish(now);
    }

    /// Notes a change of lines that are not known together: known old lines are removed, and the new lines are added.
    fn edit_unknown(&mut self, now: Now, edit: &Edit) {
        let (old, new) = edit.pieces();
        if edit.takes_feed {
            // An unknown line may be joined with the one after it, or be gone.
            self.distrust_numbers(self.start());
            let is_later = |segment: &&mut Segment| segment.first != Some(1);
            let firsts = self.segments.iter_mut().filter(is_later).filter_map(|segment| segment.lines.first_mut());
            firsts.for_each(|line| line.grade = Grade::InDoubt);
        }
        self.replace_unknown(now, &old, &new, edit.grown, 1);
    }

    /// The same for lines. The first and last `frayed` of the new lines may continue in unknown lines.
    fn replace_unknown(&mut self, now: Now, old: &[&str], new: &[&str], grown: isize, frayed: usize) {
        let is_contradicted = self.whole;
        splice::forget(&mut self.segments, old);
        for segment in &mut self.segments {
            splice::doubt_edges(segment, old);
        }
        if is_contradicted {
            // All of the file was known and the old text was not in it, so some of it was wrong.
            self.raise_doubt(now, UNPLACED);
        }
        if grown != 0 {
            self.distrust_numbers(self.start());
        }
        if !new.is_empty() {
            let lines = new.iter().map(|line| (*line).to_owned()).collect();
            let mut segment = Segment::new(now, now.at, &Passage { first: None, lines });
            let count = segment.lines.len();
            for (index, line) in segment.lines.iter_mut().enumerate() {
                if index < frayed || index + frayed >= count {
                    line.grade = if frayed > 0 { Grade::InDoubt } else { line.grade };
                }
            }
            self.segments.push(segment);
        }
        self.whole = false;
        self.finish(now);
    }

    fn patch(&mut self, now: Now, hunks: &[Hunk]) {
        self.deleted = false;
        self.mark_edited(now.at);
        let mut from = 0;
        for hunk in hunks {
            self.note_cut(&texts(&hunk.old), &texts(&hunk.new));
            self.patch_hunk(now, hunk, &mut from);
        }
        // Some tools end the file with a line feed, and some leave it as it was.
        if self.end == End::Open {
            self.end = End::Unknown;
        }
        self.finish(now);
    }

    /// Replaces the lines of a hunk. A hunk applies at the first match after the previous hunk; that place is certain
    /// only if all lines up to it are known.
    fn patch_hunk(&mut self, now: Now, hunk: &Hunk, from: &mut usize) {
        let grown = hunk.new.len() as isize - hunk.old.len() as isize;
        if hunk.old.is_empty() {
            let lines = Segment::new(now, now.at, &Passage { first: None, lines: hunk.new.clone() });
            self.segments.push(lines);
            return self.raise_doubt(now, UNPLACED);
        }
        let start = self.start();
        let certain = start.and_then(|index| {
            let segment = &self.segments[index];
            let place = match hunk.first {
                // The line that is given counts from before the patch.
                Some(first) => splice::find_at(segment, hunk, first).filter(|_| *from == 0)?,
                None => splice::find_first(segment, hunk, *from)?,
            };
            Some((index, place)).filter(|_| !hunk.is_at_end)
        });
        let old: Vec<&str> = hunk.old.iter().map(String::as_str).collect();
        if let Some((index, place)) = certain {
            splice::replace_lines(&mut self.segments[index], now, hunk, place);
            *from = place + hunk.new.len();
            for (other, segment) in self.segments.iter_mut().enumerate() {
                if other != index && segment.first.is_none() {
                    splice::doubt_run(segment, &hunk.old);
                    splice::doubt_edges(segment, &old);
                }
            }
            return self.shift_numbers(place + 1, grown);
        }
        *from = usize::MAX;
        let matches: usize = self.segments.iter().map(|segment| splice::count_like(&segment.lines, &hunk.old)).sum();
        if matches > 1 {
            return self.patch_any(now, hunk);
        }
        let mut is_found = false;
        for segment in &mut self.segments {
            if let Some(place) = splice::find_lines(&segment.lines, &hunk.old) {
                splice::replace_lines(segment, now, hunk, place);
                // If it was applied elsewhere, the lines around this place are not next to the new ones.
                let around = place.saturating_sub(1)..(place + hunk.new.len() + 1).min(segment.lines.len());
                segment.lines[around].iter_mut().for_each(|line| line.grade = Grade::InDoubt);
                is_found = true;
            }
            splice::doubt_edges(segment, &old);
        }
        if !is_found {
            let new: Vec<&str> = hunk.new.iter().map(String::as_str).collect();
            return self.replace_unknown(now, &old, &new, grown, 0);
        }
        self.whole = false;
        if grown != 0 {
            self.distrust_numbers(None);
        }
    }

    /// Notes a hunk that was applied at one of several places: all of them are in doubt.
    fn patch_any(&mut self, now: Now, hunk: &Hunk) {
        let old: Vec<&str> = hunk.old.iter().map(String::as_str).collect();
        for segment in &mut self.segments {
            splice::doubt_run(segment, &hunk.old);
            splice::doubt_edges(segment, &old);
        }
        self.whole = false;
        if hunk.new.len() != hunk.old.len() {
            self.distrust_numbers(None);
        }
        let mut added = Segment::new(now, now.at, &Passage { first: None, lines: hunk.new.clone() });
        added.lines.iter_mut().for_each(|line| line.grade = Grade::InDoubt);
        self.segments.push(added);
    }

    /// Makes the numbers of segments after a line guesses.
    fn distrust_after(&mut self, place: usize) {
        let later = self.segments.iter_mut().filter(|segment| segment.first.is_some_and(|first| first > place));
        later.for_each(Segment::distrust);
    }

    /// Removes segments without lines, and notes what is in doubt.
    fn finish(&mut self, now: Now) {
        let whole = self.whole;
        self.segments.retain(|segment| whole || !segment.lines.is_empty());
        self.settle(now, UNPLACED);
    }
}

fn texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}
