//! Groups items into turns of the model and others, for formats that have messages instead of items.

use std::borrow::Cow;
use std::collections::HashMap;

use contexture_core::item::{Content, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role};
use contexture_core::model::ModelRequest;
use contexture_core::tool::wire_name;
use serde_json::Value;

/// The items of one message in the provider's format.
pub(super) enum Turn<'a> {
    /// Text, reasoning and calls of the model.
    Model(Vec<Piece<'a>>),
    /// Tool outputs, then messages to the model.
    Others(Vec<Piece<'a>>),
}

/// An item of a turn, and the number of request items up to and including it.
pub(super) struct Piece<'a> {
    pub(super) part: Part<'a>,
    pub(super) items: usize,
}

/// The kind of an item in these formats.
pub(super) enum Part<'a> {
    Said(&'a Message),
    Thought(&'a Reasoning),
    Asked(&'a FunctionCall),
    Returned(&'a FunctionCallOutput),
    Unknown(&'a Value),
}

/// Groups the items of a request into alternating turns. Tool outputs come first in their turn, because formats require
/// them right after the call, and layers may have put messages in between.
pub(super) fn turns(request: &ModelRequest) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (index, item) in request.items.iter().enumerate() {
        let part = match &**item {
            Item::Message(message) => Part::Said(message),
            Item::Reasoning(reasoning) => Part::Thought(reasoning),
            Item::FunctionCall(call) => Part::Asked(call),
            Item::FunctionCallOutput(output) => Part::Returned(output),
            Item::Opaque(value) => Part::Unknown(value),
        };
        let piece = Piece { part, items: index + 1 };
        match (turns.last_mut(), item.is_of_model()) {
            (Some(Turn::Model(pieces)), true) | (Some(Turn::Others(pieces)), false) => pieces.push(piece),
            (_, true) => turns.push(Turn::Model(vec![piece])),
            (_, false) => turns.push(Turn::Others(vec![piece])),
        }
    }
    for turn in &mut turns {
        if let Turn::Others(pieces) = turn {
            pieces.sort_by_key(|piece| !matches!(piece.part, Part::Returned(_)));
        }
    }
    turns
}

/// The names of tools on the wire.
pub(super) struct ToolNames<'a>(HashMap<&'a str, &'a str>);

impl<'a> ToolNames<'a> {
    pub(super) fn of(request: &'a ModelRequest) -> Self {
        Self(request.tools.iter().map(|tool| (tool.public_name.as_str(), tool.name.as_str())).collect())
    }

    /// The wire name of a tool that was called, which may no longer exist.
    pub(super) fn on_wire(&self, public_name: &str) -> Cow<'a, str> {
        match self.0.get(public_name) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(wire_name(public_name)),
        }
    }
}

/// The text of a message that the program wrote, for formats with only user and model messages. It is put in a tag, so
/// that the model does not take it for the user's. Texts of layers already have one.
pub(super) fn spoken_as_user<'a>(role: Role, text: &'a str) -> Cow<'a, str> {
    match role {
        Role::User | Role::Assistant => Cow::Borrowed(text),
        Role::System | Role::Developer if text.starts_with("<memory ") => Cow::Borrowed(text),
        Role::System | Role::Developer => Cow::Owned(format!("<developer>\n{text}\n</developer>")),
    }
}

/// Whether a part is blank: providers refuse empty texts.
pub(super) fn is_blank(content: &Content) -> bool {
    matches!(content, Content::Text { text } if text.trim().is_empty())
}
