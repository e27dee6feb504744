//! Reads a response from its bytes, streamed or whole.

use contexture_core::item::Item;
use contexture_core::model::{Deltas, LlmResponse};
use serde_json::Value;

use super::chat::{self, ChatDecoder};
use super::decode::{Decode, ReportedUsage, parse};
use super::error::{ClientError, malformed};
use super::gemini::{self, GeminiDecoder};
use super::messages::{self, MessagesDecoder};
use super::responses::{self, ResponsesDecoder};
use crate::wire::{BadEvent, EventParser, Format};

/// The items of a response that another program has received, from its whole body: a stream of events
/// (`text/event-stream`), or one JSON value.
///
/// ```
/// use contexture::client::response_items;
/// use contexture::wire::Format;
///
/// let body = r#"{"role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}"#;
/// let items = response_items(Format::Messages, false, body.as_bytes())?;
/// assert_eq!(items, [contexture::item::Item::assistant("Done.")]);
/// # Ok::<(), contexture::client::ClientError>(())
/// ```
///
/// # Errors
/// It is cut off, reports an error, or is not in this format.
pub fn response_items(format: Format, is_stream: bool, body: &[u8]) -> Result<Vec<Item>, ClientError> {
    if !is_stream {
        return whole_items(format, &parse(&String::from_utf8_lossy(body))?);
    }
    let (mut reader, deltas) = (StreamReader::new(format), Deltas::default());
    reader.push(body, &deltas)?;
    Ok(reader.finish(&deltas)?.items)
}

/// The items of a response that was not streamed.
pub(super) fn whole_items(format: Format, response: &Value) -> Result<Vec<Item>, ClientError> {
    match format {
        Format::Messages => messages::items(response),
        Format::Chat => chat::items(response),
        Format::Responses => responses::items(response),
        Format::Gemini => gemini::items(response),
    }
}

/// A streamed response while its bytes arrive.
pub(super) struct StreamReader {
    decoder: Box<dyn Decode>,
    parser: EventParser,
    bill: ReportedUsage,
    is_over: bool,
}

impl StreamReader {
    pub(super) fn new(format: Format) -> Self {
        let decoder: Box<dyn Decode> = match format {
            Format::Messages => Box::new(MessagesDecoder::default()),
            Format::Chat => Box::new(ChatDecoder::default()),
            Format::Responses => Box::new(ResponsesDecoder::default()),
            Format::Gemini => Box::new(GeminiDecoder::default()),
        };
        Self { decoder, parser: EventParser::default(), bill: ReportedUsage::default(), is_over: false }
    }

    /// Reads the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8], deltas: &Deltas) -> Result<(), ClientError> {
        let Self { decoder, parser, bill, is_over } = self;
        parser.push(bytes, &mut |data| take(data, &mut **decoder, bill, is_over, deltas))
    }

    /// Ends the response.
    pub(super) fn finish(self, deltas: &Deltas) -> Result<LlmResponse, ClientError> {
        let Self { mut decoder, mut parser, mut bill, mut is_over } = self;
        parser.finish(&mut |data| take(data, &mut *decoder, &mut bill, &mut is_over, deltas))?;
        if !decoder.has_ended() {
            return Err(ClientError::Cut);
        }
        Ok(bill.response(decoder.finish()?))
    }
}

/// Reads one event.
fn take(
    data: Result<&str, BadEvent>,
    decoder: &mut dyn Decode,
    bill: &mut ReportedUsage,
    is_over: &mut bool,
    deltas: &Deltas,
) -> Result<(), ClientError> {
    let data = data.map_err(|bad| malformed(bad.to_string()))?;
    *is_over |= data.trim() == "[DONE]";
    if *is_over || data.trim().is_empty() {
        return Ok(());
    }
    let event = parse(data)?;
    bill.take(&event);
    decoder.event(&event, deltas)
}
