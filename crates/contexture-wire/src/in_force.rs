//! What parts of a request set for everything after them: tools, effort, instructions, caching, a summary.
//!
//! The settings are rows of [one table](SETTINGS), each with the day on which it was read and where. Whoever rewrites a
//! conversation keeps the newest of each, at a place where the provider takes it: [`set_by`] says what an item sets.
//! Fields of requests go out as they came, and fields of messages in the place of their message or the next one.
//!
//! ```
//! use contexture_core::item::Item;
//! use contexture_wire::in_force::set_by;
//!
//! let item = Item::Opaque(serde_json::json!({"type": "mcp_list_tools", "server_label": "docs", "tools": []}));
//! assert_eq!(set_by(&item), [Box::from("mcp_list_tools docs")]);
//! assert!(set_by(&Item::user("hello")).is_empty());
//! ```

use contexture_core::item::{Content, Item, Role};
use memchr::memmem;
use serde_json::Value;

use super::format::Format;
use super::format::Format::{Chat, Gemini, Messages, Responses};

/// Something that a part of a request sets.
#[derive(Debug)]
pub struct Setting {
    /// The format that it is about.
    pub format: Format,
    /// Where it is.
    pub place: StatePlace,
    /// What it sets.
    pub sets: &'static str,
    /// Until when.
    pub until: &'static str,
    /// The day on which it was read, as `YYYY-MM-DD`.
    pub read: &'static str,
    /// Where it was read.
    pub source: &'static str,
}

/// Where a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// A field of the request, which no fold touches.
    Request(&'static str),
    /// A field of messages of role `system`. It stays wherever its message goes.
    SystemField(&'static str),
    /// A block of messages of role `system`, of which all stay, wherever their messages go.
    SystemBlock(&'static str),
    /// A message of role `system` or `developer`, inside the conversation.
    Instructions,
    /// A block or an item of a kind, with the ways to the names of what it sets, if it names any.
    Block(&'static str, &'static [&'static [&'static str]]),
    /// A thought.
    Thought,
}

const ANTHROPIC: &str = "anthropic 2.10.0 (PyPI), types/beta";
const OPENAI: &str = "openai 3.51.0 (PyPI), types";
const GOOGLE: &str = "google-genai 3.3.0 (PyPI), types";

/// The day on which the rows were read.
const READ: &str = "2026-11-19";

const fn setting(format: Format, place: StatePlace, sets: &'static str, until: &'static str) -> Setting {
    let source = match format {
        Messages => ANTHROPIC,
        Chat | Responses => OPENAI,
        Gemini => GOOGLE,
    };
    Setting { format, place, sets, until, read: READ, source }
}

/// The field that says when the text of a message leaves.
pub(super) const CLEAR_AT: &str = "clear_at";

/// The kinds of blocks that change which tools there are.
pub(super) const TOOL_CHANGES: [&str; 2] = ["tool_addition", "tool_removal"];

/// The name of an element of a list, whichever it is.
const EACH: &str = "*";

/// All settings.
pub const SETTINGS: &[Setting] = &[
    setting(Messages, StatePlace::Block("tool_reference", &[&["tool_name"]]), "a deferred tool is loaded", "the end"),
    setting(
        Messages,
        StatePlace::Block("tool_search_tool_result", &[&["content", "tool_references", EACH, "tool_name"]]),
        "deferred tools are loaded",
        "the end",
    ),
    setting(
        Messages,
        StatePlace::Block("mcp_tool_listing", &[&["mcp_server_name"]]),
        "tools of a server",
        "the next list of that server",
    ),
    setting(Messages, StatePlace::SystemBlock(TOOL_CHANGES[0]), "a tool is there", "its removal"),
    setting(Messages, StatePlace::SystemBlock(TOOL_CHANGES[1]), "a tool is not there", "its addition"),
    setting(Messages, StatePlace::Block("compaction", &[]), "a summary in place of all before it", "the next summary"),
    setting(Messages, StatePlace::Block("container_upload", &[&["file_id"]]), "a file is in the container", "the end"),
    setting(
        Messages,
        StatePlace::SystemField("output_config"),
        "effort and task budget",
        "a later message with the field",
    ),
    setting(Messages, StatePlace::SystemField(CLEAR_AT), "when the text leaves", "the next user message"),
    setting(Messages, StatePlace::Instructions, "instructions", "later ones"),
    setting(Messages, StatePlace::Thought, "the reasoning of the current turn", "the next user message"),
    setting(Messages, StatePlace::Request("context_management"), "what the provider clears", "the next request"),
    setting(Messages, StatePlace::Request("compaction"), "the response is a summary", "the next request"),
    setting(Messages, StatePlace::Request("thread"), "the provider keeps the history", "a request without it"),
    setting(Messages, StatePlace::Request("cache_control"), "a cache mark at the end", "the next request"),
    setting(Messages, StatePlace::Request("output_config"), "effort, format and task budget", "the next request"),
    setting(Messages, StatePlace::Request("fallback_credit_token"), "the price of the same body", "five minutes later"),
    setting(
        Responses,
        StatePlace::Block("additional_tools", &[&["tools", EACH, "name"], &["tools", EACH, "server_label"]]),
        "more tools",
        "the end",
    ),
    setting(
        Responses,
        StatePlace::Block("tool_search_output", &[&["tools", EACH, "name"], &["tools", EACH, "server_label"]]),
        "deferred tools are loaded",
        "the end",
    ),
    setting(Responses, StatePlace::Block("mcp_list_tools", &[&["server_label"]]), "tools of a server", "its next list"),
    setting(Responses, StatePlace::Block("configuration_update", &[]), "effort and other settings", "the next update"),
    setting(Responses, StatePlace::Block("compaction_summary", &[]), "a summary of all before it", "the next summary"),
    setting(Responses, StatePlace::Instructions, "instructions", "later ones"),
    setting(Responses, StatePlace::Thought, "the reasoning of the current turn", "the next user message"),
    setting(Responses, StatePlace::Request("prompt_cache_options"), "what is cached, and how long", "the next request"),
    setting(Responses, StatePlace::Request("context_management"), "what the provider compacts", "the next request"),
    setting(
        Responses,
        StatePlace::Request("previous_response_id"),
        "the provider keeps the history",
        "the next request",
    ),
    setting(Responses, StatePlace::Request("conversation"), "the provider keeps the history", "the next request"),
    setting(Chat, StatePlace::Instructions, "instructions", "later ones"),
    setting(Chat, StatePlace::Request("prompt_cache_options"), "what is cached, and how long", "the next request"),
    setting(Gemini, StatePlace::Thought, "the reasoning of the current turn", "the next user message"),
    setting(Gemini, StatePlace::Request("cachedContent"), "content that the provider keeps", "the next request"),
];

/// What an item sets, by names: of each name the newest item is in force. Empty for most.
pub fn set_by(item: &Item) -> Vec<Box<str>> {
    let mut sets = Vec::new();
    match item {
        Item::Opaque(value) => add_names(value, &mut sets),
        Item::Message(message) => {
            let is_instruction =
                matches!(message.role, Role::System | Role::Developer) && message.meta.origin.is_said();
            for content in &message.content {
                match content {
                    Content::Text { .. } if is_instruction => sets.push("instructions".into()),
                    Content::Text { .. } => {}
                    Content::Opaque(value) => add_names(value, &mut sets),
                }
            }
        }
        Item::FunctionCallOutput(output) => {
            let contents = output.extra.get("content").and_then(Value::as_array);
            contents.into_iter().flatten().for_each(|value| add_names(value, &mut sets));
        }
        Item::FunctionCall(_) | Item::Reasoning(_) => {}
    }
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// Whether a message may have a block that sets something, without reading it.
pub fn sets_something(message: &str) -> bool {
    let has = |kind: &str| memmem::find(message.as_bytes(), format!("\"{kind}\"").as_bytes()).is_some();
    SETTINGS.iter().any(|setting| matches!(setting.place, StatePlace::Block(kind, _) if has(kind)))
}

/// The kinds of what an item has that is sent without being understood. Empty for most.
pub fn unread_kinds(item: &Item) -> Vec<Box<str>> {
    let kind = |value: &Value| value["type"].as_str().map(Box::from);
    match item {
        Item::Opaque(value) => kind(value).into_iter().collect(),
        Item::Message(message) => {
            let others = message.content.iter().filter_map(|content| match content {
                Content::Opaque(value) => kind(value),
                Content::Text { .. } => None,
            });
            others.collect()
        }
        Item::FunctionCallOutput(output) => {
            let contents = output.extra.get("content").and_then(Value::as_array);
            contents.into_iter().flatten().filter_map(kind).collect()
        }
        Item::FunctionCall(_) | Item::Reasoning(_) => Vec::new(),
    }
}

/// Adds what a block or an item sets.
fn add_names(value: &Value, sets: &mut Vec<Box<str>>) {
    let Some(kind) = value["type"].as_str() else { return };
    let Some(ways) = SETTINGS.iter().find_map(|setting| match setting.place {
        StatePlace::Block(own, ways) if own == kind => Some(ways),
        _ => None,
    }) else {
        return;
    };
    let before = sets.len();
    for way in ways {
        names(value, way, &mut |name| sets.push(format!("{kind} {name}").into()));
    }
    if sets.len() == before {
        sets.push(kind.into());
    }
}

/// Calls a function with each text to which a way leads.
fn names(value: &Value, way: &[&str], found: &mut dyn FnMut(&str)) {
    match way {
        [] => value.as_str().into_iter().for_each(found),
        [EACH, rest @ ..] => value.as_array().into_iter().flatten().for_each(|value| names(value, rest, found)),
        [name, rest @ ..] => names(&value[*name], rest, found),
    }
}

#[cfg(test)]
mod tests {
    use contexture_core::item::{FunctionCallOutput, Message, Outcome};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(item: impl Into<Item>, expected: &[&str]) {
        let expected: Vec<Box<str>> = expected.iter().map(|name| Box::from(*name)).collect();
        assert_eq!(set_by(&item.into()), expected);
    }

    #[test]
    fn what_items_set_is_found_by_its_names() {
        let reference = |name: &str| json!({"type": "tool_reference", "tool_name": name});
        let mut output = FunctionCallOutput::new("1", "", Outcome::Done);
        output.extra.insert("content", vec![reference("b"), reference("a")]);
        check(output, &["tool_reference a", "tool_reference b"]);
        let found = json!({"type": "tool_search_tool_result", "tool_use_id": "s", "content": {
            "type": "tool_search_tool_search_result", "tool_references": [reference("a")]}});
        check(Item::Opaque(found), &["tool_search_tool_result a"]);
        let more = json!({"type": "additional_tools", "role": "developer", "tools": [
            {"type": "function", "name": "x"}, {"type": "mcp", "server_label": "docs"}]});
        let more = Message::new(Role::Developer, vec![Content::Opaque(more)]);
        check(more, &["additional_tools docs", "additional_tools x"]);
        check(Item::Opaque(json!({"type": "compaction", "encrypted_content": "…"})), &["compaction"]);
        check(Item::message(Role::System, "Be brief."), &["instructions"]);
        check(Item::Opaque(json!({"type": "web_search_call", "id": "ws"})), &[]);
        check(Item::user("tool_reference"), &[]);
    }

    #[test]
    fn a_setting_is_there_once_for_each_place() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            let is_same = |other: &&Setting| (other.format, other.place) == (setting.format, setting.place);
            assert_eq!(SETTINGS.iter().filter(is_same).count(), 1, "{at}: {setting:?}");
        }
    }
}
