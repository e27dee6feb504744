//! Requests of OpenAI responses.

use std::borrow::Cow;

use contexture_core::item::{Content, Extra, Item, Message, Reasoning, Role};
use contexture_core::model::{ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::Value;

use super::spelling::Spelling;
use super::turns::spoken;

/// The body of a request. The provider stores nothing, so reasoning is returned encrypted and sent again. Texts are
/// borrowed: a history is written once, and not copied before.
#[derive(Serialize)]
pub(super) struct ResponsesBody<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    include: [&'static str; 1],
    input: Vec<WireItem<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum WireItem<'a> {
    Tagged(TaggedItem<'a>),
    AsItCame(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TaggedItem<'a> {
    Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        role: &'static str,
        content: Vec<ResponsesPart<'a>>,
        /// Fields that this format added to the item.
        #[serde(flatten)]
        extra: Option<&'a Extra>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: &'a str,
        name: Cow<'a, str>,
        arguments: &'a str,
        #[serde(flatten)]
        extra: Option<&'a Extra>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResponsesPart<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: Cow<'a, str>,
    },
    AsItCame(&'a Value),
}

/// The body of a request.
pub(super) fn body<'a>(request: &'a ModelRequest, model: &'a str, stream: bool) -> ResponsesBody<'a> {
    let spelling = Spelling::accepted(request);
    let instructions = if request.instructions.trim().is_empty() { "" } else { &request.instructions };
    ResponsesBody {
        model,
        stream,
        store: false,
        include: ["reasoning.encrypted_content"],
        input: request.items.iter().filter_map(|item| wire_item(item, &spelling)).collect(),
        instructions,
        tools: request.tools.iter().map(ResponsesTool::of).collect(),
        max_output_tokens: request.max_output_tokens,
    }
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

impl<'a> ResponsesTool<'a> {
    fn of(tool: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters, .. } = tool;
        // Unless it says so, the provider applies its strict subset of schemas.
        Self { kind: "function", name, description, parameters, strict: false }
    }
}

/// An item as it is sent, if it is.
pub(super) fn wire_item<'a>(item: &'a Item, spelling: &Spelling<'a>) -> Option<WireItem<'a>> {
    let tagged = match item {
        Item::Message(message) => wire_message(message, spelling)?,
        Item::FunctionCall(call) => TaggedItem::FunctionCall {
            id: call.id.as_deref(),
            call_id: &call.call_id,
            name: spelling.name(&call.name),
            arguments: &call.arguments,
            extra: own_fields(&call.extra),
        },
        Item::FunctionCallOutput(output) => {
            TaggedItem::FunctionCallOutput { call_id: &output.call_id, output: &output.output }
        }
        // Reasoning of other providers means nothing to this one.
        Item::Reasoning(Reasoning { opaque: Some(item), .. }) if item["type"] == "reasoning" => {
            return Some(WireItem::AsItCame(item));
        }
        Item::Reasoning(_) => return None,
        Item::Opaque(item) if is_own_kind(item) => return Some(WireItem::AsItCame(item)),
        Item::Opaque(_) => return None,
    };
    Some(WireItem::Tagged(tagged))
}

/// Whether an uninterpreted item came from this format.
fn is_own_kind(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || kind.starts_with("compaction")
        || kind.starts_with("mcp_")
}

fn wire_message<'a>(message: &'a Message, spelling: &Spelling<'a>) -> Option<TaggedItem<'a>> {
    let kind = if message.role == Role::Assistant { "output_text" } else { "input_text" };
    let parts = message.content.iter().filter(|content| spelling.sends(content));
    let content: Vec<ResponsesPart<'_>> = parts
        .map(|part| match part {
            Content::Text { text } => ResponsesPart::Text { kind, text: spoken(message.role, text) },
            Content::Opaque(part) => ResponsesPart::AsItCame(part),
        })
        .collect();
    let (id, role, extra) = (message.id.as_deref(), message.role.as_str(), own_fields(&message.extra));
    (!content.is_empty()).then_some(TaggedItem::Message { id, role, content, extra })
}

/// The fields that an item has beside the known ones, unless they are of another provider: Gemini signs its calls.
fn own_fields(extra: &Extra) -> Option<&Extra> {
    Some(extra).filter(|extra| extra.get("thoughtSignature").is_none())
}
