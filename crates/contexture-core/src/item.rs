//! The elements of a conversation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One element of a conversation.
///
/// What is not one of the four known kinds is kept as it came and passed on unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Something said by a person, the model, or the program that runs it.
    Message(Message),
    /// The model asks for a tool.
    FunctionCall(FunctionCall),
    /// What a tool answered.
    FunctionCallOutput(FunctionCallOutput),
    /// What the model thought before it spoke.
    Reasoning(Reasoning),
    /// An item of a provider that we do not interpret.
    #[serde(untagged)]
    Opaque(Value),
}

/// Who speaks in a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions that stand above all.
    System,
    /// The program that runs the agent; memory layers speak in this role.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The provider's name for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Content>,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image, a sound, or anything else that we pass on untouched.
    #[serde(untagged)]
    Opaque(Value),
}

/// The model asks for a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The provider's name for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// What the answer must carry to be recognised as this call's.
    pub call_id: Box<str>,
    /// The tool's public name.
    pub name: Box<str>,
    /// The arguments as the model wrote them: JSON, if it did well.
    pub arguments: String,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCallOutput {
    /// The provider's name for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The call that this answers.
    pub call_id: Box<str>,
    /// The answer.
    pub output: String,
    /// Whether the answer reports a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// What the model thought before it spoke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The provider's name for this item, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The readable part.
    pub text: String,
    /// What the provider wants back unchanged, such as a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
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

impl Message {
    /// All text parts, joined by newlines.
    pub fn text(&self) -> String {
        let mut parts = self.content.iter().filter_map(Content::as_text);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
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
            Content::Opaque(_) => None,
        }
    }
}

impl Item {
    /// A message of one text part.
    pub fn message(role: Role, text: impl Into<String>) -> Item {
        Item::Message(Message { id: None, role, content: vec![Content::Text { text: text.into() }] })
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
        Item::FunctionCall(FunctionCall {
            id: None,
            call_id: call_id.into(),
            name: name.into(),
            arguments: arguments.into(),
        })
    }

    /// The answer to the call `call_id`.
    pub fn output(call_id: &str, output: impl Into<String>) -> Item {
        Item::FunctionCallOutput(FunctionCallOutput {
            id: None,
            call_id: call_id.into(),
            output: output.into(),
            is_error: false,
        })
    }

    /// The answer to the call `call_id`, saying that it failed.
    pub fn error_output(call_id: &str, output: impl Into<String>) -> Item {
        Item::FunctionCallOutput(FunctionCallOutput {
            id: None,
            call_id: call_id.into(),
            output: output.into(),
            is_error: true,
        })
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

    /// The function call output, if it is one.
    pub fn as_output(&self) -> Option<&FunctionCallOutput> {
        match self {
            Item::FunctionCallOutput(output) => Some(output),
            _ => None,
        }
    }
}
