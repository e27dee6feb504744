//! Anthropic messages.

use std::borrow::Cow;
use std::collections::HashSet;

use contexture_core::item::{Content, FunctionCall, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas, ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::decode::{Decode, call_arguments, provider_error, text};
use super::error::{ClientError, malformed};
use super::turns::{MessageTurn, ToolNames, TurnPart, TurnPiece, is_blank, spoken_as_user, turns};

/// The default limit of output tokens: a number that all current models accept.
const MAX_TOKENS: u64 = 8_192;

/// The text of a user message that is inserted if the window begins with the model, because the format requires a user
/// message first.
const NO_BEGINNING: &str = "(The beginning of this conversation is not shown.)";

#[derive(Serialize)]
struct MessagesBody<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<PromptBlock<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<MessagesTool<'a>>,
    messages: Vec<MessagesMessage<'a>>,
}

#[derive(Serialize)]
struct MessagesMessage<'a> {
    role: &'static str,
    content: Vec<PromptBlock<'a>>,
}

/// A block, and whether the prompt is cached up to its end.
#[derive(Serialize)]
struct PromptBlock<'a> {
    #[serde(flatten)]
    kind: PromptBlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PromptBlockKind<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        is_error: bool,
    },
    #[serde(untagged)]
    AsItCame(&'a Value),
}

/// The arguments of a call.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    /// As the model wrote them.
    Written(&'a RawValue),
    Made(Value),
}

impl<'a> Input<'a> {
    fn of(call: &'a FunctionCall) -> Self {
        let written = call.arguments.trim_start().starts_with('{').then(|| serde_json::from_str(&call.arguments).ok());
        written.flatten().map_or_else(|| Input::Made(call_arguments(call)), Input::Written)
    }
}

impl<'a> PromptBlock<'a> {
    fn new(kind: PromptBlockKind<'a>) -> Self {
        Self { kind, cache_control: None }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        PromptBlock::new(PromptBlockKind::Text { text: text.into() })
    }

    /// Requests caching up to the end of this block; reasoning blocks cannot carry the mark.
    fn mark(&mut self) -> bool {
        let may = !matches!(&self.kind, PromptBlockKind::AsItCame(block) if is_thought(block));
        if may {
            self.cache_control = Some(json!({ "type": "ephemeral" }));
        }
        may
    }
}

fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

/// The body of a request.
pub(super) fn body<'a>(request: &'a ModelRequest, model: &'a str, stream: bool) -> impl Serialize + 'a {
    let marks: HashSet<usize> = request.breakpoints.iter().copied().collect();
    let mut system: Vec<PromptBlock<'_>> = Vec::new();
    if !request.instructions.trim().is_empty() {
        system.push(PromptBlock::text(&*request.instructions));
    }
    let mut tools: Vec<MessagesTool<'_>> = request.tools.iter().map(MessagesTool::of).collect();
    if marks.contains(&0) {
        let is_marked = system.last_mut().is_some_and(PromptBlock::mark);
        if let (false, Some(tool)) = (is_marked, tools.last_mut()) {
            tool.cache_control = Some(json!({ "type": "ephemeral" }));
        }
    }
    let max_tokens = request.max_output_tokens.unwrap_or(MAX_TOKENS);
    MessagesBody { model, max_tokens, stream, system, tools, messages: messages(request, &marks) }
}

#[derive(Serialize)]
struct MessagesTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

impl<'a> MessagesTool<'a> {
    fn of(tool: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters, .. } = tool;
        Self { name, description, input_schema: parameters, cache_control: None }
    }
}

fn messages<'a>(request: &'a ModelRequest, marks: &HashSet<usize>) -> Vec<MessagesMessage<'a>> {
    let names = ToolNames::of(request);
    let mut messages = Vec::new();
    for turn in turns(request) {
        let (role, pieces) = match turn {
            MessageTurn::Model(pieces) => ("assistant", pieces),
            MessageTurn::Others(pieces) => ("user", pieces),
        };
        let content = blocks(pieces, &names, marks);
        if messages.is_empty() && role == "assistant" {
            messages.push(MessagesMessage { role: "user", content: vec![PromptBlock::text(NO_BEGINNING)] });
        }
        if !content.is_empty() {
            messages.push(MessagesMessage { role, content });
        }
    }
    messages
}

fn blocks<'a>(pieces: Vec<TurnPiece<'a>>, names: &ToolNames<'a>, marks: &HashSet<usize>) -> Vec<PromptBlock<'a>> {
    let mut blocks: Vec<PromptBlock<'a>> = Vec::new();
    for TurnPiece { part, items } in pieces {
        push_part(&mut blocks, part, names);
        if marks.contains(&items) {
            // The last block that can carry the mark; the cached prefix is then a little shorter.
            blocks.iter_mut().rev().any(PromptBlock::mark);
        }
    }
    blocks
}

fn push_part<'a>(blocks: &mut Vec<PromptBlock<'a>>, part: TurnPart<'a>, names: &ToolNames<'a>) {
    match part {
        TurnPart::Said(message) => push_said(blocks, message),
        TurnPart::Asked(call) => {
            let (id, name) = (&*call.call_id, names.on_wire(&call.name));
            blocks.push(PromptBlock::new(PromptBlockKind::ToolUse { id, name, input: Input::of(call) }));
        }
        TurnPart::Returned(output) => {
            let is_error = output.outcome.is_error();
            let kind = PromptBlockKind::ToolResult { tool_use_id: &output.call_id, content: &output.output, is_error };
            blocks.push(PromptBlock::new(kind));
        }
        // Reasoning of other providers means nothing to this one.
        TurnPart::Thought(Reasoning { opaque: Some(block), .. }) if is_thought(block) => {
            blocks.push(PromptBlock::new(PromptBlockKind::AsItCame(block)));
        }
        TurnPart::Thought(_) => {}
        TurnPart::Unknown(block) if is_own_kind(block) => {
            blocks.push(PromptBlock::new(PromptBlockKind::AsItCame(block)))
        }
        TurnPart::Unknown(_) => {}
    }
}

fn push_said<'a>(blocks: &mut Vec<PromptBlock<'a>>, message: &'a Message) {
    for content in message.content.iter().filter(|content| !is_blank(content)) {
        blocks.push(match content {
            Content::Text { text } => PromptBlock::text(spoken_as_user(message.role, text)),
            Content::Opaque(part) => PromptBlock::new(PromptBlockKind::AsItCame(part)),
        });
    }
}

/// Whether an uninterpreted item came from this format: those of OpenAI responses are named after calls.
fn is_own_kind(block: &Value) -> bool {
    let kind = block["type"].as_str().unwrap_or_default();
    !kind.is_empty() && !kind.ends_with("_call") && !kind.ends_with("_call_output") && !kind.starts_with("compaction")
}

/// A response while it is streamed.
#[derive(Default)]
pub(super) struct MessagesDecoder {
    blocks: Vec<Value>,
    /// The arguments of each block so far, as the model wrote them.
    arguments: Vec<String>,
    /// The call index of each block.
    calls: usize,
    call_of_block: Vec<usize>,
    has_ended: bool,
}

impl Decode for MessagesDecoder {
    fn event(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        match text(&event["type"]) {
            "content_block_start" => self.start(event, deltas),
            "content_block_delta" => self.delta(event, deltas),
            "message_stop" => {
                self.has_ended = true;
                Ok(())
            }
            "error" => Err(provider_error(event)),
            // Pings, statistics, and events of newer versions of the format.
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn finish(self: Box<Self>) -> Result<Vec<Item>, ClientError> {
        let blocks = self.blocks.into_iter().zip(self.arguments);
        blocks.map(|(block, arguments)| item(block, Some(arguments).filter(|text| !text.is_empty()))).collect()
    }
}

impl MessagesDecoder {
    fn start(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        if event["index"].as_u64() != Some(self.blocks.len() as u64) {
            return Err(malformed("a block does not follow the one before"));
        }
        let block = event["content_block"].clone();
        if !block.is_object() {
            return Err(malformed("a block that is no object"));
        }
        self.call_of_block.push(self.calls);
        if block["type"] == "tool_use" {
            let name = Some(text(&block["name"]).to_owned());
            deltas.send(Delta::Call { index: self.calls, name, arguments: String::new() });
            self.calls += 1;
        }
        self.blocks.push(block);
        self.arguments.push(String::new());
        Ok(())
    }

    fn delta(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
        let Some(block) = self.blocks.get_mut(index) else {
            return Err(malformed("a piece of a block that is not there"));
        };
        let delta = &event["delta"];
        match text(&delta["type"]) {
            "text_delta" => {
                append(block, "text", text(&delta["text"]));
                deltas.send(Delta::text(text(&delta["text"])));
            }
            "thinking_delta" => {
                append(block, "thinking", text(&delta["thinking"]));
                deltas.send(Delta::Reasoning { text: text(&delta["thinking"]).to_owned() });
            }
            "signature_delta" => append(block, "signature", text(&delta["signature"])),
            "input_json_delta" => {
                let piece = text(&delta["partial_json"]);
                self.arguments[index].push_str(piece);
                if block["type"] == "tool_use" {
                    let index = self.call_of_block[index];
                    deltas.send(Delta::Call { index, name: None, arguments: piece.to_owned() });
                }
            }
            "citations_delta" => match block["citations"].as_array_mut() {
                Some(citations) => citations.push(delta["citation"].clone()),
                None => block["citations"] = json!([delta["citation"]]),
            },
            _ => {}
        }
        Ok(())
    }
}

fn append(block: &mut Value, field: &str, piece: &str) {
    match &mut block[field] {
        Value::String(text) => text.push_str(piece),
        other => *other = Value::from(piece),
    }
}

/// Converts a block to an item. `arguments` are those of a streamed call, as the model wrote them.
fn item(mut block: Value, arguments: Option<String>) -> Result<Item, ClientError> {
    Ok(match text(&block["type"]) {
        "text" => {
            let is_plain = block.as_object().is_some_and(|fields| {
                fields.iter().all(|(name, value)| name == "type" || name == "text" || value.is_null())
            });
            match is_plain {
                true => Item::assistant(text(&block["text"])),
                false => Message::new(Role::Assistant, vec![Content::Opaque(block)]).into(),
            }
        }
        "tool_use" => {
            let arguments = arguments.unwrap_or_else(|| block["input"].to_string());
            FunctionCall::new(text(&block["id"]), text(&block["name"]), arguments).into()
        }
        "thinking" | "redacted_thinking" => {
            let thought = text(&block["thinking"]).to_owned();
            Reasoning::new(thought, Some(block)).into()
        }
        "" => return Err(malformed("a block of the response has no type")),
        _ => {
            if let Some(arguments) = arguments {
                block["input"] = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
            }
            Item::Opaque(block)
        }
    })
}

/// Decodes a response that was not streamed.
pub(super) fn items(response: &Value) -> Result<Vec<Item>, ClientError> {
    let blocks = response["content"].as_array().ok_or_else(|| malformed("it has no list `content`"))?;
    blocks.iter().map(|block| item(block.clone(), None)).collect()
}
