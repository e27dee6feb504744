//! What tools, harnesses and people say, held against what really happened to a file.
//!
//! Every case knows the file before and after. Whatever was said, no line may be claimed that was never in the file, and a
//! file that is claimed to be whole must be.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Message, Meta, Origin, Outcome, Role};
use contexture_files::model::{Fact, FileModel};
use contexture_files::observer::Observer;
use serde_json::{Value, json};

use crate::told::{Told, told};

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

    fn told(&self) -> Told {
        told(&self.model, PATH)
    }

    /// Holds every claim against the file as it was and as it is.
    fn hold(&self, after: &str, what: &str) {
        let Some(file) = self.model.place(PATH) else { return };
        let state = &self.model.files()[file];
        for (segment, known) in state.segments.iter().enumerate() {
            for (index, line) in known.lines.iter().enumerate() {
                let fact = self.model.claim(file, segment, index..index + 1).fact;
                let was_there = after.lines().chain(BEFORE.lines()).any(|real| *real == *line.text);
                assert!(was_there || fact == Fact::Changed, "{what}: {:?} is claimed {fact:?}", line.text);
            }
        }
        if self.model.claim_whole(file).is_some() {
            let known: Vec<&str> = state.segments[0].lines.iter().map(|line| &*line.text).collect();
            assert_eq!(known, after.lines().collect::<Vec<_>>(), "{what}: it is not whole");
        }
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
    for (tool, arguments) in edits() {
        for (texts, after) in [(FAILURES, BEFORE), (SUCCESSES, EDITED), (DIFFERENT, "ONE\nzwei\n3\n")] {
            for text in texts {
                for outcome in [Outcome::Unknown, Outcome::Done] {
                    let mut world = World::new();
                    world.call(tool, arguments.clone(), text, outcome);
                    world.hold(after, &format!("{tool} {outcome:?} {text}"));
                }
            }
        }
        // What structure says is a failure is one, whatever the text says.
        let mut world = World::new();
        world.call(tool, arguments, "The file has been updated.", Outcome::Failed);
        world.hold(BEFORE, tool);
    }
    // Clear texts are understood.
    for text in ["1 replacement made", "Applied 1/1 edits", "{\"success\": true}", "Replaced 1 match in a.txt"] {
        let mut world = World::new();
        let arguments = json!({"path": PATH, "old_text": "two", "new_text": "TWO"});
        world.call("change_text", arguments, text, Outcome::Unknown);
        let file = world.model.get(PATH).unwrap();
        assert_eq!((world.told(), file.text().as_str()), (Told::Seen, "one\nTWO\nthree"), "{text}");
    }
    for (tool, arguments) in edits().into_iter().filter(|(tool, _)| *tool != "apply_patch") {
        let mut world = World::new();
        world.call(tool, arguments.clone(), "The file /p/a.txt has been updated.", Outcome::Done);
        assert_eq!(world.told(), Told::Whole, "{tool}");
        let mut world = World::new();
        world.call(tool, arguments, "String to replace not found in file.", Outcome::Unknown);
        assert_eq!(world.told(), Told::Whole, "{tool}");
    }
}

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
        world.hold(after, shown);
        let file = world.model.get(PATH).unwrap();
        assert!(shown.lines().count() >= 2 && file.text().contains("TWO"), "{shown}: {}", file.text());
    }
}

/// What is known of a file after a read, if anything.
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
fn tools_that_nobody_knows_could_write_unless_they_read() {
    let after = |tool: &str, arguments: Value| {
        let mut world = World::new();
        world.call(tool, arguments, "finished", Outcome::Unknown);
        world.told()
    };
    for (tool, arguments) in [
        ("rename_symbol", json!({"symbol": "a", "new_name": "b"})),
        ("lsp_rename", json!({"textDocument": {"uri": "file:///p/a.txt"}, "newName": "b"})),
        ("undo", json!({})),
        ("lint", json!({"paths": ["/p/a.txt"]})),
        ("git", json!({"command": "pull"})),
        ("git", json!({"args": ["checkout", "main"]})),
        ("find_and_replace", json!({"query": "x"})),
        ("get_or_create", json!({"name": "x"})),
        ("run_tests", json!({"filter": "a"})),
        ("invoke", json!({"tool": "bash", "input": {"command": "./x"}})),
        ("Task", json!({"subagent_type": "Explore", "prompt": "Find the parser"})),
        ("spawn_agent", json!({"agent_type": "worker", "message": "Fix the tests"})),
    ] {
        assert_eq!(after(tool, arguments.clone()), Told::Seen, "{tool} {arguments}");
    }
    for (tool, arguments) in [
        ("git", json!({"command": "status"})),
        ("git", json!({"args": ["log", "-1"]})),
        ("invoke", json!({"tool": "bash", "input": {"command": "ls"}})),
        ("TaskUpdate", json!({"id": "1"})),
        ("AskUserQuestion", json!({"id": "1"})),
        ("wait_agent", json!({"id": "1"})),
        ("get_diagnostics", json!({"path": PATH})),
        ("list_pages", json!({"id": "1"})),
        (
            "batch",
            json!({"tool_calls": [{"tool": "read", "parameters": {"filePath": PATH}}, {"tool": "grep", "parameters": {"pattern": "x"}}]}),
        ),
    ] {
        assert_eq!(after(tool, arguments.clone()), Told::Whole, "{tool} {arguments}");
    }
}

#[test]
fn what_harnesses_say_is_an_observation() {
    let harness = |kind: Option<&str>| Origin::Harness { kind: kind.map(Into::into), path: None };
    let note = "<system-reminder>\nNote: /p/a.txt was modified, either by the user or by a linter. This change was intentional.\n</system-reminder>";
    let could_write = [
        (Role::System, "PostToolUse hook: prettier formatted it", Origin::Said),
        (Role::User, "<bash-input>git pull</bash-input>", Origin::Said),
        (Role::User, "<command-name>/rewind</command-name>", Origin::Said),
        (Role::User, "I have been at a.txt, go on", Origin::Said),
        (
            Role::User,
            "I ran the following shell command:\n```sh\ngit pull\n```\n\nThis produced the following result:\n```\n```",
            Origin::Said,
        ),
        (Role::User, "Undo restored snapshot 1a2b3c4.", harness(None)),
        (
            Role::User,
            "<environment_context>\n  <current_date>2026-04-12</current_date>\n</environment_context>",
            harness(None),
        ),
    ];
    let changed = [harness(Some("edited_text_file")), harness(None), Origin::Said];
    let changed = changed.into_iter().map(|origin| (Role::User, note, origin, Told::Changed));
    let all = could_write.into_iter().map(|(role, text, origin)| (role, text, origin, Told::Seen)).chain(changed);
    for (role, text, origin, expected) in all {
        let mut world = World::new();
        world.say(role, text, origin);
        assert_eq!(world.told(), expected, "{text}");
        // What is read afterwards is the whole file again.
        world.read();
        assert_eq!(world.told(), Told::Whole, "{text}");
    }
    for text in [
        "done, thanks",
        "<bash-input>ls</bash-input>",
        "I ran the following shell command:\n```sh\nls\n```\n\nThis produced the following result:\n```\na.txt\n```",
        "I changed my mind, use the first approach",
        "I changed b.txt",
    ] {
        let mut world = World::new();
        world.say(Role::User, text, Origin::Said);
        assert_eq!(world.told(), Told::Whole, "{text}");
    }
}

/// An edit that is refused because the file is not as it was read.
#[test]
fn refusals_tell_of_changes_by_others() {
    let stale = "<tool_use_error>File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.</tool_use_error>";
    let mut world = World::new();
    let arguments = json!({"file_path": PATH, "old_string": "two", "new_string": "TWO"});
    world.call("Edit", arguments, stale, Outcome::Failed);
    assert_eq!(world.told(), Told::Changed);
    world.read();
    assert_eq!(world.told(), Told::Whole);
}

#[test]
fn commands_that_go_on_stay_in_the_account() {
    let while_it_runs = |tool: &str, arguments: Value, output: &str| {
        let mut world = World::new();
        world.call(tool, arguments, output, Outcome::Unknown);
        world.read();
        world
    };
    let codex = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 77\nOutput:\n";
    let mut world = while_it_runs("exec_command", json!({"cmd": "npm run dev"}), codex);
    assert_eq!(world.told(), Told::Seen);
    world.call(
        "write_stdin",
        json!({"session_id": 77, "chars": ""}),
        "Chunk ID: 2\nProcess exited with code 0\nOutput:\n",
        Outcome::Unknown,
    );
    world.read();
    assert_eq!(world.told(), Told::Whole, "it ended");

    let claude = "Command running in background with ID: bash_1";
    let line = json!({"command": "sleep 9; echo x > a.txt", "run_in_background": true});
    let mut world = while_it_runs("Bash", line, claude);
    assert_eq!(world.told(), Told::Seen, "it may be written at any time");
    world.call("BashOutput", json!({"bash_id": "bash_1"}), "<status>completed</status>", Outcome::Unknown);
    world.read();
    assert_eq!(world.told(), Told::Whole);

    let lasting = [
        ("Bash", json!({"command": "make watch > /tmp/log 2>&1 &"}), ""),
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
        let world = while_it_runs(tool, arguments.clone(), output);
        assert_eq!(world.told(), Told::Seen, "{tool} {arguments}");
    }
    let world = while_it_runs("Bash", json!({"command": "go test ./a & go test ./b & wait"}), "");
    assert_eq!(world.told(), Told::Whole, "they were waited for");
}
