//! What is known of each file's current version.
//!
//! A pure fold over observations: the same observations in the same order give the same model. Reads add lines,
//! edits and patches change known lines, writes replace them. A change that does not fit what is known takes
//! away the lines that it contradicts; a change that nobody can follow makes the lines that it may have touched
//! unsure. Lines are kept as the agent saw or made them, byte for byte.

use std::collections::HashMap;
use std::sync::Arc;

use super::numbering::Passage;
use super::observation::Observation;

mod change;
mod names;
mod path;
mod rewrite;
mod shelf;
mod splice;
mod state;

use names::Names;
pub use names::named_places;
use path::{PathIndex, extension_of, is_at_revision, is_beneath, normalize};
use shelf::Shelf;
pub use state::{MAX_MENTIONS, Mention, join_lines};

/// How well a line is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It was shown to the agent or written by it, and nothing that could have changed it happened since.
    #[default]
    Sure,
    /// It follows from what was known and what a command did to it; no message shows it.
    Computed,
    /// Something happened since that may have changed it.
    Unsure,
}

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
    /// How well it is known.
    pub trust: Trust,
}

impl Line {
    /// Whether the file still has it, as far as anyone can say.
    pub fn is_sure(&self) -> bool {
        self.trust != Trust::Unsure
    }
}

/// A run of consecutive known lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of its first line, from 1, if that is known. Lines that are unsure are counted as they were.
    pub first: Option<usize>,
    /// The lines.
    pub lines: Vec<Line>,
    /// What `first` was before a change at an unknown place.
    guess: Option<usize>,
    /// Whether it is only a hit of a search.
    pub is_hit: bool,
}

/// Who did something to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The agent whose conversation this is.
    Agent,
    /// The user.
    User,
    /// Someone else: another program, another person.
    Other,
}

/// Why lines of a file are unsure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// When it arose.
    pub at: u32,
    /// What raised it, in short: a command, or a plain sentence's end.
    pub by: String,
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
    /// When this agent last named it; 0 is never.
    pub named_by_agent: u32,
    /// Who changed it last, if anyone did.
    pub changed_by: Option<Who>,
    /// When an output last named it, or the user one of its lines; 0 is never.
    pub mentioned: u32,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Whether the first segment is the whole file.
    pub whole: bool,
    /// Whether something outside the agent's own edits changed it, as far as reads showed.
    pub changed_elsewhere: bool,
    /// Why some of its lines are unsure, if some are.
    pub doubt: Option<Doubt>,
    /// Other entries that hold lines of this file, printed together with other files.
    shared: Vec<usize>,
    /// Where outputs and the user named it, the newest first.
    mentions: Vec<Mention>,
    end: state::End,
    bytes: usize,
}

/// What is known of all files.
#[derive(Clone, Debug, Default)]
pub struct FileModel {
    files: Shelf,
    index: PathIndex,
    names: Names,
    together: HashMap<Vec<usize>, usize>,
    bytes: usize,
}

impl FileModel {
    /// A model that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// All files, in the order in which they were first seen.
    pub fn files(&self) -> &[FileState] {
        &self.files
    }

    /// A number that is another one whenever what is known of a file may be something else.
    pub(crate) fn revision(&self, file: usize) -> u64 {
        self.files.revision(file)
    }

    /// What is known of a file, by any of the names that the agent used for it.
    pub fn get(&self, path: &str) -> Option<&FileState> {
        Some(&self.files[self.index.find(&normalize(path))?])
    }

    /// Takes in an observation made at a moment; moments never go back.
    pub fn apply(&mut self, at: u32, observation: &Observation) {
        self.take(at, observation);
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
            Observation::Old { path, blocks } => {
                if let Some(index) = self.place(path) {
                    self.files[index].compare(at, blocks);
                }
            }
            Observation::Found { path, blocks } => self.open(path, at).found(at, blocks),
            Observation::Mentioned { path, line } => {
                if let Some(index) = self.place(path) {
                    self.mention(index, Mention { at, line: *line });
                }
            }
            change => self.change(at, change),
        }
    }

    /// Notes that someone named a file, the user or this agent; answers its place if it is known. A file that is not
    /// known yet is remembered.
    pub fn name(&mut self, at: u32, path: &str, who: Who) -> Option<usize> {
        let normal = normalize(path);
        let known = self.index.find_named(&normal);
        match known {
            Some(index) => self.files[index].name(at, who),
            None => self.names.note(normal, at, who),
        }
        known
    }

    /// Notes that a place in a file was named.
    pub(crate) fn mention(&mut self, file: usize, mention: Mention) {
        self.files[file].mention(mention);
    }

    /// Notes that the view with a mark shows lines of a segment.
    pub fn mark_shown(&mut self, mark: u32, file: usize, segment: usize, lines: std::ops::Range<usize>) {
        let segment = self.files.lines_to_mark(file, segment);
        for line in segment.and_then(|all| all.get_mut(lines)).into_iter().flatten() {
            line.shown = mark;
        }
    }

    /// The known lines that a block repeats, if all of it is known in one piece.
    pub fn known<'a>(&'a self, path: &str, block: &Passage) -> Option<&'a [Line]> {
        let file = self.get(path)?;
        file.segments.iter().find_map(|segment| {
            let by_number = segment.place().zip(block.first).and_then(|(first, wanted)| wanted.checked_sub(first));
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
            let mut file = FileState::default();
            for (at, who) in self.names.take(&normal) {
                file.name(at, who);
            }
            self.files.add(file)
        });
        self.index.add(&normal, index);
        let file = &mut self.files[index];
        // A longer name says more; a name once shown is kept so that headings stay the same.
        if file.path.is_empty() {
            file.path = path.to_owned();
        }
        index
    }

    fn read_together(&mut self, at: u32, paths: &[String], block: &Passage) {
        let mut members: Vec<usize> = paths.iter().map(|path| self.open_index(path)).collect();
        members.sort_unstable();
        members.dedup();
        for member in &members {
            self.files[*member].touched = at;
        }
        if let [only] = members.as_slice() {
            let block = Passage { first: None, lines: block.lines.clone() };
            return self.files[*only].read_block(at, &block, false);
        }
        let index = match self.together.get(&members) {
            Some(index) => *index,
            None => {
                let names: Vec<&str> = members.iter().map(|member| self.files[*member].path.as_str()).collect();
                let index = self.files.add(FileState { path: names.join(" + "), ..FileState::default() });
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
}
