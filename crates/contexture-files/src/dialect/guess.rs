//! What a tool does that no table has: judged by its name and its arguments. One that does not read could write any file.

use serde_json::Value;

use super::{Does, own_name, text_of, value_of};
use crate::argument_names::names;
use crate::mentions::looks_like_file;
use crate::path::path_of_address;

/// How the names of tools begin that only read.
const READING: [&str; 17] = [
    "cat", "count", "describe", "fetch", "find", "get", "glob", "grep", "inspect", "list", "lookup", "ls", "query",
    "read", "search", "show", "view",
];

/// Words in the name of a tool that changes something, whatever it begins with.
const CHANGING: [&str; 15] = [
    "and", "apply", "append", "create", "delete", "edit", "fix", "insert", "or", "patch", "remove", "replace", "run",
    "update", "write",
];

/// Words in the name of a tool that makes or replaces a file as a whole.
const WRITING: [&str; 5] = ["write", "create", "save", "put", "overwrite"];

/// Guesses what an unknown tool does.
pub(super) fn guess(name: &str, arguments: &Value) -> Does {
    let has = |names: &[&str]| text_of(arguments, None, names).is_some();
    if let Value::String(text) = arguments {
        return if text.contains("*** Begin Patch") { Does::Patch } else { Does::Anything };
    }
    let words = words_of(own_name(name));
    let says = |verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    let begins = |verbs: &[&str]| words.first().is_some_and(|word| verbs.contains(&word.as_str()));
    let has_path = has(names().path());
    let writes_whole =
        says(&WRITING) && !words.iter().any(|word| CHANGING[..].contains(&&**word) && !WRITING.contains(&&**word));
    match () {
        () if names_call(arguments) => Does::Wrap,
        () if has_path && has(names().old()) && has(names().replacement()) => Does::Edit,
        () if has_path && value_of(arguments, None, names().edits()).is_some_and(lists_edits) => Does::Edit,
        () if has_path && has(&["content", "file_text", "contents"]) && writes_whole => Does::Write,
        () if own_name(name) == "git" || has(&["command", "cmd"]) && !has_path => Does::Run,
        () if !begins(&READING) || says(&CHANGING) => Does::Anything,
        () if has_path && begins(&["read", "view", "cat"]) => Does::Read,
        () if begins(&["search", "grep", "list"]) => Does::Search,
        () => Does::Nothing,
    }
}

/// Whether arguments name another tool and what it is given.
fn names_call(arguments: &Value) -> bool {
    let given = value_of(arguments, None, &["parameters", "arguments", "args", "input"]);
    text_of(arguments, None, &["tool", "tool_name"]).is_some() && given.is_some_and(Value::is_object)
}

/// Most names of files that are looked for in arguments.
const MAX_PATHS: usize = 64;

/// The files and directories that arguments name, wherever they are.
pub(super) fn paths_in(arguments: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    collect_paths(arguments, "", &mut paths);
    paths.truncate(MAX_PATHS);
    paths
}

fn collect_paths(value: &Value, name: &str, paths: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let addressed = text.strip_prefix("file:").and_then(path_of_address);
            let text = addressed.as_deref().unwrap_or(text);
            let text = text.strip_prefix("@/").unwrap_or(text);
            let is_word = !text.is_empty() && !text.contains(['\n', ' ']) && !text.contains("://");
            let is_path = text.starts_with('/') || text.starts_with("./") || looks_like_file(text);
            if names().path().contains(&name) && !text.contains('\n') || (is_word && is_path) {
                paths.push(text.to_owned());
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect_paths(value, name, paths)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect_paths(value, name, paths)),
        _ => {}
    }
}

/// Whether a value is an edit or a list of edits.
fn lists_edits(value: &Value) -> bool {
    let one = value.as_array().map_or(Some(value), |list| list.first());
    one.is_some_and(|one| {
        text_of(one, None, names().old()).is_some() && text_of(one, None, names().replacement()).is_some()
    })
}

/// The words of a name such as `replace_symbol_body` or `replaceSymbolBody`, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("there is always one").extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
