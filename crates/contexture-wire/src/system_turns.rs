//! System messages inside a conversation, after messages around them were left out.
//!
//! Anthropic wants such a message to follow a user message, and to be last or followed by the model; two in a row are
//! refused. A fold takes neighbours away, so what stays is joined where it is in a row, and said by the user, as a
//! reminder, where the role is not allowed. Messages between their own neighbours are left alone.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::value::RawValue;

use super::anthropic::{Blocks, MARK};
use super::entry::Entry;
use super::error::WireError;
use super::fields::{Fields, quoted, text_of};
use super::read::REMINDER;

const ROLE: &str = "system";

/// Messages of which all system messages are where the provider accepts them, for a request with `of` messages.
pub(super) fn placed(entries: Vec<Entry<'_>>, of: usize) -> Result<Vec<Entry<'_>>, WireError> {
    let is_system: Vec<bool> = entries.iter().map(|entry| has_role(&entry.json, ROLE)).collect();
    if !is_system.contains(&true) {
        return Ok(entries);
    }
    let mut placed: Vec<Entry<'_>> = Vec::with_capacity(entries.len());
    let mut entries = entries.into_iter().enumerate().peekable();
    while let Some((at, entry)) = entries.next() {
        if !is_system[at] {
            placed.push(entry);
            continue;
        }
        let mut run = vec![entry];
        while let Some((_, entry)) = entries.next_if(|(at, _)| is_system[*at]) {
            run.push(entry);
        }
        let next = entries.peek().map(|(_, entry)| entry);
        if is_between_its_own(placed.last(), &run, next, of) {
            placed.extend(run);
            continue;
        }
        let from = run[0].from;
        let follows = placed.last().is_some_and(|before| has_role(&before.json, "user"));
        let precedes = next.is_none_or(|next| has_role(&next.json, "assistant"));
        let joined = joined(&run)?;
        let json = if follows && precedes { joined } else { as_reminder(&joined)? };
        placed.push(Entry { json: Cow::Owned(json), from });
    }
    Ok(placed)
}

fn has_role(json: &str, role: &str) -> bool {
    // Few messages have the word, and some are long.
    let is_likely = memmem::find(json.as_bytes(), role.as_bytes()).is_some();
    is_likely && Fields::parse(json).ok().and_then(|fields| fields.text("role")).is_some_and(|found| found == role)
}

/// Whether a message is between the messages between which it came.
fn is_between_its_own(before: Option<&Entry<'_>>, run: &[Entry<'_>], next: Option<&Entry<'_>>, of: usize) -> bool {
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
fn joined(run: &[Entry<'_>]) -> Result<String, WireError> {
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
    Ok(match Blocks::of(content)? {
        Blocks::Text(text) => vec![format!("{{\"type\":\"text\",\"text\":{}}}", quoted(&text))],
        Blocks::List(blocks) => blocks.iter().map(|block| block.get().to_owned()).collect(),
    })
}

/// The same, said in the role of the user.
fn as_reminder(json: &str) -> Result<String, WireError> {
    let mut list = String::from("[");
    for block in blocks(json)? {
        let fields = Fields::parse(&block)?;
        if list.len() > 1 {
            list.push(',');
        }
        match fields.get("text").and_then(text_of) {
            Some(text) if !text.trim_start().starts_with(REMINDER[0]) => {
                let text = format!("{}\n{text}\n{}", REMINDER[0], REMINDER[1]);
                let mark = fields.get(MARK).map(|mark| format!(",\"{MARK}\":{}", mark.get())).unwrap_or_default();
                list.push_str(&format!("{{\"type\":\"text\",\"text\":{}{mark}}}", quoted(&text)));
            }
            _ => list.push_str(&block),
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
