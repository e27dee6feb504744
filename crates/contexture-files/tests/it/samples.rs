//! What the tools of known agents print, one sample of each kind: what a read shows, a change that was made, one that was
//! not, and one that came out differently.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::{Fact, FileModel};
use contexture_files::observer::Observer;
use serde_json::{Value, json};

const PATH: &str = "/p/a.py";
const TEXT: &str = "def f():\n    return 1";
const EDITED: &str = "def f():\n    return 2";

/// What is expected after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The text is known.
    Knows(&'static str),
    /// The file changed in a way that is not known.
    Changed,
    /// Nothing is known.
    Nothing,
}

struct World {
    observer: Observer,
    model: FileModel,
}

impl World {
    fn new() -> Self {
        Self { observer: Observer::default(), model: FileModel::new() }
    }

    fn read() -> Self {
        let mut world = Self::new();
        world.call("Read", json!({"file_path": PATH}), "     1→def f():\n     2→    return 1\n", Outcome::Done);
        world
    }

    fn call(&mut self, tool: &str, arguments: Value, output: &str, outcome: Outcome) {
        let call = FunctionCall::new("c", tool, arguments.to_string());
        let seen = self.observer.observe(&call, &FunctionCallOutput::new("c", output, outcome));
        seen.observations.iter().for_each(|observation| self.model.apply(1, observation));
    }

    #[track_caller]
    fn check(&self, then: Then, what: &str) {
        let file = self.model.place(PATH).filter(|file| !self.model.files()[*file].segments.is_empty());
        let found = match file {
            None => Then::Nothing,
            Some(file) => {
                let state = &self.model.files()[file];
                let claims =
                    (0..state.segments.len()).map(|at| self.model.claim(file, at, 0..state.segments[at].lines.len()));
                match claims.map(|claim| claim.fact).min() {
                    Some(Fact::Changed) => Then::Changed,
                    _ if state.text() == TEXT => Then::Knows(TEXT),
                    _ if state.text() == EDITED => Then::Knows(EDITED),
                    _ => panic!("{what}: {:?}", state.text()),
                }
            }
        };
        assert_eq!(found, then, "{what}");
    }
}

#[test]
fn reads_of_known_agents_are_understood() {
    let samples = [
        ("Claude Code", "Read", json!({"file_path": PATH}), "     1→def f():\n     2→    return 1\n"),
        ("Claude Code", "Read", json!({"file_path": PATH}), "1\tdef f():\n2\t    return 1"),
        (
            "Codex",
            "exec_command",
            json!({"cmd": "cat /p/a.py"}),
            "Chunk ID: 3f\nWall time: 0.0512 seconds\nProcess exited with code 0\nOriginal token count: 8\nOutput:\ndef f():\n    return 1\n",
        ),
        (
            "Codex",
            "shell",
            json!({"command": ["bash", "-lc", "cat /p/a.py"]}),
            "{\"output\":\"def f():\\n    return 1\\n\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}",
        ),
        (
            "OpenCode",
            "read",
            json!({"filePath": PATH}),
            "<path>/p/a.py</path>\n<type>file</type>\n<content>1: def f():\n2:     return 1\n\n(End of file - total 2 lines)\n</content>",
        ),
        (
            "OpenCode",
            "read",
            json!({"filePath": PATH}),
            "<file>\n00001| def f():\n00002|     return 1\n\n(End of file - total 2 lines)\n</file>",
        ),
        (
            "Roo",
            "read_file",
            json!({"path": PATH}),
            "<file><path>a.py</path>\n<content lines=\"1-2\">\n1 | def f():\n2 |     return 1\n</content>\n</file>",
        ),
        ("Copilot CLI", "view", json!({"path": PATH}), "def f():\n    return 1\n"),
        ("pi", "read", json!({"path": PATH}), "def f():\n    return 1\n"),
        (
            "goose",
            "text_editor",
            json!({"command": "view", "path": PATH}),
            "### /p/a.py\n```python\n1: def f():\n2:     return 1\n```\n",
        ),
        ("Gemini CLI", "read_file", json!({"absolute_path": PATH}), "def f():\n    return 1\n"),
        ("Gemini CLI", "read_file", json!({"file_path": PATH}), "def f():\n    return 1\n"),
        (
            "Gemini CLI",
            "read_file",
            json!({"file_path": PATH, "end_line": 2}),
            "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2 of 3 total lines.\nAction: To read more of the file, you can use the 'start_line' and 'end_line' parameters in a subsequent 'read_file' call. For example, to read the next section of the file, use start_line: 3.\n\n--- FILE CONTENT (truncated) ---\ndef f():\n    return 1",
        ),
        (
            "OpenHands",
            "str_replace_editor",
            json!({"command": "view", "path": PATH}),
            "Here's the result of running `cat -n` on /p/a.py:\n     1\tdef f():\n     2\t    return 1\n",
        ),
        (
            "mini-swe-agent",
            "bash",
            json!({"command": "cat /p/a.py"}),
            "<returncode>0</returncode>\n<output>\ndef f():\n    return 1\n</output>",
        ),
        (
            "Gemini CLI",
            "run_shell_command",
            json!({"command": "cat /p/a.py", "description": "Shows it"}),
            "Output: def f():\n    return 1\nProcess Group PGID: 4711",
        ),
        ("Qwen Code", "read_file", json!({"absolute_path": PATH}), "def f():\n    return 1\n"),
        ("Cline", "read_file", json!({"path": PATH}), "def f():\n    return 1\n"),
        (
            "Kimi CLI",
            "ReadFile",
            json!({"path": PATH}),
            "<system>2 lines read from file starting from line 1. End of file reached.</system>\n     1\tdef f():\n     2\t    return 1\n",
        ),
        ("file server", "mcp__filesystem__read_text_file", json!({"path": PATH}), "def f():\n    return 1\n"),
        ("Nanocoder", "read_file", json!({"path": PATH}), "def f():\n    return 1\n"),
    ];
    for (agent, tool, arguments, output) in samples {
        let mut world = World::new();
        world.call(tool, arguments, output, Outcome::Unknown);
        if agent == "mini-swe-agent" || tool == "run_shell_command" {
            // Blanks may be cut from the end of a command's output, and then its last line is not certain.
            let known = world.model.get(PATH).map(|file| file.text()).unwrap_or_default();
            assert_eq!(known, "def f():", "{agent}");
        } else {
            world.check(Then::Knows(TEXT), agent);
        }
    }
    // What is no text of the file is not taken for it.
    let others = [
        ("Gemini CLI", "read_file", json!({"absolute_path": PATH}), "File not found: /p/a.py"),
        // What the agent has masked itself, from its version 0.61 on.
        (
            "Gemini CLI",
            "read_file",
            json!({"file_path": PATH}),
            "<tool_output_masked>\n{\n  \"output\": \"def f():\\n    ret\n... [TRUNCATED] ...\nurn 1\\n\"\n}\n\nOutput too large. Full output available at: /home/u/.gemini/tmp/p/tool-outputs/session-1/read_file_1_abc.txt\n</tool_output_masked>",
        ),
        ("OpenCode", "read", json!({"filePath": PATH}), "[Old tool result content cleared]"),
        ("OpenCode", "bash", json!({"command": "cat /p/a.py"}), "[Old tool result content cleared]"),
        ("Qwen Code", "read_file", json!({"absolute_path": PATH}), "[Old tool result content cleared]"),
        (
            "Gemini CLI",
            "run_shell_command",
            json!({"command": "cat /p/a.py"}),
            "<tool_output_masked>\nOutput: def f():\n    return 1\nProcess Group PGID: 4711\n\nOutput too large. Full output available at: /home/u/.gemini/tmp/p/tool-outputs/x.txt\n</tool_output_masked>",
        ),
        (
            "Gemini CLI",
            "read_file",
            json!({"file_path": PATH}),
            "def f():\n    return 1\n\n\n--- Newly Discovered Project Context ---\nUse tabs.\n--- End Project Context ---",
        ),
        (
            "Gemini CLI",
            "run_shell_command",
            json!({"command": "cat /p/a.py"}),
            "Output: cat: /p/a.py: No such file or directory\nExit Code: 1\nProcess Group PGID: 4711",
        ),
        (
            "Gemini CLI",
            "run_shell_command",
            json!({"command": "cat /p/a.py"}),
            "Output: def f():\n    return 1\nError: it ended\nProcess Group PGID: 4711",
        ),
        (
            "Gemini CLI",
            "grep_search",
            json!({"pattern": "nowhere"}),
            "No matches found for pattern \"nowhere\" in the workspace directory.",
        ),
        ("Gemini CLI", "list_directory", json!({"dir_path": "/p"}), "Directory listing for /p:\na.py (22 bytes)"),
        (
            "Gemini CLI",
            "glob",
            json!({"pattern": "*.py"}),
            "Found 1 file(s) matching \"*.py\" within /p, sorted by modification time (newest first):\n/p/a.py",
        ),
        (
            "Cline",
            "read_file",
            json!({"path": PATH}),
            "The tool execution failed with the following error:\n<error>\nFile not found\n</error>",
        ),
        ("Roo", "read_file", json!({"path": PATH}), "<file><path>a.py</path><error>Access denied</error></file>"),
        ("Kimi CLI", "ReadFile", json!({"path": PATH}), "<system>ERROR: `/p/a.py` does not exist.</system>"),
        (
            "OpenHands",
            "str_replace_editor",
            json!({"command": "view", "path": PATH}),
            "ERROR:\nInvalid `path` parameter: /p/a.py.",
        ),
        (
            "goose",
            "text_editor",
            json!({"command": "view", "path": PATH}),
            "-32602: File '/p/a.py' is too large (1.2MB).",
        ),
        (
            "file server",
            "mcp__filesystem__read_text_file",
            json!({"path": PATH}),
            "Access denied - path outside allowed directories: /p/a.py not in /q",
        ),
    ];
    for (agent, tool, arguments, output) in others {
        let mut world = World::new();
        world.call(tool, arguments, output, Outcome::Unknown);
        world.check(Then::Nothing, agent);
    }
}

/// How an agent edits the second line.
fn edit(tool: &str) -> Value {
    let (old, new) = ("return 1", "return 2");
    let diff = "<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE";
    let search = "------- SEARCH\n    return 1\n=======\n    return 2\n+++++++ REPLACE";
    match tool {
        "Edit" | "replace" => json!({"file_path": PATH, "old_string": old, "new_string": new}),
        "edit" => json!({"path": PATH, "oldText": old, "newText": new}),
        "apply_patch" => {
            json!({"input": "*** Begin Patch\n*** Update File: /p/a.py\n@@\n def f():\n-    return 1\n+    return 2\n*** End Patch"})
        }
        "replace_in_file" => json!({"path": PATH, "diff": search}),
        "apply_diff" => json!({"path": PATH, "diff": diff}),
        "StrReplaceFile" => json!({"path": PATH, "edit": {"old": old, "new": new}}),
        "mcp__filesystem__edit_file" => json!({"path": PATH, "edits": [{"oldText": old, "newText": new}]}),
        "str_replace_editor" | "text_editor" => {
            json!({"command": "str_replace", "path": PATH, "old_str": old, "new_str": new})
        }
        _ => json!({"path": PATH, "old_str": old, "new_str": new}),
    }
}

/// Agent, tool, what it says, and what follows.
const SAMPLES: &[(&str, &str, &str, Then)] = &[
    ("Claude Code", "Edit", "The file /p/a.py has been updated successfully.", Then::Knows(EDITED)),
    (
        "Claude Code",
        "Edit",
        "The file /p/a.py has been updated successfully. (file state is current in your context — no need to Read it back)",
        Then::Knows(EDITED),
    ),
    (
        "Claude Code",
        "Edit",
        "The file /p/a.py has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     1→def f():\n     2→    return 2\n",
        Then::Knows(EDITED),
    ),
    (
        "Claude Code",
        "Edit",
        "<tool_use_error>String to replace not found in file.\nString: return 1</tool_use_error>",
        Then::Knows(TEXT),
    ),
    (
        "Claude Code",
        "Edit",
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file).",
        Then::Knows(TEXT),
    ),
    ("Codex", "apply_patch", "Success. Updated the following files:\nM /p/a.py\n", Then::Knows(EDITED)),
    (
        "Codex",
        "apply_patch",
        "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM /p/a.py\n",
        Then::Knows(EDITED),
    ),
    (
        "Codex",
        "apply_patch",
        "apply_patch verification failed: Failed to find expected lines in /p/a.py:\n    return 1",
        Then::Knows(TEXT),
    ),
    ("OpenCode", "edit", "Edit applied successfully.", Then::Knows(EDITED)),
    (
        "OpenCode",
        "edit",
        "Edit applied successfully.\n\nLSP errors detected in this file, please fix:\n<diagnostics file=\"/p/a.py\">\nERROR [1:1] x\n</diagnostics>",
        Then::Knows(EDITED),
    ),
    ("OpenCode", "edit", "oldString not found in content", Then::Knows(TEXT)),
    (
        "OpenCode",
        "edit",
        "Found multiple matches for oldString. Provide more surrounding lines in oldString to identify the correct match.",
        Then::Knows(TEXT),
    ),
    ("pi", "edit", "Successfully replaced text in /p/a.py.", Then::Knows(EDITED)),
    (
        "pi",
        "edit",
        "Could not find the exact text in /p/a.py. The old text must match exactly including all whitespace and newlines.",
        Then::Knows(TEXT),
    ),
    ("Gemini CLI", "replace", "Successfully modified file: /p/a.py (1 replacements).", Then::Knows(EDITED)),
    (
        "Gemini CLI",
        "replace",
        "Successfully modified file: /p/a.py (1 replacements). Here is the updated code:\ndef f():\n    return 2",
        Then::Knows(EDITED),
    ),
    (
        "Gemini CLI",
        "replace",
        "Successfully modified file: /p/a.py (1 replacements). Here is the updated code:\ndef f():\n    return 3 The confirmation step modified the `new_string` content to be: return 3.",
        Then::Changed,
    ),
    (
        "Gemini CLI",
        "replace",
        "Successfully modified file: /p/a.py (1 replacements). Here is the updated code:\ndef f():\n    return 2 Applied fuzzy match at line 2.",
        Then::Changed,
    ),
    (
        "Gemini CLI",
        "replace",
        "Failed to edit, Expected 1 occurrence but found 2 for old_string in file: /p/a.py. If you intended to replace multiple occurrences, set 'allow_multiple' to true.",
        Then::Knows(TEXT),
    ),
    (
        "Gemini CLI",
        "replace",
        "Successfully modified file: /p/a.py (1 replacements). User modified the `new_string` content to be: return 3.",
        Then::Changed,
    ),
    (
        "Gemini CLI",
        "replace",
        "Failed to edit, 0 occurrences found for old_string in /p/a.py. No edits made.",
        Then::Knows(TEXT),
    ),
    (
        "Qwen Code",
        "edit",
        "The file: /p/a.py has been updated. Showing lines 1-2 of 2 from the edited file:\n\n---\n\ndef f():\n    return 2",
        Then::Knows(EDITED),
    ),
    ("Copilot CLI", "edit", "File /p/a.py updated with changes.", Then::Knows(EDITED)),
    ("Copilot CLI", "edit", "No match found", Then::Knows(TEXT)),
    ("Cline", "replace_in_file", "The content was successfully saved to /p/a.py.", Then::Knows(EDITED)),
    (
        "Cline",
        "replace_in_file",
        "The user made the following updates to your content:\n\n@@ -2 +2 @@\n-    return 2\n+    return 3\n\nThe updated content, which includes both your original modifications and the additional edits, has been successfully saved to /p/a.py.",
        Then::Changed,
    ),
    (
        "Cline",
        "replace_in_file",
        "The content was successfully saved to /p/a.py.\n\nAlong with your edits, the user's editor applied the following auto-formatting to your content:\n\n- x",
        Then::Changed,
    ),
    (
        "Cline",
        "replace_in_file",
        "The tool execution failed with the following error:\n<error>\nThe SEARCH block:\nreturn 1\n...does not match anything in the file.\n</error>",
        Then::Knows(TEXT),
    ),
    (
        "Roo",
        "apply_diff",
        "<file_write_result>\n<path>a.py</path>\n<operation>modified</operation>\n<notice>\n<i>You do not need to re-read the file, as you have seen all changes</i>\n</notice>\n</file_write_result>",
        Then::Knows(EDITED),
    ),
    (
        "Roo",
        "apply_diff",
        "<file_write_result>\n<path>a.py</path>\n<operation>modified</operation>\n<user_edits>\n@@ -2 +2 @@\n</user_edits>\n<notice>x</notice>\n</file_write_result>",
        Then::Changed,
    ),
    (
        "Roo",
        "apply_diff",
        "Unable to apply diff to file: /p/a.py\n<error_details>\nNo sufficiently similar match found",
        Then::Knows(TEXT),
    ),
    (
        "OpenHands",
        "str_replace_editor",
        "The file /p/a.py has been edited. Here's the result of running `cat -n` on a snippet of /p/a.py:\n     1\tdef f():\n     2\t    return 2\nReview the changes and make sure they are as expected. Edit the file again if necessary.",
        Then::Knows(EDITED),
    ),
    (
        "OpenHands",
        "str_replace_editor",
        "ERROR:\nNo replacement was performed, old_str `return 1` did not appear verbatim in /p/a.py.",
        Then::Knows(TEXT),
    ),
    (
        "goose",
        "text_editor",
        "The file /p/a.py has been edited, and the section now reads:\n```python\ndef f():\n    return 2\n```\n\nReview the changes above for errors.",
        Then::Knows(EDITED),
    ),
    ("goose", "text_editor", "-32603: Failed to write file: permission denied", Then::Knows(TEXT)),
    (
        "Kimi CLI",
        "StrReplaceFile",
        "<system>File successfully edited. Applied 1 edit(s) with 1 total replacement(s).</system>",
        Then::Knows(EDITED),
    ),
    (
        "Kimi CLI",
        "StrReplaceFile",
        "<system>ERROR: No replacements were made. The old string was not found in the file.</system>",
        Then::Knows(TEXT),
    ),
    ("Nanocoder", "string_replace", "Successfully replaced 1 line in /p/a.py", Then::Knows(EDITED)),
    (
        "Nanocoder",
        "string_replace",
        "Content not found in file. The file may have changed since you last read it.",
        Then::Knows(TEXT),
    ),
    (
        "file server",
        "mcp__filesystem__edit_file",
        "```diff\nIndex: /p/a.py\n===================================================================\n--- /p/a.py\toriginal\n+++ /p/a.py\tmodified\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2\n```\n\n",
        Then::Knows(EDITED),
    ),
    ("file server", "mcp__filesystem__edit_file", "Could not find exact match for edit:\nreturn 1", Then::Knows(TEXT)),
];

#[test]
fn what_known_agents_say_after_edits_is_understood() {
    for (agent, tool, output, then) in SAMPLES {
        let mut world = World::read();
        world.call(tool, edit(tool), output, Outcome::Unknown);
        world.check(*then, &format!("{agent}: {output}"));
    }
}

/// This agent has no tools: it writes blocks into its answer, and its harness sends the files again.
#[test]
fn words_about_a_file_are_not_its_text() {
    let mut world = World::read();
    let text = "I have *added these files to the chat* so you can go ahead and edit them.\n\n/p/a.py\n```\ndef f():\n    return 3\n```\n";
    let item = contexture_core::Item::user(text);
    let told = world.observer.hear(item.as_message().unwrap());
    told.iter().for_each(|observation| world.model.apply(2, observation));
    let file = world.model.place(PATH).unwrap();
    assert!(!world.model.files()[file].text().contains("return 3"));
}

/// A command of this agent that failed has failed, whatever it printed.
#[test]
fn a_return_code_decides() {
    for (code, then) in [(0, Then::Changed), (1, Then::Knows(TEXT))] {
        let mut world = World::read();
        let output = format!("<returncode>{code}</returncode>\n<output>\n</output>");
        world.call("bash", json!({"command": "sed -i 's/return 1/return 2/' /p/a.py"}), &output, Outcome::Unknown);
        world.check(then, &output);
    }
}
