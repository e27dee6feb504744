//! Groups items into turns of the model and others, for formats that have messages instead of items.

use std::borrow::Cow;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role};
use contexture_core::window::{developer_block, program_text};
use serde_json::Value;

/// The text of a user message that is inserted if the window begins with the model, because formats of turns require a
/// user message first.
pub(super) const NO_BEGINNING: &str = "(The beginning of this conversation is not shown.)";

/// The items of one message in the provider's format.
pub(super) enum MessageTurn<'a> {
    /// Text, reasoning and calls of the model.
    Model(Vec<TurnPiece<'a>>),
    /// Tool outputs, then messages to the model.
    Others(Vec<TurnPiece<'a>>),
}

/// An item of a turn, and the number of items up to and including it.
pub(super) struct TurnPiece<'a> {
    pub(super) part: TurnPart<'a>,
    pub(super) items: usize,
}

/// The kind of an item in these formats.
pub(super) enum TurnPart<'a> {
    Said(&'a Message),
    Thought(&'a Reasoning),
    Asked(&'a FunctionCall),
    Returned(&'a FunctionCallOutput),
    Unknown(&'a Value),
}

/// Groups items into alternating turns. Tool outputs come first in their turn, because formats require
/// them right after the call, and layers may have put messages in between.
pub(super) fn turns<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<MessageTurn<'a>> {
    let mut turns: Vec<MessageTurn<'_>> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let part = match item {
            Item::Message(message) => TurnPart::Said(message),
            Item::Reasoning(reasoning) => TurnPart::Thought(reasoning),
            Item::FunctionCall(call) => TurnPart::Asked(call),
            Item::FunctionCallOutput(output) => TurnPart::Returned(output),
            Item::Opaque(value) => TurnPart::Unknown(value),
        };
        let piece = TurnPiece { part, items: index + 1 };
        match (turns.last_mut(), item.is_of_model()) {
            (Some(MessageTurn::Model(pieces)), true) | (Some(MessageTurn::Others(pieces)), false) => pieces.push(piece),
            (_, true) => turns.push(MessageTurn::Model(vec![piece])),
            (_, false) => turns.push(MessageTurn::Others(vec![piece])),
        }
    }
    for turn in &mut turns {
        if let MessageTurn::Others(pieces) = turn {
            pieces.sort_by_key(|piece| !matches!(piece.part, TurnPart::Returned(_)));
        }
    }
    turns
}

/// A text that is sent as a message of the user, in formats with only user and model messages.
pub(super) fn spoken_as_user(role: Role, text: &str) -> Cow<'_, str> {
    match role {
        Role::User | Role::Assistant => Cow::Borrowed(text),
        Role::System | Role::Developer => developer_block(text),
    }
}

/// A text that is sent with the role that it has.
pub(super) fn spoken(role: Role, text: &str) -> Cow<'_, str> {
    match role {
        Role::User | Role::Assistant => Cow::Borrowed(text),
        Role::System | Role::Developer => program_text(text),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture_core::model::ModelRequest;
    use contexture_core::window::escape_tags;
    use proptest::prelude::*;

    use super::*;
    use crate::encode::{BodyOptions, body};
    use crate::format::Format;

    /// Text that often contains something like a tag.
    fn any_markup() -> impl Strategy<Value = String> {
        let tags = ["memory", "updates", "replace", "change", "add", "retract", "developer", "Developer", "MEMORY"];
        let signs = ["<", "</", "< / ", "<\u{200b}", "</\u{202e}", ">", ">\n", "/>", " layer=\"x\"", "&lt;", "\n", "s"];
        let piece = prop_oneof![
            prop::sample::select(tags.to_vec()).prop_map(str::to_owned),
            prop::sample::select(signs.to_vec()).prop_map(str::to_owned),
            "\\PC{0,3}",
        ];
        prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
    }

    /// The texts of messages, as each format sends them.
    fn sent(request: &ModelRequest) -> Vec<String> {
        let texts = |value: &Value| -> Vec<String> {
            let parts = |content: &Value| match content {
                Value::String(text) => vec![text.clone()],
                content => {
                    content.as_array().into_iter().flatten().map(|part| part["text"].as_str().unwrap().into()).collect()
                }
            };
            value.as_array().into_iter().flatten().flat_map(|message| parts(&message["content"])).collect()
        };
        let body = |format, developer_role| {
            let options = BodyOptions { model: "m", stream: false, developer_role };
            serde_json::to_value(body(format, request, options)).unwrap()
        };
        let contents = body(Format::Gemini, None)["contents"].clone();
        let parts = contents.as_array().into_iter().flatten().flat_map(|content| content["parts"].as_array().cloned());
        let in_parts: Vec<String> = parts.flatten().map(|part| part["text"].as_str().unwrap().to_owned()).collect();
        let bodies = [
            in_parts,
            texts(&body(Format::Chat, None)["messages"]),
            texts(&body(Format::Chat, Some("developer"))["messages"]),
            texts(&body(Format::Messages, None)["messages"]),
            texts(&body(Format::Responses, None)["input"]),
        ];
        bodies.concat()
    }

    proptest! {
        #[test]
        fn no_content_opens_or_closes_a_tag_of_the_program_in_any_format(text in any_markup()) {
            let layer = format!("<memory layer=\"x\">\n{}\n</memory>", escape_tags(&text));
            let add = format!("<add layer=\"x\">\n{}\n</add>\n", escape_tags(&text));
            let updates = format!("<updates>\n{add}</updates>");
            let items = [&text, &layer, &updates].map(|text| Arc::new(Item::developer(text)));
            for sent in sent(&ModelRequest::new("", items.to_vec())) {
                let inner = sent.strip_prefix("<developer>\n").and_then(|sent| sent.strip_suffix("\n</developer>"));
                let inner = inner.unwrap_or(&sent);
                let within = inner.strip_prefix("<updates>\n<add layer=\"x\">\n");
                let within = within.and_then(|inner| inner.strip_suffix("\n</add>\n</updates>"));
                let layer = inner.strip_prefix("<memory layer=\"x\">\n");
                let layer = layer.and_then(|inner| inner.strip_suffix("\n</memory>"));
                let content = within.or(layer).unwrap_or(inner);
                prop_assert_eq!(escape_tags(content), content, "{}", sent);
            }
        }
    }
}
