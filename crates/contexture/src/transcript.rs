//! Recorded work of agents, in one plain form.
//!
//! Agents write down what they do, each in its own format. [`read`] recognises the format by its content and hands
//! out plain [`Message`]s one by one, so that a recording of any length can be replayed; [`Transcript::read`]
//! collects them.
//!
//! ```
//! use contexture::transcript::{Format, Role, Transcript};
//! let recording = r#"{"role": "user", "content": "list the files"}
//! {"role": "assistant", "content": null, "tool_calls": [
//! {"role": "assistant", "content": "There are none."}"#;
//! let (transcript, report) = Transcript::read(recording.as_bytes())?;
//! assert_eq!(report.format, Format::OpenAiChat);
//! assert_eq!(transcript.messages.len(), 2);
//! assert_eq!(transcript.messages[1].role, Role::Assistant);
//! assert_eq!(report.broken[0].line, 2);
//! # Ok::<(), contexture::transcript::ReadError>(())
//! ```

mod assemble;
mod blocks;
mod chat;
mod claude_code;
mod codex;
mod copilot_cli;
mod document;
mod format;
mod layout;
mod opencode;
mod plain;
mod read;
mod repair;
mod time;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use format::Format;
pub use plain::write;
pub use read::{Broken, MAX_BROKEN_NOTES, MAX_LINE_BYTES, ReadError, Report, read};

/// A recorded conversation, oldest message first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The messages, in order.
    pub messages: Vec<Message>,
}

impl Transcript {
    /// Reads a whole recording in any known format, with a report of what could not be used.
    ///
    /// # Errors
    ///
    /// When the reader fails, or when nothing in it belongs to a known format.
    pub fn read(reader: impl std::io::BufRead) -> Result<(Self, Report), ReadError> {
        let mut transcript = Self::default();
        let report = read(reader, &mut |message| transcript.messages.push(message))?;
        Ok((transcript, report))
    }
}

/// One recorded message: what was said, and the calls made with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What was said, or what a tool answered.
    #[serde(default)]
    pub text: String,
    /// The calls that an assistant message makes.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// For a tool's answer: the call that it answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// For a tool's answer: the tool's name.
    #[serde(default)]
    pub name: Option<String>,
    /// When it was written down, in milliseconds since the Unix epoch, if the recording says so. The plain form
    /// does not.
    #[serde(skip)]
    pub time_ms: Option<u64>,
}

/// Who speaks in a recorded [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program that runs the agent.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// One call in a recorded message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What the answer carries to be recognised.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// An object, or text where the agent passes text.
    pub arguments: Value,
}

impl From<&ToolCall> for contexture_core::item::FunctionCall {
    fn from(call: &ToolCall) -> Self {
        let arguments = call.arguments.as_str().map_or_else(|| call.arguments.to_string(), str::to_owned);
        Self::new(&call.id, &call.name, arguments)
    }
}

impl Message {
    /// A message that makes no calls and answers none.
    pub fn said(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), tool_calls: Vec::new(), tool_call_id: None, name: None, time_ms: None }
    }
}
