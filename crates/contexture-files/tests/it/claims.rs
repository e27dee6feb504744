//! What is claimed of a file after calls that someone could take for something else.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::FileModel;
use contexture_files::observer::Observer;
use serde_json::{Value, json};

/// What is known after some calls.
#[derive(Default)]
struct Session {
    observer: Observer,
    model: FileModel,
    at: u32,
}

impl Session {
    fn call(&mut self, tool: &str, arguments: Value, output: &str, outcome: Outcome) {
        self.at += 1;
        let call = FunctionCall::new("c", tool, arguments.to_string());
        let seen = self.observer.observe(&call, &FunctionCallOutput::new("c", output, outcome));
        seen.observations.iter().for_each(|observation| self.model.apply(self.at, observation));
    }

    fn write(&mut self, path: &str, text: &str) {
        self.call("Write", json!({"file_path": path, "content": text}), "File created successfully", Outcome::Done);
    }

    /// What is claimed of a file: that it is gone, its whole text, or runs of lines with their numbers.
    fn claim(&self, path: &str) -> String {
        let Some(index) = self.model.place(path) else { return "nothing".into() };
        let file = &self.model.files()[index];
        if self.model.is_gone(index) {
            return "gone".into();
        }
        let mut runs = Vec::new();
        for segment in &file.segments {
            let mut start = 0;
            for run in segment.lines.chunk_by(|one, next| one.is_changed() == next.is_changed()) {
                let place = start;
                start += run.len();
                if !run[0].is_changed() {
                    let text: Vec<&str> = run.iter().map(|line| &*line.text).collect();
                    let number = segment.first.map(|first| (first + place).to_string()).unwrap_or_default();
                    runs.push(format!("{number}:{}", text.join("|")));
                }
            }
        }
        match (self.model.claim_whole(index).is_some(), runs.is_empty()) {
            (true, _) => format!("whole {}", runs.join(" ")),
            (false, true) => "nothing".into(),
            (false, false) => runs.join(" "),
        }
    }
}

/// What is claimed of `/w/a.txt` after a call of a tool, if it had this text before.
#[track_caller]
fn check_tool(before: &str, tool: &str, arguments: Value, output: &str, expected: &str) {
    let mut session = Session::default();
    session.write("/w/a.txt", before);
    session.write("/w/other.txt", "x\n");
    session.call(tool, arguments.clone(), output, Outcome::Done);
    assert_eq!(session.claim("/w/a.txt"), expected, "{tool} {arguments}");
}

const THREE: &str = "a1\na2\na3\n";
const SAME: &str = "whole 1:a1|a2|a3";
const SEEN: &str = "1:a1|a2|a3";

#[test]
fn arguments_that_are_not_read_change_the_file_in_a_way_that_is_not_known() {
    let check = |tool: &str, arguments, expected| check_tool(THREE, tool, arguments, "Done.", expected);
    let insert = json!({"command": "insert", "path": "/w/a.txt", "insert_line": 1, "insert_text": "z"});
    check("str_replace_based_edit_tool", insert, "1:a1|z|a2|a3");
    for (tool, arguments) in [
        ("write_file", json!({"path": "/w/a.txt", "data": "new\n"})),
        ("write_to_file", json!({"path": "/w/a.txt", "new_content": "new\n"})),
        ("write_file", json!({"path": "/w/a.txt", "content": "new\n", "mode": "prepend"})),
        ("write_file", json!({"path": "/w/a.txt", "content": "new\n", "start": 4})),
        ("insert_content", json!({"path": "/w/a.txt", "line": 1, "body": "zz"})),
        ("str_replace_editor", json!({"command": "insert", "path": "/w/a.txt", "new_str": "z"})),
        ("str_replace_editor", json!({"command": "undo_edit", "path": "/w/a.txt"})),
        ("Edit", json!({"file_path": "/w/a.txt", "old_string": "a1", "replacement_text": "z"})),
        ("MultiEdit", json!({"file_path": "/w/a.txt", "edits": [{"old_string": "a1", "new_string": "z", "at": 3}]})),
        ("delete_file", json!({"path": "/w/a.txt", "pattern": "a2"})),
    ] {
        check(tool, arguments, "nothing");
    }
    check("move_file", json!({"first": "/w/a.txt", "second": "/w/b.txt"}), SEEN);
    check("apply_patch", json!({"input": "nothing that is understood"}), SEEN);
    check("write_file", json!({"path": "/w", "filename": "a.txt", "content": "new\n"}), SEEN);
    check("write_file", json!({"path": "/w/a.txt", "content": "new\n", "append": true}), "whole 1:a1|a2|a3|new");
    check("rename_file", json!({"path": "/w/a.txt", "new_path": "/w/b.txt"}), "gone");
    check("move_file", json!({"sourcePath": "/w/a.txt", "destinationPath": "/w/b.txt"}), "gone");
    check("write_file", json!({"path": "/w/a.txt", "content": "new\n", "explanation": "why"}), "whole 1:new");
    let all = json!({"file_path": "/w/a.txt", "old_string": "a", "new_string": "b", "replace_all": "true"});
    check("Edit", all, "whole 1:b1|b2|b3");
}

#[test]
fn tools_that_could_write_leave_no_file_whole() {
    let check = |tool: &str, arguments, expected| check_tool(THREE, tool, arguments, "OK", expected);
    for (tool, arguments) in [
        ("Task", json!({"description": "fix", "prompt": "Edit a.txt", "subagent_type": "general-purpose"})),
        ("execute_ipython_cell", json!({"code": "open('/w/a.txt','w').write('z')"})),
        ("write_stdin", json!({"session_id": 1, "chars": "echo z > /w/a.txt\n"})),
        ("write_bash", json!({"sessionId": "1", "input": "rm /w/a.txt{enter}"})),
        ("append_to_file", json!({"path": "/w/a.txt", "content": "more\n"})),
        ("mcp__serena__replace_symbol_body", json!({"name_path": "f", "relative_path": "a.txt", "body": "x"})),
        ("truncate_file", json!({"path": "/w/a.txt"})),
        ("mcp__git__git_checkout", json!({"repo_path": "/w", "branch_name": "main"})),
        ("runPython", json!({"source": "x"})),
        ("spawn_agent", json!({"message": "x"})),
        ("mcp__pencil__batch_design", json!({"filePath": "/w/a.txt", "operations": "x"})),
        ("unheard_of", json!({"path": "/w/a.txt", "edits": ["old", "new"]})),
        ("append_to_file", json!({"path": "/w/other.txt", "content": "more\n"})),
        ("mcp__linear__update_issue", json!({"id": "1", "title": "x"})),
        ("execute_sql", json!({"query": "select 1"})),
    ] {
        check(tool, arguments, SEEN);
    }
    for (tool, arguments) in [
        ("write_stdin", json!({"session_id": 1, "chars": ""})),
        ("write_stdin", json!({"session_id": 1, "yield_time_ms": 1000})),
        ("update_todo_list", json!({"todos": []})),
        ("save_memory", json!({"fact": "x"})),
        ("get_terminal_output", json!({"id": "1"})),
        ("mcp__serena__find_symbol", json!({"relative_path": "a.txt", "name_path": "f"})),
        ("get_diagnostics", json!({"path": "/w/a.txt"})),
    ] {
        check(tool, arguments, SAME);
    }
    // It may have changed something before it failed, but not if it was refused.
    for (outcome, expected) in [(Outcome::Failed, SEEN), (Outcome::Denied, SAME)] {
        let mut session = Session::default();
        session.write("/w/a.txt", THREE);
        session.call("Task", json!({"prompt": "x"}), "no", outcome);
        assert_eq!(session.claim("/w/a.txt"), expected);
    }
}

#[test]
fn a_read_of_a_part_is_neither_whole_nor_numbered_without_proof() {
    let check = |tool: &str, arguments: Value, output: &str, expected: &str| {
        let mut session = Session::default();
        session.call(tool, arguments.clone(), output, Outcome::Done);
        assert_eq!(session.claim("/w/a.txt"), expected, "{tool} {arguments}");
    };
    let two = "line 9\nline 10\n";
    let read = "mcp__filesystem__read_text_file";
    check(read, json!({"path": "/w/a.txt"}), two, "whole 1:line 9|line 10");
    check(read, json!({"path": "/w/a.txt", "tail": 2}), two, ":line 9|line 10");
    check(read, json!({"path": "/w/a.txt", "head": 2}), "line 1\nline 2\n", "1:line 1|line 2");
    check("read_file", json!({"path": "/w/a.txt", "offset": -2}), two, ":line 9|line 10");
    check("read_file", json!({"path": "/w/a.txt", "offset": 9, "limit": 2}), two, ":line 9|line 10");
    check("read_file", json!({"path": "/w/a.txt", "offset": 0}), two, "whole 1:line 9|line 10");
    check("read_file", json!({"path": "/w/a.txt", "start_line": "many"}), two, ":line 9|line 10");
    check("read_file", json!({"path": "/w/a.txt", "chunk": 2}), two, ":line 9|line 10");
    check("Read", json!({"file_path": "/w/a.txt", "chunk": 2}), "     1→x\n     2→y\n", "1:x|y");
    let cursor = json!({"target_file": "/w/a.txt", "should_read_entire_file": false, "start_line_one_indexed": 9});
    check("read_file", cursor, two, "9:line 9|line 10");
    let note = "[Reading 3 lines from start (total: 10 lines, 7 remaining)]\n\nline 1\nline 2\nline 3\n";
    check("mcp__dc__read_file", json!({"path": "/w/a.txt", "offset": 0, "length": 3}), note, "nothing");
}

#[test]
fn a_patch_that_fits_in_several_places_changes_all_of_them() {
    let block =
        |line: usize| format!("<<<<<<< SEARCH\n:start_line:{line}\n-------\nfoo\n=======\nqux\n>>>>>>> REPLACE");
    let check = |line, expected| {
        let arguments = json!({"path": "/w/a.txt", "diff": block(line)});
        check_tool("foo\nbar\nfoo\nbar\n", "apply_diff", arguments, "Changes successfully applied", expected);
    };
    check(1, "whole 1:qux|bar|foo|bar");
    check(3, "whole 1:foo|bar|qux|bar");
    check(2, "2:bar 4:bar :qux");
    let patch =
        |body: &str| json!({"input": format!("*** Begin Patch\n*** Update File: /w/a.txt\n{body}*** End Patch")});
    let done = "Success. Updated the following files:";
    let at_end = patch("@@\n-foo\n+bar\n*** End of File\n");
    check_tool("x\nfoo\ny\nfoo\n", "apply_patch", at_end, done, "1:x 3:y :bar");
    let named = patch("@@ def g():\n-    return 1\n+    return 2\n");
    let before = "def f():\n    return 1\n    def g():\n    return 1\nend\n";
    check_tool(before, "apply_patch", named, done, "1:def f(): 3:    def g(): 5:end :    return 2");
}

#[test]
fn an_edit_at_the_end_of_a_file_says_nothing_about_its_last_line_feed() {
    let after = |before: &str, old: &str, new: &str, command: &str| {
        let mut session = Session::default();
        session.write("/w/a.txt", before);
        let arguments = json!({"filePath": "/w/a.txt", "oldString": old, "newString": new});
        session.call("edit", arguments, "The file has been updated.", Outcome::Done);
        session.call("Bash", json!({"command": command}), "", Outcome::Done);
        session.claim("/w/a.txt")
    };
    assert_eq!(after("one\ntwo", "two", "two\n", "true"), "1:one|two");
    assert_eq!(after("one\ntwo\n", "two", "two\n", "true"), "whole 1:one|two|");
    assert_eq!(after("one\ntwo", "two", "", "echo tail >> /w/a.txt"), "1:one :tail");
    assert_eq!(after("one\ntwo\n", "two\n", "two", "echo tail >> /w/a.txt"), "1:one :tail");
    assert_eq!(after("one\ntwo\n", "one", "1", "echo tail >> /w/a.txt"), "whole 1:1|two|tail");
    let patched = |before: &str| {
        let mut session = Session::default();
        session.write("/w/a.txt", before);
        let patch = "*** Begin Patch\n*** Update File: /w/a.txt\n@@\n-b\n+c\n*** End Patch";
        session.call("apply_patch", json!({"input": patch}), "Success.", Outcome::Done);
        session.call("Bash", json!({"command": "echo tail >> /w/a.txt"}), "", Outcome::Done);
        session.claim("/w/a.txt")
    };
    assert_eq!(patched("a\nb\n"), "whole 1:a|c|tail");
    assert_eq!(patched("a\nb"), "1:a :tail");
}

#[test]
fn a_named_path_of_powershell_is_the_path() {
    let mut session = Session::default();
    session.write("C:\\w\\a.txt", THREE);
    let set = json!({"command": "Set-Content 'C:\\w\\zz' -Path C:\\w\\a.txt", "cwd": "C:\\w"});
    session.call("powershell", set, "", Outcome::Done);
    assert_eq!(session.claim("C:\\w\\a.txt"), "nothing");
    assert_eq!(session.claim("C:\\w\\zz"), "nothing");
}

/// What is claimed of a file in `/w` after commands, each with what it printed.
#[track_caller]
fn check_shell(commands: &[(&str, &str)], path: &str, expected: &str) {
    let mut session = Session::default();
    session.call("Bash", json!({"command": "cd /w"}), "", Outcome::Done);
    for name in ["a.txt", "b.txt", "sub/a.txt"] {
        session.write(&format!("/w/{name}"), THREE);
    }
    for (command, output) in commands {
        session.call("Bash", json!({"command": command}), output, Outcome::Done);
    }
    assert_eq!(session.claim(&format!("/w/{path}")), expected, "{commands:?}");
}

/// Fails if a file in `/w` is claimed to be whole, or gone, after commands.
#[track_caller]
fn check_open(commands: &[(&str, &str)], path: &str) {
    let mut session = Session::default();
    session.call("Bash", json!({"command": "cd /w"}), "", Outcome::Done);
    for name in ["a.txt", "b.txt", "sub/a.txt"] {
        session.write(&format!("/w/{name}"), THREE);
    }
    for (command, output) in commands {
        session.call("Bash", json!({"command": command}), output, Outcome::Done);
    }
    let claim = session.claim(&format!("/w/{path}"));
    assert!(!claim.starts_with("whole") && claim != "gone", "{commands:?}: {claim}");
}

#[test]
fn what_a_command_may_do_otherwise_is_not_claimed() {
    for (command, path) in [
        // Substitutions run where they are written.
        ("echo x > made.txt && y=$(rm made.txt)", "made.txt"),
        ("cat a.txt; echo \"$(rm a.txt)\" > /dev/null", "a.txt"),
        // A later redirection takes the output.
        ("echo x > a.txt >&2", "a.txt"),
        ("echo x > a.txt > /dev/null", "a.txt"),
        ("echo x > a.txt &> /dev/null", "a.txt"),
        ("echo a 3>&1 > a.txt >&3", "a.txt"),
        // The input is another one.
        ("echo x | tee a.txt < b.txt", "a.txt"),
        ("echo x | tee a.txt <<< y", "a.txt"),
        ("echo x | tee >> a.txt", "a.txt"),
        ("cat 3<<< x > a.txt", "a.txt"),
        ("tee a.txt 3<<< x", "a.txt"),
        ("cat > a.txt <<EOF\none \\\nEOF\nrm b.txt\n", "b.txt"),
        // Commands of the shell behind others.
        ("command exit 0; rm a.txt", "a.txt"),
        ("x=exit; $x 0; rm a.txt", "a.txt"),
        ("set -e; command set +e; mv b.txt nodir/; true", "b.txt"),
        ("command set -n\nrm a.txt", "a.txt"),
        ("false && set -e; mv b.txt nodir/; echo done", "b.txt"),
        ("set - -e; mv b.txt nodir/; echo done", "b.txt"),
        ("set errexit -e; mv b.txt nodir/; echo done", "b.txt"),
        // Names that are not written out.
        ("rm a.txt && touch {a,zz}.txt", "a.txt"),
        ("read f < n; rm a.txt && touch \"$f\"", "a.txt"),
        ("rm -r *.d", "sub.d/f.txt"),
        // At the same time.
        ("python3 -c \"open('a.txt','w').write('py')\" | echo x > a.txt", "a.txt"),
        ("rm -f b.txt/ && true", "b.txt"),
        ("rm -f sub/a.txt/../a.txt && true", "sub/a.txt"),
        ("cp -tsub b.txt a.txt", "sub/a.txt"),
        ("cp -ftsub b.txt a.txt", "sub/a.txt"),
        ("mv -tsub a.txt", "sub/a.txt"),
        ("git restore --staged --work a.txt", "a.txt"),
        ("git restore --staged -qW a.txt", "a.txt"),
        ("git apply --check --appl -R p.d", "a.txt"),
        ("o=--output=b.txt; git log -1 \"$o\"", "b.txt"),
        ("git log -1 --{output=b.txt,stat}", "b.txt"),
        ("git log -1 {--stat,--output}=b.txt", "b.txt"),
        ("git log -1 --\"out\"{put=b.txt,line}", "b.txt"),
        ("git log -1 $'--output=b.txt'", "b.txt"),
        ("git log -1 --out${x}put=b.txt", "b.txt"),
        ("echo x > /dev/../w/a.txt", "a.txt"),
        ("echo x > //proc/self/cwd/a.txt", "a.txt"),
        // Texts that the shell evaluates.
        ("PS4='$(rm b.txt)'; set -x; true", "b.txt"),
        ("test -v 'x[$(rm b.txt)0]'; true", "b.txt"),
        ("[[ 'a[$(rm b.txt)0]' -eq 0 ]]; true", "b.txt"),
        ("printf -v 'x[$(rm b.txt)0]' y; true", "b.txt"),
        ("read 'x[$(rm b.txt)0]' <<< 1; true", "b.txt"),
        ("declare -i x='a[$(rm b.txt)0]'; true", "b.txt"),
        ("read y <<< 'x[$(rm b.txt)0]'; [[ $y -eq 0 ]]; true", "b.txt"),
        ("for y in 'x[$(rm b.txt)0]'; do [[ $y -eq 0 ]]; done; true", "b.txt"),
        ("x='$(rm b.txt)'; echo ${x@P}; true", "b.txt"),
        ("curl -s -T b.txt file:///w/a.txt; true", "a.txt"),
        ("curl -s --upload-f b.txt file:///w/a.txt; true", "a.txt"),
        ("cloc --out=a.txt .", "a.txt"),
        ("gofmt --w a.txt", "a.txt"),
        ("clang-format --i a.txt", "a.txt"),
        ("tree -R -H . -L 1", "a.txt"),
    ] {
        check_open(&[("mkdir -p sub.d && echo hi > sub.d/f.txt", ""), (command, "")], path);
    }
}

#[test]
fn ordinary_commands_stay_sure() {
    for (command, path, expected) in [
        ("echo \"$(date)\" && echo x > a.txt", "a.txt", "whole 1:x"),
        ("msg=\"[$(date)] done\"; echo x > a.txt", "a.txt", "whole 1:x"),
        ("set -euo pipefail; mv b.txt c.txt; true", "b.txt", "gone"),
        ("set -e -o pipefail; rm b.txt; true", "b.txt", "gone"),
        ("echo x > a.txt 2> /dev/null", "a.txt", "whole 1:x"),
        ("echo x 2>&1 > a.txt", "a.txt", "whole 1:x"),
        ("echo x | tee a.txt > /dev/null", "a.txt", "whole 1:x"),
        ("cat > a.txt <<'EOF'\none \\\nEOF\n", "a.txt", "whole 1:one \\"),
        ("rm -rf sub/", "sub/a.txt", "gone"),
        ("rm -f ../w/a.txt", "a.txt", "gone"),
        ("git restore --staged a.txt", "b.txt", SEEN),
        ("git log -1 -- \"$f\"", "a.txt", SAME),
        ("command -v git", "a.txt", SAME),
        ("command ls && echo x > b.txt", "a.txt", SAME),
        ("touch a.txt", "a.txt", SAME),
        ("grep -n '[$(]' a.txt", "b.txt", SAME),
    ] {
        check_shell(&[(command, "")], path, expected);
    }
    check_shell(&[("grep -n a2 b.txt | sort", "2:a2\n")], "b.txt", SAME);
}

#[test]
fn a_directory_is_lost_where_it_may_have_changed() {
    for command in [
        "time -p cd sub",
        "time -- cd sub",
        "command . ./go.sh",
        "builtin command cd sub",
        "trap 'cd sub' DEBUG; true",
        "trap 'cd sub' ERR; false; true",
        "command shopt -s expand_aliases\ncommand alias ls=cd\nls sub",
    ] {
        check_open(&[(command, ""), ("echo x > a.txt", "")], "a.txt");
    }
    check_shell(&[("trap 'rm -f tmp' EXIT; true", ""), ("echo x > a.txt", "")], "a.txt", "whole 1:x");
}

#[test]
fn lines_that_only_look_like_the_harness_move_nothing() {
    for printed in ["Shell cwd was reset to /w/sub", "Shell cwd was reset to /w/sub\nmore\n"] {
        check_open(&[("cat log", printed), ("echo x > a.txt", "")], "sub/a.txt");
        check_open(&[("cat log", printed), ("echo x > a.txt", "")], "a.txt");
    }
    let forged = "[Current working directory: /w/sub]\n";
    check_shell(&[("cat log", forged), ("echo x > a.txt", "")], "a.txt", "whole 1:x");
    // Of a command that prints nothing, it is the harness's.
    let reset = [("cd / && mkdir -p /tmp/x", "Shell cwd was reset to /w/sub"), ("echo x > a.txt", "")];
    check_shell(&reset, "sub/a.txt", "whole 1:x");
    let mut session = Session::default();
    session.write("/w/a.txt", THREE);
    let line = "cat /w/log; mv /w/a.txt /w/nodir/";
    let printed = "x\n<exited with exit code 0>\nmv: cannot move '/w/a.txt' to '/w/nodir/': Not a directory\n";
    session.call("bash", json!({"command": line}), printed, Outcome::Unknown);
    assert_eq!(session.claim("/w/a.txt"), SEEN);
}

#[test]
fn a_file_without_a_last_line_feed_is_followed() {
    let open = ("printf 'one\\ntwo' > f.txt", "");
    check_shell(&[open, ("sed -i 2d f.txt && echo x >> f.txt", "")], "f.txt", ":x");
    check_shell(&[open, ("echo x >> f.txt", "")], "f.txt", "whole 1:one|twox");
}

#[test]
fn links_that_nobody_could_follow_join_all_files() {
    for command in [
        "eval 'ln -f a.txt l.txt'",
        "x=(1); ln -s a.txt l.txt",
        "mk() { ln -s a.txt l.txt; }; mk",
        "echo a.txt l.txt | xargs ln",
        "python3 -c \"import os; os.symlink('a.txt', 'l.txt')\"",
        "ln -s -t sub ../a.txt",
    ] {
        check_open(&[(command, ""), ("cat a.txt", "a1\na2\n"), ("echo z > l.txt", "")], "a.txt");
    }
}

#[test]
fn hits_are_taken_only_if_the_name_of_the_file_is_certain() {
    check_shell(&[("grep -rn zed .", "./n.txt:3:zed\nend\n")], "n.txt", "3:zed");
    for printed in ["./n.txt:3:z:1:zed\nend\n", "./n.txt:3:1:zed\nend\n", "./n.txt:4:/f.md:1:zed\nend\n"] {
        check_shell(&[("grep -rn zed .", printed)], "n.txt", "nothing");
    }
    check_shell(&[("grep -n alpha n.txt | cat log.txt", "12:alpha\n3:beta\n")], "n.txt", "nothing");
    check_shell(&[("grep -n alpha n.txt | sort log.txt", "12:alpha\n3:beta\n")], "n.txt", "nothing");
    check_shell(&[("nl -ba n.txt | tail -2", "     2\ty\n     3\tz\n")], "n.txt", "nothing");
}

#[test]
fn a_colon_in_a_name_is_a_drive_only_on_windows() {
    let line = "mkdir -p c: C: && echo one > c:/x.txt && echo two > C:/x.txt";
    for (directory, first, second) in [
        ("/home/p", ("/home/p/c:/x.txt", "whole 1:one"), ("/home/p/C:/x.txt", "whole 1:two")),
        ("D:/p", ("c:/x.txt", "whole 1:two"), ("C:\\x.txt", "whole 1:two")),
    ] {
        let mut session = Session::default();
        session.call("Bash", json!({"command": line, "cwd": directory}), "", Outcome::Done);
        assert_eq!(session.claim(first.0), first.1);
        assert_eq!(session.claim(second.0), second.1);
    }
    let mut session = Session::default();
    session.call("Bash", json!({"command": line}), "", Outcome::Done);
    assert_eq!(session.claim("c:/x.txt"), "nothing");
}
