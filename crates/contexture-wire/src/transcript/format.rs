//! Which agent wrote a recording, recognised by its content.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Error;
use serde_json::value::RawValue;

use super::assemble::Assembler;
use super::{chat, claude_code, codex, copilot_cli, gemini_cli, goose, opencode, pi, plain};

/// The format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Events of Claude Code, one per line, stored or printed.
    ClaudeCode,
    /// Events of Codex, one per line.
    Codex,
    /// An exported session of OpenCode.
    OpenCode,
    /// Events of Copilot CLI, one per line.
    CopilotCli,
    /// A session of Gemini CLI: one record per line, or one document.
    GeminiCli,
    /// Entries of pi, one per line.
    Pi,
    /// Messages of goose, one per line.
    Goose,
    /// Messages as OpenAI's chat endpoint takes them: a request, a list, or one per line.
    OpenAiChat,
    /// Messages as Anthropic's endpoint takes them: a request, a list, or one per line.
    AnthropicMessages,
    /// The plain form, one message per line.
    Plain,
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Format::ClaudeCode => "Claude Code",
            Format::Codex => "Codex",
            Format::OpenCode => "OpenCode",
            Format::CopilotCli => "Copilot CLI",
            Format::GeminiCli => "Gemini CLI",
            Format::Pi => "pi",
            Format::Goose => "goose",
            Format::OpenAiChat => "OpenAI chat",
            Format::AnthropicMessages => "Anthropic messages",
            Format::Plain => "plain",
        })
    }
}

/// The fields by which formats are told apart; all others are skipped.
#[derive(Deserialize)]
struct FormatMarks<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
    text: Option<IgnoredAny>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_calls: Option<IgnoredAny>,
    payload: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
    info: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    attachment: Option<IgnoredAny>,
    call_id: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
    timestamp: Option<IgnoredAny>,
    created: Option<IgnoredAny>,
    cwd: Option<IgnoredAny>,
    working_dir: Option<IgnoredAny>,
    #[serde(rename = "projectHash")]
    project_hash: Option<IgnoredAny>,
    #[serde(alias = "session_id")]
    #[serde(rename = "sessionId")]
    session_id: Option<IgnoredAny>,
    #[serde(rename = "leafUuid")]
    leaf_uuid: Option<IgnoredAny>,
    uuid: Option<IgnoredAny>,
}

/// What a record says about the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// The record is only possible in this format.
    Sure(Format),
    /// A chat message that both chat formats share.
    EitherChat,
}

impl Guess {
    pub fn format(self) -> Format {
        match self {
            Guess::Sure(format) => format,
            Guess::EitherChat => Format::OpenAiChat,
        }
    }
}

/// Guesses the format of a record.
pub(super) fn guess(json: &str) -> Option<Guess> {
    let marks: FormatMarks<'_> = serde_json::from_str(json).ok()?;
    let format = match marks.kind.as_deref() {
        Some(kind) if marks.payload.is_some() && is_codex_event(kind) => Format::Codex,
        Some(kind) if marks.data.is_some() && kind.contains('.') => Format::CopilotCli,
        Some("session") if marks.cwd.is_some() && marks.id.is_some() => Format::Pi,
        Some("message") if marks.message.is_some() && marks.id.is_some() => Format::Pi,
        Some("message") if marks.role.is_some() => Format::Codex,
        Some("function_call" | "function_call_output") if marks.call_id.is_some() => Format::Codex,
        Some("user" | "assistant") if marks.message.is_some() => Format::ClaudeCode,
        Some("user" | "gemini" | "info" | "warning" | "error")
            if marks.content.is_some() && marks.id.is_some() && marks.timestamp.is_some() =>
        {
            Format::GeminiCli
        }
        None if marks.project_hash.is_some() && marks.session_id.is_some() => Format::GeminiCli,
        None if marks.working_dir.is_some() && marks.role.is_none() => Format::Goose,
        None if marks.role.is_some() && marks.created.is_some() && is_list(marks.content) => Format::Goose,
        Some("attachment") if marks.attachment.is_some() => Format::ClaudeCode,
        Some(_) if marks.leaf_uuid.is_some() || (marks.uuid.is_some() && marks.session_id.is_some()) => {
            Format::ClaudeCode
        }
        _ if marks.info.is_some() && marks.parts.is_some() => Format::OpenCode,
        _ => return guess_chat(&marks),
    };
    Some(Guess::Sure(format))
}

fn is_list(content: Option<&RawValue>) -> bool {
    content.is_some_and(|content| content.get().starts_with('['))
}

fn is_codex_event(kind: &str) -> bool {
    matches!(kind, "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted")
}

fn guess_chat(marks: &FormatMarks<'_>) -> Option<Guess> {
    let role = marks.role.as_deref()?;
    if !matches!(role, "system" | "developer" | "user" | "assistant" | "tool" | "function") {
        return None;
    }
    let Some(content) = marks.content else {
        let format = if marks.text.is_some() { Format::Plain } else { Format::OpenAiChat };
        return (marks.text.is_some() || marks.tool_calls.is_some()).then_some(Guess::Sure(format));
    };
    let json = content.get();
    let has_block = |name: &str| json.starts_with('[') && json.contains(name);
    if ["\"tool_use\"", "\"tool_result\"", "\"thinking\""].into_iter().any(has_block) {
        Some(Guess::Sure(Format::AnthropicMessages))
    } else if marks.tool_calls.is_some() || !matches!(role, "user" | "assistant") {
        Some(Guess::Sure(Format::OpenAiChat))
    } else {
        Some(Guess::EitherChat)
    }
}

impl Format {
    /// Reads one record of this format.
    pub(super) fn record(self, json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
        match self {
            Format::ClaudeCode => claude_code::record(json, assembler),
            Format::Codex => codex::record(json, assembler),
            Format::OpenCode => opencode::record(json, assembler),
            Format::CopilotCli => copilot_cli::record(json, assembler),
            Format::GeminiCli => gemini_cli::record(json, assembler),
            Format::Pi => pi::record(json, assembler),
            Format::Goose => goose::record(json, assembler),
            Format::OpenAiChat | Format::AnthropicMessages => chat::record(json, assembler),
            Format::Plain => plain::record(json, assembler),
        }
    }
}
