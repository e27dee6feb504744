//! What changes do to what is known of files.

use super::splice::Replaced;
use super::{Doubt, FileModel, FileState, Segment, Trust, extension_of, is_at_revision, is_beneath, normalize, splice};
use crate::files::numbering::Passage;
use crate::files::observation::Observation;
use crate::files::patch::Hunk;

use super::state::End;

/// What is said of lines that a change may or may not have touched.
const UNPLACED: &str = "an edit at a place that is not known";

/// How a text that replaced another begins and ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// With whole lines.
    Lines,
    /// Maybe within a line.
    Pieces,
}

impl FileModel {
    /// Takes in an observation that changes files.
    pub(super) fn change(&mut self, at: u32, change: &Observation) {
        match change {
            Observation::Write { path, text } => self.replace_with(at, path, |file| file.write(at, text)),
            Observation::Guess { path, text, by } => self.replace_with(at, path, |file| {
                file.write(at, text);
                file.raise_doubt(at, by);
            }),
            Observation::Append { path, text } => self.open(path, at).append(at, text),
            Observation::Edit { path, old, new, all } => self.edit(at, path, old, new, *all),
            Observation::Insert { path, after, text } => {
                self.doubt_shared(at, path, UNPLACED);
                self.open(path, at).insert(at, *after, text);
            }
            Observation::Patch { path, hunks } => self.patch(at, path, hunks),
            Observation::Rewrite { path, changes, by } => {
                self.doubt_shared(at, path, by);
                self.open(path, at).rewrite(at, changes, by);
            }
            Observation::Changed { path, by } => {
                self.doubt_shared(at, path, by);
                self.open(path, at).change_somehow(at, by);
            }
            Observation::Swept { under, extensions, by } => self.sweep(at, under.as_deref(), extensions, by),
            Observation::Delete { path } => self.replace_with(at, path, |file| file.delete(at)),
            Observation::Copy { from, to } => self.copy(at, from, to),
            Observation::Move { from, to } => {
                self.copy(at, from, to);
                if let Some(source) = self.place(from).filter(|source| Some(*source) != self.place(to)) {
                    self.files[source].delete(at);
                    self.files[source].touched = at;
                }
            }
            _ => {}
        }
    }

    /// Gives a file other text; what is known of it beside other files may be gone.
    fn replace_with(&mut self, at: u32, path: &str, replace: impl FnOnce(&mut FileState)) {
        self.doubt_shared(at, path, "a later write");
        replace(self.open(path, at));
    }

    /// Makes the lines unsure that are known of a file together with those of others.
    fn doubt_shared(&mut self, at: u32, path: &str, by: &str) {
        let shared = self.place(path).map(|index| self.files[index].shared.clone());
        for other in shared.unwrap_or_default() {
            self.files[other].raise_doubt(at, by);
        }
    }

    /// Makes the lines unsure of every file that a command may have changed.
    fn sweep(&mut self, at: u32, under: Option<&str>, extensions: &[String], by: &str) {
        let under = under.map(normalize).unwrap_or_default();
        for index in 0..self.files.len() {
            let path = normalize(&self.files[index].path);
            let is_of_kind =
                extensions.is_empty() || extensions.iter().any(|extension| extension_of(&path) == extension);
            if is_of_kind && is_beneath(&path, &under) && !is_at_revision(&path) {
                self.files[index].raise_doubt(at, by);
            }
        }
    }

    fn copy(&mut self, at: u32, from: &str, to: &str) {
        self.doubt_shared(at, to, "a copy over it");
        let Some(source) = self.place(from).map(|index| &self.files[index]).filter(|file| !file.segments.is_empty())
        else {
            return self.open(to, at).change_somehow(at, "a copy over it");
        };
        let (mut segments, whole, doubt, end) =
            (source.segments.clone(), source.whole, source.doubt.clone(), source.end);
        for line in segments.iter_mut().flat_map(|segment| &mut segment.lines) {
            line.shown = 0;
        }
        let file = self.open(to, at);
        (file.segments, file.whole, file.doubt, file.end) = (segments, whole, doubt, end);
        file.deleted = false;
        file.mark_edited(at);
    }

    fn edit(&mut self, at: u32, path: &str, old: &str, new: &str, all: bool) {
        let index = self.open_index(path);
        self.files[index].touched = at;
        let shared = self.files[index].shared.clone();
        let mut hit = self.files[index].replace(at, old, new, all);
        for other in shared {
            if self.files[other].replace(at, old, new, all) {
                self.files[other].touched = at;
                hit = true;
            }
        }
        let file = &mut self.files[index];
        file.mark_edited(at);
        if !hit {
            let (old, new) = pieces(old, new);
            file.replace_unknown(at, old, new, Ends::Pieces);
        }
    }

    fn patch(&mut self, at: u32, path: &str, hunks: &[Hunk]) {
        let index = self.open_index(path);
        self.files[index].touched = at;
        let shared = self.files[index].shared.clone();
        let mut from = 0;
        for hunk in hunks {
            let mut hit = self.files[index].replace_lines(at, hunk, &mut from);
            for other in &shared {
                if self.files[*other].replace_lines(at, hunk, &mut 0) {
                    self.files[*other].touched = at;
                    hit = true;
                }
            }
            let file = &mut self.files[index];
            file.mark_edited(at);
            if !hit {
                let old = hunk.old.iter().map(String::as_str).collect();
                file.replace_unknown(at, old, hunk.new.iter().map(String::as_str).collect(), Ends::Lines);
            }
        }
    }
}

/// The lines that a piece of text touches, and those that stand there now. One that the piece only ends before, or
/// begins behind, is not touched if the line feed between them stays, or goes with the whole piece.
fn pieces<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut old, mut new) = (old, new);
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

impl FileState {
    fn write(&mut self, at: u32, text: &str) {
        self.segments = vec![Segment::new(at, at, &Passage::plain(Some(1), text))];
        self.deleted = false;
        self.whole = true;
        self.doubt = None;
        self.end = if text.is_empty() || text.ends_with('\n') { End::Closed } else { End::Open };
        self.mark_edited(at);
    }

    fn delete(&mut self, at: u32) {
        self.segments.clear();
        self.deleted = true;
        self.whole = false;
        self.doubt = None;
        self.mark_edited(at);
    }

    /// Notes that it has a text that nobody knows; the lines known before are often still right.
    fn change_somehow(&mut self, at: u32, by: &str) {
        self.deleted = false;
        self.mark_edited(at);
        self.raise_doubt(at, by);
    }

    fn append(&mut self, at: u32, text: &str) {
        if self.deleted {
            return self.write(at, text);
        }
        self.mark_edited(at);
        let mut added = Segment::new(at, at, &Passage::plain(None, text));
        let whole = self.segments.first_mut().filter(|_| self.whole);
        match whole {
            Some(whole) => {
                if let (End::Open, Some(last), false) = (self.end, whole.lines.last_mut(), added.lines.is_empty()) {
                    // The text goes on in the last line.
                    let first = added.lines.remove(0);
                    last.text = format!("{}{}", last.text, first.text).into();
                    (last.seen, last.edited, last.shown, last.trust) = (at, at, 0, Trust::Computed);
                }
                whole.lines.extend(added.lines);
            }
            None if added.lines.is_empty() => {}
            None => self.segments.push(added),
        }
        if !text.is_empty() {
            self.end = if text.ends_with('\n') { End::Closed } else { End::Open };
        }
    }

    fn insert(&mut self, at: u32, after: usize, text: &str) {
        self.mark_edited(at);
        let added = Segment::new(at, at, &Passage::plain(Some(after + 1), text));
        let count = added.lines.len();
        // Lines without a number may stand on both sides of the place.
        let unnumbered = self.segments.iter_mut().filter(|segment| segment.first.is_none() && segment.lines.len() > 1);
        let mut is_unsure = false;
        for line in unnumbered.flat_map(|segment| &mut segment.lines) {
            line.trust = Trust::Unsure;
            is_unsure = true;
        }
        if is_unsure {
            self.doubt = Some(Doubt { at, by: UNPLACED.to_owned() });
        }
        let inside = self.segments.iter().position(|segment| {
            segment.first.is_some_and(|first| after + 1 >= first && after < first + segment.lines.len())
        });
        self.shift_numbers(after, count as isize);
        match inside {
            Some(index) => {
                // The segment itself moved if it begins right behind the place.
                let segment = &mut self.segments[index];
                let first = segment.first.map_or(1, |first| if first > after { first - count } else { first });
                segment.first = Some(first);
                let line = after + 1 - first;
                segment.lines.splice(line..line, added.lines);
            }
            None => {
                splice::absorb_numbered(&mut self.segments, added);
                self.whole = false;
            }
        }
    }

    /// Replaces a piece of text wherever it is known; says whether it was.
    fn replace(&mut self, at: u32, old: &str, new: &str, all: bool) -> bool {
        let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
        if self.replace_exact(at, &old, &new, all) {
            return true;
        }
        // Blank lines around it that stay may stand in what is not known.
        let (mut bare_old, mut bare_new) = (old.as_str(), new.as_str());
        while let (Some(shorter), Some(shorter_new)) = (bare_old.strip_prefix('\n'), bare_new.strip_prefix('\n')) {
            (bare_old, bare_new) = (shorter, shorter_new);
        }
        while let (Some(shorter), Some(shorter_new)) = (bare_old.strip_suffix('\n'), bare_new.strip_suffix('\n')) {
            (bare_old, bare_new) = (shorter, shorter_new);
        }
        bare_old.len() < old.len() && !bare_old.is_empty() && self.replace_exact(at, bare_old, bare_new, all)
    }

    fn replace_exact(&mut self, at: u32, old: &str, new: &str, all: bool) -> bool {
        let mut hits = vec![None; self.segments.len()];
        for (index, hit) in hits.iter_mut().enumerate() {
            *hit = splice::replace_text(&mut self.segments[index], at, old, new, all);
            self.shift_after(index, hit.map_or(0, |hit| hit.grown));
        }
        if hits.iter().all(Option::is_none) {
            return false;
        }
        let grows = old.matches('\n').count() != new.matches('\n').count();
        if all && grows && !self.whole {
            // Pieces that are not known were replaced too.
            self.distrust_numbers(None);
        }
        self.doubt_around(&hits, &pieces(old, new).0, grows);
        self.settle(at, UNPLACED);
        self.whole &= !self.is_unsure();
        let whole = self.whole;
        self.segments.retain(|segment| whole || !segment.lines.is_empty());
        true
    }

    /// What a change means for the lines that it did not hit. Those without a number may be a part of the same place;
    /// those with one may be if only lines without a number were hit; and if only unsure lines were hit, the change
    /// may really stand anywhere.
    fn doubt_around(&mut self, hits: &[Option<Replaced>], old: &[&str], grows: bool) {
        let sure_hits = || self.segments.iter().zip(hits).filter(|(_, hit)| hit.is_some_and(|hit| !hit.is_unsure));
        let is_placed = sure_hits().any(|(segment, _)| segment.first.is_some());
        let is_sure = sure_hits().next().is_some();
        for (segment, hit) in self.segments.iter_mut().zip(hits) {
            if hit.is_none() && !(is_placed && segment.first.is_some()) {
                splice::doubt_edges(segment, old);
            }
        }
        if grows && !is_sure {
            self.distrust_numbers(None);
        }
    }

    /// Replaces the lines of a hunk; `from` is where the one before it ended, in a file known whole.
    fn replace_lines(&mut self, at: u32, hunk: &Hunk, from: &mut usize) -> bool {
        if hunk.old.is_empty() {
            return false;
        }
        let mut hits = vec![None; self.segments.len()];
        let mut is_hit = false;
        for (index, hit) in hits.iter_mut().enumerate() {
            let segment = &mut self.segments[index];
            // The first place with a number is the one; lines without a number may be the same ones.
            if is_hit && segment.first.is_some() {
                continue;
            }
            let Some(start) = splice::find_hunk(segment, hunk, if self.whole { *from } else { 0 }) else { continue };
            let replaced = splice::replace_lines(segment, at, hunk, start);
            *from = start + hunk.new.len();
            self.shift_after(index, replaced.grown);
            *hit = Some(replaced);
            is_hit = true;
        }
        if !is_hit {
            return false;
        }
        let old: Vec<&str> = hunk.old.iter().map(String::as_str).collect();
        self.doubt_around(&hits, &old, hunk.old.len() != hunk.new.len());
        if !self.whole && hunk.first.is_none() && !splice::tells(&hunk.old) {
            self.raise_doubt(at, UNPLACED);
        }
        self.settle(at, UNPLACED);
        true
    }

    /// Notes a change of lines that are not known together: what is known of the old ones goes, the new ones come.
    fn replace_unknown(&mut self, at: u32, old: Vec<&str>, new: Vec<&str>, ends: Ends) {
        splice::forget(&mut self.segments, &old);
        for segment in &mut self.segments {
            splice::doubt_edges(segment, &old);
        }
        if self.whole {
            // All of it was known and the old text was not in it, so some of it was wrong.
            self.raise_doubt(at, UNPLACED);
        }
        if old.len() != new.len() {
            self.distrust_numbers(None);
        }
        if !new.is_empty() {
            let block = Passage { first: None, lines: new.into_iter().map(str::to_owned).collect() };
            let mut segment = Segment::new(at, at, &block);
            if ends == Ends::Pieces {
                segment.lines.first_mut().into_iter().for_each(|line| line.trust = Trust::Unsure);
                segment.lines.last_mut().into_iter().for_each(|line| line.trust = Trust::Unsure);
            }
            splice::absorb(&mut self.segments, segment);
        }
        self.whole = false;
        self.settle(at, UNPLACED);
    }
}
