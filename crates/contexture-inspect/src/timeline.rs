//! The history of the files of a conversation, derived from its tool calls.

use std::collections::{BTreeMap, HashMap};

use contexture::files::dialect::Dialects;
use contexture::files::model::{Fact, FileModel};
use contexture::files::numbering::Passage;
use contexture::files::observation::Observation;
use contexture::files::observer::Observer;
use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};

use super::made;
use super::text::cut;
use super::view::{FileEvent, FileEventKind, FileGrade, FileLine, ReadLines};

/// Characters of a command that a history shows.
const COMMAND_CHARS: usize = 120;

/// The history of the files of a conversation so far.
pub struct Timeline {
    observer: Observer,
    model: FileModel,
    /// Calls without an output yet.
    calls: HashMap<String, FunctionCall>,
    /// The events, by file.
    events: HashMap<String, Vec<FileEvent>>,
    /// The files that blocks show.
    shows: HashMap<u32, ShownRead>,
    /// The request of each moment of the file model.
    requests: Vec<u64>,
    /// The newest place that was processed.
    pub(super) newest: i64,
}

/// Lines of a file that a block shows.
struct ShownRead {
    path: String,
    count: u64,
}

/// A call, or its output.
pub struct ToolStep {
    /// The block that contains it.
    pub block: u32,
    /// The first request that contained it.
    pub n: u64,
    /// Whether it is the call.
    pub is_call: bool,
    /// The id of the call.
    pub call: String,
    /// The tool, for a call.
    pub name: String,
    /// Its arguments, or the output.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

impl Timeline {
    /// Creates an empty history.
    pub fn new(dialects: Dialects) -> Self {
        Self {
            observer: Observer::new(dialects),
            model: FileModel::new(),
            calls: HashMap::new(),
            events: HashMap::new(),
            shows: HashMap::new(),
            requests: vec![0],
            newest: 0,
        }
    }

    /// Processes a call or an output.
    pub fn take(&mut self, deed: ToolStep) {
        if deed.is_call {
            let call = FunctionCall::new(&deed.call, &deed.name, deed.text);
            self.calls.insert(deed.call, call);
            return;
        }
        let Some(call) = self.calls.get(&deed.call) else { return };
        let outcome = if deed.is_error { Outcome::Failed } else { Outcome::Done };
        let seen = self.observer.observe(call, &FunctionCallOutput::new(&deed.call, deed.text, outcome));
        self.requests.push(deed.n);
        let moment = (self.requests.len() - 1) as u32;
        for observation in &seen.observations {
            self.model.apply(moment, observation);
            self.note(observation, deed.n, deed.block);
        }
    }

    fn note(&mut self, observation: &Observation, n: u64, block: u32) {
        let Some((what, detail)) = file_event(observation) else { return };
        let reached = match observation {
            Observation::CouldWrite { path, .. } => path.as_deref().into_iter().collect(),
            _ => observation.paths(),
        };
        for path in reached {
            let event = FileEvent { n, what, detail: cut(&detail, COMMAND_CHARS), block };
            let events = self.events.entry(path.to_owned()).or_default();
            if events.last() != Some(&event) {
                events.push(event);
            }
            if let Observation::Read { block: read, .. } = observation {
                let count = read.lines.len() as u64;
                self.shows.entry(block).or_insert_with(|| ShownRead { path: path.to_owned(), count });
            }
        }
    }

    /// All files, most recently used first.
    pub fn files(&self) -> Vec<FileLine> {
        let mut files: Vec<(u32, FileLine)> = Vec::new();
        for (place, file) in self.model.files().iter().enumerate() {
            let lines: usize = file.segments.iter().map(|segment| segment.lines.len()).sum();
            if lines == 0 && file.reads == 0 && file.edits == 0 && !file.deleted {
                continue;
            }
            let known = self.known(place);
            let line = FileLine {
                path: file.path.clone(),
                grade: match known.worst {
                    _ if file.deleted => FileGrade::Deleted,
                    Some((fact, _)) => made::grade(fact),
                    None => FileGrade::Unknown,
                },
                reason: known.worst.and_then(|(_, cause)| cause).unwrap_or_default(),
                lines: lines as u64,
                graded: known.graded,
                is_whole: self.model.claim_whole(place).is_some(),
                reads: u64::from(file.reads),
                changes: u64::from(file.edits),
                last: self.requests.get(file.touched as usize).copied().unwrap_or(0),
            };
            files.push((file.touched, line));
        }
        files.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.path.cmp(&other.1.path)));
        files.into_iter().map(|(_, line)| line).collect()
    }

    /// What is known of the lines of a file, region by region.
    fn known(&self, place: usize) -> KnownLines {
        let mut known = KnownLines::default();
        for (segment, of) in self.model.files()[place].segments.iter().enumerate() {
            for (region, claim) in self.model.claims(place, segment, 0..of.lines.len()) {
                *known.graded.entry(made::grade(claim.fact)).or_default() += region.len() as u64;
                if known.worst.as_ref().is_none_or(|(fact, _)| claim.fact < *fact) {
                    let cause = claim.by.map(|cause| cause.by.clone());
                    known.worst = Some((claim.fact, cause));
                }
            }
        }
        known
    }

    /// The events of a file, oldest first.
    pub fn history(&self, path: &str) -> Vec<FileEvent> {
        self.events.get(path).cloned().unwrap_or_default()
    }

    /// The lines of a file that a block shows, and how reliable they were at a request.
    pub fn grade(&self, block: u32, until: u64) -> Option<ReadLines> {
        let shown = self.shows.get(&block)?;
        let events = self.events.get(&shown.path)?;
        let at = events.iter().rposition(|event| event.block == block && event.what == FileEventKind::Read)?;
        let mut read = ReadLines { n: events[at].n, count: shown.count, grade: FileGrade::Seen, reason: None };
        for event in events[at + 1..].iter().filter(|event| event.n <= until) {
            let (later, words) = match event.what {
                FileEventKind::Changed => (FileGrade::Overtaken, "changed"),
                FileEventKind::Written => (FileGrade::Overtaken, "written"),
                FileEventKind::Deleted => (FileGrade::Overtaken, "deleted"),
                FileEventKind::Moved => (FileGrade::Overtaken, "moved"),
                FileEventKind::Read if read.grade == FileGrade::Seen => (FileGrade::ReadAgain, "read again"),
                FileEventKind::Read | FileEventKind::CouldWrite | FileEventKind::Searched | FileEventKind::Named => {
                    continue;
                }
            };
            (read.grade, read.reason) = (later, Some(format!("{words} before request {}", event.n)));
            if later == FileGrade::Overtaken {
                break;
            }
        }
        Some(read)
    }
}

/// How well the lines of a file are known.
#[derive(Default)]
struct KnownLines {
    graded: BTreeMap<FileGrade, u64>,
    /// The lowest fact, with the first change that lines are from before.
    worst: Option<(Fact, Option<String>)>,
}

/// Converts an observation to an event.
fn file_event(observation: &Observation) -> Option<(FileEventKind, String)> {
    use FileEventKind::{Changed, CouldWrite, Deleted, Moved, Named, Read, Searched, Written};
    Some(match observation {
        Observation::Read { block, whole: true, .. } => (Read, format!("all {} lines", block.lines.len())),
        Observation::Read { block, .. } => (Read, lines(block)),
        Observation::Found { blocks, .. } => {
            let count: usize = blocks.iter().map(|block| block.lines.len()).sum();
            (Searched, format!("{count} lines"))
        }
        Observation::Write { text, .. } => (Written, format!("{} lines", text.lines().count())),
        Observation::Append { text, .. } => (Changed, format!("{} lines added at its end", text.lines().count())),
        Observation::Edit { old, new, .. } => {
            (Changed, format!("{} lines became {}", old.lines().count(), new.lines().count()))
        }
        Observation::Insert { after, text, .. } => {
            (Changed, format!("{} lines put in after line {after}", text.lines().count()))
        }
        Observation::Patch { hunks, .. } => (Changed, format!("{} places", hunks.len())),
        Observation::Changed { by, .. } => (Changed, by.clone()),
        Observation::Made { .. } => (Written, "made".to_owned()),
        Observation::CouldWrite { path: Some(_), by } => (CouldWrite, by.clone()),
        Observation::Copy { from, to, .. } => (Written, format!("{from} copied to {to}")),
        Observation::Delete { .. } => (Deleted, String::new()),
        Observation::Move { from, to } => (Moved, format!("{from} to {to}")),
        Observation::Mentioned { line, .. } => (Named, line.map_or_else(String::new, |line| format!("line {line}"))),
        Observation::Absent { .. } => (Deleted, "a tool says that it is not there".to_owned()),
        Observation::Length { lines, .. } => (Named, format!("{lines} lines")),
        Observation::Printed { .. } | Observation::Linked | Observation::CouldWrite { path: None, .. } => return None,
    })
}

fn lines(block: &Passage) -> String {
    match block.first {
        Some(first) => format!("lines {first} to {}", first + block.lines.len().saturating_sub(1)),
        None => format!("{} lines", block.lines.len()),
    }
}
