//! Which tool does what to which file: a table for every agent we know, and for those we do not.

use std::collections::HashMap;

use contexture_core::item::{FunctionCall, FunctionCallOutput};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::numbering::{MAX_LINE_NUMBER, Passage, line_number, numbered_from};
use super::observation::{Kind, Observation, Seen};
use super::patch::{FilePatch, parse_begin_patch, parse_search_replace, parse_unified};
use super::printed::{observe_mentions, observe_shell, strip_harness};

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Shows a file.
    Read,
    /// Makes or replaces a file.
    Write,
    /// Adds text to a file's end.
    Append,
    /// Replaces pieces of text.
    Edit,
    /// Puts lines in after a line.
    Insert,
    /// Applies a patch in the `*** Begin Patch` form, a unified diff, or search-and-replace blocks.
    Patch,
    /// Does what its argument `command` says: `view`, `create`, `str_replace`, `insert`.
    Editor,
    /// Searches file contents or names.
    Search,
    /// Runs a command line.
    Run,
    /// Removes a file.
    Delete,
    /// Renames a file.
    Move,
    /// Has nothing to do with files.
    Nothing,
}

/// One tool of a dialect. Four lines in a configuration file:
///
/// ```toml
/// [[tool]]
/// name = "peek"
/// does = "read"
/// path = "where"
/// ```
///
/// Arguments that are not named are looked for under the names that agents commonly use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// The tool's name.
    pub name: String,
    /// What it does.
    pub does: Does,
    /// The argument that holds the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The argument that holds a file's text, or a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The argument that holds the piece to be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The argument that holds what replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The argument that holds the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl ToolEntry {
    /// A tool whose arguments have common names.
    pub fn new(name: &str, does: Does) -> Self {
        Self { name: name.to_owned(), does, path: None, content: None, old: None, new: None, command: None }
    }
}

/// The built-in table: what it does, and the names that tools have which do it, by agent.
///
/// Names that mean the same in all agents that use them stand together; where two agents would disagree, the
/// arguments decide (see [`Dialects::does`]).
const TABLE: &[(Does, &[&str])] = &[
    // Claude Code
    (Does::Read, &["Read", "NotebookRead"]),
    (Does::Edit, &["Edit", "MultiEdit", "NotebookEdit"]),
    (Does::Write, &["Write"]),
    (Does::Search, &["Grep", "Glob", "LS"]),
    (Does::Run, &["Bash"]),
    (Does::Nothing, &["Task", "Agent", "TodoWrite", "WebFetch", "WebSearch", "BashOutput", "KillShell", "Skill"]),
    // Codex
    (Does::Patch, &["apply_patch"]),
    (Does::Run, &["shell", "exec_command", "local_shell", "shell_command", "container.exec"]),
    (Does::Nothing, &["update_plan", "write_stdin", "view_image"]),
    (Does::Search, &["grep_files", "list_dir"]),
    // OpenCode
    (Does::Read, &["read"]),
    (Does::Edit, &["edit", "multiedit"]),
    (Does::Write, &["write"]),
    (Does::Patch, &["patch"]),
    (Does::Search, &["grep", "glob", "list", "codesearch"]),
    (Does::Run, &["bash"]),
    (Does::Nothing, &["todowrite", "todoread", "webfetch", "websearch", "task", "skill"]),
    // Gemini CLI
    (Does::Read, &["read_file", "read_many_files"]),
    (Does::Edit, &["replace"]),
    (Does::Write, &["write_file"]),
    (Does::Search, &["search_file_content", "list_directory", "grep_search"]),
    (Does::Run, &["run_shell_command"]),
    // Cline and Roo
    (Does::Write, &["write_to_file"]),
    (Does::Patch, &["replace_in_file", "apply_diff"]),
    (Does::Edit, &["search_and_replace", "search_replace"]),
    (Does::Insert, &["insert_content"]),
    (Does::Search, &["search_files", "list_files", "list_code_definition_names", "codebase_search"]),
    (Does::Run, &["execute_command"]),
    // Copilot CLI
    (Does::Read, &["view"]),
    (Does::Write, &["create"]),
    (Does::Run, &["powershell"]),
    (Does::Nothing, &["read_bash", "stop_bash", "write_bash", "report_intent"]),
    // OpenHands
    (Does::Editor, &["str_replace_editor", "str_replace_based_edit_tool", "file_editor"]),
    (Does::Run, &["execute_bash", "terminal"]),
    (Does::Nothing, &["think", "finish", "execute_ipython_cell"]),
    // Kimi CLI
    (Does::Read, &["ReadFile"]),
    (Does::Edit, &["StrReplaceFile"]),
    (Does::Write, &["WriteFile"]),
    (Does::Run, &["Shell"]),
    (Does::Nothing, &["SearchWeb", "FetchURL", "SetTodoList", "Think"]),
    // SWE-agent
    (Does::Read, &["open", "cat_file"]),
    (Does::Search, &["search_dir", "search_file", "find_file"]),
    // Nanocoder
    (Does::Edit, &["string_replace", "edit_file"]),
    (Does::Write, &["create_file"]),
    (Does::Search, &["search_file_contents", "find_files"]),
    (Does::Delete, &["delete_file"]),
    (Does::Move, &["move_file", "rename_file"]),
];

const PATH_NAMES: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "filename",
    "file",
    "absolute_path",
    "target_file",
    "notebook_path",
    "relative_path",
    "file_name",
    "uri",
];
const CONTENT_NAMES: &[&str] = &["content", "file_text", "contents", "text", "new_source", "code"];
const PATCH_NAMES: &[&str] = &["input", "patchText", "patch", "diff", "patch_text"];
const OLD_NAMES: &[&str] = &["old_string", "oldString", "old_str", "oldText", "old_text", "old", "search", "find"];
const NEW_NAMES: &[&str] =
    &["new_string", "newString", "new_str", "newText", "new_text", "new", "replace", "replacement"];
const EDITS_NAMES: &[&str] = &["edits", "edit"];
const ALL_NAMES: &[&str] = &["replace_all", "replaceAll", "allow_multiple"];
const REHEARSAL_NAMES: &[&str] = &["dryRun", "dry_run"];
const COMMAND_NAMES: &[&str] = &["command", "cmd", "script", "commandLine"];
const START_NAMES: &[&str] =
    &["offset", "line_offset", "start_line", "startLine", "line_start", "from_line", "insert_line", "line"];
const WORKDIR_NAMES: &[&str] = &["workdir", "cwd", "directory", "working_directory"];

/// The tools of all dialects that are understood.
#[derive(Clone, Debug)]
pub struct Dialects {
    tools: HashMap<String, ToolEntry>,
}

impl Default for Dialects {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Dialects {
    /// The built-in table.
    pub fn builtin() -> Self {
        let entries = TABLE.iter().flat_map(|(does, names)| names.iter().map(|name| ToolEntry::new(name, *does)));
        Self { tools: entries.map(|entry| (entry.name.clone(), entry)).collect() }
    }

    /// The same with one more tool, which wins over a built-in one of that name.
    pub fn with(mut self, entry: ToolEntry) -> Self {
        self.tools.insert(entry.name.clone(), entry);
        self
    }

    /// What a call does: by the table, or for an unknown tool by the arguments that it carries.
    pub fn does(&self, call: &FunctionCall) -> Does {
        self.does_with(&call.name, &call.parsed_arguments())
    }

    fn does_with(&self, name: &str, arguments: &Value) -> Does {
        let does = self.entry(name).map_or_else(|| guess(name, arguments), |entry| entry.does);
        match does {
            Does::Write if text_of(arguments, None, &["mode"]) == Some("append") => Does::Append,
            Does::Editor => match text_of(arguments, None, &["command"]) {
                Some("view") => Does::Read,
                Some("create") => Does::Write,
                Some("insert") => Does::Insert,
                _ => Does::Edit,
            },
            other => other,
        }
    }

    /// The tool of a name; tools that come from a server carry its name before their own.
    fn entry(&self, name: &str) -> Option<&ToolEntry> {
        let own_name = |mark: &str| self.tools.get(name.rsplit_once(mark)?.1);
        self.tools.get(name).or_else(|| SERVER_MARKS.iter().find_map(|mark| own_name(mark)))
    }

    /// The kind of a call.
    pub fn kind(&self, call: &FunctionCall) -> Kind {
        self.does(call).kind()
    }

    /// Looks into a call and what the tool answered.
    pub fn observe(&self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        let (entry, value, result) = (self.entry(&call.name), call.parsed_arguments(), &*output.output);
        let arguments = Arguments { value: &value, entry, takes_lines: TAKES_LINES.contains(&&*call.name) };
        let does = self.does_with(&call.name, &value);
        let failed = says_failed(result);
        let is_rehearsal = value_of(&value, None, REHEARSAL_NAMES).and_then(Value::as_bool) == Some(true);
        let command = (does == Does::Run).then(|| arguments.command()).flatten();
        let observations = match does {
            _ if (failed || is_rehearsal) && does != Does::Run => Vec::new(),
            Does::Run => match &command {
                Some(command) => observe_shell(command, result, arguments.workdir(), failed),
                None => Vec::new(),
            },
            Does::Nothing => observe_mentions(result, None),
            _ => arguments.observe(does, result),
        };
        let mut paths = arguments.paths(does);
        let is_about = |observation: &&Observation| !matches!(observation, Observation::Mentioned { .. });
        for path in observations.iter().filter(is_about).flat_map(Observation::paths) {
            if !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        }
        Seen { kind: does.kind(), paths, command, observations, failed }
    }

    /// The file that a call is about, if it names one.
    pub fn path(&self, call: &FunctionCall) -> Option<String> {
        let value = call.parsed_arguments();
        let arguments = Arguments { value: &value, entry: self.entry(&call.name), takes_lines: false };
        arguments.paths(self.does_with(&call.name, &value)).into_iter().next()
    }
}

impl Does {
    /// The kind of call that does it.
    fn kind(self) -> Kind {
        match self {
            Does::Read => Kind::Read,
            Does::Write => Kind::Write,
            Does::Edit | Does::Insert | Does::Patch | Does::Append | Does::Delete | Does::Move => Kind::Edit,
            Does::Search => Kind::Search,
            Does::Run => Kind::Run,
            Does::Nothing | Does::Editor => Kind::Other,
        }
    }
}

/// What stands between a server's name and its tool's.
const SERVER_MARKS: &[&str] = &["__", ".", "/", ":"];

/// What an unknown tool does, by its arguments.
fn guess(name: &str, arguments: &Value) -> Does {
    let has = |names: &[&str]| text_of(arguments, None, names).is_some();
    if let Value::String(text) = arguments {
        return if text.contains("*** Begin Patch") { Does::Patch } else { Does::Nothing };
    }
    let has_path = has(PATH_NAMES);
    let name = name.to_ascii_lowercase();
    match () {
        () if has_path && has(OLD_NAMES) && has(NEW_NAMES) => Does::Edit,
        () if has_path && value_of(arguments, None, EDITS_NAMES).is_some_and(lists_edits) => Does::Edit,
        () if has_path && has(&["content", "file_text", "contents"]) && says_write(&name) => Does::Write,
        () if has_path && (name.contains("read") || name.contains("view") || name.contains("cat")) => Does::Read,
        () if has(&["command", "cmd"]) && !has_path => Does::Run,
        () if name.contains("search") || name.contains("grep") || name.contains("list") => Does::Search,
        () => Does::Nothing,
    }
}

/// Whether a value is edits, one or more of them.
fn lists_edits(value: &Value) -> bool {
    let one = value.as_array().map_or(Some(value), |list| list.first());
    one.is_some_and(|one| text_of(one, None, OLD_NAMES).is_some() && text_of(one, None, NEW_NAMES).is_some())
}

fn says_write(name: &str) -> bool {
    ["write", "create", "save", "put"].iter().any(|verb| name.contains(verb))
}

/// Tools whose edits take the line feed behind a piece that is replaced by nothing.
const TAKES_LINES: &[&str] = &["Edit", "MultiEdit"];

/// The number of a value, at most the greatest that a line can have: a read from behind it is still a part of a file.
fn number_in(value: &Value) -> Option<usize> {
    let number = value.as_u64()?;
    Some(usize::try_from(number).unwrap_or(MAX_LINE_NUMBER).min(MAX_LINE_NUMBER))
}

/// How a failed tool's answer begins, in lower case.
const FAILURE_STARTS: &[&str] = &[
    "<tool_use_error>",
    "error",
    "failed",
    "the user doesn't want to proceed",
    "apply_patch verification failed",
    "no replacement was performed",
    "no replacements were made",
    "no match",
    "permission denied",
    "file not found",
    "invalid",
    "[error",
    "[request interrupted",
    "user rejected",
    "tool execution failed",
];

/// Whether a tool's answer says that nothing was done.
pub fn says_failed(result: &str) -> bool {
    let body = result.trim_start();
    let head: String = body.chars().take(80).collect::<String>().to_lowercase();
    if FAILURE_STARTS.iter().any(|start| head.starts_with(start)) {
        return true;
    }
    // Codex puts the exit code before the output.
    head.strip_prefix("exit code: ").is_some_and(|rest| !rest.starts_with("0"))
}

/// The arguments of a call, by meaning.
struct Arguments<'a> {
    value: &'a Value,
    entry: Option<&'a ToolEntry>,
    /// Whether an edit that leaves nothing takes the line feed behind the piece too.
    takes_lines: bool,
}

impl<'a> Arguments<'a> {
    fn path(&self) -> Option<&'a str> {
        text_of(self.value, self.entry.and_then(|entry| entry.path.as_deref()), PATH_NAMES)
    }

    fn workdir(&self) -> Option<&'a str> {
        text_of(self.value, None, WORKDIR_NAMES)
    }

    /// The command line; a list of words is joined, and `bash -lc TEXT` is opened.
    fn command(&self) -> Option<String> {
        let named = self.entry.and_then(|entry| entry.command.as_deref());
        if let Some(text) = text_of(self.value, named, COMMAND_NAMES) {
            return Some(text.to_owned());
        }
        let words = value_of(self.value, named, COMMAND_NAMES)?.as_array()?;
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        match words.as_slice() {
            [shell, flag, text] if shell.ends_with("sh") && flag.starts_with('-') => Some((*text).to_owned()),
            words => Some(words.join(" ")),
        }
    }

    fn patch_text(&self) -> Option<&'a str> {
        if let Value::String(text) = self.value {
            return Some(text);
        }
        text_of(self.value, self.entry.and_then(|entry| entry.content.as_deref()), PATCH_NAMES)
    }

    fn paths(&self, does: Does) -> Vec<String> {
        match does {
            Does::Run | Does::Nothing => Vec::new(),
            _ => self.path().map(str::to_owned).into_iter().collect(),
        }
    }

    fn observe(&self, does: Does, result: &str) -> Vec<Observation> {
        let path = self.path().map(str::to_owned);
        match (does, path) {
            (Does::Read, Some(path)) => self.observe_read(path, result),
            (Does::Write, Some(path)) => {
                self.content().map(|text| Observation::Write { path, text }).into_iter().collect()
            }
            (Does::Append, Some(path)) => {
                self.content().map(|text| Observation::Append { path, text }).into_iter().collect()
            }
            (Does::Edit, Some(path)) => self.observe_edits(&path),
            (Does::Insert, Some(path)) => self.observe_insert(path).into_iter().collect(),
            (Does::Patch, path) => self.patch_text().map(|text| observe_patch(text, path)).unwrap_or_default(),
            (Does::Delete, Some(path)) => vec![Observation::Delete { path }],
            (Does::Move, _) => self.observe_move(),
            (Does::Search, path) => super::printed::observe_search(result, path.as_deref()),
            _ => Vec::new(),
        }
    }

    fn content(&self) -> Option<String> {
        let named = self.entry.and_then(|entry| entry.content.as_deref());
        text_of(self.value, named, CONTENT_NAMES).map(str::to_owned)
    }

    fn number(&self, names: &[&str]) -> Option<usize> {
        let value = value_of(self.value, None, names)?;
        number_in(value).or_else(|| line_number(value.as_str()?.trim()))
    }

    /// The first line that a read was asked for; 1 if it was not narrowed.
    fn first_line(&self) -> usize {
        let range = value_of(self.value, None, &["view_range", "line_range"]).and_then(Value::as_array);
        let first = range.and_then(|range| range.first()).and_then(number_in);
        first.or_else(|| self.number(START_NAMES)).unwrap_or(1).max(1)
    }

    fn is_narrowed(&self) -> bool {
        const LIMITS: &[&str] = &["limit", "n_lines", "view_range", "end_line", "endLine", "line_range"];
        self.first_line() > 1 || value_of(self.value, None, LIMITS).is_some_and(|value| !value.is_null())
    }

    fn observe_read(&self, path: String, result: &str) -> Vec<Observation> {
        let text = strip_harness(result);
        if let Some(blocks) = numbered_from(text, self.first_line()) {
            let whole = !self.is_narrowed() && blocks.len() == 1 && blocks[0].first == Some(1);
            return blocks.into_iter().map(|block| Observation::Read { path: path.clone(), block, whole }).collect();
        }
        if text.trim().is_empty() || is_note(text) {
            return Vec::new();
        }
        let block = Passage::plain(Some(self.first_line()), text);
        vec![Observation::Read { path, block, whole: !self.is_narrowed() }]
    }

    fn observe_edits(&self, path: &str) -> Vec<Observation> {
        let named_old = self.entry.and_then(|entry| entry.old.as_deref());
        let named_new = self.entry.and_then(|entry| entry.new.as_deref());
        let pair = |value: &Value| -> Option<Observation> {
            let mut old = text_of(value, named_old, OLD_NAMES)?.to_owned();
            let new = text_of(value, named_new, NEW_NAMES).unwrap_or_default().to_owned();
            let all = value_of(value, None, ALL_NAMES).and_then(Value::as_bool).unwrap_or(false);
            if self.takes_lines && new.is_empty() && !old.is_empty() && !old.ends_with('\n') {
                old.push('\n');
            }
            Some(if old.is_empty() {
                Observation::Write { path: path.to_owned(), text: new }
            } else {
                Observation::Edit { path: path.to_owned(), old, new, all }
            })
        };
        let listed: &[Value] = match value_of(self.value, None, EDITS_NAMES) {
            Some(Value::Array(list)) => list,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let edits: Vec<Observation> = listed.iter().filter_map(pair).chain(pair(self.value)).collect();
        if edits.is_empty() {
            vec![Observation::Changed { path: path.to_owned(), by: "an edit".to_owned() }]
        } else {
            edits
        }
    }

    /// Lines that are put in: `insert_line` is the line before them, `line` the one behind, 0 the end.
    fn observe_insert(&self, path: String) -> Option<Observation> {
        let text = self.content().or_else(|| text_of(self.value, None, NEW_NAMES).map(str::to_owned))?;
        let after = match (self.number(&["insert_line", "after_line"]), self.number(&["line"])) {
            (None, Some(0)) => return Some(Observation::Append { path, text }),
            (None, Some(line)) => line - 1,
            (after, _) => after.or_else(|| self.number(START_NAMES)).unwrap_or(0),
        };
        Some(Observation::Insert { path, after, text })
    }

    fn observe_move(&self) -> Vec<Observation> {
        let from = text_of(self.value, None, &["source", "from", "old_path", "oldPath", "source_path"]);
        let to = text_of(self.value, None, &["destination", "to", "new_path", "newPath", "destination_path"]);
        match (from, to) {
            (Some(from), Some(to)) => vec![Observation::Move { from: from.to_owned(), to: to.to_owned() }],
            _ => Vec::new(),
        }
    }
}

/// Whether a read's answer is a remark of the tool and not a file's text.
fn is_note(text: &str) -> bool {
    let line = text.trim();
    !line.contains('\n') && (line.starts_with("File unchanged") || line.starts_with("<system-reminder>"))
}

/// What a patch says about files; `path` names the file of patches that do not.
pub(crate) fn observe_patch(text: &str, path: Option<String>) -> Vec<Observation> {
    if text.contains("*** Begin Patch") {
        return parse_begin_patch(text).into_iter().flat_map(observe_file_patch).collect();
    }
    if let Some(path) = &path {
        let pairs = parse_search_replace(text);
        if !pairs.is_empty() {
            let edit = |(old, new)| Observation::Edit { path: path.clone(), old, new, all: false };
            return pairs.into_iter().map(edit).collect();
        }
    }
    parse_unified(text).into_iter().flat_map(observe_file_patch).collect()
}

fn observe_file_patch(patch: FilePatch) -> Vec<Observation> {
    match patch {
        FilePatch::Add { path, text } => vec![Observation::Write { path, text }],
        FilePatch::Delete { path } => vec![Observation::Delete { path }],
        FilePatch::Update { path, moved, hunks } => {
            let mut observations = vec![Observation::Patch { path: path.clone(), hunks }];
            observations.extend(moved.map(|to| Observation::Move { from: path, to }));
            observations
        }
    }
}

fn value_of<'a>(arguments: &'a Value, named: Option<&str>, names: &[&str]) -> Option<&'a Value> {
    let object = arguments.as_object()?;
    match named {
        Some(name) => object.get(name),
        None => names.iter().find_map(|name| object.get(*name)),
    }
}

fn text_of<'a>(arguments: &'a Value, named: Option<&str>, names: &[&str]) -> Option<&'a str> {
    let object = arguments.as_object()?;
    match named {
        Some(name) => object.get(name)?.as_str(),
        None => names.iter().find_map(|name| object.get(*name)?.as_str()),
    }
}
