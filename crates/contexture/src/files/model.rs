//! What is known of each file's current version.
//!
//! A pure fold over observations: the same observations in the same order give the same model. Reads add lines,
//! edits and patches change known lines, writes replace them. A change that does not fit what is known takes
//! away the lines that it contradicts. Lines are kept as the agent saw or made them, byte for byte.

use std::collections::HashMap;
use std::sync::Arc;

use super::numbering::{Block, split_lines};
use super::observation::Observation;
use super::patch::Hunk;

mod path;
mod splice;

use path::{PathIndex, normalize};

/// One known line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text, without a line feed.
    pub text: Arc<str>,
    /// When it was last shown to the agent or written by it.
    pub seen: u32,
    /// When the agent last changed it; 0 is never.
    pub edited: u32,
    /// The mark of the view that last showed it; 0 is none.
    pub shown: u32,
    /// How many lines were shown or written together with it when it was last seen.
    pub span: u32,
}

/// A run of consecutive known lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of its first line, from 1, if that is known.
    pub first: Option<usize>,
    /// The lines.
    pub lines: Vec<Line>,
    /// The version of the file's numbering that `first` belongs to.
    numbering: u32,
    /// Whether it is only a hit of a search.
    pub is_hit: bool,
}

/// What is known of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// The path as the agent last wrote it.
    pub path: String,
    /// Known lines, in order of their numbers; those without numbers last.
    pub segments: Vec<Segment>,
    /// How often its text changed, as far as the agent could know.
    pub version: u32,
    /// When it was last read, searched or changed.
    pub touched: u32,
    /// When it was last read.
    pub read: u32,
    /// When this agent last changed it; 0 is never.
    pub edited: u32,
    /// How often this agent changed it.
    pub edits: u32,
    /// How often it was read.
    pub reads: u32,
    /// When the user last named it; 0 is never.
    pub named: u32,
    /// When an output last named it; 0 is never.
    pub mentioned: u32,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Whether the first segment is the whole file.
    pub whole: bool,
    /// Whether something outside the agent's own edits changed it, as far as reads showed.
    pub changed_elsewhere: bool,
    /// Other entries that hold lines of this file, printed together with other files.
    shared: Vec<usize>,
    /// Where outputs named it, the newest first.
    mentions: Vec<Mention>,
    numbering: u32,
    bytes: usize,
}

/// An output named a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// When.
    pub at: u32,
    /// The line that it named, as the file's lines were numbered then.
    pub line: Option<usize>,
}

/// Most mentions that are remembered of a file.
pub const MAX_MENTIONS: usize = 32;

/// What is known of all files.
#[derive(Clone, Debug, Default)]
pub struct FileModel {
    files: Vec<FileState>,
    index: PathIndex,
    together: HashMap<Vec<usize>, usize>,
    bytes: usize,
}

/// Most runs of lines that one search may add to a file.
const MAX_HITS: usize = 40;

impl FileModel {
    /// A model that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// All files, in the order in which they were first seen.
    pub fn files(&self) -> &[FileState] {
        &self.files
    }

    /// What is known of a file, by any of the names that the agent used for it.
    pub fn get(&self, path: &str) -> Option<&FileState> {
        Some(&self.files[self.index.find(&normalize(path))?])
    }

    /// Takes in an observation made at a moment; moments never go back.
    pub fn apply(&mut self, at: u32, observation: &Observation) {
        self.take(at, observation);
        if matches!(observation, Observation::Mentioned { .. }) {
            return;
        }
        for path in observation.paths() {
            if let Some(index) = self.place(path) {
                self.recount(index);
            }
        }
    }

    /// Counts a file's bytes again, and those of the entries that hold lines of it.
    fn recount(&mut self, index: usize) {
        for other in self.files[index].shared.clone().into_iter().chain([index]) {
            self.bytes -= self.files[other].bytes;
            self.files[other].count_bytes();
            self.bytes += self.files[other].bytes;
        }
    }

    /// How many bytes are known of all files together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn take(&mut self, at: u32, observation: &Observation) {
        match observation {
            Observation::Read { path, block, whole } => self.open(path, at).read_block(at, block, *whole),
            Observation::ReadTogether { paths, block } => self.read_together(at, paths, block),
            Observation::Found { path, blocks } => self.open(path, at).found(at, blocks),
            Observation::Write { path, text } => self.open(path, at).write(at, text),
            Observation::Append { path, text } => self.open(path, at).append(at, text),
            Observation::Edit { path, old, new, all } => self.edit(at, path, old, new, *all),
            Observation::Insert { path, after, text } => self.open(path, at).insert(at, *after, text),
            Observation::Patch { path, hunks } => {
                for hunk in hunks {
                    self.patch(at, path, hunk);
                }
            }
            Observation::Changed { path } => self.open(path, at).change_somehow(at),
            Observation::Delete { path } => {
                let file = self.open(path, at);
                file.segments.clear();
                file.deleted = true;
                file.mark_edited(at);
            }
            Observation::Mentioned { path, line } => {
                if let Some(index) = self.place(path) {
                    self.files[index].mention(Mention { at, line: *line });
                }
            }
            Observation::Move { from, to } => self.rename(at, from, to),
        }
    }

    /// Notes that the user named a file, if it is known.
    pub fn name(&mut self, at: u32, path: &str) {
        if let Some(index) = self.index.find(&normalize(path)) {
            self.files[index].named = at;
        }
    }

    /// Names of known files, to look for in text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.index.names()
    }

    /// Notes that the view with a mark shows lines of a segment.
    pub fn mark_shown(&mut self, mark: u32, file: usize, segment: usize, lines: std::ops::Range<usize>) {
        let segment = self.files.get_mut(file).and_then(|file| file.segments.get_mut(segment));
        for line in segment.and_then(|segment| segment.lines.get_mut(lines)).into_iter().flatten() {
            line.shown = mark;
        }
    }

    /// The known lines that a block repeats, if all of it is known in one piece.
    pub fn known<'a>(&'a self, path: &str, block: &Block) -> Option<&'a [Line]> {
        let file = self.get(path)?;
        file.segments.iter().find_map(|segment| {
            let by_number = segment.first.zip(block.first).and_then(|(first, wanted)| wanted.checked_sub(first));
            let same = |start: usize| {
                let lines = segment.lines.get(start..start + block.lines.len())?;
                lines.iter().zip(&block.lines).all(|(line, text)| *line.text == **text).then_some(lines)
            };
            by_number.and_then(same)
        })
    }

    /// The place of a file among all, by any of its names.
    pub fn place(&self, path: &str) -> Option<usize> {
        self.index.find(&normalize(path))
    }

    fn open(&mut self, path: &str, at: u32) -> &mut FileState {
        let index = self.open_index(path);
        let file = &mut self.files[index];
        file.touched = at;
        file
    }

    fn open_index(&mut self, path: &str) -> usize {
        let normal = normalize(path);
        let index = self.index.find(&normal).unwrap_or_else(|| {
            self.files.push(FileState::default());
            self.files.len() - 1
        });
        self.index.add(&normal, index);
        let file = &mut self.files[index];
        // A longer name says more; a name once shown is kept so that headings stay the same.
        if file.path.is_empty() {
            file.path = path.to_owned();
        }
        index
    }

    fn read_together(&mut self, at: u32, paths: &[String], block: &Block) {
        let mut members: Vec<usize> = paths.iter().map(|path| self.open_index(path)).collect();
        members.sort_unstable();
        members.dedup();
        for member in &members {
            self.files[*member].touched = at;
        }
        if let [only] = members.as_slice() {
            let block = Block { first: None, lines: block.lines.clone() };
            return self.files[*only].read_block(at, &block, false);
        }
        let index = match self.together.get(&members) {
            Some(index) => *index,
            None => {
                let names: Vec<&str> = members.iter().map(|member| self.files[*member].path.as_str()).collect();
                self.files.push(FileState { path: names.join(" + "), ..FileState::default() });
                let index = self.files.len() - 1;
                for member in &members {
                    self.files[*member].shared.push(index);
                }
                self.together.insert(members, index);
                index
            }
        };
        self.files[index].touched = at;
        self.files[index].read_block(at, block, false);
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
            file.replace_unknown(at, split_lines(old).collect(), split_lines(new).collect());
        }
    }

    fn patch(&mut self, at: u32, path: &str, hunk: &Hunk) {
        let index = self.open_index(path);
        self.files[index].touched = at;
        let shared = self.files[index].shared.clone();
        let mut hit = self.files[index].replace_lines(at, hunk);
        for other in shared {
            if self.files[other].replace_lines(at, hunk) {
                self.files[other].touched = at;
                hit = true;
            }
        }
        let file = &mut self.files[index];
        file.mark_edited(at);
        if !hit {
            let old = hunk.old.iter().map(String::as_str).collect();
            file.replace_unknown(at, old, hunk.new.iter().map(String::as_str).collect());
        }
    }

    fn rename(&mut self, at: u32, from: &str, to: &str) {
        let Some(source) = self.index.find(&normalize(from)) else { return };
        let segments = std::mem::take(&mut self.files[source].segments);
        self.files[source].deleted = true;
        self.files[source].touched = at;
        let file = self.open(to, at);
        file.segments = segments;
        file.deleted = false;
        file.mark_edited(at);
    }
}

impl FileState {
    /// How many lines are known.
    pub fn known_lines(&self) -> usize {
        self.segments.iter().map(|segment| segment.lines.len()).sum()
    }

    /// How many bytes are known.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn count_bytes(&mut self) {
        let lines = self.segments.iter().flat_map(|segment| &segment.lines);
        self.bytes = lines.map(|line| line.text.len() + 1).sum();
    }

    /// The known text, segment after segment.
    pub fn text(&self) -> String {
        self.segments.iter().map(Segment::text).collect::<Vec<_>>().join("\n")
    }

    /// Where outputs named the file, the newest first; a place that was named again stands once.
    pub fn mentions(&self) -> &[Mention] {
        &self.mentions
    }

    fn mention(&mut self, mention: Mention) {
        self.mentioned = mention.at;
        self.mentions.retain(|known| known.line != mention.line);
        self.mentions.truncate(MAX_MENTIONS - 1);
        self.mentions.insert(0, mention);
    }

    fn mark_edited(&mut self, at: u32) {
        self.edited = at;
        self.edits += 1;
        self.version += 1;
    }

    fn read_block(&mut self, at: u32, block: &Block, whole: bool) {
        self.read = at;
        self.reads += 1;
        self.deleted = false;
        let mut segment = Segment::new(at, 0, block, self.numbering);
        if whole {
            splice::inherit_all(&mut segment, &self.segments);
            let differs = self.whole && self.segments.first().is_some_and(|before| !before.same_text(&segment));
            self.changed_elsewhere |= differs;
            self.version += u32::from(differs);
            self.segments = vec![segment];
            self.whole = true;
            return;
        }
        splice::absorb(&mut self.segments, segment);
        self.whole &= self.segments.len() == 1;
    }

    fn found(&mut self, at: u32, blocks: &[Block]) {
        for block in blocks.iter().take(MAX_HITS) {
            if splice::touch(&mut self.segments, at, block) {
                continue;
            }
            let mut segment = Segment::new(at, 0, block, self.numbering);
            segment.is_hit = true;
            splice::absorb(&mut self.segments, segment);
        }
        self.whole &= self.segments.len() == 1;
    }

    fn write(&mut self, at: u32, text: &str) {
        self.segments = vec![Segment::new(at, at, &Block::plain(Some(1), text), self.numbering)];
        self.deleted = false;
        self.whole = true;
        self.mark_edited(at);
    }

    fn append(&mut self, at: u32, text: &str) {
        self.mark_edited(at);
        let added = Segment::new(at, at, &Block::plain(None, text), self.numbering);
        match self.segments.first_mut() {
            Some(whole) if self.whole => whole.lines.extend(added.lines),
            _ => self.segments.push(added),
        }
    }

    fn insert(&mut self, at: u32, after: usize, text: &str) {
        self.mark_edited(at);
        let added = Segment::new(at, at, &Block::plain(None, text), self.numbering);
        let count = added.lines.len();
        let place = self.segments.iter().position(|segment| {
            segment.first.is_some_and(|first| after + 1 >= first && after < first + segment.lines.len())
        });
        match place {
            Some(index) => {
                let segment = &mut self.segments[index];
                let line = after + 1 - segment.first.unwrap_or(1);
                segment.lines.splice(line..line, added.lines);
                self.shift_after(index, count as isize);
            }
            None => {
                self.numbering += 1;
                self.segments.push(added);
            }
        }
    }

    fn change_somehow(&mut self, at: u32) {
        // Nobody knows which lines changed; what is known stays the best guess until it is read again,
        // but its numbers are no longer to be trusted.
        self.mark_edited(at);
        self.numbering += 1;
        self.whole = false;
    }

    /// Replaces a piece of text wherever it is known; says whether it was.
    fn replace(&mut self, at: u32, old: &str, new: &str, all: bool) -> bool {
        let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
        if self.replace_exact(at, &old, &new, all) {
            return true;
        }
        let (bare_old, bare_new) = (old.trim_matches('\n'), new.trim_matches('\n'));
        bare_old.len() < old.len() && !bare_old.is_empty() && self.replace_exact(at, bare_old, bare_new, all)
    }

    fn replace_exact(&mut self, at: u32, old: &str, new: &str, all: bool) -> bool {
        let mut hit = false;
        for index in 0..self.segments.len() {
            let delta = splice::replace_text(&mut self.segments[index], at, old, new, all);
            if let Some(delta) = delta {
                self.shift_after(index, delta);
                hit = true;
            }
        }
        hit
    }

    fn replace_lines(&mut self, at: u32, hunk: &Hunk) -> bool {
        if hunk.old.is_empty() {
            return false;
        }
        let mut hit = false;
        for index in 0..self.segments.len() {
            if let Some(delta) = splice::replace_lines(&mut self.segments[index], at, hunk) {
                self.shift_after(index, delta);
                hit = true;
            }
        }
        hit
    }

    /// Notes a change of lines that are not known together: what is known of the old ones goes, the new ones come.
    fn replace_unknown(&mut self, at: u32, old: Vec<&str>, new: Vec<&str>) {
        splice::forget(&mut self.segments, &old);
        if old.len() != new.len() {
            self.numbering += 1;
        }
        if !new.is_empty() {
            let block = Block { first: None, lines: new.into_iter().map(str::to_owned).collect() };
            splice::absorb(&mut self.segments, Segment::new(at, at, &block, self.numbering));
        }
        self.whole = false;
    }

    /// Moves the numbers of the segments behind one whose length changed.
    fn shift_after(&mut self, index: usize, delta: isize) {
        if delta == 0 {
            return;
        }
        let Some(place) = self.segments[index].first else {
            // The change stands at an unknown place, so no other number can be trusted.
            self.numbering += 1;
            return;
        };
        for segment in &mut self.segments {
            if let Some(first) = segment.first.filter(|first| *first > place) {
                segment.first = Some(first.saturating_add_signed(delta));
            }
        }
    }
}

impl Segment {
    fn new(at: u32, edited: u32, block: &Block, numbering: u32) -> Self {
        let span = block.lines.len() as u32;
        let line = |text: &String| Line { text: text.as_str().into(), seen: at, edited, shown: 0, span };
        Self { first: block.first, lines: block.lines.iter().map(line).collect(), numbering, is_hit: false }
    }

    /// The lines, joined by line feeds.
    pub fn text(&self) -> String {
        join_lines(&self.lines)
    }

    fn same_text(&self, other: &Segment) -> bool {
        let texts = |segment: &Segment| segment.lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
        texts(self) == texts(other)
    }
}

/// Lines joined by line feeds.
pub fn join_lines(lines: &[Line]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    text
}
