//! Follows an agent's calls one after the other, with the directory that they run in.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Message, Origin, Role};

use super::batch::CallBatch;
use super::commands::everything;
use super::completion::Completion;
use super::dialect::{Dialects, FinalLineFeed, Standing};
use super::framing::framed;
use super::notes;
use super::numbering::{Passage, numbered};
use super::observation::{Observation, Seen};
use super::path::{Directory, ExistingDirectories, is_absolute};
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
    /// Whether the agent last asked a person to do something to files.
    has_asked: bool,
    /// The commits that this agent made or was shown, newest last.
    commits: Vec<String>,
}

/// Most commits that are remembered.
const MAX_COMMITS: usize = 256;

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
        let Self { dialects: _, standing: Standing { directory, ends, known }, running, batch, has_asked, commits } =
            self;
        directory.rest(packer);
        packer.flag(*ends == FinalLineFeed::Kept);
        known.rest(packer);
        running.rest(packer);
        batch.rest(packer);
        packer.flag(*has_asked);
        packer.list(commits, |packer, hash| packer.text(hash));
    }

    /// Reads it again.
    pub fn wake(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), Damaged> {
        let directory = Directory::wake(unpacker)?;
        let ends = if unpacker.flag()? { FinalLineFeed::Kept } else { FinalLineFeed::Unknown };
        self.standing = Standing { directory, ends, known: ExistingDirectories::wake(unpacker)? };
        self.running = RunningCommands::wake(unpacker)?;
        self.batch = CallBatch::wake(unpacker)?;
        self.has_asked = unpacker.flag()?;
        self.commits = unpacker.list(|unpacker| Ok(unpacker.text()?.as_ref().to_owned()))?;
        Ok(())
    }

    /// Notes that a call was made whose output comes later. Calls that are open at the same time may run in any order,
    /// so what one of them changed of what another one shows is in doubt.
    pub fn expect(&mut self, call: &FunctionCall) {
        self.batch.made(&call.call_id);
    }

    /// Examines a call and what the tool returned.
    pub fn observe(&mut self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        let (mut seen, after) = self.dialects.observe_in(call, output, &self.standing);
        if seen.command.is_some() && output.output.ends_with('\n') {
            self.standing.ends = FinalLineFeed::Kept;
        }
        if seen.command.as_deref().is_some_and(|line| line.contains("commit")) {
            self.commits.extend(notes::made_commits(&output.output).map(str::to_owned));
        }
        // What the history shows is not new.
        if seen.command.as_deref().is_some_and(|line| line.contains("git log") || line.contains("git show")) {
            self.commits.extend(notes::shown_commits(&output.output).map(str::to_owned));
        }
        if !self.commits.is_empty() {
            let surplus = self.commits.len().saturating_sub(MAX_COMMITS);
            self.commits.drain(..surplus);
        }
        let stated = output.meta.directory.as_deref().map(|path| Directory::At(path.to_owned()));
        self.standing.directory = stated.unwrap_or(after);
        self.note_directories(&seen);
        self.batch.beside(&call.call_id, &call.name, &mut seen);
        self.running.beside(&mut seen, &call.arguments, &output.output, &self.commits);
        // A harness may add to an output that files were changed meanwhile. The output itself is newer.
        let noted = notes::modified(&output.output).into_iter().filter_map(|path| self.changed_by_someone(path));
        seen.observations.splice(0..0, noted.collect::<Vec<_>>());
        if seen.command.is_none() && seen.failed && notes::is_stale(&output.output) {
            let stale: Vec<_> = seen.paths.iter().filter_map(|path| self.changed_by_someone(path)).collect();
            seen.observations.extend(stale);
        }
        if seen.command.is_some() && notes::says_hook_changed(&output.output) {
            seen.observations.push(everything("a hook".to_owned()));
        }
        seen
    }

    /// A file that someone else changed.
    fn changed_by_someone(&self, path: &str) -> Option<Observation> {
        let under = Some(self.standing.directory.place_for_tool(path)?);
        Some(Observation::Swept { under, extensions: Vec::new(), by: "a change by someone else".to_owned() })
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
        let text = message.text_cow();
        let ended = self.running.heard(&text, &self.commits);
        if !ended.is_empty() {
            return ended;
        }
        let (kind, path) = match &message.meta.origin {
            Origin::Harness { kind, path } => (kind.as_deref(), path.as_deref()),
            Origin::Said => return self.hear_words(message.role, &text),
            _ => return Vec::new(),
        };
        // On the wire the path is only in the text.
        let named = path.or_else(|| notes::modified(&text).first().copied());
        let named_in_text = path.is_none();
        let (Some(kind), Some(path)) = (kind, named) else { return self.hear_harness(&text) };
        let Some(path) = self.standing.directory.place_for_tool(path) else { return Vec::new() };
        match kind {
            "edited_text_file" => {
                let by = "a change by someone else".to_owned();
                let mut told = vec![Observation::Swept { under: Some(path.clone()), extensions: Vec::new(), by }];
                // A note that names the file has other lines than those of the file.
                let is_note = named_in_text;
                let shown = attached(&path, &text).into_iter().filter(|told| !is_note || has_number(told));
                // After the first change, lines are numbered as they were before it.
                told.extend(shown.enumerate().map(|(at, told)| if at == 0 { told } else { without_number(told) }));
                told
            }
            "file" => attached(&path, &text),
            // What an editor shows may not be on the disk yet, and a selection may begin within a line.
            "selected_lines_in_ide" => {
                vec![Observation::Old { path, blocks: vec![Passage::plain(None, &text)] }]
            }
            _ => self.hear_harness(&text),
        }
    }

    /// Returns what a note of a harness tells, also about a command that a person ran.
    fn hear_harness(&self, text: &str) -> Vec<Observation> {
        let mut told = self.placed(notes::of_harness(text));
        told.extend(notes::own_command(text).into_iter().flat_map(|line| self.run_by_person(line)));
        told
    }

    /// Returns what people and the agent say about changes.
    fn hear_words(&mut self, role: Role, text: &str) -> Vec<Observation> {
        match role {
            Role::Assistant => {
                self.has_asked = notes::asks_person(text);
                Vec::new()
            }
            Role::User => {
                let was_asked = std::mem::take(&mut self.has_asked);
                // What a person ran is judged by itself.
                let command = notes::own_command(text);
                let mut told = if command.is_some() { Vec::new() } else { notes::of_person(text, was_asked) };
                told.extend(notes::of_harness(text));
                let mut told = self.placed(told);
                // A commit that this agent did not make is someone else's.
                if notes::named_commits(text).any(|hash| !notes::is_one_of(hash, &self.commits)) {
                    told.push(everything("a commit by someone else".to_owned()));
                }
                told.extend(command.into_iter().flat_map(|line| self.run_by_person(line)));
                told
            }
            _ => self.hear_harness(text),
        }
    }

    /// What a command line may have changed that a person ran.
    fn run_by_person(&self, line: &str) -> Vec<Observation> {
        let output = framed("", "");
        let Standing { directory, known, .. } = &self.standing;
        let ran = run::observe(line, &output, Completion::Open, directory.clone(), known);
        // What a person does in an editor is not in the command.
        let edits = EDITORS.contains(&line.split_whitespace().next().unwrap_or_default());
        if edits {
            let named = line.split_whitespace().skip(1).filter_map(|word| directory.place_for_tool(word));
            let doubt = |path: String| Observation::Swept {
                under: Some(path),
                extensions: Vec::new(),
                by: format!("`{line}`"),
            };
            return named.map(doubt).collect();
        }
        let is_change = |told: &Observation| told.is_change() || matches!(told, Observation::Presumed { .. });
        ran.observations.into_iter().filter(is_change).collect()
    }

    /// Observations with their paths resolved; one whose path is not known where it leads reaches every file.
    fn placed(&self, told: Vec<Observation>) -> Vec<Observation> {
        let place = |told: Observation| {
            let by = "a change by someone else".to_owned();
            let directory = &self.standing.directory;
            let place = |path: &str| match is_absolute(path) || path.starts_with('.') {
                true => directory.place_for_tool(path).or_else(|| directory.place_somewhere(path)),
                // People name files by the end of their paths, wherever they are.
                false => Some(path.to_owned()),
            };
            told.placed(&place).unwrap_or_else(|| everything(by))
        };
        told.into_iter().map(place).collect()
    }
}

/// Editors that a person may start from a command line.
const EDITORS: [&str; 9] = ["vi", "vim", "nvim", "nano", "emacs", "code", "hx", "micro", "subl"];

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
