//! Follows an agent's calls one after the other, with the directory that they run in.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Message, Origin, Role};

use super::batch::CallBatch;
use super::completion::Completion;
use super::dialect::{Dialects, FinalLineFeed, Standing};
use super::framing::framed;
use super::notes;
use super::numbering::{Passage, numbered};
use super::observation::{Observation, Seen};
use super::path::{Directory, is_absolute};
use super::run;
use super::running::RunningCommands;
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
    running: RunningCommands,
    batch: CallBatch,
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
        let Self { dialects: _, standing: Standing { directory, ends }, running, batch } = self;
        directory.rest(packer);
        packer.flag(*ends == FinalLineFeed::Kept);
        running.rest(packer);
        batch.rest(packer);
    }

    /// Reads it again.
    pub fn wake(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), Damaged> {
        let directory = Directory::wake(unpacker)?;
        let ends = if unpacker.flag()? { FinalLineFeed::Kept } else { FinalLineFeed::Unknown };
        self.standing = Standing { directory, ends };
        self.running = RunningCommands::wake(unpacker)?;
        self.batch = CallBatch::wake(unpacker)?;
        Ok(())
    }

    /// Notes that a call was made whose output comes later. Calls that are open at the same time may run in any order,
    /// so what one of them changed of what another one shows could be written before or after.
    pub fn expect(&mut self, call: &FunctionCall) {
        self.batch.made(&call.call_id);
    }

    /// Examines a call and what the tool returned.
    pub fn observe(&mut self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        let (mut seen, after) = self.dialects.observe_in(call, output, &self.standing);
        if seen.command.is_some() && output.output.ends_with('\n') {
            self.standing.ends = FinalLineFeed::Kept;
        }
        let stated = output.meta.directory.as_deref().map(|path| Directory::At(path.to_owned()));
        self.standing.directory = stated.unwrap_or(after);
        self.batch.beside(&call.call_id, &call.name, &mut seen);
        self.running.beside(&mut seen, &call.arguments, &output.output);
        // A harness may add to an output that files were changed meanwhile. The output itself is newer.
        let noted = notes::modified(&output.output).into_iter().filter_map(|path| self.changed_by_someone(path));
        seen.observations.splice(0..0, noted.collect::<Vec<_>>());
        if seen.command.is_none() && seen.failed && notes::is_stale(&output.output) {
            let stale: Vec<_> = seen.paths.iter().filter_map(|path| self.changed_by_someone(path)).collect();
            seen.observations.extend(stale);
        }
        seen
    }

    /// A file that someone else changed.
    fn changed_by_someone(&self, path: &str) -> Option<Observation> {
        Some(notes::changed_by_someone(&self.standing.directory.place_for_tool(path)?))
    }

    /// Returns what a message tells about files: a harness may attach files with their current text.
    pub fn hear(&mut self, message: &Message) -> Vec<Observation> {
        if let Some(directory) = message.meta.directory.as_deref() {
            self.standing.directory = Directory::At(directory.to_owned());
        }
        let text = message.text_cow();
        let ended = self.running.heard(&text);
        if !ended.is_empty() {
            return ended;
        }
        let (kind, path) = match &message.meta.origin {
            Origin::Harness { kind, path } => (kind.as_deref(), path.as_deref()),
            Origin::Said if message.role == Role::Assistant => return Vec::new(),
            Origin::Said => return self.hear_text(&text),
            _ => return Vec::new(),
        };
        // On the wire the path is only in the text.
        let named = path.or_else(|| notes::modified(&text).first().copied());
        let named_in_text = path.is_none();
        let (Some(kind), Some(path)) = (kind, named) else { return self.hear_text(&text) };
        let Some(path) = self.standing.directory.place_for_tool(path) else { return Vec::new() };
        match kind {
            "edited_text_file" => {
                let mut told = vec![notes::changed_by_someone(&path)];
                // A note that names the file has other lines than those of the file.
                let is_note = named_in_text;
                let shown = attached(&path, &text).into_iter().filter(|told| !is_note || has_number(told));
                // After the first change, lines are numbered as they were before it.
                told.extend(shown.enumerate().map(|(at, told)| if at == 0 { told } else { without_number(told) }));
                told
            }
            "file" => attached(&path, &text),
            // What an editor shows may not be on the disk yet, and a selection may begin within a line.
            "selected_lines_in_ide" => Vec::new(),
            _ => self.hear_text(&text),
        }
    }

    /// Returns what a person or a note of a harness tells, also about a command that a person ran.
    fn hear_text(&self, text: &str) -> Vec<Observation> {
        // What a person ran is judged by itself.
        if let Some(line) = notes::own_command(text) {
            let ran = run::observe(line, &framed("", ""), Completion::Open, self.standing.directory.clone());
            return ran.observations.into_iter().filter(Observation::is_change).collect();
        }
        let directory = &self.standing.directory;
        let place = |path: &str| match is_absolute(path) || path.starts_with('.') {
            true => directory.place_for_tool(path).or_else(|| directory.place_somewhere(path)),
            // People name files by the end of their paths, wherever they are.
            false => Some(path.to_owned()),
        };
        let placed = |told: Observation| {
            told.placed(&place).unwrap_or_else(|| Observation::could_write(notes::SOMEONE.to_owned()))
        };
        notes::of_text(text).into_iter().map(placed).collect()
    }
}

/// Whether lines that were shown carry their numbers.
fn has_number(observation: &Observation) -> bool {
    matches!(observation, Observation::Read { block, .. } if block.first.is_some())
}

/// Lines that were shown, without their number.
fn without_number(observation: Observation) -> Observation {
    match observation {
        Observation::Read { path, block, .. } => {
            Observation::Read { path, block: Passage { first: None, ..block }, whole: false }
        }
        other => other,
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
