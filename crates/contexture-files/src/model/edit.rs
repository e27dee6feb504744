//! Applies an edit, a patch or a new text to what is known of one file.

use super::state::End;
use super::{FileState, Known, Now, Segment, splice};
use crate::numbering::Passage;
use crate::patch::Hunk;

/// The reason given for lines that a change may or may not have touched.
pub(super) const UNPLACED: &str = "an edit at a place that is not known";

/// A piece of text and what replaces it.
pub(super) struct TextEdit {
    old: String,
    new: String,
    takes_feed: bool,
    /// How many lines the file grows by.
    grown: isize,
}

impl TextEdit {
    pub(super) fn new(old: &str, new: &str, takes_feed: bool) -> Self {
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
    pub(super) fn write(&mut self, now: Now, text: &str) {
        self.segments = vec![Segment::new(now, now.at, &Passage::plain(Some(1), text))];
        self.deleted = false;
        (self.whole, self.whole_at) = (true, now.count);
        self.changes.clear();
        self.end = if text.is_empty() || text.ends_with('\n') { End::Closed } else { End::Open };
        self.has_returns = text.contains("\r\n");
        self.mark_edited(now.at);
    }

    pub(super) fn delete(&mut self, now: Now) {
        self.segments.clear();
        self.deleted = true;
        (self.whole, self.whole_at) = (false, now.count);
        self.changes.clear();
        self.end = End::Unknown;
        self.mark_edited(now.at);
    }

    /// Notes that its text is unknown now; the lines known before are often still right.
    pub(super) fn change_somehow(&mut self, now: Now, by: &str) {
        self.deleted = false;
        self.mark_edited(now.at);
        self.mark_changed(now, by);
    }

    pub(super) fn append(&mut self, now: Now, text: &str) {
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
            lasts.for_each(|line| line.known = Known::Changed);
            added.lines.first_mut().into_iter().for_each(|line| line.known = Known::Loose);
        }
        self.segments.push(added);
        self.settle(now, UNPLACED);
    }

    pub(super) fn insert(&mut self, now: Now, after: usize, text: &str) {
        self.mark_edited(now.at);
        let added = Segment::new(now, now.at, &Passage::plain(Some(after + 1), text));
        let count = added.lines.len();
        // Lines without numbers may be on both sides of the place.
        let unnumbered = self.segments.iter_mut().filter(|segment| segment.first.is_none() && segment.lines.len() > 1);
        unnumbered.flat_map(|segment| &mut segment.lines).for_each(|line| line.known = Known::Changed);
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
    pub(super) fn edit(&mut self, now: Now, edit: &TextEdit, all: bool) {
        self.deleted = false;
        self.mark_edited(now.at);
        let counts: Vec<usize> = self.segments.iter().map(|segment| splice::occurrences(segment, &edit.old)).collect();
        let numbered =
            counts.iter().zip(&self.segments).filter(|(count, segment)| **count > 0 && segment.first.is_some());
        let is_ambiguous = counts.iter().any(|count| *count > 1) || numbered.count() > 1;
        let runs_on = !self.whole && self.segments.iter().any(|segment| edit.runs_on(segment));
        match () {
            () if edit.old.is_empty() || (all && edit.takes_feed) => self.mark_changed(now, UNPLACED),
            () if all => self.edit_all(now, edit),
            // The tool reports that the piece occurred once, so some of what is known is wrong.
            () if is_ambiguous => {
                self.edit_once(now, edit, &counts);
                self.mark_changed(now, UNPLACED);
            }
            () if counts.iter().all(|count| *count == 0) => self.edit_unknown(now, edit),
            () => self.edit_once(now, edit, &counts),
        }
        if runs_on {
            self.mark_changed(now, UNPLACED);
        }
        self.settle_end(now, edit);
    }

    /// Notes what an edit may have done to the end of the file.
    fn settle_end(&mut self, now: Now, edit: &TextEdit) {
        if self.end != End::Closed && edit.new.ends_with('\n') && !edit.old.ends_with('\n') {
            // If the file ended without a line feed, the new one ends its last line and begins no other.
            let lasts = self.segments.iter_mut().filter_map(|segment| segment.lines.last_mut());
            let is_new = |line: &&mut super::Line| line.text.is_empty() && line.edited == now.at;
            lasts.filter(is_new).for_each(|line| line.known = Known::Changed);
            self.settle(now, UNPLACED);
        }
        let takes_last = edit.old.ends_with('\n') && !edit.new.ends_with('\n');
        if self.end == End::Open || edit.takes_feed || takes_last {
            self.end = End::Unknown;
        }
    }

    fn edit_once(&mut self, now: Now, edit: &TextEdit, counts: &[usize]) {
        let is_placed = counts.iter().zip(&self.segments).any(|(count, segment)| {
            *count > 0 && segment.first.is_some() && segment.lines.iter().all(super::Line::is_placed)
        });
        let (old, _) = edit.pieces();
        let mut segments = Vec::with_capacity(self.segments.len() + 1);
        let mut moved: Option<(usize, Option<isize>)> = None;
        for (mut segment, count) in std::mem::take(&mut self.segments).into_iter().zip(counts) {
            if *count == 0 {
                if !(is_placed && segment.first.is_some()) {
                    splice::mark_edges(&mut segment, &old);
                }
                segments.push(segment);
                continue;
            }
            let number = segment.first;
            let mut replaced = splice::replace_once(segment, now, &edit.old, &edit.new, edit.takes_feed);
            if !replaced.is_sure {
                // What was found may be an old copy of lines that are known beside it.
                splice::mark_edges(&mut replaced.head, &old);
                replaced.tail.iter_mut().for_each(|tail| splice::mark_edges(tail, &old));
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

    fn edit_all(&mut self, now: Now, edit: &TextEdit) {
        let is_whole = self.whole;
        let start = self.start();
        let old: Vec<&str> = edit.old.split('\n').collect();
        for segment in &mut self.segments {
            splice::replace_all(segment, now, &edit.old, &edit.new);
            if !is_whole && old.len() > 1 {
                splice::mark_edges(segment, &old);
            }
        }
        if edit.grown != 0 && !is_whole {
            self.distrust_numbers(start);
        }
        self.finish(now);
    }

    /// Notes a change of lines that are not known together: known old lines are removed, and the new lines are added.
    fn edit_unknown(&mut self, now: Now, edit: &TextEdit) {
        let (old, new) = edit.pieces();
        if edit.takes_feed {
            // An unknown line may be joined with the one after it, or be gone.
            self.distrust_numbers(self.start());
            let is_later = |segment: &&mut Segment| segment.first != Some(1);
            let firsts = self.segments.iter_mut().filter(is_later).filter_map(|segment| segment.lines.first_mut());
            firsts.for_each(|line| line.known = Known::Changed);
        }
        self.replace_unknown(now, &old, &new, edit.grown, 1);
    }

    /// The same for lines. The first and last `frayed` of the new lines may continue in unknown lines.
    fn replace_unknown(&mut self, now: Now, old: &[&str], new: &[&str], grown: isize, frayed: usize) {
        let is_contradicted = self.whole;
        splice::forget(&mut self.segments, old);
        for segment in &mut self.segments {
            splice::mark_edges(segment, old);
        }
        if is_contradicted {
            // All of the file was known and the old text was not in it, so some of it was wrong.
            self.mark_changed(now, UNPLACED);
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
                    line.known = if frayed > 0 { Known::Loose } else { line.known };
                }
            }
            self.segments.push(segment);
        }
        self.whole = false;
        self.finish(now);
    }

    pub(super) fn patch(&mut self, now: Now, hunks: &[Hunk]) {
        self.deleted = false;
        self.mark_edited(now.at);
        let mut from = 0;
        for hunk in hunks {
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
            return self.mark_changed(now, UNPLACED);
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
                    splice::mark_run(segment, &hunk.old);
                    splice::mark_edges(segment, &old);
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
                segment.lines[around].iter_mut().for_each(|line| line.known = line.known.min(Known::Loose));
                is_found = true;
            }
            splice::mark_edges(segment, &old);
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

    /// Notes a hunk that was applied at one of several places: all of them are changed.
    fn patch_any(&mut self, now: Now, hunk: &Hunk) {
        let old: Vec<&str> = hunk.old.iter().map(String::as_str).collect();
        for segment in &mut self.segments {
            splice::mark_run(segment, &hunk.old);
            splice::mark_edges(segment, &old);
        }
        self.whole = false;
        if hunk.new.len() != hunk.old.len() {
            self.distrust_numbers(None);
        }
        let mut added = Segment::new(now, now.at, &Passage { first: None, lines: hunk.new.clone() });
        added.lines.iter_mut().for_each(|line| line.known = Known::Loose);
        self.segments.push(added);
    }

    /// Makes the numbers of segments after a line guesses.
    fn distrust_after(&mut self, place: usize) {
        let later = self.segments.iter_mut().filter(|segment| segment.first.is_some_and(|first| first > place));
        later.for_each(Segment::distrust);
    }

    /// Removes segments without lines, and notes what is changed.
    fn finish(&mut self, now: Now) {
        let whole = self.whole;
        self.segments.retain(|segment| whole || !segment.lines.is_empty());
        self.settle(now, UNPLACED);
    }
}
