//! What is known of one file, and how reads add to it.

use super::grade::note_doubt;
use super::{FileState, Grade, Line, Now, Segment, Who, join_lines, splice};
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

/// The reason given for lines that a read contradicts.
const CHANGED_UNSEEN: &str = "a change by someone else";

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

    /// Whether any known line is in doubt.
    pub fn is_unsure(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// Puts all known lines in doubt, because of a change that cannot be followed.
    pub(super) fn raise_doubt(&mut self, now: Now, by: &str) {
        self.formatted = None;
        self.doubt_lines(now, by, |_| true);
        self.distrust_numbers(None);
        self.whole = false;
        self.end = End::Unknown;
    }

    /// Puts some lines in doubt.
    pub(super) fn doubt_lines(&mut self, now: Now, by: &str, is_doubtful: impl Fn(&Line) -> bool) {
        let lines = self.segments.iter_mut().flat_map(|segment| &mut segment.lines);
        let mut is_any = false;
        for line in lines.filter(|line| is_doubtful(line)) {
            is_any |= line.is_sure();
            line.grade = Grade::InDoubt;
        }
        if is_any {
            note_doubt(&mut self.doubts, now, by);
        }
    }

    /// Whether all lines are already in doubt, so that another doubt changes nothing.
    pub(super) fn is_all_in_doubt(&self) -> bool {
        !self.whole
            && self
                .segments
                .iter()
                .all(|segment| segment.first.is_none() && segment.lines.iter().all(|line| !line.is_sure()))
    }

    /// Notes what put lines in doubt, or that no line is in doubt any more.
    pub(super) fn settle(&mut self, now: Now, by: &str) {
        let is_doubtful = self.segments.iter().flat_map(|segment| &segment.lines).any(|line| !line.is_sure());
        match is_doubtful {
            false => self.doubts.clear(),
            true if self.doubts.is_empty() => note_doubt(&mut self.doubts, now, by),
            true => {}
        }
        self.whole &= !is_doubtful;
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
        let is_start = |segment: &Segment| segment.first == Some(1) && segment.lines.iter().all(Line::is_sure);
        self.segments.iter().position(is_start)
    }

    /// Takes in lines that were shown.
    pub(super) fn read(&mut self, now: Now, block: &Passage, whole: bool) {
        self.read = now.at;
        self.reads += 1;
        self.disk_change = None;
        self.deleted = false;
        let segment = Segment::new(now, 0, block);
        if whole {
            return self.read_whole(segment);
        }
        if segment.lines.is_empty() {
            return;
        }
        self.absorb(now, segment);
    }

    fn read_whole(&mut self, mut segment: Segment) {
        splice::inherit_all(&mut segment, &self.segments);
        let differs = self.whole && self.segments.first().is_some_and(|before| !before.same_text(&segment));
        if differs {
            self.note_change_elsewhere();
        }
        let is_same = self.whole && !differs;
        self.segments = vec![segment];
        self.doubts.clear();
        self.whole = true;
        self.end = if is_same { self.end } else { End::Unknown };
    }

    pub(super) fn note_change_elsewhere(&mut self) {
        self.changed_elsewhere = true;
        self.formatted = None;
        self.changed_by = Some(Who::Other);
        self.version += 1;
    }

    /// Adds lines that the file has now. If they contradict what was known, someone else changed the file, and lines
    /// that were not shown again may have changed too.
    fn absorb(&mut self, now: Now, segment: Segment) {
        let contradicts = splice::contradicts(&self.segments, &segment)
            || (self.whole && splice::goes_beyond(&self.segments, &segment));
        if contradicts {
            self.raise_doubt(now, CHANGED_UNSEEN);
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

    /// Notes that lines were seen in another version; only known lines are affected.
    pub(super) fn compare(&mut self, at: u32, blocks: &[Passage]) {
        for block in blocks {
            splice::touch_old(&mut self.segments, at, block);
        }
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
            grade: Grade::Sure,
            certain_at: now.count,
        }
    }
}
