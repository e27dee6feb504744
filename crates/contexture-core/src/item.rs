//! The elements of a conversation.

mod extra;
mod meta;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use extra::Extra;
pub use meta::{Meta, Origin};

/// One element of a conversation.
///
/// An item that is not one of the four known kinds is stored and passed on unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// A message of a person, the model, or the program that runs it.
    Message(Message),
    /// A tool call of the model.
    FunctionCall(FunctionCall),
    /// What a tool returned.
    FunctionCallOutput(FunctionCallOutput),
    /// The model's reasoning before its response.
    Reasoning(Reasoning),
    /// An item of a provider that we do not interpret.
    #[serde(untagged)]
    Opaque(Value),
}

/// Who speaks in a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions of the highest authority.
    System,
    /// The program that runs the agent; memory layers use this role.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The provider's id for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The speaker.
    pub role: Role,
    /// Its parts, in order.
    pub content: Vec<Content>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Fields that are not interpreted.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One part of a message.
///
/// A text part with additional fields is kept unchanged as [`Content::Opaque`]; [`as_text`](Content::as_text) still
/// returns its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image, a sound, or anything else, passed on unchanged.
    #[serde(untagged)]
    Opaque(Value),
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The provider's id for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The id that connects the call with its output.
    pub call_id: Box<str>,
    /// The tool's public name.
    pub name: Box<str>,
    /// The arguments as the model wrote them; usually, but not necessarily, valid JSON.
    pub arguments: String,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Fields that are not interpreted.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a tool returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredOutput")]
pub struct FunctionCallOutput {
    /// The provider's id for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The call that this is the output of.
    pub call_id: Box<str>,
    /// What the tool returned.
    pub output: String,
    /// The outcome of the call.
    #[serde(default, skip_serializing_if = "Outcome::is_done")]
    pub outcome: Outcome,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Fields that are not interpreted.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool ran and reported no failure.
    #[default]
    Done,
    /// The tool ran, or tried to, and reported a failure.
    Failed,
    /// The call was refused and did not run.
    Denied,
    /// The call was interrupted, and may have run in part.
    Interrupted,
    /// The outcome is not known.
    Unknown,
}

impl Outcome {
    /// Whether the tool ran and reported no failure.
    pub fn is_done(&self) -> bool {
        *self == Outcome::Done
    }

    /// Whether the call is known not to have succeeded.
    pub fn is_error(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::Denied | Outcome::Interrupted)
    }
}

/// An output in the format of version 0.1 or in the current one.
#[derive(Deserialize)]
struct StoredOutput {
    #[serde(default)]
    id: Option<Box<str>>,
    call_id: Box<str>,
    output: String,
    outcome: Option<Outcome>,
    /// What version 0.1 wrote instead of the outcome.
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    meta: Meta,
    #[serde(flatten)]
    extra: Extra,
}

impl From<StoredOutput> for FunctionCallOutput {
    fn from(stored: StoredOutput) -> Self {
        let StoredOutput { id, call_id, output, outcome, is_error, meta, extra } = stored;
        let outcome = outcome.unwrap_or(if is_error { Outcome::Failed } else { Outcome::Done });
        Self { id, call_id, output, outcome, meta, extra }
    }
}

/// The model's reasoning before its response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The provider's id for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The readable part.
    pub text: String,
    /// Whether the readable part is what the model says to people, and no thought.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_told: bool,
    /// Data that the provider expects back unchanged, such as a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Fields that are not interpreted.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Role {
    /// The role's name as it is written on the wire: `user`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

impl From<Message> for Item {
    fn from(message: Message) -> Self {
        Item::Message(message)
    }
}

impl From<FunctionCall> for Item {
    fn from(call: FunctionCall) -> Self {
        Item::FunctionCall(call)
    }
}

impl From<FunctionCallOutput> for Item {
    fn from(output: FunctionCallOutput) -> Self {
        Item::FunctionCallOutput(output)
    }
}

impl From<Reasoning> for Item {
    fn from(reasoning: Reasoning) -> Self {
        Item::Reasoning(reasoning)
    }
}

impl FunctionCall {
    /// A call of the tool `name` with arguments as written by the model.
    pub fn new(call_id: &str, name: &str, arguments: impl Into<String>) -> Self {
        let (call_id, name, arguments) = (call_id.into(), name.into(), arguments.into());
        Self { id: None, call_id, name, arguments, meta: Meta::default(), extra: Extra::default() }
    }

    /// The arguments as a value: an object or a list, or a text where the model wrote neither.
    pub fn parsed_arguments(&self) -> Value {
        match serde_json::from_str(&self.arguments) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            _ => Value::String(self.arguments.clone()),
        }
    }
}

impl FunctionCallOutput {
    /// The output of the call `call_id`.
    pub fn new(call_id: &str, output: impl Into<String>, outcome: Outcome) -> Self {
        let (call_id, output) = (call_id.into(), output.into());
        Self { id: None, call_id, output, outcome, meta: Meta::default(), extra: Extra::default() }
    }

    /// Notes how many bytes each of the texts has of which it was joined by line feeds.
    pub fn joined_of(&mut self, bytes: Vec<usize>) {
        self.extra.insert(TEXT_BYTES, bytes);
    }

    /// The texts of which it was joined; one, if that is not known.
    pub fn texts(&self) -> Vec<&str> {
        let bytes = self.extra.get(TEXT_BYTES).and_then(Value::as_array).into_iter().flatten();
        let (mut texts, mut rest) = (Vec::new(), &*self.output);
        for bytes in bytes.filter_map(Value::as_u64) {
            // One that was shortened has no such places any more.
            let Some((text, after)) = rest.split_at_checked(bytes as usize) else { return vec![&self.output] };
            texts.push(text);
            rest = after.strip_prefix('\n').unwrap_or(after);
        }
        if texts.is_empty() { vec![&self.output] } else { texts }
    }
}

/// The field of an output with the bytes of the texts of which it was joined.
const TEXT_BYTES: &str = "text_bytes";

impl Reasoning {
    /// Reasoning, with the data that the provider expects back.
    pub fn new(text: impl Into<String>, opaque: Option<Value>) -> Self {
        let (meta, extra) = (Meta::default(), Extra::default());
        Self { id: None, text: text.into(), is_told: false, opaque, meta, extra }
    }
}

impl Message {
    /// A message of these parts.
    pub fn new(role: Role, content: Vec<Content>) -> Self {
        Self { id: None, role, content, meta: Meta::default(), extra: Extra::default() }
    }

    /// All text parts, joined by newlines.
    pub fn text(&self) -> String {
        self.text_cow().into_owned()
    }

    /// The same, copied only where there are several parts.
    pub fn text_cow(&self) -> Cow<'_, str> {
        let mut parts = self.content.iter().filter_map(Content::as_text);
        let first = parts.next().unwrap_or_default();
        let mut text = Cow::Borrowed(first);
        for part in parts {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(part);
        }
        text
    }
}

impl Content {
    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Content::Text { text } => Some(text),
            Content::Opaque(part) if part["type"].as_str()?.ends_with("text") => part["text"].as_str(),
            Content::Opaque(_) => None,
        }
    }
}

impl Item {
    /// A message of one text part.
    pub fn message(role: Role, text: impl Into<String>) -> Item {
        Message::new(role, vec![Content::Text { text: text.into() }]).into()
    }

    /// A user message of one text part.
    pub fn user(text: impl Into<String>) -> Item {
        Item::message(Role::User, text)
    }

    /// An assistant message of one text part.
    pub fn assistant(text: impl Into<String>) -> Item {
        Item::message(Role::Assistant, text)
    }

    /// A developer message of one text part.
    pub fn developer(text: impl Into<String>) -> Item {
        Item::message(Role::Developer, text)
    }

    /// A call of the tool `name` with arguments as written by the model.
    pub fn call(call_id: &str, name: &str, arguments: impl Into<String>) -> Item {
        FunctionCall::new(call_id, name, arguments).into()
    }

    /// The output of the call `call_id`.
    pub fn output(call_id: &str, output: impl Into<String>) -> Item {
        FunctionCallOutput::new(call_id, output, Outcome::Done).into()
    }

    /// The output of the failed call `call_id`.
    pub fn error_output(call_id: &str, output: impl Into<String>) -> Item {
        FunctionCallOutput::new(call_id, output, Outcome::Failed).into()
    }

    /// The item's metadata; `None` for an item that is not interpreted.
    pub fn meta(&self) -> Option<&Meta> {
        match self {
            Item::Message(message) => Some(&message.meta),
            Item::FunctionCall(call) => Some(&call.meta),
            Item::FunctionCallOutput(output) => Some(&output.meta),
            Item::Reasoning(reasoning) => Some(&reasoning.meta),
            Item::Opaque(_) => None,
        }
    }

    /// Sets the metadata; an item that is not interpreted is returned unchanged.
    pub fn with_meta(mut self, meta: Meta) -> Item {
        match &mut self {
            Item::Message(message) => message.meta = meta,
            Item::FunctionCall(call) => call.meta = meta,
            Item::FunctionCallOutput(output) => output.meta = meta,
            Item::Reasoning(reasoning) => reasoning.meta = meta,
            Item::Opaque(_) => {}
        }
        self
    }

    /// Whether the model produced it. An item that is not interpreted counts as the model's, since providers use
    /// messages for what the user said.
    pub fn is_of_model(&self) -> bool {
        match self {
            Item::Message(message) => message.role == Role::Assistant,
            Item::FunctionCallOutput(_) => false,
            Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => true,
        }
    }

    /// Whether this is a message of that role.
    pub fn is_message_of(&self, role: Role) -> bool {
        matches!(self, Item::Message(message) if message.role == role)
    }

    /// The message, if it is one.
    pub fn as_message(&self) -> Option<&Message> {
        match self {
            Item::Message(message) => Some(message),
            _ => None,
        }
    }

    /// The function call, if it is one.
    pub fn as_call(&self) -> Option<&FunctionCall> {
        match self {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        }
    }

    /// The reasoning, if it is some.
    pub fn as_reasoning(&self) -> Option<&Reasoning> {
        match self {
            Item::Reasoning(reasoning) => Some(reasoning),
            _ => None,
        }
    }

    /// The function call output, if it is one.
    pub fn as_output(&self) -> Option<&FunctionCallOutput> {
        match self {
            Item::FunctionCallOutput(output) => Some(output),
            _ => None,
        }
    }
}
