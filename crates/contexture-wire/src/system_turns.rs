//! System messages inside a conversation, after messages around them were left out.
//!
//! Anthropic wants such a message to follow a user message, and to be last or followed by the model; two in a row are
//! refused. A fold takes neighbours away, so what stays is joined where it is in a row, and said by the user, as a
//! reminder, where the role is not allowed. Messages between their own neighbours are left alone.
//!
//! Blocks of such a message can make tools available, or take them away, and its fields can set the effort. They are
//! accepted in this role only, and without them the model lacks what it has: where their message is not sent, or not in
//! its role, they are sent with the next place where a system message is accepted. A text that leaves at the next user
//! message leaves here too once it has come, unless its message is where it was.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::value::RawValue;

use super::anthropic::{ContentBlocks, MARK};
use super::entry::OutgoingMessage;
use super::error::WireError;
use super::fields::{Fields, quoted, text_of};
use super::in_force::{CLEAR_AT, TOOL_CHANGES};
use super::read::REMINDER;

const ROLE: &str = "system";

/// What is said if there is no place for what a system message sets.
const NO_PLACE: &str = "what only a system message can set, elsewhere";

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
    let newest_of_user = messages.iter().rposition(|message| has_role(message.get(), "user"));
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
        let joined = SystemMessage::joined(&run, newest_of_user)?;
        if is_allowed(placed.last(), next) {
            let json = waiting.take(from.unwrap_or(usize::MAX)).and(joined).json();
            placed.extend(json.map(|json| OutgoingMessage { json: Cow::Owned(json), from }));
            continue;
        }
        let (kept, said) = joined.parted();
        waiting.add(from.unwrap_or(0), kept);
        if !said.is_empty() {
            placed.push(OutgoingMessage { json: Cow::Owned(as_reminder(&said)?), from });
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

/// What a system message has beside its role.
#[derive(Default)]
struct SystemMessage {
    blocks: Vec<String>,
    /// Its other fields, as they were written.
    fields: Vec<(String, String)>,
}

impl SystemMessage {
    fn read(json: &str) -> Result<Self, WireError> {
        let fields = Fields::parse(json)?;
        let others = fields.iter().filter(|(name, value)| !["role", "content"].contains(name) && *value != "null");
        let fields = others.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { blocks: blocks(json)?, fields })
    }

    /// Messages in a row as one, without texts that have left by the user message at a position.
    fn joined(run: &[OutgoingMessage<'_>], newest_of_user: Option<usize>) -> Result<Self, WireError> {
        let mut all = Self::default();
        for entry in run {
            let mut own = Self::read(&entry.json)?;
            if own.clears() && entry.from < newest_of_user {
                own.blocks.retain(|block| changes_tools(block));
                own.fields.retain(|(name, _)| name != CLEAR_AT);
            }
            all = all.and(own);
        }
        Ok(all)
    }

    /// Whether its text leaves with the next user message.
    fn clears(&self) -> bool {
        self.fields.iter().any(|(name, value)| name == CLEAR_AT && value != "\"never\"")
    }

    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.fields.is_empty()
    }

    /// This one and a later one as one. Of a field that both have, the later one counts; a text that stays makes others
    /// stay.
    fn and(mut self, later: Self) -> Self {
        if self.is_empty() {
            return later;
        }
        let has_text = |message: &Self| message.blocks.iter().any(|block| !changes_tools(block));
        let clears = [&self, &later].into_iter().all(|message| message.clears() || !has_text(message));
        self.blocks.extend(later.blocks);
        for (name, value) in later.fields {
            match self.fields.iter_mut().find(|(own, _)| *own == name) {
                Some((_, own)) => *own = value,
                None => self.fields.push((name, value)),
            }
        }
        self.fields.retain(|(name, _)| clears || name != CLEAR_AT);
        self
    }

    /// What no other role can have, and the blocks that a user can say.
    fn parted(self) -> (Self, Vec<String>) {
        if self.clears() {
            return (self, Vec::new());
        }
        let (blocks, said) = self.blocks.into_iter().partition(|block| changes_tools(block));
        let fields = self.fields.into_iter().filter(|(name, _)| name != CLEAR_AT).collect();
        (Self { blocks, fields }, said)
    }

    /// Its JSON; `None` if there is nothing in it.
    fn json(&self) -> Option<String> {
        let fields: String = self.fields.iter().map(|(name, value)| format!(",{}:{value}", quoted(name))).collect();
        let blocks = self.blocks.join(",");
        (!self.is_empty()).then(|| format!("{{\"role\":\"{ROLE}\",\"content\":[{blocks}]{fields}}}"))
    }
}

/// What only system messages can have, and waits for a place: each with its message. It stays in the order in which it
/// came, also among what is sent.
struct Waiting(Vec<(usize, SystemMessage)>);

impl Waiting {
    /// What is missing of messages of which nothing, or not all of that, is sent.
    fn missing(entries: &[OutgoingMessage<'_>], messages: &[&RawValue]) -> Result<Self, WireError> {
        let mut waiting = Self(Vec::new());
        for (at, message) in messages.iter().enumerate().filter(|(_, message)| has_role(message.get(), ROLE)) {
            let (mut missing, _) = SystemMessage::read(message.get())?.parted();
            // What has left stays away, and what has not is at the end of the request.
            missing.blocks.retain(|block| changes_tools(block));
            missing.fields.retain(|(name, _)| name != CLEAR_AT);
            missing.blocks.iter_mut().for_each(|block| *block = unmarked(block));
            for entry in entries.iter().filter(|entry| entry.from == Some(at)) {
                let sent: Vec<String> = blocks(&entry.json)?.iter().map(|block| unmarked(block)).collect();
                missing.blocks.retain(|block| !sent.contains(block));
                missing.fields.clear();
            }
            waiting.add(at, missing);
        }
        Ok(waiting)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, message: usize, missing: SystemMessage) {
        if !missing.is_empty() {
            self.0.push((message, missing));
            self.0.sort_by_key(|(message, _)| *message);
        }
    }

    /// What waits of messages before this one, as one. It waits no longer.
    fn take(&mut self, before: usize) -> SystemMessage {
        let end = self.0.partition_point(|(message, _)| *message < before);
        self.0.drain(..end).fold(SystemMessage::default(), |all, (_, one)| all.and(one))
    }

    /// Sends what waits of messages before this one, if there is a place for it.
    fn place(&mut self, placed: &mut Vec<OutgoingMessage<'_>>, next: Option<&OutgoingMessage<'_>>, before: usize) {
        if is_allowed(placed.last(), next) {
            placed.extend(self.take(before).json().map(OutgoingMessage::made));
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

/// The blocks of a message; a text is one.
fn blocks(json: &str) -> Result<Vec<String>, WireError> {
    let fields = Fields::parse(json)?;
    let Some(content) = fields.get("content").filter(|content| content.get() != "null") else { return Ok(Vec::new()) };
    Ok(match ContentBlocks::of(content)? {
        ContentBlocks::Text(text) => vec![format!("{{\"type\":\"text\",\"text\":{}}}", quoted(&text))],
        ContentBlocks::List(blocks) => blocks.iter().map(|block| block.get().to_owned()).collect(),
    })
}

/// Blocks of a system message, said in the role of the user.
fn as_reminder(blocks: &[String]) -> Result<String, WireError> {
    let mut list = String::new();
    for block in blocks {
        let fields = Fields::parse(block)?;
        if !list.is_empty() {
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
    Ok(format!("{{\"role\":\"user\",\"content\":[{list}]}}"))
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
