//! What a tool does that no table has: judged by the words of its name, and by its arguments.

use serde_json::Value;

use super::{Does, own_name, text_of, value_of};
use crate::argument_names::names;
use crate::change_words::{CHANGING, PROJECT_CHANGING};
use crate::commands::changes_no_file;
use crate::mentions::looks_like_file;
use crate::path::path_of_address;

/// Words for files and what they consist of. A tool that changes such a thing and names no path may have changed any
/// file; without such a word, it changed something else, such as a list of tasks.
pub const FILE_WORDS: &[&str] = &[
    "buffer",
    "cell",
    "changes",
    "class",
    "code",
    "diff",
    "dir",
    "directory",
    "file",
    "files",
    "folder",
    "function",
    "git",
    "line",
    "lines",
    "method",
    "notebook",
    "patch",
    "suggestion",
    "suggestions",
    "symbol",
    "workspace",
    "worktree",
];

/// Words in the name of a tool that runs code, or another agent, which may change any file.
pub const RUNNING: &[&str] = &[
    "agent", "computer", "delegate", "eval", "exec", "execute", "ipython", "keyboard", "keys", "python", "repl", "run",
    "script", "shell", "spawn", "subagent", "terminal",
];

/// Words in the name of a tool that only reads, unless another word says that it changes something. After any other
/// tool that names a file, that file is in doubt.
pub const READING: &[&str] = &[
    "analyze",
    "blame",
    "browser",
    "cat",
    "check",
    "compare",
    "count",
    "definition",
    "definitions",
    "describe",
    "diagnostics",
    "exists",
    "explain",
    "fetch",
    "find",
    "get",
    "glob",
    "graphql",
    "grep",
    "history",
    "hover",
    "info",
    "inspect",
    "lint",
    "list",
    "log",
    "lookup",
    "ls",
    "metadata",
    "open",
    "outline",
    "overview",
    "peek",
    "preview",
    "query",
    "read",
    "references",
    "screenshot",
    "search",
    "show",
    "size",
    "sql",
    "stat",
    "status",
    "symbols",
    "tree",
    "validate",
    "verify",
    "view",
];

/// Guesses what an unknown tool does.
pub(super) fn guess(name: &str, arguments: &Value) -> Does {
    let has = |names: &[&str]| text_of(arguments, None, names).is_some();
    if let Value::String(text) = arguments {
        return if text.contains("*** Begin Patch") { Does::Patch } else { Does::Unclear };
    }
    let words = words_of(own_name(name));
    let says = |verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    let (has_path, reads) = (has(names().path()), says(READING));
    let is_change = says(CHANGING) || asks_for_change(arguments);
    // A request to merge something is no merge, and a task is no file.
    let is_of_project = (says(PROJECT_CHANGING) || asks_for_change(arguments)) && !says(OTHER_THINGS);
    match () {
        () if names_call(arguments) => Does::Wrap,
        () if has_path && has(names().old()) && has(names().replacement()) => Does::Edit,
        () if has_path && value_of(arguments, None, names().edits()).is_some_and(lists_edits) => Does::Edit,
        () if has_path && has(&["content", "file_text", "contents"]) && only_writes(&words) => Does::Write,
        () if own_name(name) == "git" || has(&["command", "cmd"]) && !has_path => Does::Run,
        () if is_apart_from_files(&words) || asks_to_look(arguments, &words) => Does::Nothing,
        () if is_change && (has_path || says(FILE_WORDS)) => Does::Anything,
        () if is_of_project => Does::Anything,
        () if runs(name) && !runs_checks(&words, arguments) => Does::Anything,
        () if has_path && says(&["read", "view", "cat"]) => Does::Read,
        () if says_not_to_change(arguments) => Does::Nothing,
        () if reads && says(&["search", "grep", "list"]) => Does::Search,
        () if reads => Does::Nothing,
        // Whatever it is for, it may have changed what it names.
        () => Does::Unclear,
    }
}

/// Whether arguments name another tool and what it is given.
fn names_call(arguments: &Value) -> bool {
    let given = value_of(arguments, None, &["parameters", "arguments", "args", "input"]);
    text_of(arguments, None, &["tool", "tool_name"]).is_some() && given.is_some_and(Value::is_object)
}

/// Whether a tool is an action of `git` that changes no file of the work tree, as in `git_add`.
fn is_apart_from_files(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["git", "diff", "staged" | "unstaged"] => true,
        words => words.len() == 2 && changes_no_file(words),
    }
}

/// Names of arguments that say what a tool is to do.
const VERB_NAMES: &[&str] = &["action", "op", "operation", "method"];

/// Whether a tool whose name says nothing is told only to look.
fn asks_to_look(arguments: &Value, words: &[String]) -> bool {
    let says = |words: &[String], verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    let changes = |words: &[String]| says(words, CHANGING) || says(words, PROJECT_CHANGING) || says(words, RUNNING);
    let verb = text_of(arguments, None, VERB_NAMES).map(words_of).unwrap_or_default();
    says(&verb, READING) && !changes(&verb) && !changes(words) && !asks_for_change(arguments)
}

/// What is run to find out whether something is right.
const CHECKS: &[&str] = &["bench", "benchmarks", "build", "lint", "test", "tests", "typecheck"];

/// Whether a tool runs the tests of a project, or what else is presumed to leave files alone, and no code that it is given.
fn runs_checks(words: &[String], arguments: &Value) -> bool {
    let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let runs_only = words.iter().filter(|word| is(word, RUNNING)).all(|word| is(word, &["run", "execute"]));
    let has_code = ["code", "script", "command", "cmd", "input"].iter().any(|name| arguments.get(*name).is_some());
    runs_only && !has_code && words.iter().any(|word| is(word, CHECKS)) && !words.iter().any(|word| is(word, CHANGING))
}

/// Words for things that are no files of a project, so that a change of one changes no file.
pub const OTHER_THINGS: &[&str] = &[
    "branch", "browser", "calendar", "channel", "comment", "comments", "issue", "issues", "label", "mail", "memory",
    "message", "note", "page", "plan", "pr", "request", "requests", "review", "task", "tasks", "team", "thread",
    "ticket", "todo", "todos",
];

/// Arguments that ask for a change if they are true, or are given as an option such as `--auto-fix`.
pub const CHANGE_NAMES: &[&str] =
    &["apply", "autofix", "auto_fix", "fix", "in_place", "inplace", "overwrite", "save", "update_snapshots", "write"];

fn asks_for_change(arguments: &Value) -> bool {
    value_of(arguments, None, &["dry_run", "dryRun"]).and_then(Value::as_bool) != Some(true)
        && (is_told_to(arguments) || has_option(arguments))
}

/// Whether an argument says in so many words that what is found is not to be changed.
fn says_not_to_change(arguments: &Value) -> bool {
    let is_no = |name: &&str| arguments.get(*name).and_then(Value::as_bool) == Some(false);
    ["fix", "autofix", "auto_fix"].iter().any(is_no)
}

/// Whether an argument, or one within another, asks for a change.
fn is_told_to(arguments: &Value) -> bool {
    arguments.as_object().is_some_and(|fields| {
        fields.iter().any(|(name, value)| {
            is_told_to(value) || (CHANGE_NAMES.contains(&name.as_str()) && value.as_bool() == Some(true))
        })
    })
}

/// Whether a list of arguments, as a program gets them, has an option that asks for a change.
fn has_option(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            text.strip_prefix("--").is_some_and(|name| CHANGE_NAMES.contains(&&*name.replace('-', "_")))
        }
        Value::Array(list) => list.iter().any(has_option),
        Value::Object(fields) => fields.iter().any(|(name, value)| match value {
            Value::String(words) if names().word().contains(&name.as_str()) => {
                words.split_whitespace().any(|word| has_option(&Value::from(word)))
            }
            value => value.is_array() && has_option(value),
        }),
        _ => false,
    }
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
    let is_named = names().path().contains(&name) || LIST_NAMES.contains(&name);
    // These may be texts as well.
    let is_end = names().from().contains(&name) || names().to().contains(&name);
    match value {
        Value::String(text) => {
            let addressed = text.strip_prefix("file:").and_then(path_of_address);
            let is_addressed = addressed.is_some();
            let text = addressed.as_deref().unwrap_or(text);
            let text = text.strip_prefix("@/").unwrap_or(text);
            let is_word = !text.is_empty() && !text.contains(['\n', ' ']) && !text.contains("://");
            let is_path = text.starts_with('/') || text.starts_with("./") || looks_like_file(text);
            if (is_named && !text.contains('\n'))
                || (is_word && is_path)
                || is_addressed
                || (is_end && text.contains('/'))
            {
                paths.push(text.to_owned());
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect_paths(value, name, paths)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect_paths(value, name, paths)),
        _ => {}
    }
}

/// Arguments that hold several paths.
const LIST_NAMES: &[&str] =
    &["paths", "files", "file_paths", "filePaths", "uris", "directory", "dir", "folder", "root"];

/// Whether a tool runs code, by its name.
pub(super) fn runs(name: &str) -> bool {
    let words = words_of(own_name(name));
    let says = |verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    says(RUNNING) && !says(READING)
}

/// Whether a tool makes or replaces a file as a whole, by its name.
fn only_writes(words: &[String]) -> bool {
    const WHOLE: [&str; 5] = ["write", "create", "save", "put", "overwrite"];
    let changing: Vec<&str> = words.iter().map(String::as_str).filter(|word| CHANGING.contains(word)).collect();
    !changing.is_empty() && changing.iter().all(|word| WHOLE.contains(word))
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
