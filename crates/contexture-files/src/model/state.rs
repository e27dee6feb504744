//! What is known of one file, and how reads add to it.

use super::fact::note_change;
use super::{FileState, Known, Line, Now, Segment, Who, join_lines, splice};
use crate::numbering::Passage;

/// A mention of a file by an output, or of one of its lines by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// When.
    pub at: u32,
    /// The line that it named, adjusted for later changes that are known to be before it.
    pub line: Option<usize>,
}

/// Most mentions that are remembered of a file.
pub const MAX_MENTIONS: usize = 32;

/// Most runs of lines that one search may add to a file.
const MAX_HITS: usize = 40;

/// How a file's last line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// Unknown.
    #[default]
    Unknown,
    /// With a line feed.
    Closed,
    /// Without one.
    Open,
}

/// The reason given for lines of a file of which a read shows that it changed.
const CHANGED_UNSEEN: &str = "a change that a later read shows";

impl FileState {
    /// How many lines are known.
    pub fn known_lines(&self) -> usize {
        self.segments.iter().map(|segment| segment.lines.len()).sum()
    }

    /// How many bytes are known.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether some of its lines are known to end with a carriage return and a line feed. Known lines are without both.
    pub fn has_carriage_returns(&self) -> bool {
        self.has_returns
    }

    pub(super) fn count_bytes(&mut self) {
        let lines = self.segments.iter().flat_map(|segment| &segment.lines);
        self.bytes = lines.map(|line| line.text.len() + 1).sum();
    }

    /// The known text, segment after segment.
    pub fn text(&self) -> String {
        self.segments.iter().map(Segment::text).collect::<Vec<_>>().join("\n")
    }

    /// Where outputs and the user named the file, newest first; a place that was named again is listed once.
    pub fn mentions(&self) -> &[Mention] {
        &self.mentions
    }

    pub(super) fn mention(&mut self, mention: Mention) {
        self.mentioned = mention.at;
        self.mentions.retain(|known| known.line != mention.line);
        self.mentions.truncate(MAX_MENTIONS - 1);
        self.mentions.insert(0, mention);
    }

    pub(super) fn mark_edited(&mut self, at: u32) {
        self.edited = at;
        self.disk_change = None;
        self.not_compared = None;
        self.changed_by = Some(Who::Agent);
        self.edits += 1;
        self.version += 1;
    }

    /// Notes that someone named the file.
    pub(super) fn name(&mut self, at: u32, who: Who) {
        match who {
            Who::Agent => self.named_by_agent = self.named_by_agent.max(at),
            Who::User | Who::Other => self.named = self.named.max(at),
        }
    }

    /// Whether someone named the file and the agent did not change it since: work on it may still be pending.
    pub fn is_pending(&self) -> bool {
        self.named.max(self.named_by_agent) > self.edited
    }

    /// Whether any known line is from before a change that could not be followed.
    pub fn is_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Marks all known lines as from before a change that cannot be followed.
    pub(super) fn mark_changed(&mut self, now: Now, by: &str) {
        let lines = self.segments.iter_mut().flat_map(|segment| &mut segment.lines);
        let mut is_any = false;
        for line in lines {
            is_any |= !line.is_changed();
            line.known = Known::Changed;
        }
        if is_any {
            note_change(&mut self.changes, now, by);
        }
        self.distrust_numbers(None);
        self.whole = false;
        self.end = End::Unknown;
    }

    /// Makes the places of lines uncertain that were last certain before something could write the file.
    pub(super) fn loosen(&mut self, written_at: u64) {
        if written_at <= self.loosened_at {
            return;
        }
        self.loosened_at = written_at;
        self.whole &= self.whole_at >= written_at;
        for segment in &mut self.segments {
            let old = segment.lines.iter_mut().filter(|line| line.certain_at < written_at && line.is_placed());
            let count = old.map(|line| line.known = Known::Loose).count();
            if count > 0 {
                segment.distrust();
                self.end = End::Unknown;
            }
        }
    }

    /// The number of observations at the time when all that is known was last certain.
    pub(super) fn certain_at(&self) -> u64 {
        let lines = self.segments.iter().flat_map(|segment| &segment.lines);
        lines.map(|line| line.certain_at).min().unwrap_or(self.whole_at)
    }

    /// Notes what changed lines, or that no line is from before a change any more.
    pub(super) fn settle(&mut self, now: Now, by: &str) {
        let mut lines = self.segments.iter().flat_map(|segment| &segment.lines);
        let is_whole = lines.clone().all(Line::is_placed);
        match lines.any(Line::is_changed) {
            false => self.changes.clear(),
            true if self.changes.is_empty() => note_change(&mut self.changes, now, by),
            true => {}
        }
        self.whole &= is_whole;
    }

    /// Makes the numbers of all segments guesses, except for one segment.
    pub(super) fn distrust_numbers(&mut self, but: Option<usize>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if Some(index) != but {
                segment.distrust();
            }
        }
    }

    /// The segment that begins at the first line, if one does and all of it is certain.
    pub(super) fn start(&self) -> Option<usize> {
        let is_start = |segment: &Segment| segment.first == Some(1) && segment.lines.iter().all(Line::is_placed);
        self.segments.iter().position(is_start)
    }

    /// Takes in lines that were shown.
    pub(super) fn read(&mut self, now: Now, block: &Passage, whole: bool) {
        self.read = now.at;
        self.reads += 1;
        self.disk_change = None;
        self.not_compared = None;
        self.deleted = false;
        let segment = Segment::new(now, 0, block);
        if whole {
            return self.read_whole(now, segment);
        }
        if segment.lines.is_empty() {
            return;
        }
        self.absorb(now, segment);
    }

    fn read_whole(&mut self, now: Now, mut segment: Segment) {
        splice::inherit_all(&mut segment, &self.segments);
        let differs = self.whole && self.segments.first().is_some_and(|before| !before.same_text(&segment));
        if differs {
            self.note_change_elsewhere();
        }
        let is_same = self.whole && !differs;
        self.segments = vec![segment];
        self.changes.clear();
        (self.whole, self.whole_at) = (true, now.count);
        self.end = if is_same { self.end } else { End::Unknown };
    }

    /// Takes in how many lines the file has. If more are known, or not as many of a whole file, it changed.
    pub(super) fn take_length(&mut self, now: Now, lines: usize) {
        self.deleted = false;
        let ends = |segment: &Segment| segment.first.map(|first| first + segment.lines.len() - 1);
        let longest = self.segments.iter().filter_map(ends).max().unwrap_or_default();
        if longest > lines || (self.whole && longest != lines) {
            self.note_change_elsewhere();
            self.mark_changed(now, CHANGED_UNSEEN);
        }
    }

    pub(super) fn note_change_elsewhere(&mut self) {
        self.changed_elsewhere = true;
        self.changed_by = Some(Who::Other);
        self.version += 1;
    }

    /// Adds lines that the file has now. If they contradict what was known, someone else changed the file, and lines
    /// that were not shown again may have changed too.
    fn absorb(&mut self, now: Now, segment: Segment) {
        let contradicts = splice::contradicts(&self.segments, &segment)
            || (self.whole && splice::goes_beyond(&self.segments, &segment));
        if contradicts {
            self.mark_changed(now, CHANGED_UNSEEN);
            self.note_change_elsewhere();
        }
        splice::absorb(&mut self.segments, segment);
        self.settle(now, CHANGED_UNSEEN);
    }

    /// Takes in lines that a search found.
    pub(super) fn found(&mut self, now: Now, blocks: &[Passage]) {
        self.deleted = false;
        for block in blocks.iter().take(MAX_HITS) {
            if !splice::touch(&mut self.segments, now, block) {
                let mut segment = Segment::new(now, 0, block);
                segment.is_hit = true;
                self.absorb(now, segment);
            }
        }
        self.settle(now, CHANGED_UNSEEN);
    }

    /// Moves the numbers of segments that begin after a line, and of mentions after it.
    pub(super) fn shift_numbers(&mut self, place: usize, delta: isize) {
        for segment in &mut self.segments {
            if let Some(first) = segment.first.filter(|first| *first > place) {
                segment.first = Some(first.saturating_add_signed(delta));
            }
        }
        for line in self.mentions.iter_mut().filter_map(|mention| mention.line.as_mut()).filter(|line| **line > place) {
            *line = line.saturating_add_signed(delta);
        }
    }
}

impl Segment {
    pub(super) fn new(now: Now, edited: u32, block: &Passage) -> Self {
        let span = block.lines.len() as u32;
        let line = |text: &String| Line::new(text, now, edited, span);
        Self { first: block.first, lines: block.lines.iter().map(line).collect(), guess: None, is_hit: false }
    }

    /// The lines, joined by line feeds.
    pub fn text(&self) -> String {
        join_lines(&self.lines)
    }

    /// The number of its first line, or the last number before that became uncertain. It is for finding the line, not
    /// for display.
    pub fn likely_first(&self) -> Option<usize> {
        self.place()
    }

    /// The same, for use in this module.
    pub(super) fn place(&self) -> Option<usize> {
        self.first.or(self.guess)
    }

    /// Makes its number a guess.
    pub(super) fn distrust(&mut self) {
        self.guess = self.place();
        self.first = None;
    }

    fn same_text(&self, other: &Segment) -> bool {
        self.lines.len() == other.lines.len()
            && self.lines.iter().zip(&other.lines).all(|(one, two)| one.text == two.text)
    }
}

impl Line {
    /// A line that is shown or written now.
    pub(super) fn new(text: &str, now: Now, edited: u32, span: u32) -> Self {
        Self {
            text: text.into(),
            seen: now.at,
            edited,
            shown: 0,
            span,
            is_computed: false,
            known: Known::Placed,
            certain_at: now.count,
        }
    }
}
