//! Commands and agents that go on after the call that started them, and could write files until they end.

use contexture_agents::every;

use super::notes::notices;
use super::observation::{Kind, Observation, Seen};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Most commands that are followed at once. Of more, the oldest stay.
const MAX_RUNNING: usize = 16;

/// What goes on beside the agent's calls: the names that harnesses gave, empty where they gave none.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningCommands {
    ids: Vec<String>,
}

impl RunningCommands {
    /// Adds to what a call told that something else could write, and notes what the call started or saw end.
    pub(crate) fn beside(&mut self, seen: &mut Seen, arguments: &str, output: &str) {
        // What ended may have written until then, and before that the call was made.
        if !self.ids.is_empty() {
            seen.observations.push(written());
        }
        self.take_ended(arguments, output);
        if let Some(id) = started(seen, arguments, output)
            && self.ids.len() < MAX_RUNNING
        {
            self.ids.push(id);
        }
    }

    /// Returns what may have happened until now if a message says that commands or agents ended.
    pub(crate) fn heard(&mut self, text: &str) -> Vec<Observation> {
        let is_notice = !self.ids.is_empty() && notices().any(|tag| text.contains(tag));
        let has_ended = is_notice && self.take_ended("", text);
        has_ended.then(written).into_iter().collect()
    }

    /// Removes the commands of which an output says that they ended; returns whether there were any.
    fn take_ended(&mut self, arguments: &str, output: &str) -> bool {
        let before = self.ids.len();
        if before > 0 && every(|agent| agent.output().ended()).any(|phrase| output.contains(phrase)) {
            self.ids.retain(|id| id.is_empty() || !(has_word(arguments, id) || has_word(output, id)));
        }
        self.ids.len() < before
    }

    /// Writes it.
    pub(crate) fn rest(&self, packer: &mut Packer<'_>) {
        packer.list(&self.ids, |packer, id| packer.text(id));
    }

    /// Reads it again.
    pub(crate) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        Ok(Self { ids: unpacker.list(|unpacker| Ok(unpacker.text()?.as_ref().to_owned()))? })
    }
}

/// What goes on could write any file.
fn written() -> Observation {
    Observation::could_write("a command that goes on".to_owned())
}

/// The name of what a call started that goes on after it and could write files; empty if it has none.
fn started(seen: &Seen, arguments: &str, output: &str) -> Option<String> {
    // A file that is only read may have any text, and what only reads may go on as long as it likes.
    if seen.kind == Kind::Read && seen.command.is_none() || !seen.observations.iter().any(Observation::is_change) {
        return None;
    }
    let begin = every(|agent| agent.output().started()).find_map(|phrase| output.split_once(phrase));
    let agent = agent_id(output);
    let is_apart = seen.command.as_deref().is_some_and(leaves_behind);
    let is_asked = seen.command.is_some()
        && (BACKGROUND.iter().any(|name| is(arguments, name, "true")) || is(arguments, "mode", "\"async\""));
    if begin.is_none() && agent.is_none() && !is_apart && !is_asked {
        return None;
    }
    let own_id = begin.map_or("", |(_, rest)| rest.split([' ', '\n', '.', ',', '>']).next().unwrap_or_default());
    Some(agent.unwrap_or(own_id).to_owned())
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

/// Programs that let another one go on.
const DETACHING: [&str; 7] = ["setsid", "tmux", "screen", "at", "crontab", "systemd-run", "pm2"];

/// Whether a command line leaves something behind that goes on: it names a program that does, or has a single `&` and
/// does not wait for it.
fn leaves_behind(line: &str) -> bool {
    let mut words = line.split_whitespace();
    if words.clone().any(|word| DETACHING.contains(&word)) {
        return true;
    }
    let bytes = line.as_bytes();
    let is_single = |at: usize| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(at + 1);
        !matches!(before, Some(b'&' | b'>' | b'<' | b'|' | b'\\')) && !matches!(after, Some(b'&' | b'>'))
    };
    let is_quoted = |at: usize| ['\'', '"'].iter().any(|quote| line[..at].matches(*quote).count() % 2 == 1);
    line.match_indices('&').any(|(at, _)| is_single(at) && !is_quoted(at)) && !words.any(|word| word == "wait")
}

/// Whether a text has a name that does not go on.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}
