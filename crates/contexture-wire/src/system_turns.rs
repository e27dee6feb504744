//! System messages inside a conversation, after messages around them were left out.
//!
//! Anthropic wants such a message to follow a user message, and to be last or followed by the model; two in a row are
//! refused. A fold takes neighbours away, so what stays is joined where it is in a row, and said by the user, as a
//! reminder, where the role is not allowed. Messages between their own neighbours are left alone.
//!
//! Blocks of such a message can make tools available, or take them away. They are accepted in this role only, and without
//! them the model lacks a tool that it has: where their message is not sent, or not in its role, they are sent with the
//! next place where a system message is accepted.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::value::RawValue;

use super::anthropic::{ContentBlocks, MARK};
use super::entry::OutgoingMessage;
use super::error::WireError;
use super::fields::{Fields, quoted, text_of};
use super::read::REMINDER;

const ROLE: &str = "system";

/// The kinds of blocks that change which tools there are.
pub(super) const TOOL_CHANGES: [&str; 2] = ["tool_addition", "tool_removal"];

/// What is said if there is no place for a change of tools.
const NO_PLACE: &str = "a change of tools that is not in a system message";

/// Entries for these messages, of which all system messages are where the provider accepts them.
pub(super) fn placed<'a>(
    entries: Vec<OutgoingMessage<'a>>,
    messages: &[&RawValue],
) -> Result<Vec<OutgoingMessage<'a>>, WireError> {
    let is_system: Vec<bool> = entries.iter().map(|entry| has_role(&entry.json, ROLE)).collect();
    let mut waiting = Waiting::missing(&entries, messages)?;
    if !is_system.contains(&true) && waiting.is_empty() {
        return Ok(entries);
    }
    let later = firsts_after(&entries);
    let mut placed: Vec<OutgoingMessage<'_>> = Vec::with_capacity(entries.len());
    let mut entries = entries.into_iter().enumerate().peekable();
    while let Some((mut at, entry)) = entries.next() {
        if !is_system[at] {
            placed.push(entry);
            waiting.place(&mut placed, entries.peek().map(|(_, entry)| entry), later[at]);
            continue;
        }
        let mut run = vec![entry];
        while let Some((next, entry)) = entries.next_if(|(next, _)| is_system[*next]) {
            run.push(entry);
            at = next;
        }
        let next = entries.peek().map(|(_, entry)| entry);
        if is_between_its_own(placed.last(), &run, next, messages.len()) {
            placed.extend(run);
            continue;
        }
        let from = run[0].from;
        let joined = joined(&run)?;
        if is_allowed(placed.last(), next) {
            let json = with_blocks_before(&joined, waiting.take(from.unwrap_or(usize::MAX)))?;
            placed.push(OutgoingMessage { json: Cow::Owned(json), from });
            continue;
        }
        let (changes, others) = blocks(&joined)?.into_iter().partition::<Vec<_>, _>(|block| changes_tools(block));
        waiting.add(from.unwrap_or(0), changes);
        if !others.is_empty() {
            placed.push(OutgoingMessage { json: Cow::Owned(as_reminder(&joined, &others)?), from });
        }
        waiting.place(&mut placed, next, later[at]);
    }
    if waiting.is_empty() { Ok(placed) } else { Err(WireError::Refused(NO_PLACE)) }
}

/// For each entry, the first message of the request of which something comes after it.
fn firsts_after(entries: &[OutgoingMessage<'_>]) -> Vec<usize> {
    let mut first = usize::MAX;
    let mut firsts: Vec<usize> = entries
        .iter()
        .rev()
        .map(|entry| {
            let after = first;
            first = first.min(entry.from.unwrap_or(usize::MAX));
            after
        })
        .collect();
    firsts.reverse();
    firsts
}

/// Blocks that change tools and wait for a place, each with its message. They stay in the order in which they came, also
/// among what is sent.
struct Waiting(Vec<(usize, String)>);

impl Waiting {
    /// Those of messages of which nothing, or not these blocks, is sent.
    fn missing(entries: &[OutgoingMessage<'_>], messages: &[&RawValue]) -> Result<Self, WireError> {
        let may_change = |message: &RawValue| {
            let has = |kind: &&str| memmem::find(message.get().as_bytes(), kind.as_bytes()).is_some();
            TOOL_CHANGES.iter().any(has) && has_role(message.get(), ROLE)
        };
        let mut waiting = Self(Vec::new());
        for (at, message) in messages.iter().enumerate().filter(|(_, message)| may_change(message)) {
            let mut sent = Vec::new();
            for entry in entries.iter().filter(|entry| entry.from == Some(at)) {
                sent.extend(blocks(&entry.json)?.iter().map(|block| unmarked(block)));
            }
            let changes = blocks(message.get())?.into_iter().filter(|block| changes_tools(block));
            waiting.add(at, changes.map(|block| unmarked(&block)).filter(|block| !sent.contains(block)).collect());
        }
        Ok(waiting)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, message: usize, blocks: Vec<String>) {
        self.0.extend(blocks.into_iter().map(|block| (message, block)));
        self.0.sort_by_key(|(message, _)| *message);
    }

    /// Those of messages before this one, which wait no longer.
    fn take(&mut self, before: usize) -> Vec<String> {
        let end = self.0.partition_point(|(message, _)| *message < before);
        self.0.drain(..end).map(|(_, block)| block).collect()
    }

    /// Sends those of messages before this one, if there is a place for them.
    fn place(&mut self, placed: &mut Vec<OutgoingMessage<'_>>, next: Option<&OutgoingMessage<'_>>, before: usize) {
        let is_one_due = self.0.first().is_some_and(|(message, _)| *message < before);
        if is_one_due && is_allowed(placed.last(), next) {
            placed.push(OutgoingMessage::made(system_message(&self.take(before))));
        }
    }
}

/// Whether the provider accepts a system message between two others.
fn is_allowed(before: Option<&OutgoingMessage<'_>>, next: Option<&OutgoingMessage<'_>>) -> bool {
    before.is_some_and(|before| has_role(&before.json, "user"))
        && next.is_none_or(|next| has_role(&next.json, "assistant"))
}

/// Whether a block makes a tool available or takes it away.
fn changes_tools(block: &str) -> bool {
    let kind = Fields::parse(block).ok().and_then(|fields| fields.text("type"));
    kind.is_some_and(|kind| TOOL_CHANGES.contains(&&*kind))
}

/// A block without its cache mark.
fn unmarked(block: &str) -> String {
    Fields::parse(block).map_or_else(|_| block.to_owned(), |fields| fields.without(MARK))
}

fn system_message(blocks: &[String]) -> String {
    format!("{{\"role\":\"{ROLE}\",\"content\":[{}]}}", blocks.join(","))
}

/// A message with these blocks before its own.
fn with_blocks_before(json: &str, before: Vec<String>) -> Result<String, WireError> {
    if before.is_empty() {
        return Ok(json.to_owned());
    }
    let all = [before, blocks(json)?].concat();
    Ok(Fields::parse(json)?.with("content", &format!("[{}]", all.join(","))))
}

fn has_role(json: &str, role: &str) -> bool {
    // Few messages have the word, and some are long.
    let is_likely = memmem::find(json.as_bytes(), role.as_bytes()).is_some();
    is_likely && Fields::parse(json).ok().and_then(|fields| fields.text("role")).is_some_and(|found| found == role)
}

/// Whether a message is between the messages between which it came.
fn is_between_its_own(
    before: Option<&OutgoingMessage<'_>>,
    run: &[OutgoingMessage<'_>],
    next: Option<&OutgoingMessage<'_>>,
    of: usize,
) -> bool {
    let ([first, ..], [.., last]) = (run, run) else { return true };
    let (Some(from), Some(to)) = (first.from, last.from) else { return false };
    let follows = match before {
        Some(before) => from > 0 && before.from == Some(from - 1),
        None => from == 0,
    };
    let precedes = match next {
        Some(next) => next.from == Some(to + 1),
        None => to + 1 == of,
    };
    follows && precedes && to + 1 - from == run.len()
}

/// Messages in a row as one.
fn joined(run: &[OutgoingMessage<'_>]) -> Result<String, WireError> {
    if let [alone] = run {
        return Ok(alone.json.to_string());
    }
    let mut list = String::from("[");
    for entry in run {
        for block in blocks(&entry.json)? {
            if list.len() > 1 {
                list.push(',');
            }
            list.push_str(&block);
        }
    }
    list.push(']');
    Ok(Fields::parse(&run[0].json)?.with("content", &list))
}

/// The blocks of a message; a text is one.
fn blocks(json: &str) -> Result<Vec<String>, WireError> {
    let fields = Fields::parse(json)?;
    let content: &RawValue = fields.get("content").ok_or(WireError::NoList("content"))?;
    Ok(match ContentBlocks::of(content)? {
        ContentBlocks::Text(text) => vec![format!("{{\"type\":\"text\",\"text\":{}}}", quoted(&text))],
        ContentBlocks::List(blocks) => blocks.iter().map(|block| block.get().to_owned()).collect(),
    })
}

/// A message with these blocks only, said in the role of the user.
fn as_reminder(json: &str, blocks: &[String]) -> Result<String, WireError> {
    let mut list = String::from("[");
    for block in blocks {
        let fields = Fields::parse(block)?;
        if list.len() > 1 {
            list.push(',');
        }
        match fields.get("text").and_then(text_of) {
            Some(text) if !text.trim_start().starts_with(REMINDER[0]) => {
                let text = format!("{}\n{text}\n{}", REMINDER[0], REMINDER[1]);
                let mark = fields.get(MARK).map(|mark| format!(",\"{MARK}\":{}", mark.get())).unwrap_or_default();
                list.push_str(&format!("{{\"type\":\"text\",\"text\":{}{mark}}}", quoted(&text)));
            }
            _ => list.push_str(block),
        }
    }
    list.push(']');
    let user = Fields::parse(json)?.with("role", "\"user\"");
    Ok(Fields::parse(&user)?.with("content", &list))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Format, Plan, Request, rules};

    fn said(role: &str, text: &str) -> Value {
        json!({"role": role, "content": text})
    }

    /// The roles and texts of what is sent for messages of which the plan leaves some out.
    #[track_caller]
    fn check(messages: &[Value], plan: Plan, expected: &[(&str, &str)]) {
        let body = json!({"model": "m", "messages": messages}).to_string();
        let request = Request::parse(Format::Messages, &body).unwrap();
        let sent = request.rewritten(&plan).unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let text = |content: &Value| match content {
            Value::String(text) => text.clone(),
            content => {
                let blocks = content.as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap());
                blocks.collect::<Vec<_>>().join("|")
            }
        };
        let list = sent["messages"].as_array().unwrap();
        let found: Vec<(String, String)> = list
            .iter()
            .map(|message| (message["role"].as_str().unwrap().to_owned(), text(&message["content"])))
            .collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect();
        assert_eq!(found, expected);
        assert!(rules::broken(Format::Messages, &sent.to_string()).is_none(), "{sent}");
    }

    fn keeping(kept: &[usize], made_before: &[usize], of: usize) -> Plan {
        let mut plan = Plan::default();
        for at in kept {
            if made_before.contains(at) {
                plan.push_made("records".into());
            }
            plan.push_kept(*at..*at + 1);
        }
        plan.cover(of);
        plan
    }

    #[test]
    fn a_system_message_is_sent_where_its_role_is_allowed_and_as_a_reminder_elsewhere() {
        let messages = [
            said("user", "a"),
            said("system", "s"),
            said("assistant", "b"),
            said("user", "c"),
            said("system", "t"),
            said("assistant", "d"),
            said("user", "e"),
        ];
        let of = messages.len();
        // The model's message after it is gone.
        check(
            &messages,
            keeping(&[0, 1, 3, 4, 5, 6], &[], of),
            &[
                ("user", "a"),
                ("user", "<system-reminder>\ns\n</system-reminder>"),
                ("user", "c"),
                ("system", "t"),
                ("assistant", "d"),
                ("user", "e"),
            ],
        );
        // Everything between two of them is gone.
        check(
            &messages,
            keeping(&[0, 1, 4, 5, 6], &[], of),
            &[("user", "a"), ("system", "s|t"), ("assistant", "d"), ("user", "e")],
        );
        // The user's message before it is gone.
        check(
            &messages,
            keeping(&[0, 1, 2, 4, 5, 6], &[], of),
            &[
                ("user", "a"),
                ("system", "s"),
                ("assistant", "b"),
                ("user", "<system-reminder>\nt\n</system-reminder>"),
                ("assistant", "d"),
                ("user", "e"),
            ],
        );
        // It is the first, or a text that replaces others comes before or after it.
        check(
            &messages,
            keeping(&[1, 4, 5, 6], &[4], of),
            &[
                ("user", "<system-reminder>\ns\n</system-reminder>"),
                ("user", "records"),
                ("system", "t"),
                ("assistant", "d"),
                ("user", "e"),
            ],
        );
    }

    #[test]
    fn what_changes_tools_is_sent_by_the_system_wherever_its_message_goes() {
        let change = |kind: &str, name: &str| json!({"type": kind, "tool": {"type": "tool_reference", "name": name}, "text": name});
        let changed =
            |text: &str, change: Value| json!({"role": "system", "content": [{"type": "text", "text": text}, change]});
        let messages = [
            said("user", "a"),
            changed("s", change("tool_addition", "search")),
            said("assistant", "b"),
            said("user", "c"),
            said("assistant", "d"),
            said("user", "e"),
            changed("t", change("tool_removal", "search")),
            said("assistant", "f"),
            said("user", "g"),
        ];
        let of = messages.len();
        // In its place it stays as it is.
        check(
            &messages,
            keeping(&[0, 1, 2, 5, 6, 7, 8], &[], of),
            &[
                ("user", "a"),
                ("system", "s|search"),
                ("assistant", "b"),
                ("user", "e"),
                ("system", "t|search"),
                ("assistant", "f"),
                ("user", "g"),
            ],
        );
        // The model's message after it is gone: its text is a reminder, and the change comes with the next place, before
        // that of the message that is gone.
        check(
            &messages,
            keeping(&[0, 1, 3, 4, 8], &[], of),
            &[
                ("user", "a"),
                ("user", "<system-reminder>\ns\n</system-reminder>"),
                ("user", "c"),
                ("system", "search"),
                ("assistant", "d"),
                ("user", "g"),
                ("system", "search"),
            ],
        );
        // Nothing of both messages is sent, or one of them is joined to what is missing.
        check(&messages, keeping(&[8], &[8], of), &[("user", "records"), ("user", "g"), ("system", "search|search")]);
        check(
            &messages,
            keeping(&[0, 6, 7, 8], &[], of),
            &[("user", "a"), ("system", "search|t|search"), ("assistant", "f"), ("user", "g")],
        );
    }

    #[test]
    fn a_message_between_its_own_neighbours_keeps_its_bytes() {
        // The client's own mistake is the client's: the provider is to say so.
        let messages =
            [said("user", "a"), said("assistant", "b"), said("system", "s"), said("user", "c"), said("user", "d")];
        let body = json!({"messages": messages}).to_string();
        let request = Request::parse(Format::Messages, &body).unwrap();
        let mut plan = Plan::default();
        plan.push_made("records".into());
        plan.push_kept(1..5);
        plan.cover(5);
        let sent = request.rewritten(&plan).unwrap();
        assert!(
            sent.contains(r#"{"content":"s","role":"system"}"#) || sent.contains(r#"{"role":"system","content":"s"}"#)
        );
    }
}
