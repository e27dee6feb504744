//! Follows an agent's calls one after the other, with the directory that they run in.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Message, Origin};

use super::dialect::{Dialects, Ends, Standing};
use super::numbering::{Passage, numbered};
use super::observation::{Observation, Seen};
use super::path::{Directory, Known};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Examines calls in the order in which they were made.
///
/// It remembers the working directory, if the agent's shell keeps it or a recording states it, so that relative paths
/// are resolved to the right file.
///
/// ```
/// use contexture_files::observer::Observer;
/// use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
/// let mut observer = Observer::default();
/// let mut run = |command: &str, output: &str| {
///     let call = FunctionCall::new("1", "Bash", serde_json::json!({"command": command}).to_string());
///     observer.observe(&call, &FunctionCallOutput::new("1", output, Outcome::Done))
/// };
/// run("cd /app/src", "");
/// assert_eq!(run("cat a.rs", "fn a() {}\n").paths, ["/app/src/a.rs"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Observer {
    dialects: Dialects,
    standing: Standing,
}

impl Observer {
    /// An observer for agents that use these dialects.
    pub fn new(dialects: Dialects) -> Self {
        Self { dialects, ..Self::default() }
    }

    /// The dialects.
    pub fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// The directory that the next call runs in, if it is known.
    pub fn directory(&self) -> Option<&str> {
        match &self.standing.directory {
            Directory::At(path) => Some(path),
            Directory::Start | Directory::Lost => None,
        }
    }

    /// Writes what it remembers of earlier calls.
    pub fn rest(&self, packer: &mut Packer<'_>) {
        let Self { dialects: _, standing: Standing { directory, ends, known } } = self;
        directory.rest(packer);
        packer.flag(*ends == Ends::Kept);
        known.rest(packer);
    }

    /// Reads it again.
    pub fn wake(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), Damaged> {
        let directory = Directory::wake(unpacker)?;
        let ends = if unpacker.flag()? { Ends::Kept } else { Ends::Unknown };
        self.standing = Standing { directory, ends, known: Known::wake(unpacker)? };
        Ok(())
    }

    /// Examines a call and what the tool returned.
    pub fn observe(&mut self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        let (seen, after) = self.dialects.observe_in(call, output, &self.standing);
        if seen.command.is_some() && output.output.ends_with('\n') {
            self.standing.ends = Ends::Kept;
        }
        let stated = output.meta.directory.as_deref().map(|path| Directory::At(path.to_owned()));
        self.standing.directory = stated.unwrap_or(after);
        self.note_directories(&seen);
        seen
    }

    /// Remembers which directories exist.
    fn note_directories(&mut self, seen: &Seen) {
        let known = &mut self.standing.known;
        for observation in &seen.observations {
            match observation {
                Observation::Read { path, .. } | Observation::Write { path, .. } | Observation::Edit { path, .. } => {
                    known.note_file(path);
                }
                Observation::Delete { path } => known.forget(path),
                Observation::Move { from, .. } => known.forget(from),
                Observation::Swept { under: Some(path), .. } => known.forget(path),
                _ => {}
            }
        }
        if let Directory::At(path) = &self.standing.directory {
            known.note_file(&format!("{path}/x"));
        }
    }

    /// Returns what a message tells about files: a harness may attach files with their current text.
    pub fn hear(&mut self, message: &Message) -> Vec<Observation> {
        if let Some(directory) = message.meta.directory.as_deref() {
            self.standing.directory = Directory::At(directory.to_owned());
        }
        let Origin::Harness { kind: Some(kind), path: Some(path) } = &message.meta.origin else { return Vec::new() };
        let Some(path) = self.standing.directory.place_for_tool(path) else { return Vec::new() };
        let text = message.text_cow();
        match &**kind {
            "edited_text_file" => {
                let by = "a change by someone else".to_owned();
                let mut told = vec![Observation::Swept { under: Some(path.clone()), extensions: Vec::new(), by }];
                told.extend(attached(&path, &text));
                told
            }
            "file" => attached(&path, &text),
            // What an editor shows may not be on the disk yet, and a selection may begin within a line.
            "selected_lines_in_ide" => {
                vec![Observation::Old { path, blocks: vec![Passage::plain(None, &text)] }]
            }
            _ => Vec::new(),
        }
    }
}

/// Lines of an attached file.
fn attached(path: &str, text: &str) -> Vec<Observation> {
    let read = |block: Passage| Observation::Read { path: path.to_owned(), block, whole: false };
    let mut passages = numbered(text).unwrap_or_else(|| vec![Passage::plain(None, text)]);
    // Spaces may be missing at the end of the last line.
    if let Some(last) = passages.last_mut().filter(|_| !text.ends_with('\n')) {
        last.lines.pop();
    }
    passages.into_iter().filter(|passage| !passage.lines.is_empty()).map(read).collect()
}
