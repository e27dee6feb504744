//! Requests of Anthropic messages.

use std::borrow::Cow;
use std::collections::HashSet;

use contexture_core::item::{Content, FunctionCall, Message, Reasoning};
use contexture_core::model::{ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::spelling::{self, Spelling};
use super::turns::{MessageTurn, NO_BEGINNING, TurnPart, TurnPiece, spoken_as_user, turns};

/// The default limit of output tokens: a number that all current models accept.
const MAX_TOKENS: u64 = 8_192;

/// The mark of a block up to which the prompt is cached.
const EPHEMERAL: &str = r#"{"type":"ephemeral"}"#;

#[derive(Serialize)]
pub(super) struct MessagesBody<'a> {
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
pub(super) struct MessagesMessage<'a> {
    role: &'static str,
    content: Vec<PromptBlock<'a>>,
}

/// A block, and whether the prompt is cached up to its end.
#[derive(Serialize)]
struct PromptBlock<'a> {
    #[serde(flatten)]
    kind: PromptBlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a RawValue>,
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
        written.flatten().map_or_else(|| Input::Made(spelling::arguments(call)), Input::Written)
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
            self.cache_control = Some(ephemeral());
        }
        may
    }
}

fn ephemeral() -> &'static RawValue {
    serde_json::from_str(EPHEMERAL).expect("it is JSON")
}

fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

/// The body of a request.
pub(super) fn body<'a>(request: &'a ModelRequest, model: &'a str, stream: bool) -> MessagesBody<'a> {
    let marks: HashSet<usize> = request.breakpoints.iter().copied().collect();
    let mut system: Vec<PromptBlock<'_>> = Vec::new();
    if !request.instructions.trim().is_empty() {
        system.push(PromptBlock::text(&*request.instructions));
    }
    let mut tools: Vec<MessagesTool<'_>> = request.tools.iter().map(MessagesTool::of).collect();
    if marks.contains(&0) {
        let is_marked = system.last_mut().is_some_and(PromptBlock::mark);
        if let (false, Some(tool)) = (is_marked, tools.last_mut()) {
            tool.cache_control = Some(ephemeral());
        }
    }
    let max_tokens = request.max_output_tokens.unwrap_or(MAX_TOKENS);
    MessagesBody { model, max_tokens, stream, system, tools, messages: conversation(request, &marks) }
}

#[derive(Serialize)]
struct MessagesTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a RawValue>,
}

impl<'a> MessagesTool<'a> {
    fn of(tool: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters, .. } = tool;
        Self { name, description, input_schema: parameters, cache_control: None }
    }
}

fn conversation<'a>(request: &'a ModelRequest, marks: &HashSet<usize>) -> Vec<MessagesMessage<'a>> {
    let spelling = Spelling::accepted(request);
    let mut messages = Vec::new();
    for turn in turns(request.items.iter().map(|item| &**item)) {
        if messages.is_empty() && matches!(turn, MessageTurn::Model(_)) {
            messages.push(MessagesMessage { role: "user", content: vec![PromptBlock::text(NO_BEGINNING)] });
        }
        messages.extend(message(turn, &spelling, marks));
    }
    messages
}

/// A message of a turn, if anything of it is sent.
pub(super) fn message<'a>(
    turn: MessageTurn<'a>,
    spelling: &Spelling<'a>,
    marks: &HashSet<usize>,
) -> Option<MessagesMessage<'a>> {
    let (role, pieces) = match turn {
        MessageTurn::Model(pieces) => ("assistant", pieces),
        MessageTurn::Others(pieces) => ("user", pieces),
    };
    let mut content: Vec<PromptBlock<'a>> = Vec::new();
    for TurnPiece { part, items } in pieces {
        push_part(&mut content, part, spelling);
        if marks.contains(&items) {
            // The last block that can carry the mark; the cached prefix is then a little shorter.
            content.iter_mut().rev().any(PromptBlock::mark);
        }
    }
    (!content.is_empty()).then_some(MessagesMessage { role, content })
}

impl<'a> MessagesMessage<'a> {
    /// The same, with a client's own mark on its last block.
    pub(super) fn with_mark(mut self, mark: &'a RawValue) -> Self {
        if let Some(block) = self.content.last_mut() {
            block.cache_control = Some(mark);
        }
        self
    }
}

fn push_part<'a>(blocks: &mut Vec<PromptBlock<'a>>, part: TurnPart<'a>, spelling: &Spelling<'a>) {
    match part {
        TurnPart::Said(message) => push_said(blocks, message, spelling),
        TurnPart::Asked(call) => {
            let (id, name) = (&*call.call_id, spelling.name(&call.name));
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

fn push_said<'a>(blocks: &mut Vec<PromptBlock<'a>>, message: &'a Message, spelling: &Spelling<'a>) {
    for content in message.content.iter().filter(|content| spelling.sends(content)) {
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
