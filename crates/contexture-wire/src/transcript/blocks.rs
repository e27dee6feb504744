//! Content written as text or as a list of typed blocks, as in the chat formats.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use contexture_core::item::{Outcome, Role};

use super::assemble::{Assembler, Join, append_text, call};

/// What replaces an image in a text: images are not kept.
pub(super) const IMAGE_NOTE: &str = "[image]";

/// What replaces a file in a text that is not an image.
const FILE_NOTE: &str = "[file]";

/// One block of any chat format, with the fields that any of them uses.
#[derive(Deserialize)]
pub(super) struct ChatBlock<'a> {
    #[serde(rename = "type", default, borrow)]
    pub kind: Cow<'a, str>,
    pub text: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
    pub tool_use_id: Option<String>,
    pub is_error: Option<bool>,
    #[serde(borrow)]
    pub content: Option<&'a RawValue>,
}

/// What kind of block it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatBlockKind {
    Text,
    Image,
    File,
    Thinking,
    Call,
    Answer,
    /// Something that neither a person nor the model said.
    Other,
}

impl ChatBlock<'_> {
    pub fn kind(&self) -> ChatBlockKind {
        match &*self.kind {
            "text" | "input_text" | "output_text" | "refusal" => ChatBlockKind::Text,
            "image" | "input_image" | "image_url" => ChatBlockKind::Image,
            "document" | "file" | "input_file" | "input_audio" => ChatBlockKind::File,
            "thinking" | "redacted_thinking" | "reasoning" => ChatBlockKind::Thinking,
            "tool_use" => ChatBlockKind::Call,
            "tool_result" => ChatBlockKind::Answer,
            "" if self.text.is_some() => ChatBlockKind::Text,
            _ => ChatBlockKind::Other,
        }
    }

    /// Takes the text that the block adds, or a note for an image or file; `None` for calls, outputs and thinking.
    pub fn take_text(&mut self, assembler: &mut Assembler<'_>) -> Option<String> {
        match self.kind() {
            ChatBlockKind::Text => self.text.take(),
            ChatBlockKind::Image => {
                assembler.tally.images += 1;
                Some(IMAGE_NOTE.to_owned())
            }
            ChatBlockKind::File => Some(FILE_NOTE.to_owned()),
            ChatBlockKind::Thinking => {
                assembler.tally.thinking_blocks += 1;
                None
            }
            ChatBlockKind::Call | ChatBlockKind::Answer | ChatBlockKind::Other => None,
        }
    }
}

/// The blocks of a content: those of a list, one text block for a text, none for `null`.
pub(super) fn blocks_of(raw: &RawValue) -> Result<Vec<ChatBlock<'_>>, Error> {
    let json = raw.get();
    match json.as_bytes().first() {
        Some(b'[') => serde_json::from_str(json),
        Some(b'{') => Ok(vec![serde_json::from_str(json)?]),
        Some(b'"') => Ok(vec![text_block(serde_json::from_str(json)?)]),
        _ => Ok(Vec::new()),
    }
}

fn text_block(text: String) -> ChatBlock<'static> {
    let kind = Cow::Borrowed("text");
    ChatBlock {
        kind,
        text: Some(text),
        id: None,
        name: None,
        input: None,
        tool_use_id: None,
        is_error: None,
        content: None,
    }
}

/// The text of a content: a text as it is, the texts of blocks joined by newlines.
pub(super) fn text_of(raw: Option<&RawValue>, assembler: &mut Assembler<'_>) -> Result<String, Error> {
    let Some(raw) = raw else { return Ok(String::new()) };
    if raw.get().starts_with('"') {
        return serde_json::from_str(raw.get());
    }
    let mut text = String::new();
    for mut block in blocks_of(raw)? {
        if let Some(more) = block.take_text(assembler) {
            append_text(&mut text, more);
        }
    }
    Ok(text)
}

/// A value as it is; an empty object where there is none.
pub(super) fn value_of(raw: Option<&RawValue>) -> Result<Value, Error> {
    match raw {
        Some(raw) => serde_json::from_str(raw.get()),
        None => Ok(Value::Object(serde_json::Map::new())),
    }
}

/// Passes on the text and the calls of an assistant message written as blocks.
pub(super) fn speak(content: Option<&RawValue>, join: Join<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for mut block in content.map_or(Ok(Vec::new()), blocks_of)? {
        if block.kind() == ChatBlockKind::Call {
            let (id, name) = (block.id.as_deref().unwrap_or_default(), block.name.as_deref().unwrap_or_default());
            calls.push(call(id, name, value_of(block.input)?));
        } else if let Some(more) = block.take_text(assembler) {
            append_text(&mut text, more);
        }
    }
    assembler.speak(join, text, calls);
    Ok(())
}

/// Passes on the outputs in a user message written as blocks, then the text beside them.
pub(super) fn say(content: Option<&RawValue>, role: Role, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut text = String::new();
    for mut block in content.map_or(Ok(Vec::new()), blocks_of)? {
        if block.kind() == ChatBlockKind::Answer {
            let answer = text_of(block.content, assembler)?;
            // Not every client marks failures, so an output without the mark may be either.
            let outcome = match block.is_error {
                Some(true) => Outcome::Failed,
                Some(false) => Outcome::Done,
                None => Outcome::Unknown,
            };
            assembler.answer(block.tool_use_id.as_deref().unwrap_or_default(), answer, outcome);
        } else if let Some(more) = block.take_text(assembler) {
            append_text(&mut text, more);
        }
    }
    if !text.is_empty() {
        assembler.say(role, text);
    }
    Ok(())
}
