//! Messages as they are sent.

use contexture_core::item::Item;
use serde_json::value::RawValue;

use super::anthropic::{self, ContentBlocks, MARK};
use super::error::WireError;
use super::fields::{Fields, quoted};
use super::format::Format;
use super::plan::ShownUnit;
use super::{chat, encode, gemini, responses};

/// A message that replaces others. A text of the user has the role that all providers accept anywhere; one of the model
/// has no id, since providers expect what belongs to an id with it.
pub(super) fn made(format: Format, item: &Item, mark: Option<&str>) -> Result<String, WireError> {
    let mark = mark.map(serde_json::from_str::<&RawValue>).transpose()?;
    Ok(encode::message(format, item, mark))
}

/// Some parts of a message, or parts with another text.
pub(super) fn part(format: Format, message: &str, units: &[ShownUnit]) -> Result<String, WireError> {
    let texts: Vec<(usize, &str)> =
        units.iter().filter_map(|shown| Some((shown.unit, shown.text.as_deref()?))).collect();
    match (format, texts.as_slice()) {
        (Format::Messages, _) => blocks(message, units),
        (Format::Gemini, _) => gemini::part(message, units.iter().map(|shown| (shown.unit, shown.text.as_deref()))),
        (Format::Chat, [_, ..]) => chat::with_texts(message, &texts),
        (Format::Responses, [(_, text)]) => responses::with_text(message, text),
        _ => Err(WireError::OtherRequest),
    }
}

fn blocks(message: &str, units: &[ShownUnit]) -> Result<String, WireError> {
    let fields = Fields::parse(message)?;
    let content = fields.get("content").ok_or(WireError::NoList("content"))?;
    let blocks = match ContentBlocks::of(content)? {
        ContentBlocks::List(blocks) => blocks,
        ContentBlocks::Text(_) => {
            let [ShownUnit { unit: 0, text: Some(text) }] = units else { return Err(WireError::OtherRequest) };
            return Ok(fields.with("content", &quoted(text)));
        }
    };
    let mut list = String::from("[");
    for shown in units {
        let block = blocks.get(shown.unit).ok_or(WireError::OtherRequest)?.get();
        if list.len() > 1 {
            list.push(',');
        }
        match &shown.text {
            Some(text) => list.push_str(&anthropic::with_text(block, text)?),
            None => list.push_str(block),
        }
    }
    list.push(']');
    Ok(fields.with("content", &list))
}

/// A message without any marks.
pub(super) fn without_marks(message: &str) -> Result<String, WireError> {
    let fields = Fields::parse(message)?;
    let content = fields.get("content").ok_or(WireError::NoList("content"))?;
    let ContentBlocks::List(blocks) = ContentBlocks::of(content)? else { return Ok(message.to_owned()) };
    let plain: Result<Vec<String>, WireError> =
        blocks.iter().map(|block| Ok(Fields::parse(block.get())?.without(MARK))).collect();
    Ok(fields.with("content", &format!("[{}]", plain?.join(","))))
}

/// A message without the mark of its last block.
pub(super) fn without_last_mark(message: &str) -> Result<String, WireError> {
    with_last_block(message, |block| block.without(MARK))
}

/// A message with a mark at its last block.
pub(super) fn with_last_mark(message: &str, mark: &str) -> Result<String, WireError> {
    with_last_block(message, |block| block.with(MARK, mark))
}

/// A message with another form of its last block; a message of one text stays as it is.
fn with_last_block(message: &str, changed: impl Fn(&Fields<'_>) -> String) -> Result<String, WireError> {
    let fields = Fields::parse(message)?;
    let content = fields.get("content").ok_or(WireError::NoList("content"))?;
    let ContentBlocks::List(blocks) = ContentBlocks::of(content)? else { return Ok(message.to_owned()) };
    let Some((last, others)) = blocks.split_last() else { return Ok(message.to_owned()) };
    let mut list = String::from("[");
    for other in others {
        list.push_str(other.get());
        list.push(',');
    }
    list.push_str(&changed(&Fields::parse(last.get())?));
    list.push(']');
    Ok(fields.with("content", &list))
}
