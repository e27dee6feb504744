//! What the tools of each agent say when a change was made, when it was not, and when something else came out.

/// What Gemini CLI says after the new code, however long that is: the user changed it, or it was not found as it was
/// named.
pub(super) const CONFIRMED: &str = "The confirmation step modified the `new_string` content";
pub(super) const FUZZY: &str = "Applied fuzzy match at line";

/// What tools of one agent say.
///
/// In a form, `*` is any text (the path, a count), and `…` at the end stands for anything that follows: text of the file
/// or of the call. Without it, what follows on the line must not speak of trouble.
pub(crate) struct Says {
    /// The tools.
    pub(crate) tools: &'static [&'static str],
    /// How an output begins after a change that was made as asked.
    pub(crate) done: &'static [&'static str],
    /// How one begins when nothing was changed.
    pub(crate) undone: &'static [&'static str],
    /// What one contains when something else was changed than what was asked for.
    pub(crate) differs: &'static [&'static str],
}

/// Remarks that mean nothing for what was done, whatever words they have. They end with a closing bracket.
pub(super) const REMARKS: &[&str] = &[
    "(file state is current in your context",
    "(note: the file already ends with a newline",
    "(no errors or warnings",
    "(no diagnostics",
];

/// The table, by agent.
pub(crate) const SAYS: &[Says] = &[
    // Claude Code
    Says {
        tools: &["Edit", "MultiEdit", "Write", "NotebookEdit"],
        done: &[
            "The file * has been updated. All occurrences…",
            "The file * has been updated. Here's the result of running `cat -n` on…",
            "The file * has been updated",
            "The file * has been overwritten",
            "File created successfully at: *",
            "Applied * edits to *:…",
            "Applied * edit to *:…",
            "Updated cell *with…",
            "Inserted cell *with…",
            "Deleted cell *",
        ],
        undone: &[
            "<tool_use_error>",
            "String to replace not found",
            "File has not been read yet",
            "File has been modified since read",
            "File has been unexpectedly modified",
            "File does not exist",
            "Found * matches of the string to replace",
            "No changes to make",
            "Cannot create new file",
            "The user doesn't want to",
        ],
        differs: &["The user modified your proposed changes", "user modified your"],
    },
    // Codex
    Says {
        tools: &["apply_patch"],
        done: &[
            "Success. Updated the following files:…",
            "Done!",
            "Exit code: 0*Success. Updated the following files:…",
        ],
        undone: &[
            "apply_patch verification failed",
            "patch rejected",
            "Invalid patch",
            "Invalid Context",
            "error: patch",
        ],
        differs: &[],
    },
    // OpenCode, pi
    Says {
        tools: &["edit", "write", "multiedit", "patch"],
        done: &[
            "Edit applied successfully…",
            "Wrote file successfully…",
            "Patch applied successfully. *",
            "Success. Updated the following files:…",
            "This file has errors, please fix…",
            "Successfully replaced text in *",
            "Successfully replaced * block(s) in *",
            "Successfully wrote * bytes to *",
        ],
        undone: &[
            "oldString not found",
            "oldString and newString must be different",
            "Found multiple matches for oldString",
            "Could not find the exact text",
            "Could not find edits",
            "Found * occurrences of",
            "No changes made to",
            "File * not found",
            "File * must be read before",
            "You must read the file",
            "File * has been modified since it was last read",
            "The user rejected permission",
            "The user has specified a rule which prevents",
        ],
        differs: &[],
    },
    // Gemini CLI, Qwen Code
    Says {
        tools: &["replace", "write_file", "edit"],
        done: &[
            "Successfully modified file: * replacements). Here is the updated code:…",
            "Successfully created and wrote to new file: *. Here is the updated code:…",
            "Successfully overwrote file: *. Here is the updated code:…",
            "Created new file: * with provided content. Here is the updated code:…",
            "Successfully modified file: *",
            "Successfully created and wrote to new file: *",
            "Successfully overwrote file: *",
            "Created new file: * with provided content",
            "The file: * has been updated. Showing lines…",
            "The file: * has been updated",
            "Successfully wrote to *",
        ],
        undone: &[
            "Failed to edit",
            "Error executing tool",
            "No changes to apply",
            "File not found. Cannot apply edit",
            "Tool call cancelled",
            "[Operation Cancelled]",
            "Attempted to create a file that already exists",
        ],
        differs: &["User modified the `new_string` content", "User modified the `content`", CONFIRMED, FUZZY],
    },
    // Cline, Roo
    Says {
        tools: &[
            "write_to_file",
            "replace_in_file",
            "apply_diff",
            "insert_content",
            "search_and_replace",
            "search_replace",
        ],
        done: &[
            "The content was successfully saved to *",
            "Changes successfully applied to file*",
            "Content was successfully inserted*",
            "<file_write_result>*<operation>created</operation>*<notice>…",
            "<file_write_result>*<operation>modified</operation>*<notice>…",
        ],
        undone: &[
            "The tool execution failed",
            "The user denied this operation",
            "Unable to apply diff to file",
            "<error_details>",
            "No sufficiently similar match found",
            "The SEARCH block",
            "The model used search patterns that don't match",
            "Access to * is blocked",
            "No changes needed",
        ],
        differs: &[
            "auto-formatting",
            "The user made the following updates",
            "<user_edits>",
            "<user_feedback_diff>",
            "The user's editor",
        ],
    },
    // Copilot CLI
    Says {
        tools: &["edit", "create", "str_replace"],
        done: &["File * updated with changes", "Created file * with * characters", "Created file *"],
        undone: &["No match found", "Multiple matches found", "File * already exists", "Path * does not exist"],
        differs: &[],
    },
    // OpenHands, SWE-agent and others with the same editor; goose
    Says {
        tools: &["str_replace_editor", "str_replace_based_edit_tool", "file_editor", "text_editor"],
        done: &[
            "The file * has been edited. Here's the result of running `cat -n` on…",
            "The file * has been edited, and the section now reads:…",
            "The file * has been edited successfully",
            "The file * has been edited",
            "File created successfully at: *",
            "Successfully replaced text*",
            "Successfully wrote to *",
            "Successfully inserted text*",
        ],
        undone: &[
            "ERROR:",
            "No replacement was performed",
            "Invalid `path` parameter",
            "Invalid `old_str` parameter",
            "Invalid `insert_line` parameter",
            "Parameter `old_str` is required",
            "File already exists at",
            "'old_str' must appear exactly once",
        ],
        differs: &["[File contains linting errors]"],
    },
    // Kimi CLI
    Says {
        tools: &["StrReplaceFile", "WriteFile"],
        done: &["File successfully edited. *", "File successfully overwritten*", "File successfully appended to*"],
        undone: &["ERROR", "No replacements were made", "The tool call is rejected"],
        differs: &[],
    },
    // Nanocoder, file servers
    Says {
        tools: &["string_replace", "edit_file", "create_file", "write_file", "move_file", "delete_file"],
        done: &[
            "Successfully wrote to *",
            "Successfully moved * to *",
            "Successfully replaced *",
            "File written successfully*",
            "```diff…",
        ],
        undone: &["Could not find exact match for edit", "Access denied", "Content not found in file"],
        differs: &[],
    },
];

/// The text after a form at the beginning of a text; `None` if it does not begin with it. The flag says whether anything
/// may follow.
pub(super) fn after<'a>(form: &str, text: &'a str) -> Option<(&'a str, bool)> {
    let (form, is_open) = form.strip_suffix('…').map_or((form, false), |form| (form, true));
    let mut parts = form.split('*');
    let mut rest = text.strip_prefix(parts.next()?)?;
    for part in parts {
        // An open end stands for the path or the count, up to the end of its line.
        let at = if part.is_empty() { name_length(rest) } else { rest.find(part)? };
        rest = &rest[at + part.len()..];
    }
    Some((rest, is_open))
}

/// How many bytes of a text belong to a name at its beginning.
fn name_length(text: &str) -> usize {
    let is_end = |(at, c): (usize, char)| {
        c == '\n' || (c == '.' && text[at + 1..].chars().next().is_none_or(char::is_whitespace)) || c == '('
    };
    text.char_indices().find(|place| is_end(*place)).map_or(text.len(), |(at, _)| at)
}

/// The rows of a tool; a name may be used by several agents.
pub(super) fn of(tool: &str) -> impl Iterator<Item = &'static Says> {
    SAYS.iter().filter(move |says| says.tools.contains(&tool))
}
