//! Signals of harm: what an agent and its user do when something is missing from the window.
//!
//! They are counted from the messages that come, the same way for conversations that are folded and for those that are
//! held out, so that the two can be compared. None of them proves harm by itself: agents also read files again whose
//! text is in view, and edits also fail for other reasons.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use contexture::files::dialect::Dialects;
use contexture::files::observation::Kind;
use contexture::item::{FunctionCallOutput, Item, Outcome, Role};
use contexture::redact::redact;
use contexture::wire::{Format, read_at};
use contexture_agents::every;
use contexture_text::spoken::title_of;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Most calls, reads and instructions that are remembered of a conversation.
const MOST_CALLS: usize = 4_096;
const MOST_READS: usize = 8_192;
const MOST_INSTRUCTIONS: usize = 256;

/// The fewest words of an instruction that can be told from a mere "go on".
const LEAST_WORDS: usize = 4;

/// The share of words that two instructions have in common if one repeats the other.
const SAME_WORDS: f64 = 0.8;

/// How much of a message is searched for a title: more than harnesses write before what a user said.
const MOST_TITLED_BYTES: usize = 256 << 10;

/// How much of what a user said is compared with what was said before: nobody repeats more word for word.
const MOST_COMPARED_BYTES: usize = 16 << 10;

/// The longest output that can be the message of an edit that failed.
const MOST_MESSAGE_BYTES: usize = 4_000;

/// How outputs of calls that failed begin, where the format does not say it, in lower case.
const FAILED: &[&str] = &["error", "<tool_use_error>", "<error>", "failed to "];

/// How somebody begins who is not content, in lower case.
const NO: &[&str] = &[
    "no",
    "nope",
    "nein",
    "wrong",
    "stop",
    "undo",
    "revert",
    "that's wrong",
    "that is wrong",
    "that's not",
    "that is not",
    "this is wrong",
    "this is not",
    "you forgot",
    "still not",
    "still wrong",
    "still fails",
    "i said",
    "i told you",
    "as i said",
];

/// Counts of what happened in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalCounts {
    /// Messages of the user.
    pub turns: u64,
    /// Times that the user stopped the agent.
    pub interruptions: u64,
    /// Messages that begin with a "no".
    pub noes: u64,
    /// Instructions that the user had given before in nearly the same words.
    pub repeated_instructions: u64,
    /// Reads of a part of a file that was read before and that no edit has changed since.
    pub repeated_reads: u64,
    /// Of these, the ones after a fold that may have taken the earlier read.
    pub reads_after_fold: u64,
    /// Edits that failed because their text is not in the file.
    pub failed_edits: u64,
    /// Calls that failed, these edits included.
    pub tool_errors: u64,
}

impl SignalCounts {
    /// The signals of harm.
    pub fn harm(&self) -> u64 {
        self.repeated_reads + self.failed_edits + self.repeated_instructions
    }

    /// Everything that was counted. It only grows while a conversation goes on.
    pub(crate) fn total(&self) -> u64 {
        self.turns + self.interruptions + self.noes + self.harm() + self.reads_after_fold + self.tool_errors
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            interruptions: self.interruptions + other.interruptions,
            noes: self.noes + other.noes,
            repeated_instructions: self.repeated_instructions + other.repeated_instructions,
            repeated_reads: self.repeated_reads + other.repeated_reads,
            reads_after_fold: self.reads_after_fold + other.reads_after_fold,
            failed_edits: self.failed_edits + other.failed_edits,
            tool_errors: self.tool_errors + other.tool_errors,
        }
    }
}

/// Follows the messages of a conversation. After a restart it begins again with the first, since clients send all.
#[derive(Debug, Default)]
pub(crate) struct SignalReader {
    counts: SignalCounts,
    /// How many messages were read.
    messages: usize,
    calls: HashMap<Box<str>, CallInProgress>,
    /// By what was read: the message with its newest output.
    reads: HashMap<u64, (usize, Box<str>)>,
    instructions: VecDeque<Vec<u64>>,
    /// What its user said first.
    title: Option<Box<str>>,
}

/// A call whose output has not come yet.
#[derive(Debug)]
struct CallInProgress {
    kind: Kind,
    path: Box<str>,
    /// Identifies what is read, with its range.
    key: u64,
}

impl SignalReader {
    /// What was counted so far.
    pub(crate) fn counts(&self) -> SignalCounts {
        self.counts
    }

    /// The title of the conversation: what its user said first, on one line and without secrets.
    pub(crate) fn title(&self) -> Option<String> {
        self.title.as_deref().map(str::to_owned)
    }

    /// Frees what it has read, but not what it has learnt: the next request is read from its first message on.
    pub(crate) fn rest(&mut self) {
        *self = Self { counts: self.counts, title: self.title.take(), ..Self::default() };
    }

    /// Reads the messages of a request that are new. `folds` are the lengths of the requests with which folds were made.
    pub(crate) fn follow(&mut self, format: Format, messages: &[&RawValue], dialects: &Dialects, folds: &[usize]) {
        if messages.len() < self.messages || self.messages == 0 {
            *self = Self::default();
        }
        for at in self.messages..messages.len() {
            let mut said = Vec::new();
            // What cannot be read says nothing.
            for unit in read_at(format, messages, at, None).unwrap_or_default() {
                match &unit.item {
                    Item::Message(message) if message.role == Role::User => {
                        said.push(start_of(&message.text_cow(), MOST_TITLED_BYTES).to_owned());
                    }
                    Item::FunctionCall(call) if self.calls.len() < MOST_CALLS => {
                        let path: Box<str> = dialects.path(call).unwrap_or_default().into();
                        let key = hash(&(&path, &*call.name, call.parsed_arguments().to_string()));
                        self.calls
                            .insert((&*call.call_id).into(), CallInProgress { kind: dialects.kind(call), path, key });
                    }
                    Item::FunctionCallOutput(output) => self.output(at, output, folds),
                    _ => {}
                }
            }
            self.said(&said);
            if self.title.is_none() {
                self.title = said.iter().find_map(|text| title_of(&redact(text))).map(String::into_boxed_str);
            }
        }
        self.messages = messages.len();
    }

    fn output(&mut self, at: usize, output: &FunctionCallOutput, folds: &[usize]) {
        let text = output.output.trim_start();
        let start = text[..text.floor_char_boundary(MOST_MESSAGE_BYTES)].to_lowercase();
        let is_failed = output.outcome == Outcome::Failed || FAILED.iter().any(|words| start.starts_with(words));
        let Some(called) = self.calls.remove(&*output.call_id) else {
            self.counts.tool_errors += u64::from(is_failed);
            return;
        };
        let is_missing = called.kind == Kind::Edit
            && text.len() <= MOST_MESSAGE_BYTES
            && every(|agent| agent.output().not_in_file()).any(|words| start.contains(words));
        self.counts.tool_errors += u64::from(is_failed || is_missing);
        self.counts.failed_edits += u64::from(is_missing);
        if is_failed || is_missing {
            return;
        }
        match called.kind {
            Kind::Read => {
                if let Some((before, _)) = self.reads.get(&called.key) {
                    self.counts.repeated_reads += 1;
                    let is_folded = folds.iter().any(|fold| *fold > *before && *fold <= at);
                    self.counts.reads_after_fold += u64::from(is_folded);
                }
                if self.reads.len() < MOST_READS {
                    self.reads.insert(called.key, (at, called.path));
                }
            }
            Kind::Edit | Kind::Write => self.reads.retain(|_, (_, path)| *path != called.path),
            _ => {}
        }
    }

    /// Counts what the user said in one message.
    fn said(&mut self, texts: &[String]) {
        let is_interrupted =
            |text: &str| every(|agent| agent.notes().interrupted()).any(|words| text.starts_with(words));
        let start = |text: &String| start_of(text.trim(), MOST_COMPARED_BYTES).to_lowercase();
        let texts: Vec<String> = texts.iter().map(start).collect();
        self.counts.interruptions += u64::from(texts.iter().any(|text| is_interrupted(text)));
        // Agents add texts of their own, in tags.
        let is_own = |text: &&String| !text.is_empty() && !text.starts_with('<') && !is_interrupted(text);
        let said: Vec<&String> = texts.iter().filter(is_own).collect();
        let Some(first) = said.first() else { return };
        self.counts.turns += 1;
        let words: Vec<&str> = first.split(|sign: char| !sign.is_alphanumeric() && sign != '\'').collect();
        let starts = |no: &&&str| {
            let no: Vec<&str> = no.split(' ').collect();
            words.iter().filter(|word| !word.is_empty()).take(no.len()).eq(no.iter())
        };
        self.counts.noes += u64::from(NO.iter().any(|no| starts(&no)));
        let all = said.iter().flat_map(|text| text.split(|sign: char| !sign.is_alphanumeric()));
        let mut words: Vec<u64> = all.filter(|word| !word.is_empty()).map(|word| hash(&word)).collect();
        words.sort_unstable();
        words.dedup();
        words.shrink_to_fit();
        if words.len() < LEAST_WORDS {
            return;
        }
        let is_same = |other: &Vec<u64>| {
            let shared = other.iter().filter(|word| words.binary_search(word).is_ok()).count();
            shared as f64 >= SAME_WORDS * (words.len() + other.len() - shared) as f64
        };
        self.counts.repeated_instructions += u64::from(self.instructions.iter().any(is_same));
        if self.instructions.len() == MOST_INSTRUCTIONS {
            self.instructions.pop_front();
        }
        self.instructions.push_back(words);
    }
}

/// The start of a text, of at most so many bytes.
fn start_of(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_title_is_what_the_user_said_first_without_secrets() {
        let said = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]}).to_string();
        let harness = said("<system-reminder>the date</system-reminder>");
        let first = said(
            "<system-reminder>x</system-reminder>\nuse sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa to log in\nand more",
        );
        let texts = [harness, first, said("then the other thing")];
        let raw: Vec<&RawValue> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let mut reader = SignalReader::default();
        for end in 1..=raw.len() {
            reader.follow(Format::Messages, &raw[..end], &Dialects::builtin(), &[]);
            let title = reader.title();
            assert_eq!(title.is_some(), end > 1, "{title:?}");
        }
        let title = reader.title().unwrap();
        assert!(title.starts_with("use [redacted: ") && title.ends_with(" to log in"), "{title}");
    }

    /// What is kept of a text does not grow with it.
    #[test]
    fn of_a_long_text_only_the_start_is_kept() {
        let text = (0..400_000).map(|n| format!("word{n} ")).collect::<String>();
        let raw = json!({"role": "user", "content": text}).to_string();
        let raw: &RawValue = serde_json::from_str(&raw).unwrap();
        let mut reader = SignalReader::default();
        reader.follow(Format::Messages, &[raw], &Dialects::builtin(), &[]);
        let kept: usize = reader.instructions.iter().map(Vec::capacity).sum();
        assert!((1..=MOST_COMPARED_BYTES).contains(&kept), "{kept}");
    }

    fn counted(messages: &[Value], folds: &[usize]) -> SignalCounts {
        let dialects = Dialects::builtin();
        let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
        let raws: Vec<&RawValue> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let mut reader = SignalReader::default();
        // Message by message, and once more with nothing new.
        (1..=raws.len()).for_each(|end| reader.follow(Format::Messages, &raws[..end], &dialects, folds));
        reader.follow(Format::Messages, &raws, &dialects, folds);
        let counts = reader.counts();
        // Nothing is lost or counted twice if it has rested.
        reader.rest();
        assert_eq!(reader.counts(), counts);
        reader.follow(Format::Messages, &raws, &dialects, folds);
        assert_eq!(reader.counts(), counts);
        counts
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": text}]})
    }

    fn call(id: &str, name: &str, input: Value, output: &str, is_error: bool) -> [Value; 2] {
        [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error}]}),
        ]
    }

    #[test]
    fn a_part_that_is_read_again_counts_unless_it_was_changed_meanwhile() {
        let read = |id: &str, from: u64| call(id, "Read", json!({"file_path": "/a.rs", "offset": from}), "text", false);
        let edit = json!({"file_path": "/a.rs", "old_string": "x", "new_string": "y"});
        let messages = [
            vec![user("please fix the parser")],
            read("1", 1).to_vec(),
            read("2", 100).to_vec(),
            read("3", 1).to_vec(),
            call("4", "Edit", edit, "The file was updated.", false).to_vec(),
            read("5", 1).to_vec(),
            read("6", 1).to_vec(),
        ]
        .concat();
        let counts = counted(&messages, &[]);
        assert_eq!((counts.repeated_reads, counts.reads_after_fold, counts.turns), (2, 0, 1));
        assert_eq!(counted(&messages, &[12]).reads_after_fold, 1, "only the last one is after the fold");
    }

    #[test]
    fn an_edit_counts_whose_text_is_not_in_the_file_and_other_errors_are_errors_only() {
        let edit = || json!({"file_path": "/a.rs", "old_string": "x", "new_string": "y"});
        let messages = [
            call("1", "Edit", edit(), "<tool_use_error>String to replace not found in file.</tool_use_error>", true)
                .to_vec(),
            call("2", "Edit", edit(), "permission denied", true).to_vec(),
            call("3", "Bash", json!({"command": "x"}), "Error: no match found", false).to_vec(),
            call("4", "Read", json!({"file_path": "/a"}), "a text with 'no match found' in it", false).to_vec(),
        ]
        .concat();
        let counts = counted(&messages, &[]);
        assert_eq!((counts.failed_edits, counts.tool_errors, counts.harm()), (1, 3, 1));
    }

    #[test]
    fn what_people_say_is_told_from_what_agents_add() {
        let messages = [
            user("Please rename the module to parser and keep the tests."),
            user("No, not like that."),
            user("Now, the next one"),
            user("please RENAME the module to parser, and keep the tests"),
            user("go on"),
            user("go on"),
            json!({"role": "user", "content": "[Request interrupted by user for tool use]"}),
            json!({"role": "user", "content": "<environment_context>cwd</environment_context>"}),
            user("That's not what I meant at all here"),
        ];
        let counts = counted(&messages, &[]);
        assert_eq!((counts.turns, counts.noes, counts.repeated_instructions, counts.interruptions), (7, 2, 1, 1));
    }

    #[test]
    fn hostile_messages_count_nothing_and_break_nothing() {
        let messages = [
            json!(7),
            json!({"role": "user"}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": 3}]}),
        ];
        assert_eq!(counted(&messages, &[0, usize::MAX]).turns, 0);
    }
}
