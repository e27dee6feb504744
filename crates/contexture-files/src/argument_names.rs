//! The names of the arguments of tools, by what they hold.
//!
//! Agents agree on them only loosely. Whoever looks for a path, a command or a text in a call does it with these, after
//! [`common_arguments`](crate::dialect::Dialects::common_arguments) has renamed those of tools that are configured.

use serde_json::Value;

/// The path of a file or a directory.
pub const PATH_NAMES: &[&str] = &[
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
    "filepath",
    "file_uri",
    "fileUri",
    "targetFile",
    "relativePath",
    "fullPath",
    "source_file",
    "document",
];
/// A file's text.
pub const CONTENT_NAMES: &[&str] = &["content", "file_text", "contents", "text", "new_source", "code"];
/// Arguments that say nothing about what a tool does to a file.
pub const IDLE_NAMES: &[&str] = &[
    "ai_proposed_content",
    "comment",
    "createDirectories",
    "create_directories",
    "description",
    "expectedReplacements",
    "expected_replacements",
    "explanation",
    "instruction",
    "instructions",
    "intent",
    "is_background",
    "language",
    "line_count",
    "message",
    "modified_by_user",
    "overwrite",
    "reason",
    "reasoning",
    "requires_approval",
    "security_risk",
    "summary",
    "task_progress",
    "thought",
    "timeout",
    "timeout_ms",
    "title",
];
/// Whether a file is replaced or added to.
pub const MODE_NAMES: &[&str] = &["mode", "append", "command"];
/// The file that is moved.
pub const FROM_NAMES: &[&str] = &["source", "from", "old_path", "oldPath", "source_path", "sourcePath", "src"];
/// Where it is moved.
pub const TO_NAMES: &[&str] =
    &["destination", "to", "new_path", "newPath", "destination_path", "destinationPath", "dst", "dest"];
/// What is inserted.
pub const INSERT_NAMES: &[&str] = &["insert_text", "content", "new_str", "text"];
/// A patch.
pub const PATCH_NAMES: &[&str] = &["input", "patchText", "patch", "diff", "patch_text"];
/// The piece that is replaced.
pub const OLD_NAMES: &[&str] = &["old_string", "oldString", "old_str", "oldText", "old_text", "old", "search", "find"];
/// What replaces it.
pub const NEW_NAMES: &[&str] =
    &["new_string", "newString", "new_str", "newText", "new_text", "new", "replace", "replacement"];
/// Several replacements.
pub const EDITS_NAMES: &[&str] = &["edits", "edit"];
/// Whether all such pieces are replaced.
pub const ALL_NAMES: &[&str] = &["replace_all", "replaceAll", "allow_multiple"];
/// Whether nothing is changed.
pub const REHEARSAL_NAMES: &[&str] = &["dryRun", "dry_run"];
/// A command line, or a program with its arguments.
pub const COMMAND_NAMES: &[&str] =
    &["command", "cmd", "script", "commandLine", "command_line", "shell_command", "shellCommand", "bash_command"];
/// How many lines are passed over.
pub const OFFSET_NAMES: &[&str] = &["offset", "line_offset"];
/// The first line.
pub const START_NAMES: &[&str] = &["start_line", "startLine", "line_start", "from_line", "start_line_one_indexed"];
/// How many lines, or the last one.
pub const LIMIT_NAMES: &[&str] = &[
    "limit",
    "n_lines",
    "length",
    "max_lines",
    "end_line",
    "endLine",
    "line_end",
    "to_line",
    "end_line_one_indexed_inclusive",
    "head",
];
/// The first and the last line.
pub const RANGE_NAMES: &[&str] = &["view_range", "line_range"];
/// The directory that a command runs in.
pub const WORKDIR_NAMES: &[&str] = &["workdir", "cwd", "directory", "working_directory"];
/// Several command lines.
pub const COMMAND_LIST_NAMES: &[&str] = &["commands", "cmds"];
/// The words after a program.
pub const WORD_NAMES: &[&str] = &["args", "argv", "arguments", "parameters"];

/// The path that arguments name.
///
/// ```
/// use contexture_files::argument_names::path_in;
/// assert_eq!(path_in(&serde_json::json!({ "notebook_path": "a.ipynb" })), Some("a.ipynb"));
/// ```
pub fn path_in(arguments: &Value) -> Option<&str> {
    PATH_NAMES.iter().find_map(|name| arguments.get(*name)?.as_str())
}

/// Whether an argument of this name holds a text, which is no path whatever is in it. Names that some tools give to paths
/// are left out.
pub fn holds_text(name: &str) -> bool {
    const MAYBE_PATHS: &[&str] = &["old", "new", "find", "search", "input", "code"];
    let texts = [CONTENT_NAMES, OLD_NAMES, NEW_NAMES, INSERT_NAMES, PATCH_NAMES];
    !MAYBE_PATHS.contains(&name) && texts.iter().any(|names| names.contains(&name))
}
