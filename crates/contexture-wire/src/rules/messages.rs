//! The checks of Anthropic messages.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::roles::roles_broken;
use super::rule::{Broken, Check, Rule, at};
use super::table::rules;
use crate::anthropic::MARK;
use crate::fields::Fields;
use crate::format::Format;
use crate::marks::CacheMarks;
use crate::request::Request;

/// A message as the checks see it.
struct CheckedAnthropicMessage<'a> {
    role: Cow<'a, str>,
    /// Whether it sets something beside its content.
    sets: bool,
    blocks: Vec<CheckedAnthropicBlock<'a>>,
}

impl CheckedAnthropicMessage<'_> {
    /// Whether it begins with what sums up the conversation before it.
    fn is_summary(&self) -> bool {
        self.blocks.first().is_some_and(|block| block.kind_name == "compaction")
    }
}

/// The kinds of blocks that the checks tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnthropicBlockKind {
    Text,
    Thinking,
    RedactedThinking,
    ToolUse,
    ToolResult,
    /// A call of one of the provider's own tools.
    ServerToolUse,
    /// A call that the provider makes of a server that the client names.
    McpToolUse,
    /// The result of one of these.
    ServerToolResult,
    Other,
}

impl AnthropicBlockKind {
    fn of(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "redacted_thinking" => Self::RedactedThinking,
            "tool_use" => Self::ToolUse,
            "tool_result" => Self::ToolResult,
            "server_tool_use" => Self::ServerToolUse,
            "mcp_tool_use" => Self::McpToolUse,
            name if name.ends_with("_tool_result") => Self::ServerToolResult,
            _ => Self::Other,
        }
    }
}

/// A block of a message.
struct CheckedAnthropicBlock<'a> {
    kind: AnthropicBlockKind,
    /// What the provider calls its kind, which the table of rules names.
    kind_name: Cow<'a, str>,
    fields: Fields<'a>,
    /// The text of a content that is no list.
    text: Option<&'a RawValue>,
}

impl<'a> CheckedAnthropicBlock<'a> {
    fn is_result(&self) -> bool {
        self.kind == AnthropicBlockKind::ToolResult
    }

    fn is_thinking(&self) -> bool {
        matches!(self.kind, AnthropicBlockKind::Thinking | AnthropicBlockKind::RedactedThinking)
    }

    fn has_odd_id(&self) -> bool {
        let id = match self.kind {
            AnthropicBlockKind::ToolUse => self.fields.text("id"),
            AnthropicBlockKind::ToolResult => self.fields.text("tool_use_id"),
            _ => None,
        };
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
        id.is_some_and(|id| id.is_empty() || !id.chars().all(is_plain))
    }

    fn text(&self) -> Option<&'a RawValue> {
        self.text.or_else(|| self.fields.get("text").filter(|_| self.kind == AnthropicBlockKind::Text))
    }

    fn mark(&self) -> Option<&'a RawValue> {
        self.fields.get(MARK).filter(|mark| mark.get() != "null")
    }
}

pub(super) fn broken(request: &Request<'_>, body: &str, model: &str) -> Option<Vec<Broken>> {
    let said: Vec<CheckedAnthropicMessage<'_>> =
        request.messages().iter().map(|raw| said(raw)).collect::<Option<_>>()?;
    let roles: Vec<&str> = said.iter().map(|said| &*said.role).collect();
    let broken = rules(Format::Messages, model).filter_map(|rule| match rule.check {
        // A summary comes first, in the place of what it sums up.
        Check::First(_) if said.first().is_some_and(CheckedAnthropicMessage::is_summary) => None,
        Check::After(role, known) => after_broken(rule, role, known, &said),
        Check::Content(last) => content_broken(rule, last, &said),
        Check::Marks(most) => {
            let mut marks = CacheMarks::default();
            marks.note(body);
            (marks.count > most).then_some(Broken { rule, at: None })
        }
        Check::LongMarksFirst => long_marks_broken(rule, request, &said),
        Check::CallsAnswered | Check::OutputsAsked | Check::OutputsFirst => pairs_broken(rule, &said),
        Check::ServerOutputsAsked => server_results_broken(rule, &said),
        Check::ReasoningFirst => thinking_first_broken(rule, &said),
        Check::ReasoningBegins => turn_broken(rule, request, &said),
        Check::UniqueIds => ids_broken(rule, &said),
        Check::EndOfText => end_broken(rule, &said),
        Check::OnlyIn(role, kinds) => {
            let is_wrong = |said: &CheckedAnthropicMessage<'_>| {
                said.role != role && said.blocks.iter().any(|block| kinds.contains(&&*block.kind_name))
            };
            said.iter().position(is_wrong).and_then(|message| at(rule, message))
        }
        Check::Text
        | Check::PlainIds
        | Check::Signed
        | Check::Unmarked(_)
        | Check::UnmarkedEmpty
        | Check::ReasoningLast => {
            (0..said.len()).find(|message| is_wrong(rule.check, &said[*message])).and_then(|message| at(rule, message))
        }
        _ => roles_broken(rule, &roles),
    });
    Some(broken.collect())
}

fn said(raw: &RawValue) -> Option<CheckedAnthropicMessage<'_>> {
    let fields = Fields::parse(raw.get()).ok()?;
    let role = fields.text("role")?;
    let sets = role == "system" && fields.get("output_config").is_some_and(|set| !["null", "{}"].contains(&set.get()));
    let Some(content) = fields.get("content").filter(|content| content.get() != "null") else {
        return Some(CheckedAnthropicMessage { role, sets, blocks: Vec::new() });
    };
    let blocks = if content.get().starts_with('"') {
        let is_empty = content.get() == "\"\"";
        let text = CheckedAnthropicBlock {
            kind: AnthropicBlockKind::Text,
            kind_name: "text".into(),
            fields: Fields::default(),
            text: Some(content),
        };
        if is_empty { Vec::new() } else { vec![text] }
    } else {
        let blocks: Vec<Fields<'_>> = serde_json::from_str(content.get()).ok()?;
        blocks.into_iter().map(block).collect::<Option<_>>()?
    };
    Some(CheckedAnthropicMessage { role, sets, blocks })
}

fn block(fields: Fields<'_>) -> Option<CheckedAnthropicBlock<'_>> {
    let kind_name = fields.text("type")?;
    Some(CheckedAnthropicBlock { kind: AnthropicBlockKind::of(&kind_name), kind_name, fields, text: None })
}

/// Whether a JSON string has nothing but white space.
fn is_blank(text: &RawValue) -> bool {
    crate::fields::text_of(text).is_some_and(|text| text.trim().is_empty())
}

/// A short text is looked at; long ones are not blank in practice, and looking costs time.
const LONGEST_BLANK: usize = 64;

fn is_wrong(check: Check, said: &CheckedAnthropicMessage<'_>) -> bool {
    let is_empty = |block: &CheckedAnthropicBlock<'_>| {
        block.text().is_some_and(|text| text.get().len() <= LONGEST_BLANK && is_blank(text))
    };
    let is_marked = |block: &CheckedAnthropicBlock<'_>| block.mark().is_some();
    match check {
        Check::Text => said.blocks.iter().any(is_empty),
        Check::UnmarkedEmpty => said.blocks.iter().any(|block| is_empty(block) && is_marked(block)),
        Check::Unmarked(kinds) => {
            said.blocks.iter().any(|block| kinds.contains(&&*block.kind_name) && is_marked(block))
        }
        Check::Signed => said.blocks.iter().any(|block| match block.kind {
            AnthropicBlockKind::Thinking => block.fields.text("signature").is_none_or(|signature| signature.is_empty()),
            AnthropicBlockKind::RedactedThinking => block.fields.text("data").is_none_or(|data| data.is_empty()),
            _ => false,
        }),
        Check::PlainIds => said.blocks.iter().any(CheckedAnthropicBlock::has_odd_id),
        Check::ReasoningLast => {
            said.role == "assistant" && said.blocks.last().is_some_and(CheckedAnthropicBlock::is_thinking)
        }
        _ => false,
    }
}

/// A system message may also follow a message of the model that ends with a tool of the provider's own.
fn after_broken(
    rule: &'static Rule,
    role: &str,
    known: &[&str],
    said: &[CheckedAnthropicMessage<'_>],
) -> Option<Broken> {
    let follows = |message: usize| {
        let before = message.checked_sub(1).map(|before| &said[before]);
        before.is_some_and(|before| {
            let is_server = |block: &CheckedAnthropicBlock<'_>| {
                matches!(block.kind, AnthropicBlockKind::ServerToolUse | AnthropicBlockKind::ServerToolResult)
            };
            known.contains(&&*before.role)
                || (before.role == "assistant" && before.blocks.last().is_some_and(is_server))
        })
    };
    (0..said.len())
        .find(|message| said[*message].role == role && !follows(*message))
        .and_then(|message| at(rule, message))
}

fn content_broken(rule: &'static Rule, last: &str, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    let is_allowed = |message: usize| (said[message].role == last && message + 1 == said.len()) || said[message].sets;
    let is_wrong = |message: usize| said[message].blocks.is_empty() && !is_allowed(message);
    (0..said.len()).find(|message| is_wrong(*message)).and_then(|message| at(rule, message))
}

/// Messages of one role in a row, which the provider joins, with the first of each. System messages are between turns.
fn joined<'s, 'a>(
    said: &'s [CheckedAnthropicMessage<'a>],
) -> Vec<(usize, &'s str, Vec<&'s CheckedAnthropicBlock<'a>>)> {
    let mut joined: Vec<(usize, &str, Vec<&CheckedAnthropicBlock<'a>>)> = Vec::new();
    for (message, said) in said.iter().enumerate().filter(|(_, said)| said.role != "system") {
        match joined.last_mut() {
            Some((_, role, blocks)) if *role == said.role => blocks.extend(&said.blocks),
            _ => joined.push((message, &said.role, said.blocks.iter().collect())),
        }
    }
    joined
}

fn ids<'b>(blocks: &[&CheckedAnthropicBlock<'b>], kind: AnthropicBlockKind, id: &str) -> Vec<Cow<'b, str>> {
    blocks.iter().filter(|block| block.kind == kind).filter_map(|block| block.fields.text(id)).collect()
}

fn pairs_broken(rule: &'static Rule, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    let joined = joined(said);
    let mut asked: Vec<Cow<'_, str>> = Vec::new();
    let mut asked_at = 0;
    for (message, role, blocks) in &joined {
        let results =
            if *role == "user" { ids(blocks, AnthropicBlockKind::ToolResult, "tool_use_id") } else { Vec::new() };
        match rule.check {
            Check::CallsAnswered if asked.iter().any(|id| !results.contains(id)) => return at(rule, asked_at),
            Check::OutputsAsked if results.iter().any(|id| !asked.contains(id)) => return at(rule, *message),
            // Only where calls are answered: their results begin the message.
            Check::OutputsFirst if *role == "user" => {
                let first = blocks.iter().take_while(|block| block.is_result()).count();
                if first < blocks.iter().filter(|block| block.is_result()).count() {
                    return at(rule, *message);
                }
            }
            _ => {}
        }
        (asked, asked_at) = (ids(blocks, AnthropicBlockKind::ToolUse, "id"), *message);
    }
    let is_open = rule.check == Check::CallsAnswered && !asked.is_empty();
    is_open.then_some(Broken { rule, at: Some(asked_at) })
}

fn thinking_first_broken(rule: &'static Rule, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    let joined = joined(said);
    let (message, _, blocks) = joined.iter().rev().find(|(_, role, _)| *role == "assistant")?;
    let thinks = blocks.iter().any(|block| block.is_thinking());
    (thinks && !blocks[0].is_thinking()).then_some(Broken { rule, at: Some(*message) })
}

/// With a budget, the model thinks at the start of its turn, and a turn goes on through results. What a turn before the
/// newest begins with is not looked at, nor what a model begins with that decides itself when to think.
fn turn_broken(rule: &'static Rule, request: &Request<'_>, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    let thinking = request.field("thinking").and_then(|raw| Fields::parse(raw.get()).ok())?;
    if thinking.text("type")? != "enabled" {
        return None;
    }
    let joined = joined(said);
    let is_asked = |(_, role, blocks): &(usize, &str, Vec<&CheckedAnthropicBlock<'_>>)| {
        *role == "user" && !blocks.iter().any(|block| block.is_result())
    };
    let (message, _, blocks) = joined.get(joined.iter().rposition(is_asked)? + 1)?;
    (!blocks.first().is_some_and(|block| block.is_thinking())).then_some(Broken { rule, at: Some(*message) })
}

/// Both are in one turn of the model.
fn server_results_broken(rule: &'static Rule, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    for (message, _, blocks) in joined(said) {
        let mut asked = HashSet::new();
        for block in blocks {
            match block.kind {
                AnthropicBlockKind::ServerToolUse | AnthropicBlockKind::McpToolUse => {
                    asked.extend(block.fields.text("id"));
                }
                AnthropicBlockKind::ServerToolResult
                    if block.fields.text("tool_use_id").is_some_and(|id| !asked.contains(&id)) =>
                {
                    return at(rule, message);
                }
                _ => {}
            }
        }
    }
    None
}

fn ids_broken(rule: &'static Rule, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    let mut seen = HashSet::new();
    for (message, said) in said.iter().enumerate() {
        let blocks: Vec<&CheckedAnthropicBlock<'_>> = said.blocks.iter().collect();
        if ids(&blocks, AnthropicBlockKind::ToolUse, "id").into_iter().any(|id| !seen.insert(id)) {
            return at(rule, message);
        }
    }
    None
}

fn end_broken(rule: &'static Rule, said: &[CheckedAnthropicMessage<'_>]) -> Option<Broken> {
    let last = said.last().filter(|last| last.role == "assistant")?;
    let text = last.blocks.last().and_then(CheckedAnthropicBlock::text).and_then(crate::fields::text_of)?;
    text.ends_with(char::is_whitespace).then_some(Broken { rule, at: Some(said.len() - 1) })
}

/// The marks of a request in the order of the provider: tools, system, messages. Whether each is for an hour.
fn long_marks_broken(
    rule: &'static Rule,
    request: &Request<'_>,
    said: &[CheckedAnthropicMessage<'_>],
) -> Option<Broken> {
    let is_long = |mark: &RawValue| mark.get().contains("\"1h\"");
    let mut has_short = false;
    for name in ["tools", "system"] {
        let raw = request.field(name).filter(|raw| raw.get().starts_with('['));
        let blocks: Vec<&RawValue> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        for block in blocks {
            let Some(mark) = Fields::parse(block.get()).ok().and_then(|fields| fields.get(MARK)) else { continue };
            if is_long(mark) && has_short {
                return Some(Broken { rule, at: None });
            }
            has_short |= !is_long(mark) && mark.get() != "null";
        }
    }
    for (message, said) in said.iter().enumerate() {
        for mark in said.blocks.iter().filter_map(CheckedAnthropicBlock::mark) {
            if is_long(mark) && has_short {
                return at(rule, message);
            }
            has_short |= !is_long(mark);
        }
    }
    None
}
