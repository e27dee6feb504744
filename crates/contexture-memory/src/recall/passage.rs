//! A passage: one item of a past conversation as it is searched and shown.

use std::time::Duration;

use contexture_core::ItemLog;
use contexture_core::item::{FunctionCall, Item, Meta, Role};
use contexture_core::search::SearchDocument;
use contexture_core::tokens::{ceil_boundary, floor_boundary};
use serde_json::{Value, json};

use crate::redact::{redact, redact_part};
use crate::stable::stable_hash;
use contexture_files::argument_names::path_in;
use contexture_text::date::{MONTHS, civil, day};
use contexture_text::one_line::one_line;

/// Of a longer text, such as the output of a tool, so many bytes of its start are searched.
const HEAD_BYTES: usize = 12 * 1024;
/// And so many of its end.
const TAIL_BYTES: usize = 4 * 1024;
/// The longest name of a speaker, in bytes.
const MAX_SPEAKER_BYTES: usize = 120;

/// The speaker of what tools returned.
const TOOL: &str = "tool";

/// One item of a past conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// Its conversation.
    pub thread: String,
    /// Its position there.
    pub position: u64,
    /// The id that its source gave it.
    pub id: Option<String>,
    /// Who said it: a name, `user`, `assistant` or `tool`.
    pub speaker: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: Option<u64>,
    /// Where it was said, if that is told with it: the agent and its session.
    pub source: Option<String>,
    /// What was said.
    pub text: String,
}

impl Passage {
    /// The passage of an item of a log; `None` if it is not to be searched.
    ///
    /// What layers and harnesses made, instructions and reasoning are not: only what was said, and what tools of the agent
    /// returned, with their calls.
    pub fn of_log(thread: &str, log: &ItemLog, position: usize, now_ms: u64) -> Option<Self> {
        let entry = log.get(position)?;
        let call = entry.call.and_then(|call| log.get(call)?.item.as_call());
        Self::of_item(thread, position as u64, &entry.item, call, now_ms)
    }

    /// The passage of an item at a position of a conversation, with its call if it is what a tool returned; `None` if it is
    /// not to be searched.
    pub fn of_item(thread: &str, position: u64, item: &Item, call: Option<&FunctionCall>, now_ms: u64) -> Option<Self> {
        let meta = item.meta()?;
        if !meta.origin.is_said() {
            return None;
        }
        let (speaker, id, text) = match item {
            Item::Message(message) if matches!(message.role, Role::User | Role::Assistant) => {
                (speaker_of(message.role, meta), message.id.clone(), message.text())
            }
            Item::FunctionCallOutput(output) => {
                let call = call?;
                (TOOL.to_owned(), output.id.clone(), format!("{} {}\n{}", call.name, call.arguments, output.output))
            }
            _ => return None,
        };
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let (thread, id) = (thread.to_owned(), id.map(String::from));
        let at_ms = Some(meta.time_ms.unwrap_or(now_ms));
        Some(Self { thread, position, id, speaker, at_ms, source: None, text: shortened(text) })
    }

    /// Says where it was said.
    pub fn from_source(self, source: impl Into<String>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    /// Whether a tool or a file said it, and not a person or the agent.
    pub fn is_of_tool(&self) -> bool {
        self.speaker == TOOL
    }

    /// Whether it is part of the work with an agent, and not of a talk of people with names.
    pub(crate) fn is_of_work(&self) -> bool {
        self.is_of_tool() || [Role::User, Role::Assistant].iter().any(|role| self.speaker == role.as_str())
    }

    /// Its id in the index: that of its neighbours is one less or more.
    pub(crate) fn key(&self) -> String {
        key(&self.thread, self.position)
    }

    /// The id that its source gave it, or its key.
    pub fn name(&self) -> String {
        self.id.clone().unwrap_or_else(|| self.key())
    }

    /// Its day, as `2026-01-31`.
    pub fn day(&self) -> Option<String> {
        self.at_ms.map(|at| day(Duration::from_millis(at)))
    }

    /// The tool whose text it is, and the file that it read: what a person said has none.
    pub(crate) fn tool(&self) -> Option<String> {
        let (name, path, _) = self.returned_by()?;
        let shown = |name: &str| one_line(&one_line_name(name)).into_owned();
        Some(match path {
            Some(path) => format!("tool `{}`, file `{}`", shown(&name), shown(&path)),
            None => format!("tool `{}`", shown(&name)),
        })
    }

    /// The tool that returned it, the file that it read, and what it returned; `None` for what somebody said.
    pub(crate) fn returned_by(&self) -> Option<(String, Option<String>, &str)> {
        if self.speaker != TOOL {
            return None;
        }
        let (call, output) = self.text.split_once('\n').unwrap_or((&self.text, ""));
        let (name, arguments) = call.split_once(' ').unwrap_or((call, ""));
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        Some((name.to_owned(), path_in(&arguments).map(str::to_owned), output))
    }

    /// The line before its text in the index, so that speaker, month and year are words of it too.
    pub(crate) fn heading(&self) -> String {
        let month = self.at_ms.map(|at| civil(at / 86_400_000)).map(|(year, month, _)| {
            let name = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
            format!(" {name} {year}")
        });
        format!("{}{}", one_line_name(&self.speaker), month.unwrap_or_default())
    }

    /// The document that is searched.
    pub(crate) fn document(&self) -> SearchDocument {
        let mut metadata = json!({ "at": self.at_ms, "by": one_line_name(&self.speaker), "id": self.id });
        if let Some(source) = &self.source {
            metadata["from"] = one_line_name(source).into();
        }
        SearchDocument::new(self.key(), format!("{}\n{}", self.heading(), self.text)).with_metadata(metadata)
    }

    /// Reads a document; `None` if it is not a passage, or one that was forgotten.
    pub(crate) fn of_document(document: &SearchDocument) -> Option<Self> {
        let (thread, position) = document.id.rsplit_once('/')?;
        let text = document.text.split_once('\n')?.1.to_owned();
        let field = |name: &str| document.metadata.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            thread: thread.to_owned(),
            position: position.parse().ok()?,
            id: field("id"),
            speaker: field("by")?,
            at_ms: document.metadata.get("at").and_then(Value::as_u64),
            source: field("from"),
            text,
        })
    }
}

/// The id of a document that says that a text was forgotten, in whichever conversation it is.
pub(crate) fn forgotten_mark(text: &str) -> String {
    format!("forgotten/{:013x}", stable_hash(&[text.trim()]))
}

/// The key of a passage.
pub(crate) fn key(thread: &str, position: u64) -> String {
    format!("{thread}/{position:010}")
}

/// Who said a message: a name that its metadata has, or its role.
fn speaker_of(role: Role, meta: &Meta) -> String {
    let named = meta.extra.get("speaker").and_then(Value::as_str).map(one_line_name);
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| role.as_str().to_owned())
}

fn one_line_name(name: &str) -> String {
    let name = contexture_text::block::flat(name);
    name[..floor_boundary(&name, MAX_SPEAKER_BYTES)].to_owned()
}

/// The text without secrets, and of a long one its start and its end. A key that the cut goes through leaves nothing.
fn shortened(text: &str) -> String {
    if text.len() <= HEAD_BYTES + TAIL_BYTES {
        return redact(text).into_owned();
    }
    let (head, tail) = (floor_boundary(text, HEAD_BYTES), ceil_boundary(text, text.len() - TAIL_BYTES));
    format!("{}\n…\n{}", redact_part(text, 0..head), redact_part(text, tail..text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that was cut first had half of a key, which nothing recognises.
    #[test]
    fn a_key_where_a_long_text_is_cut_leaves_nothing() {
        let key = format!("ghp_{}", "aZ9bY8cX7d".repeat(4));
        for before in HEAD_BYTES - 44..HEAD_BYTES + 2 {
            let text = format!("{}{key} {}", " ".repeat(before), "z ".repeat(30_000));
            assert!(!shortened(&text).contains("ghp_"), "{before}");
        }
        let line = "QUFBQUFBQUFBQUFBQUFBQUFBQUFB\n";
        let block = |body: &str| format!("-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n");
        let text = format!("{}{}end", "log line\n".repeat(3_000), block(&line.repeat(300)));
        let shortened = shortened(&text);
        assert!(!shortened.contains(line) && shortened.ends_with("[redacted: private key]\nend"), "{shortened}");
    }
}
