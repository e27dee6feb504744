//! What tools, harnesses and people say, held against what really happened to a file.
//!
//! Every case knows the file before and after. Whatever was said, no line that the model does not doubt may be missing
//! from the file, and a file that is claimed to be whole must be.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Message, Meta, Origin, Outcome, Role};
use contexture_files::model::{FileModel, Grade};
use contexture_files::observer::Observer;
use serde_json::{Value, json};

const PATH: &str = "/p/a.txt";
const BEFORE: &str = "one\ntwo\nthree\n";
const EDITED: &str = "one\nTWO\nthree\n";

struct World {
    observer: Observer,
    model: FileModel,
    at: u32,
}

impl World {
    /// The file was read.
    fn new() -> Self {
        let mut world = Self { observer: Observer::default(), model: FileModel::new(), at: 0 };
        world.call("Bash", json!({"command": "cd /p"}), "", Outcome::Done);
        world.read();
        world
    }

    fn read(&mut self) {
        let shown = "     1→one\n     2→two\n     3→three\n";
        self.call("Read", json!({"file_path": PATH}), shown, Outcome::Done);
    }

    fn call(&mut self, tool: &str, arguments: Value, output: &str, outcome: Outcome) {
        self.at += 1;
        let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
        let call = FunctionCall::new("c", tool, arguments);
        let seen = self.observer.observe(&call, &FunctionCallOutput::new("c", output, outcome));
        seen.observations.iter().for_each(|observation| self.model.apply(self.at, observation));
    }

    fn say(&mut self, role: Role, text: &str, origin: Origin) {
        self.at += 1;
        let item = Item::message(role, text).with_meta(Meta { origin, ..Meta::default() });
        let message: &Message = item.as_message().unwrap();
        let told = self.observer.hear(message);
        told.iter().for_each(|observation| self.model.apply(self.at, observation));
    }

    /// The worst and the best grade of the known lines.
    fn grades(&self) -> (Grade, Grade) {
        let file = self.model.place(PATH).unwrap();
        let state = &self.model.files()[file];
        let mut grades = Vec::new();
        for (segment, known) in state.segments.iter().enumerate() {
            grades.extend((0..known.lines.len()).map(|line| self.model.claim(file, segment, line..line + 1).grade));
        }
        (grades.iter().min().copied().unwrap_or_default(), grades.iter().max().copied().unwrap_or_default())
    }

    /// Counts the lines that are presumed, and how many of these are wrong; any other wrong line is an error.
    fn hold(&self, after: &str, what: &str, counted: &mut Counted) {
        let real: Vec<&str> = after.lines().collect();
        let Some(file) = self.model.place(PATH) else { return };
        let state = &self.model.files()[file];
        for (segment, known) in state.segments.iter().enumerate() {
            for (index, line) in known.lines.iter().enumerate() {
                let grade = self.model.claim(file, segment, index..index + 1).grade;
                if grade == Grade::InDoubt {
                    counted.doubted += 1;
                    continue;
                }
                let is_right = match known.first {
                    Some(first) => real.get(first + index - 1) == Some(&&*line.text),
                    None => real.contains(&&*line.text),
                };
                match grade {
                    Grade::Presumed => counted.presume(is_right),
                    _ => {
                        assert!(is_right, "{what}: {:?} is claimed {grade:?}", line.text);
                        counted.sure += 1;
                    }
                }
            }
        }
        if self.model.claim_whole(file).is_some() {
            let known: Vec<&str> = state.segments[0].lines.iter().map(|line| &*line.text).collect();
            assert_eq!(known, real, "{what}: it is not whole");
        }
    }
}

#[derive(Debug, Default)]
struct Counted {
    sure: usize,
    presumed: usize,
    presumed_wrong: usize,
    doubted: usize,
}

impl Counted {
    fn presume(&mut self, is_right: bool) {
        self.presumed += 1;
        self.presumed_wrong += usize::from(!is_right);
    }

    /// At most one presumed line in a hundred is wrong.
    fn judge(&self) {
        assert!(self.presumed_wrong * 100 <= self.presumed, "{self:?}");
    }
}

/// Calls that edit the second line, by agent.
fn edits() -> Vec<(&'static str, Value)> {
    let diff = "<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE";
    let patch = "*** Begin Patch\n*** Update File: /p/a.txt\n@@\n one\n-two\n+TWO\n three\n*** End Patch";
    vec![
        ("Edit", json!({"file_path": PATH, "old_string": "two", "new_string": "TWO"})),
        ("MultiEdit", json!({"file_path": PATH, "edits": [{"old_string": "two", "new_string": "TWO"}]})),
        ("Write", json!({"file_path": PATH, "content": EDITED})),
        ("edit", json!({"filePath": PATH, "oldString": "two", "newString": "TWO"})),
        ("edit", json!({"path": PATH, "oldText": "two", "newText": "TWO"})),
        ("write", json!({"filePath": PATH, "content": EDITED})),
        ("replace", json!({"file_path": PATH, "old_string": "two", "new_string": "TWO"})),
        ("write_file", json!({"file_path": PATH, "content": EDITED})),
        ("replace_in_file", json!({"path": PATH, "diff": diff})),
        ("write_to_file", json!({"path": PATH, "content": EDITED})),
        ("apply_diff", json!({"path": PATH, "diff": diff})),
        ("str_replace_editor", json!({"command": "str_replace", "path": PATH, "old_str": "two", "new_str": "TWO"})),
        ("text_editor", json!({"command": "str_replace", "path": PATH, "old_str": "two", "new_str": "TWO"})),
        ("StrReplaceFile", json!({"path": PATH, "edit": {"old": "two", "new": "TWO"}})),
        ("string_replace", json!({"path": PATH, "old_str": "two", "new_str": "TWO"})),
        ("mcp__filesystem__edit_file", json!({"path": PATH, "edits": [{"oldText": "two", "newText": "TWO"}]})),
        ("apply_patch", json!({"input": patch})),
    ]
}

/// What tools return that did nothing.
const FAILURES: &[&str] = &[
    "Session token expired; sign in again and retry.",
    "Please look at the broken hook first",
    "The operation was unsuccessful",
    "0 edits applied",
    "Replaced 0 occurrences",
    "Edit abandoned: the lock could not be taken",
    "<tool_use_error>String to replace not found in file.</tool_use_error>",
    "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
    "Failed to edit, 0 occurrences found for old_string.",
    "Error: ENOENT: no such file or directory, open '/p/a.txt'",
    "oldString not found in content",
    "No replacement was performed, old_str `two` did not appear verbatim in /p/a.txt.",
    "The tool execution failed with the following error: old string not found",
    "The user doesn't want to proceed with this tool use. The tool use was rejected.",
    "Tool call rejected",
    "User denied",
    "apply_patch verification failed: Failed to find expected lines in /p/a.txt",
    "Permission denied: /p/a.txt is read-only",
    "Rate limit exceeded, wait 30 seconds",
    "401 Unauthorized",
    "Edit proposed; waiting for approval",
    "Dry run: would have replaced 1 occurrence",
    "Changes reverted because the linter failed",
    "The file is locked by another process",
    "Timeout: the editor did not respond",
    "connection refused",
    "Not applied",
    "Nothing to do",
    "Skipped: file is ignored by policy",
    "Container is not running. Start it and try again.",
    "Your edit has been discarded.",
    "Applied 0/1 edits",
    "{\"success\": false, \"message\": \"old text not found\"}",
    "{\"status\":\"error\",\"detail\":\"no match\"}",
    "{\"ok\":false}",
    "{\"applied\": 0, \"total\": 1}",
    "{\"result\": {\"isError\": true, \"text\": \"updated\"}}",
    "{\"success\": true, \"dry_run\": true}",
    "result=KO",
    "❌ a.txt",
    "File opened read-only; changes kept in memory only",
    "Edit ready. Type 'y' to apply",
    "Ambiguous match: 3 candidates",
    "Found 2 matches; be more specific",
    "File is outdated, re-read it",
    "429 Too Many Requests",
    "503",
    "EROFS: read-only file system, open '/p/a.txt'",
    "Lost connection to the workspace",
    "exit status 1",
    "java.io.IOException: stale handle",
    "thread 'main' panicked at src/main.rs:4",
    "AssertionError",
    "Segmentation fault (core dumped)",
    "Killed",
    "null",
    "False",
    "write EPIPE",
];

/// What tools return that did what they were asked for.
const SUCCESSES: &[&str] = &[
    "The file /p/a.txt has been updated successfully.",
    "The file /p/a.txt has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     1\tone\n     2\tTWO\n",
    "File created successfully at: /p/a.txt",
    "Edit applied successfully.",
    "Wrote file successfully.",
    "Successfully modified file: /p/a.txt (1 replacements).",
    "Successfully overwrote file: /p/a.txt",
    "The content was successfully saved to /p/a.txt.",
    "The file /p/a.txt has been edited. Here's the result of running `cat -n` on a snippet of /p/a.txt:\n     2\tTWO",
    "File /p/a.txt updated with changes.",
    "Created file /p/a.txt with 14 characters",
    "File successfully edited. Applied 1 edit(s) with 1 total replacement(s).",
    "Successfully replaced text in /p/a.txt.",
    "Successfully wrote 14 bytes to /p/a.txt",
    "Success. Updated the following files:\nM /p/a.txt\n",
    "errors.py: replaced 1 occurrence",
    "failover.py updated",
    "ok",
    "Done.",
    "1 replacement made",
    "The change was made.",
    "Applied 1/1 edits",
    "Patch applied cleanly.",
    "{\"success\": true}",
    "{\"status\":\"ok\",\"replacements\":1}",
];

/// What tools return when something else came out.
const DIFFERENT: &[&str] = &[
    "User modified the content before it was saved. The file was updated.",
    "File saved. The formatter on save changed it.",
    "The user made the following updates to your content: …. The file was saved.",
    "Patch applied with fuzz 2",
    "Applied using the closest match",
    "Partially applied: 1 of 2 hunks",
    "2 of 3 replacements were made",
    "Accepted with changes",
];

#[test]
fn what_tools_say_is_read_as_words() {
    let mut counted = Counted::default();
    for (tool, arguments) in edits() {
        for (texts, after) in [(FAILURES, BEFORE), (SUCCESSES, EDITED), (DIFFERENT, "ONE\nzwei\n3\n")] {
            for text in texts {
                for outcome in [Outcome::Unknown, Outcome::Done] {
                    let mut world = World::new();
                    world.call(tool, arguments.clone(), text, outcome);
                    world.hold(after, &format!("{tool} {outcome:?} {text}"), &mut counted);
                }
            }
        }
        // What structure says is a failure is one, whatever the text says.
        let mut world = World::new();
        world.call(tool, arguments, "The file has been updated.", Outcome::Failed);
        world.hold(BEFORE, tool, &mut counted);
    }
    counted.judge();
    // Clear texts are understood and do not end in doubt.
    for text in ["1 replacement made", "Applied 1/1 edits", "{\"success\": true}", "Replaced 1 match in a.txt"] {
        let mut world = World::new();
        let arguments = json!({"path": PATH, "old_text": "two", "new_text": "TWO"});
        world.call("change_text", arguments, text, Outcome::Unknown);
        assert_eq!(world.grades(), (Grade::Sure, Grade::Sure), "{text}");
    }
    for (tool, arguments) in edits().into_iter().filter(|(tool, _)| *tool != "apply_patch") {
        let mut world = World::new();
        world.call(tool, arguments.clone(), "The file /p/a.txt has been updated.", Outcome::Unknown);
        assert_eq!(world.grades(), (Grade::Sure, Grade::Sure), "{tool}");
        let mut world = World::new();
        world.call(tool, arguments, "String to replace not found in file.", Outcome::Unknown);
        assert_eq!(world.grades(), (Grade::Sure, Grade::Sure), "{tool}");
    }
}

/// What is known of a file after a read, if anything.
/// Someone else has changed the file before the edit, and what the editor shows of it tells.
#[test]
fn what_an_editor_shows_of_the_file_is_newer_than_what_was_read() {
    for (after, shown) in [
        ("ONE\nTWO\nthree\n", "     1\tONE\n     2\tTWO\n     3\tthree\n"),
        ("zero\none\nTWO\nthree\n", "     2\tone\n     3\tTWO\n     4\tthree\n"),
        ("ONE\nTWO\nthree\n", "     1→ONE\n     2→TWO\n\nReview the changes."),
    ] {
        let mut world = World::new();
        let output =
            format!("The file {PATH} has been updated. Here's the result of running `cat -n` on a snippet:\n{shown}");
        let arguments = json!({"file_path": PATH, "old_string": "two", "new_string": "TWO"});
        world.call("Edit", arguments, &output, Outcome::Done);
        let mut counted = Counted::default();
        world.hold(after, shown, &mut counted);
        assert!(counted.sure >= 2 && counted.presumed_wrong == 0, "{shown}: {counted:?}");
    }
}

fn shown(tool: &str, arguments: Value, output: &str) -> Option<(String, bool)> {
    let mut world = World { observer: Observer::default(), model: FileModel::new(), at: 0 };
    world.call(tool, arguments, output, Outcome::Unknown);
    let file = world.model.place(PATH)?;
    let text = world.model.files()[file].text();
    (!text.is_empty()).then(|| (text, world.model.claim_whole(file).is_some()))
}

#[test]
fn what_a_read_prints_is_recognised_by_its_form() {
    let whole = Some(("one\n  two".to_owned(), true));
    // pi and Copilot print plain text, OpenCode and older versions numbers.
    for tool in ["read", "view", "read_file"] {
        assert_eq!(shown(tool, json!({"path": PATH}), "one\n  two\n"), whole, "{tool}");
    }
    let tagged = "<path>/p/a.txt</path>\n<type>file</type>\n<content>1: one\n2:   two\n\n(End of file - total 2 lines)\n</content>";
    assert_eq!(shown("read", json!({"filePath": PATH}), tagged), whole);
    assert_eq!(shown("view", json!({"path": PATH}), "1. one\n2.   two\n3. "), Some(("one\n  two".to_owned(), false)));
    let part = "one\n  two\n\n[25 more lines in file. Use offset=3 to continue.]";
    assert_eq!(shown("read", json!({"path": PATH}), part), Some(("one\n  two".to_owned(), false)));
    // A column of numbers may be the file's own.
    for text in ["1. a\n2. b\n3. c\n", "1\ta\n2\tb\n3\tc\n", "1: a\n2: b\n3: c\n", "1|a\n2|b\n3|c\n"] {
        for tool in ["read", "view", "read_file"] {
            assert_eq!(shown(tool, json!({"path": PATH}), text), None, "{tool} {text:?}");
        }
    }
    // These are not the file's text, or may not be.
    let others = [
        "{\"content\": \"one\\ntwo\"}",
        "[{\"type\": \"text\", \"text\": \"one\"}]",
        "```\none\ntwo\n```",
        "<persisted-output>\nOutput too large. Full output saved to: /x\n\nPreview:\none\n</persisted-output>",
        "Session token expired; sign in again and retry.",
        "Access denied: path is outside of the workspace",
        "File not found",
    ];
    for text in others {
        for tool in ["read", "view", "read_file"] {
            assert_eq!(shown(tool, json!({"path": PATH}), text), None, "{tool} {text:?}");
        }
    }
    assert_eq!(
        shown(
            "exec_command",
            json!({"cmd": "cat /p/a.txt"}),
            "Chunk ID: 1\nWall time: 1 seconds\nProcess exited with code 0\nOutput:\nTotal output lines: 900\n\none\ntwo\n"
        ),
        None
    );
    assert_eq!(shown("Bash", json!({"command": "cat /p/a.txt"}), "<persisted-output>\nOutput too large\none\n"), None);
}

#[test]
fn tools_that_nobody_knows_put_what_they_name_in_doubt() {
    let after = |tool: &str, arguments: Value| {
        let mut world = World::new();
        world.call(tool, arguments, "finished", Outcome::Unknown);
        world.grades().0
    };
    let doubt = [
        ("rename_symbol", json!({"symbol": "a", "new_name": "b"})),
        ("lsp_rename", json!({"textDocument": {"uri": "file:///p/a.txt"}, "newName": "b"})),
        ("undo", json!({})),
        ("restore_checkpoint", json!({"id": 3})),
        ("mcp__git__pull", json!({"remote": "origin"})),
        ("lint", json!({"fix": true})),
        ("lint", json!({"fix": true, "paths": ["/p/a.txt"]})),
        ("tidy_up", json!({"target": "/p/a.txt"})),
        ("git", json!({"command": "pull"})),
        ("git", json!({"args": ["checkout", "main"]})),
        ("git", json!({"subcommand": "stash"})),
        ("check", json!({"options": {"fix": true}})),
        ("lint", json!({"args": "--fix /p/a.txt"})),
        ("discard_changes", json!({})),
        ("apply_suggestion", json!({"id": 3})),
        ("scaffold", json!({"template": "x"})),
        ("update_submodules", json!({})),
        ("invoke", json!({"tool": "bash", "input": {"command": "rm /p/a.txt"}})),
        ("run_tests", json!({"update_snapshots": true})),
        ("fs", json!({"action": "delete", "path": "/p/a.txt"})),
        (
            "batch",
            json!({"tool_calls": [
            {"tool": "edit", "parameters": {"filePath": PATH, "oldString": "two", "newString": "x"}},
            {"tool": "read", "parameters": {"filePath": "/p/b.txt"}}]}),
        ),
        (
            "multi_tool_use.parallel",
            json!({"tool_uses": [
            {"recipient_name": "functions.write_file", "parameters": {"file_path": PATH, "content": "x"}},
            {"recipient_name": "functions.read_file", "parameters": {"file_path": "/p/b.txt"}}]}),
        ),
        ("use_mcp_tool", json!({"server_name": "fs", "tool_name": "tidy", "arguments": "{\"path\": \"/p/a.txt\"}"})),
        ("Task", json!({"subagent_type": "general-purpose", "prompt": "Refactor the parser"})),
        ("spawn_agent", json!({"agent_type": "worker", "message": "Fix the tests"})),
    ];
    for (tool, arguments) in doubt {
        assert_eq!(after(tool, arguments.clone()), Grade::InDoubt, "{tool} {arguments}");
    }
    let presumed = [
        ("tidy_up", json!({"target": "/p/b.txt"})),
        ("git", json!({"command": "status"})),
        ("git", json!({"args": ["log", "-1"]})),
        ("git_add", json!({"paths": ["/p/a.txt"]})),
        ("file_ops", json!({"op": "read", "target": "/p/a.txt"})),
        ("fs", json!({"action": "list", "path": "/p"})),
        ("invoke", json!({"tool": "bash", "input": {"command": "ls"}})),
        ("run_tests", json!({"filter": "a"})),
        ("check", json!({"options": {"fix": false}})),
        ("frobnicate", json!({"level": 3})),
        ("create_pull_request", json!({"title": "x"})),
        ("Task", json!({"subagent_type": "Explore", "prompt": "Find the parser"})),
        ("Agent", json!({"prompt": "Review the diff. Do not make changes."})),
        ("spawn_agent", json!({"agent_type": "explorer", "message": "Look"})),
        (
            "batch",
            json!({"tool_calls": [{"tool": "read", "parameters": {"filePath": PATH}}, {"tool": "grep", "parameters": {"pattern": "x"}}]}),
        ),
    ];
    for (tool, arguments) in presumed {
        assert_ne!(after(tool, arguments.clone()), Grade::InDoubt, "{tool} {arguments}");
    }
    for tool in ["TaskUpdate", "AskUserQuestion", "wait_agent", "get_diagnostics", "list_pages"] {
        assert_eq!(after(tool, json!({"id": "1"})), Grade::Sure, "{tool}");
    }
}

#[test]
fn what_people_and_harnesses_say_is_an_observation() {
    let harness = |kind: Option<&str>| Origin::Harness { kind: kind.map(Into::into), path: None };
    let note = "<system-reminder>\nNote: /p/a.txt was modified, either by the user or by a linter. This change was intentional.\n</system-reminder>";
    let cases = [
        (Role::User, note, harness(Some("edited_text_file"))),
        (Role::User, note, harness(None)),
        (Role::User, note, Origin::Said),
        (Role::System, "PostToolUse hook: prettier formatted /p/a.txt", Origin::Said),
        (Role::User, "<bash-input>git pull</bash-input>", Origin::Said),
        (Role::User, "<bash-input>sed -i s/two/x/ a.txt</bash-input>", Origin::Said),
        (Role::User, "<command-name>/rewind</command-name>", Origin::Said),
        (Role::User, "I changed a.txt, go on", Origin::Said),
        (Role::User, "I have rebased the branch", Origin::Said),
        (Role::User, "I changed a.txt, not b.txt", Origin::Said),
        (Role::User, "I changed my mind and edited a.txt", Origin::Said),
        (Role::User, "I have not only edited a.txt but also b.txt", Origin::Said),
        (Role::User, "My colleague just updated a.txt", Origin::Said),
        (Role::User, "I've gone and tidied up a.txt a bit", Origin::Said),
        (Role::User, "I discarded all your changes", Origin::Said),
        (Role::User, "I put a.txt back the way it was", Origin::Said),
        (Role::User, "went back to the previous commit", Origin::Said),
        (Role::User, "I've run the codemod", Origin::Said),
        (Role::User, "please re-read a.txt, it changed", Origin::Said),
        (Role::User, "branch rebased", Origin::Said),
        (
            Role::User,
            "<user_shell_command>\n<command>\nsed -i 1d a.txt\n</command>\n<result>\nExit code: 0\n</result>\n</user_shell_command>",
            Origin::Said,
        ),
        (
            Role::User,
            "I ran the following shell command:\n```sh\ngit pull\n```\n\nThis produced the following result:\n```\n```",
            Origin::Said,
        ),
        (Role::User, "Undo restored snapshot 1a2b3c4.", harness(None)),
        (Role::User, "[TASK RESUMPTION] This task was interrupted 2 hours ago.", Origin::Said),
        (Role::User, "Stop hook feedback:\n[make fmt]: reformatted 2 files", Origin::Said),
        (Role::User, "PostToolUse:Edit [npx prettier --write] ran: a.txt 34ms", Origin::Said),
    ];
    let mut counted = Counted::default();
    for (role, text, origin) in cases {
        let mut world = World::new();
        world.say(role, text, origin);
        world.hold("other\ntext\n", text, &mut counted);
        assert_eq!(world.grades().1, Grade::InDoubt, "{text}");
        // What is read afterwards is sure again.
        world.read();
        assert_eq!(world.grades(), (Grade::Sure, Grade::Sure), "{text}");
    }
    let mut world = World::new();
    world.say(Role::Assistant, "Please rebase onto main and tell me when it is done.", Origin::Said);
    world.say(Role::User, "done, continue", Origin::Said);
    assert_eq!(world.grades().1, Grade::InDoubt);
    for text in [
        "Please change a.txt",
        "done, thanks",
        "I want a.txt to be changed",
        "<bash-input>ls</bash-input>",
        "<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 0\n</result>\n</user_shell_command>",
        "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na.txt\n```",
        "I haven't changed anything",
        "I did not change a.txt",
        "I changed my mind, use the first approach",
        "I changed b.txt",
    ] {
        let mut world = World::new();
        world.say(Role::User, text, Origin::Said);
        assert_eq!(world.grades(), (Grade::Sure, Grade::Sure), "{text}");
    }
    counted.judge();
}

/// An edit that is refused because the file is not as it was read, and a commit whose hook changed files.
#[test]
fn refusals_and_hooks_tell_of_changes_by_others() {
    let stale = "<tool_use_error>File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.</tool_use_error>";
    let mut world = World::new();
    let arguments = json!({"file_path": PATH, "old_string": "two", "new_string": "TWO"});
    world.call("Edit", arguments, stale, Outcome::Failed);
    assert_eq!(world.grades().1, Grade::InDoubt);
    world.read();
    assert_eq!(world.grades(), (Grade::Sure, Grade::Sure));
    let hook =
        "trim trailing whitespace....Failed\n- hook id: trailing-whitespace\n- files were modified by this hook\n";
    world.call("Bash", json!({"command": "git commit -am x"}), hook, Outcome::Failed);
    assert_eq!(world.grades().1, Grade::InDoubt);
}

#[test]
fn commands_that_go_on_stay_in_the_account() {
    let grade_while = |tool: &str, arguments: Value, output: &str| {
        let mut world = World::new();
        world.call(tool, arguments, output, Outcome::Unknown);
        world.read();
        world
    };
    let codex = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 77\nOutput:\n";
    let mut world = grade_while("exec_command", json!({"cmd": "npm run dev"}), codex);
    assert_eq!(world.grades().0, Grade::Presumed);
    world.call(
        "write_stdin",
        json!({"session_id": 77, "chars": ""}),
        "Chunk ID: 2\nProcess exited with code 0\nOutput:\n",
        Outcome::Unknown,
    );
    world.read();
    assert_eq!(world.grades(), (Grade::Sure, Grade::Sure), "it ended");

    let claude = "Command running in background with ID: bash_1";
    let line = json!({"command": "sleep 9; echo x > a.txt", "run_in_background": true});
    let mut world = grade_while("Bash", line, claude);
    assert_eq!(world.grades().1, Grade::InDoubt, "it may be written at any time");
    world.call("BashOutput", json!({"bash_id": "bash_1"}), "<status>completed</status>", Outcome::Unknown);
    assert_eq!(world.grades().1, Grade::InDoubt);
    world.read();
    assert_eq!(world.grades(), (Grade::Sure, Grade::Sure));

    let world = grade_while("Bash", json!({"command": "make watch > /tmp/log 2>&1 &"}), "");
    assert_eq!(world.grades().0, Grade::Presumed);
    let lasting = [
        ("Bash", json!({"command": "setsid -f ./gen.sh"}), ""),
        ("Bash", json!({"command": "tmux new-session -d -s g './gen.sh'"}), ""),
        ("Bash", json!({"command": "screen -dmS g ./gen.sh"}), ""),
        ("Bash", json!({"command": "echo 'rm -r src' | at now + 1 minute"}), ""),
        ("bash", json!({"command": "./gen.sh", "mode": "async"}), "<command started in background with sessionId: s1>"),
        (
            "run_in_terminal",
            json!({"command": "./gen.sh", "isBackground": true}),
            "Command is running in terminal with ID=t1",
        ),
        ("execute_command", json!({"command": "./gen.sh"}), "Command is still running in the user's terminal.\nx"),
        ("bash", json!({"command": "./gen.sh"}), "Command timed out after 5s and was moved to the background"),
    ];
    for (tool, arguments, output) in lasting {
        let world = grade_while(tool, arguments.clone(), output);
        assert!(world.grades().1 <= Grade::Presumed, "{tool} {arguments}");
    }
    let world = grade_while("Bash", json!({"command": "go test ./a & go test ./b & wait"}), "");
    assert_eq!(world.grades().0, Grade::Sure, "they were waited for");
}
