//! Items as JSON of the formats: whole requests, and single messages.

mod turns;
mod spelling;
mod messages;
mod chat;
mod responses;
mod gemini;

use std::collections::HashSet;

use contexture_core::item::{FunctionCall, Item};
use contexture_core::model::ModelRequest;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub use chat::THOUGHTS;
pub use gemini::SIGNATURE;

use super::format::Format;
use spelling::Spelling;
use turns::turns;

/// What the body of a request has beside what the request says.
#[derive(Clone, Copy, Debug)]
pub struct BodyOptions<'a> {
    /// The model's name.
    pub model: &'a str,
    /// Whether the response is streamed; Gemini says it in the address.
    pub stream: bool,
    /// The role of what the program says in chat completions; without one it is sent as a part of what the user says.
    pub developer_role: Option<&'static str>,
}

/// The body of a request, as every provider of the format accepts it: tools have their names on the wire, arguments are
/// objects, and blank texts and what belongs to other formats are left out.
///
/// ```
/// use std::sync::Arc;
///
/// use contexture_core::item::Item;
/// use contexture_core::model::ModelRequest;
/// use contexture_wire::Format;
/// use contexture_wire::encode::{BodyOptions, body};
///
/// let request = ModelRequest::new("", vec![Arc::new(Item::user("hello"))]);
/// let options = BodyOptions { model: "m", stream: false, developer_role: None };
/// let json = serde_json::to_string(&body(Format::Chat, &request, options))?;
/// assert_eq!(json, r#"{"model":"m","stream":false,"messages":[{"role":"user","content":"hello"}]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn body<'a>(format: Format, request: &'a ModelRequest, options: BodyOptions<'a>) -> impl Serialize + 'a {
    let BodyOptions { model, stream, developer_role } = options;
    match format {
        Format::Messages => RequestBody::Messages(messages::body(request, model, stream)),
        Format::Chat => RequestBody::Chat(chat::body(request, model, stream, developer_role)),
        Format::Responses => RequestBody::Responses(responses::body(request, model, stream)),
        Format::Gemini => RequestBody::Gemini(gemini::body(request, model)),
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum RequestBody<'a> {
    Messages(messages::MessagesBody<'a>),
    Chat(chat::ChatBody<'a>),
    Responses(responses::ResponsesBody<'a>),
    Gemini(gemini::GeminiBody<'a>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireMessage<'a> {
    Messages(messages::MessagesMessage<'a>),
    Chat(chat::ChatMessage<'a>),
    Responses(responses::WireItem<'a>),
    Gemini(gemini::GeminiContent<'a>),
}

/// Items as messages of a format, verbatim: names, texts and arguments are written as they are, except that arguments
/// become an object where the format has no text for them. What the model made in a row is one message, as far as the
/// format allows it, and so is what others said.
///
/// `calls` are the calls to which outputs among the items belong: Gemini repeats their names.
pub fn verbatim<'a>(
    format: Format,
    items: &'a [Item],
    calls: impl IntoIterator<Item = &'a FunctionCall>,
) -> Vec<Value> {
    let written = wire_messages(format, items, &Spelling::verbatim().with_calls(calls));
    written.iter().map(|message| serde_json::to_value(message).expect("items can be written")).collect()
}

/// An item as one message, verbatim, with a cache mark of a client where the format has them.
pub(super) fn message(format: Format, item: &Item, mark: Option<&RawValue>) -> String {
    let mut written = String::new();
    for message in wire_messages(format, std::slice::from_ref(item), &Spelling::verbatim()) {
        let message = match (message, mark) {
            (WireMessage::Messages(message), Some(mark)) => WireMessage::Messages(message.with_mark(mark)),
            (message, _) => message,
        };
        written.push_str(&serde_json::to_string(&message).expect("items can be written"));
    }
    written
}

fn wire_messages<'a>(format: Format, items: &'a [Item], spelling: &Spelling<'a>) -> Vec<WireMessage<'a>> {
    let turns = || turns(items).into_iter();
    match format {
        Format::Messages => {
            let messages = turns().filter_map(|turn| messages::message(turn, spelling, &HashSet::new()));
            messages.map(WireMessage::Messages).collect()
        }
        Format::Chat => {
            turns().flat_map(|turn| chat::turn_messages(turn, spelling, None)).map(WireMessage::Chat).collect()
        }
        Format::Responses => {
            items.iter().filter_map(|item| responses::wire_item(item, spelling)).map(WireMessage::Responses).collect()
        }
        Format::Gemini => turns().map(|turn| WireMessage::Gemini(gemini::content(turn, spelling))).collect(),
    }
}
