//! Recorded work of agents, in one plain form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A recorded conversation, oldest message first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The messages, in order.
    pub messages: Vec<Message>,
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
