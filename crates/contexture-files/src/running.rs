//! Commands that go on after the call that started them.

use super::commands::{everything, in_short, reaches_everything};
use super::model::named_places;
use super::notes::{is_one_of, named_hashes, notices};
use super::observation::{Kind, Observation, Seen};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Most commands that are followed at once. Of more, the oldest stay.
const MAX_RUNNING: usize = 16;

/// Most files of a command that are followed one by one.
const MAX_WRITES: usize = 16;

/// Most files that the report of an agent may name. With more, it may have changed any.
const MAX_REPORTED: usize = 64;

/// What goes on beside the agent's calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningCommands {
    commands: Vec<Started>,
}

/// One command, or agent, that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Started {
    /// The name that the harness gives it; empty if it gives none.
    id: String,
    /// What it is, in short.
    by: String,
    /// The files that it is known to write.
    writes: Vec<String>,
    /// Whether it may write any file.
    is_free: bool,
}

impl RunningCommands {
    /// Adds to what a call told what goes on beside it, and notes what the call started or saw end.
    ///
    /// The commits are those that the agent made or has seen.
    pub(crate) fn beside(&mut self, seen: &mut Seen, arguments: &str, output: &str, commits: &[String]) {
        // What ended may have written until then, and before that the call was made.
        let ended = self.take_ended(arguments, output);
        seen.observations.extend(ended.iter().flat_map(|started| started.last_told(output, commits)));
        seen.observations.extend(self.commands.iter().flat_map(Started::told));
        if let Some(started) = started(seen, arguments, output)
            && self.commands.len() < MAX_RUNNING
        {
            self.commands.push(started);
        }
    }

    /// Returns what may have happened until now if a message says that commands or agents ended.
    pub(crate) fn heard(&mut self, text: &str, commits: &[String]) -> Vec<Observation> {
        if !notices().any(|tag| text.contains(tag)) {
            return Vec::new();
        }
        self.take_ended("", text).iter().flat_map(|started| started.last_told(text, commits)).collect()
    }

    /// Removes the commands of which an output says that they ended.
    fn take_ended(&mut self, arguments: &str, output: &str) -> Vec<Started> {
        if self.commands.is_empty() {
            return Vec::new();
        }
        let says_end = ENDED.iter().any(|phrase| output.contains(phrase));
        let is_about = |started: &Started| {
            !started.id.is_empty() && (has_word(arguments, &started.id) || has_word(output, &started.id))
        };
        self.commands.extract_if(.., |started| says_end && is_about(started)).collect()
    }

    /// Writes it.
    pub(crate) fn rest(&self, packer: &mut Packer<'_>) {
        packer.list(&self.commands, |packer, started| {
            let Started { id, by, writes, is_free } = started;
            packer.text(id);
            packer.text(by);
            packer.list(writes, |packer, path| packer.text(path));
            packer.flag(*is_free);
        });
    }

    /// Reads it again.
    pub(crate) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let commands = unpacker.list(|unpacker| {
            let (id, by) = (owned(unpacker)?, owned(unpacker)?);
            Ok(Started { id, by, writes: unpacker.list(owned)?, is_free: unpacker.flag()? })
        })?;
        Ok(Self { commands })
    }
}

fn owned(unpacker: &mut Unpacker<'_>) -> Result<String, Damaged> {
    Ok(unpacker.text()?.as_ref().to_owned())
}

impl Started {
    /// What may have happened while it went on.
    fn told(&self) -> Vec<Observation> {
        let doubt =
            |path: &String| Observation::Swept { under: Some(path.clone()), extensions: vec![], by: self.by.clone() };
        let presumed = Observation::Presumed { by: self.by.clone() };
        self.writes.iter().map(doubt).chain([presumed]).collect()
    }

    /// The same for the last time, when it has ended with a report. One that was only to look may say that it did more,
    /// unless all that it tells of are commits that were known before.
    fn last_told(&self, report: &str, commits: &[String]) -> Vec<Observation> {
        let is_free = self.is_free || (self.by == AN_AGENT && says_change(report) && !tells_of(report, commits));
        if !is_free {
            return self.told();
        }
        // An agent tells which files it worked on.
        let named: Vec<&str> = named_places(report).map(|place| place.path).collect();
        if self.by != AN_AGENT || named.is_empty() || named.len() > MAX_REPORTED {
            return vec![everything(self.by.clone())];
        }
        let swept = |under: &str| Observation::Swept {
            under: Some(under.to_owned()),
            extensions: Vec::new(),
            by: self.by.clone(),
        };
        named.into_iter().map(swept).chain(self.told()).collect()
    }
}

/// What an agent is called that another call started.
const AN_AGENT: &str = "`an agent`";

/// Words with which an agent reports that it changed the project.
const CHANGES: [&str; 2] = ["committed", "landed"];

fn says_change(report: &str) -> bool {
    report.split(|c: char| !c.is_alphanumeric()).any(|word| CHANGES.iter().any(|said| word.eq_ignore_ascii_case(said)))
}

/// Whether a report names commits, and only known ones.
fn tells_of(report: &str, commits: &[String]) -> bool {
    let mut named = named_hashes(report).peekable();
    named.peek().is_some() && named.all(|hash| is_one_of(hash, commits))
}

/// Phrases with which outputs say that a command ended.
const ENDED: [&str; 16] = [
    "Process exited with code ",
    "<status>completed</status>",
    "<status>failed</status>",
    "<status>killed</status>",
    "exited with exit code ",
    "Successfully killed shell",
    "Successfully stopped task",
    "has been stopped",
    "was terminated",
    "\"status\":\"completed\"",
    "\"completed\":",
    "\"errored\":",
    "\"shutdown\"",
    "\"status\":\"failed\"",
    "Shell killed",
    "Command exited with code ",
];

/// How outputs begin, or what they have, that name a command that goes on.
const STARTED: [&str; 11] = [
    "Command running in background with ID: ",
    "Process running with session ID ",
    "started in background with shellId: ",
    "is running in background with shellId: ",
    "started in background with sessionId: ",
    "is running in terminal with ID=",
    "moved to the background",
    "Background PIDs: ",
    "Command is still running in the user's terminal",
    "Async agent launched successfully.\nagentId: ",
    "Async agent launched successfully",
];

/// What a call started that goes on after it.
fn started(seen: &Seen, arguments: &str, output: &str) -> Option<Started> {
    // A file that is only read may have any text.
    if seen.kind == Kind::Read && seen.command.is_none() {
        return None;
    }
    // Whether a phrase is there is found out much faster than where.
    let phrase = STARTED.iter().find(|phrase| output.contains(**phrase));
    let begin = phrase.and_then(|phrase| output.split_once(phrase));
    let agent = agent_id(output);
    let is_apart = seen.command.as_deref().is_some_and(leaves_behind);
    let is_asked = seen.command.is_some()
        && (BACKGROUND.iter().any(|name| is(arguments, name, "true")) || is(arguments, "mode", "\"async\""));
    if begin.is_none() && agent.is_none() && !is_apart && !is_asked {
        return None;
    }
    // What only reads may go on as long as it likes.
    let is_harmless = |told: &Observation| !told.is_change() && !matches!(told, Observation::Presumed { .. });
    if seen.command.is_some() && seen.observations.iter().all(is_harmless) {
        return None;
    }
    let own_id = begin.map_or("", |(_, rest)| rest.split([' ', '\n', '.', ',', '>']).next().unwrap_or_default());
    let id = agent.unwrap_or(own_id);
    let is_free = seen.observations.iter().any(reaches_everything);
    let swept = seen.observations.iter().filter_map(|observation| match observation {
        Observation::Swept { under: Some(path), .. } | Observation::Formatted { under: Some(path), .. } => {
            Some(path.clone())
        }
        _ => None,
    });
    let changed = seen.observations.iter().filter(|told| told.is_change()).flat_map(Observation::paths);
    // What is not understood may do something to the files that it names.
    let line = seen.command.as_deref().filter(|_| is_free).unwrap_or_default();
    let named = named_places(line).map(|place| place.path.to_owned());
    let mut writes: Vec<String> = swept.chain(changed.map(str::to_owned)).chain(named).collect();
    writes.sort_unstable();
    writes.dedup();
    // Of what may write so much, all may be written.
    let is_free = is_free || writes.len() > MAX_WRITES;
    writes.truncate(MAX_WRITES);
    let by = seen.command.as_deref().map_or_else(|| AN_AGENT.to_owned(), in_short);
    Some(Started { id: id.to_owned(), by, writes, is_free })
}

/// Arguments that ask for a command to go on after its call.
const BACKGROUND: [&str; 6] = ["run_in_background", "is_background", "isBackground", "background", "async", "detach"];

/// Whether an argument has a value.
fn is(arguments: &str, name: &str, value: &str) -> bool {
    let given = arguments.split_once(&format!("\"{name}\"")).map(|(_, rest)| rest.trim_start());
    given.and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| rest.trim_start().starts_with(value))
}

/// The name of an agent that an output says was started.
fn agent_id(output: &str) -> Option<&str> {
    let (_, rest) = output.trim_start().strip_prefix('{')?.split_once("\"agent_id\"")?;
    let (_, rest) = rest.split_once('"')?;
    rest.split_once('"').map(|(id, _)| id).filter(|id| !id.is_empty())
}

/// How programs are called that let another one go on.
const DETACHING: [&str; 9] = [
    "setsid -f",
    "tmux new",
    "tmux send",
    "screen -d",
    "| at ",
    "| crontab -",
    "systemd-run",
    "pm2 start",
    "daemonize ",
];

/// Whether a command line leaves something behind that goes on: it calls a program that does, or has a single `&` and
/// does not wait for it.
fn leaves_behind(line: &str) -> bool {
    if DETACHING.iter().any(|call| line.contains(call)) {
        return true;
    }
    let bytes = line.as_bytes();
    let is_single = |at: usize| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(at + 1);
        !matches!(before, Some(b'&' | b'>' | b'<' | b'|' | b'\\')) && !matches!(after, Some(b'&' | b'>'))
    };
    let is_quoted = |at: usize| ['\'', '"'].iter().any(|quote| line[..at].matches(*quote).count() % 2 == 1);
    let has = line.match_indices('&').any(|(at, _)| is_single(at) && !is_quoted(at));
    has && !line.split_whitespace().any(|word| word == "wait")
}

/// Whether a text has a name that does not go on.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}
