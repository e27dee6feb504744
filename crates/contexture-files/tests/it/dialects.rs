//! Which call tells what about which file.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::dialect::{Dialects, Does, ToolEntry};
use contexture_files::model::{Fact, FileModel};
use contexture_files::numbering::Passage;
use contexture_files::observation::{Observation, Who};
use contexture_files::patch::Hunk;
use serde_json::{Value, json};

#[track_caller]
fn check(name: &str, arguments: Value, result: &str, expected: Vec<Observation>) {
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let call = FunctionCall::new("1", name, arguments);
    let output = FunctionCallOutput::new("1", result, Outcome::Done);
    assert_eq!(Dialects::builtin().observe(&call, &output).observations, expected);
}

fn read(path: &str, first: Option<usize>, lines: &[&str], whole: bool) -> Observation {
    Observation::Read { path: path.into(), block: block(first, lines), whole }
}

fn block(first: Option<usize>, lines: &[&str]) -> Passage {
    Passage { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
}

fn edit(path: &str, old: &str, new: &str) -> Observation {
    Observation::Edit { path: path.into(), old: old.into(), new: new.into(), all: false, takes_feed: false }
}

/// A block of search and replace, which is applied at the first place where its lines are.
fn patch(path: &str, old: &[&str], new: &[&str]) -> Observation {
    let lines = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| (*line).to_owned()).collect() };
    let hunk = Hunk { old: lines(old), new: lines(new), added: vec![true; new.len()], ..Hunk::default() };
    Observation::Patch { path: path.into(), hunks: vec![hunk] }
}

#[test]
fn numbered_reads_of_every_agent_lose_their_numbers() {
    let lines = &["fn main() {", "    run();", "}"];
    let read_all = vec![read("a.rs", Some(1), lines, true)];
    check("Read", json!({"file_path": "a.rs"}), "     1→fn main() {\n     2→    run();\n     3→}\n", read_all.clone());
    check("Read", json!({"file_path": "a.rs"}), "1\tfn main() {\n2\t    run();\n3\t}", read_all.clone());
    let opencode = "<path>a.rs</path>\n<type>file</type>\n<content>1: fn main() {\n2:     run();\n3: }\n\n(End of file - total 3 lines)\n</content>";
    check("read", json!({"filePath": "a.rs"}), opencode, vec![read("a.rs", Some(1), lines, true)]);
    check("view", json!({"path": "a.rs"}), "1. fn main() {\n2.     run();\n3. }", read_all.clone());
    check("read_file", json!({"path": "a.rs"}), "1 | fn main() {\n2 |     run();\n3 | }", read_all.clone());
    let editor = json!({"command": "view", "path": "a.rs"});
    check("str_replace_editor", editor, "     1\tfn main() {\n     2\t    run();\n     3\t}", read_all.clone());
    check("read_file", json!({"absolute_path": "a.rs"}), "fn main() {\n    run();\n}", read_all);
}

/// One or two numbered lines of a tool that may not number lines could be the text of a file, unless the tool says more.
#[test]
fn short_files_that_the_own_tool_reads_are_known() {
    let path = || json!({"path": "a.txt"});
    let whole = |lines: &[&str]| vec![read("a.txt", Some(1), lines, true)];
    check("read_file", path(), "(the file is empty)", whole(&[]));
    check("read_file", path(), "1\tone\n(End of file: 1 line)\n", whole(&["one"]));
    check("read_file", path(), "1\tone\n2\ttwo\n(End of file: 2 lines)\n", whole(&["one", "two"]));
    check("read_file", path(), "1\t\n(End of file: 1 line)\n", whole(&[""]));
    let part = |offset: usize, limit: usize| json!({"path": "a.txt", "offset": offset, "limit": limit});
    let shown = vec![read("a.txt", Some(4), &["four"], false)];
    check("read_file", part(4, 9), "4\tfour\n(End of file: 4 lines)\n", shown);
    let shown = vec![read("a.txt", Some(2), &["two", "three"], false)];
    check("read_file", part(2, 2), "2\ttwo\n3\tthree\n[lines 2-3 of 4; go on with offset 4]\n", shown);
    for text in [
        "1\tone\n",
        "1\tone\n2\ttwo\n",
        "1\tone\n2\ttwo\n3\tthree\n",
        "1\tone\n(End of file: 2 lines)\n",
        "1\tone\n3\tx\n(End of file: 2 lines)\n",
    ] {
        check("read_file", path(), text, vec![]);
    }
}

#[test]
fn narrowed_reads_know_where_they_start() {
    let arguments = json!({"file_path": "a.rs", "offset": 7, "limit": 2});
    check("Read", arguments, "     7→x\n     8→y", vec![read("a.rs", Some(7), &["x", "y"], false)]);
    let arguments = json!({"path": "a.rs", "view_range": [7, 8]});
    check("view", arguments, "7. x\n8. y", vec![read("a.rs", Some(7), &["x", "y"], false)]);
    let one = json!({"path": "a.rs", "view_range": [7, 7]});
    check("view", one, "7. x", vec![read("a.rs", Some(7), &["x"], false)]);
    // A list may count its lines itself, and numbers that are not those of the range are not the tool's.
    check("view", json!({"path": "a.md", "view_range": [7, 8]}), "7. x\n8. y", Vec::new());
    check("view", json!({"path": "a.rs", "view_range": [7, 9]}), "7. x\n8. y", Vec::new());
    let arguments = json!({"path": "a.rs", "line_offset": 7, "n_lines": 2});
    check("ReadFile", arguments, "     7\tx\n     8\ty", vec![read("a.rs", Some(7), &["x", "y"], false)]);
}

#[test]
fn edits_of_every_agent_are_understood() {
    let expected = vec![edit("a.rs", "old", "new")];
    check("Edit", json!({"file_path": "a.rs", "old_string": "old", "new_string": "new"}), "ok", expected.clone());
    check("edit", json!({"filePath": "a.rs", "oldString": "old", "newString": "new"}), "ok", expected.clone());
    check("edit", json!({"path": "a.rs", "old_str": "old", "new_str": "new"}), "ok", expected.clone());
    check("replace", json!({"file_path": "a.rs", "old_string": "old", "new_string": "new"}), "ok", expected.clone());
    let arguments = json!({"command": "str_replace", "path": "a.rs", "old_str": "old", "new_str": "new"});
    check("str_replace_based_edit_tool", arguments, "ok", expected.clone());
    let arguments = json!({"file_path": "a.rs", "edits": [{"old_string": "old", "new_string": "new"}]});
    check("MultiEdit", arguments, "ok", expected.clone());
    let diff = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE";
    check("replace_in_file", json!({"path": "a.rs", "diff": diff}), "ok", vec![patch("a.rs", &["old"], &["new"])]);
    check("StrReplaceFile", json!({"path": "a.rs", "edit": {"old": "old", "new": "new"}}), "ok", expected.clone());
    check("StrReplaceFile", json!({"path": "a.rs", "edit": [{"old": "old", "new": "new"}]}), "ok", expected.clone());
    check("unheard_of", json!({"path": "a.rs", "old_str": "old", "new_str": "new"}), "ok", expected.clone());
    let arguments = json!({"path": "a.rs", "edits": [{"oldText": "old", "newText": "new"}]});
    check("unheard_of", arguments.clone(), "ok", expected.clone());
    let unknown = vec![could_write("unheard_of")];
    check("unheard_of", json!({"path": "a.rs", "edits": ["old", "new"]}), "ok", unknown);
    check("apply_diff", json!({"path": "a.rs", "diff": diff}), "ok", vec![patch("a.rs", &["old"], &["new"])]);
    for name in ["mcp__filesystem__edit_file", "files.edit_file", "files/edit_file", "files:edit_file"] {
        check(name, arguments.clone(), "ok", expected.clone());
    }
}

#[test]
fn a_write_may_be_told_to_append() {
    let (path, text) = ("a.rs".to_owned(), "new\n".to_owned());
    let arguments = |mode: &str| json!({"path": "a.rs", "content": "new\n", "mode": mode});
    let append = Observation::Append { path: path.clone(), text: text.clone() };
    check("WriteFile", arguments("append"), "ok", vec![append]);
    check("WriteFile", arguments("overwrite"), "ok", vec![Observation::Write { path, text }]);
}

/// What a call tells whose outcome nobody stated.
fn unstated(name: &str, arguments: Value, result: &str) -> Vec<Observation> {
    let call = FunctionCall::new("1", name, arguments.to_string());
    Dialects::builtin().observe(&call, &FunctionCallOutput::new("1", result, Outcome::Unknown)).observations
}

#[test]
fn a_call_that_failed_or_was_refused_changes_nothing() {
    let arguments = || json!({"file_path": "a.rs", "old_string": "old", "new_string": "new"});
    for outcome in [Outcome::Failed, Outcome::Denied] {
        let call = FunctionCall::new("1", "Edit", arguments().to_string());
        let seen = Dialects::builtin().observe(&call, &FunctionCallOutput::new("1", "ok", outcome));
        assert_eq!((seen.observations, seen.failed), (vec![], true));
    }
    let call = FunctionCall::new("1", "Bash", json!({"command": "rm a.rs"}).to_string());
    let seen = Dialects::builtin().observe(&call, &FunctionCallOutput::new("1", "no", Outcome::Denied));
    assert_eq!(seen.observations, []);
    let arguments = json!({"path": "a.rs", "edits": [{"oldText": "old", "newText": "new"}], "dryRun": true});
    check("mcp__filesystem__edit_file", arguments, "-old\n+new", vec![]);
}

#[test]
fn texts_of_failures_are_the_last_resort() {
    let arguments = || json!({"file_path": "a.rs", "old_string": "old", "new_string": "new"});
    for text in [
        "<tool_use_error>String to replace not found in file.\nString: old</tool_use_error>",
        "String to replace not found in file.",
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "[Request interrupted by user for tool use]",
        "File has not been read yet. Read it first before writing to it.",
        "Exit code: 1\nWall time: 0 seconds\nOutput:\nno",
        "execution error: Io(Os { code: 13 })",
        "apply_patch verification failed: Failed to find expected lines",
        "exec command rejected by user",
        "patch rejected by user",
        "failed in sandbox: denied",
        "oldString not found in content",
        "The user rejected permission to use this specific tool call.",
        "No replacements were made. The old string was not found.",
        "No replacement was performed, old_str `old` did not appear verbatim in a.rs.",
        "The tool execution failed with the following error:",
        "The user denied this operation.",
        "Failed to edit, 0 occurrences found for old_string.",
        "[Operation Cancelled] Reason: User cancelled",
        "This call was denied and did not run: no",
        "Permission denied",
        "User rejected the edit",
    ] {
        assert_eq!(unstated("Edit", arguments(), text), [], "{text}");
    }
    let could_write =
        |observations: Vec<Observation>| observations.iter().any(|told| matches!(told, Observation::CouldWrite { .. }));
    for text in [
        "This call was interrupted. It may or may not have had an effect, and it was not run again.",
        "The output of this call was withheld.",
        "something that says nothing",
    ] {
        assert!(could_write(unstated("Edit", arguments(), text)), "{text}");
    }
    let absent = unstated("Edit", arguments(), "Error: ENOENT: no such file or directory");
    assert_eq!(absent, [Observation::Absent { path: "a.rs".into() }]);
    assert_eq!(unstated("Edit", arguments(), "The file a.rs has been updated."), [edit("a.rs", "old", "new")]);
}

#[test]
fn shell_commands_are_looked_into() {
    let shell = |command: &str| json!({"cmd": command});
    let check = |command: &str, output: &str, expected| check("exec_command", shell(command), output, expected);
    check("sed -n '3,4p' a.rs", "x\ny\n", vec![read("a.rs", Some(3), &["x", "y"], false)]);
    check("cd src && cat a.rs", "x\n", vec![read("src/a.rs", Some(1), &["x"], true)]);
    check("nl -ba a.rs | sed -n '2,3p'", "     2\tx\n     3\ty\n", vec![read("a.rs", Some(2), &["x", "y"], false)]);
    check("head -2 a.rs", "x\ny\n", vec![read("a.rs", Some(1), &["x", "y"], false)]);
    check(
        "sed -n '1,1p;5,6p' a.rs",
        "x\ny\nz\n",
        vec![read("a.rs", Some(1), &["x"], false), read("a.rs", Some(5), &["y", "z"], false)],
    );
    check("cat a; echo ---; cat b", "x\n---\ny\n", vec![]);
    check("sed -n '1,9p' a.rs", "x\ny\n", vec![read("a.rs", Some(1), &["x", "y"], true)]);
    check("cat a.rs", "", vec![read("a.rs", Some(1), &[], true)]);
    let codex = "Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 0\nOriginal token count: 1\nOutput:\nx\n";
    check("cat a.rs", codex, vec![read("a.rs", Some(1), &["x"], true)]);
    check("cargo build 2>&1 | tail -5", "warning: unused\n", vec![could_write("cargo build")]);
}

#[test]
fn output_that_nobody_can_tell_apart_teaches_nothing() {
    let command = json!({"command": "sed -n '1,50p' a.rs && sed -n '1,50p' b.rs"});
    check("Bash", command, "x\ny\nz\n", vec![]);
}

#[test]
fn many_lines_that_nobody_can_tell_apart_are_kept_as_printed() {
    let lines = ["a", "b", "c", "d", "e", "f"];
    let printed = Observation::Printed { paths: vec!["a.rs".into(), "b.rs".into()], block: block(None, &lines) };
    let command = json!({"command": "sed -n '1,50p' a.rs && sed -n '1,50p' b.rs"});
    check("Bash", command, "a\nb\nc\nd\ne\nf\n", vec![printed.clone()]);
    let mut model = FileModel::new();
    model.apply(1, &printed);
    let entry = &model.files()[0];
    assert_eq!((entry.path.as_str(), entry.known_lines()), ("a.rs, b.rs, as printed", 6));
    assert_eq!(model.claim(0, 0, 0..6).fact, Fact::Seen);
    assert!(model.get("a.rs").is_none() && model.claim_whole(0).is_none(), "nothing is learnt of the files");
}

#[test]
fn lines_that_the_harness_cut_are_left_out() {
    let output = "x\n1\n2\ny and…317 tokens truncated…more\n3\n4\nz\n";
    let parts = vec![read("a.rs", Some(3), &["x"], false), read("a.rs", None, &["z"], false)];
    check("Bash", json!({"command": "sed -n '3,900p' a.rs"}), output, parts);
}

#[test]
fn searches_find_lines_of_files() {
    let found = Observation::Found {
        path: "src/a.rs".into(),
        blocks: vec![block(Some(4), &["x", "y"]), block(Some(9), &["z"])],
    };
    check("Bash", json!({"command": "rg -n x src"}), "src/a.rs:4:x\nsrc/a.rs:5:y\nsrc/a.rs:9:z\n", vec![found]);
}

#[test]
fn the_shell_changes_files_too() {
    let check = |command: &str, expected| check("Bash", json!({"command": command}), "", expected);
    let write = |path: &str, text: &str| Observation::Write { path: path.into(), text: text.into() };
    check("cat > a.txt <<'EOF'\none\ntwo\nEOF", vec![write("a.txt", "one\ntwo\n")]);
    check("cat >> a.txt <<EOF\none\nEOF", vec![Observation::Append { path: "a.txt".into(), text: "one\n".into() }]);
    check("git mv a.rs b.rs", vec![Observation::Move { from: "a.rs".into(), to: "b.rs".into() }]);
    check("rm -f a.rs", vec![Observation::Delete { path: "a.rs".into() }]);
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.rs\n+x\n*** End Patch\nEOF";
    check(patch, vec![write("a.rs", "x\n")]);
}

fn changed(path: &str, by: &str) -> Observation {
    Observation::Changed { path: path.into(), by: format!("`{by}`"), who: Who::Agent }
}

fn could_write(by: &str) -> Observation {
    Observation::CouldWrite { path: None, by: format!("`{by}`") }
}

#[test]
fn commands_that_could_write_files_are_said() {
    let check = |command: &str, expected| check("Bash", json!({"command": command}), "", expected);
    let any = |by: &str| vec![could_write(by)];
    for line in [
        "cargo fmt",
        "npx prettier --write src/a.ts",
        "cargo test",
        "./script.sh",
        "git checkout main",
        "git checkout -b topic main",
        "git reset --hard",
        "git stash",
        "git commit -m x",
        "sort -o a.rs b.rs",
        "find . -name x -delete",
        "python3 -c x",
        "eval x",
    ] {
        check(line, any(line));
    }
    for line in ["git status", "git log -3", "if test -f a; then ls b; fi"] {
        check(line, vec![]);
    }
    check("timeout 60 go test ./...", any("go test ./..."));
    check("git checkout -- a.rs", vec![changed("a.rs", "git checkout -- a.rs")]);
    check("make > out.txt", vec![could_write("make"), changed("out.txt", "make")]);
    let by = "sed -i s/a.*b/c/ x.rs y.rs";
    check("sed -i 's/a.*b/c/' x.rs y.rs", vec![changed("x.rs", by), changed("y.rs", by)]);
    check("sed -i 's/a/b/' src/*.rs", vec![could_write("sed -i s/a/b/ src/*.rs")]);
    check("test -f a || rm a", vec![could_write("rm a")]);
}

#[test]
fn texts_that_are_written_out_are_known() {
    let check = |command: &str, expected| check("Bash", json!({"command": command}), "", expected);
    let copy = || vec![Observation::Copy { from: "a".into(), to: "b".into(), into: false }];
    check("cat a > b", copy());
    check("cp a.rs src/", vec![Observation::Copy { from: "a.rs".into(), to: "src/".into(), into: true }]);
    check("echo one two >> a", vec![Observation::Append { path: "a".into(), text: "one two\n".into() }]);
    check("printf 'one\\ntwo\\n' > a", vec![Observation::Write { path: "a".into(), text: "one\ntwo\n".into() }]);
    check("cat <<'E' | tee a\nx\nE", vec![Observation::Write { path: "a".into(), text: "x\n".into() }]);
    check("cat > a <<E\n$x\nE", vec![changed("a", "cat")]);
}

#[test]
fn what_a_failed_command_line_may_have_done_could_be_written() {
    let check = |command: &str, expected| {
        let call = FunctionCall::new("1", "Bash", json!({"command": command}).to_string());
        let output = FunctionCallOutput::new("1", "boom\n", Outcome::Failed);
        assert_eq!(Dialects::builtin().observe(&call, &output).observations, expected);
    };
    let written = could_write("echo x");
    check("make && echo x > a.rs", vec![could_write("make"), written]);
    check("cat a.rs && false", vec![]);
}

#[test]
fn files_printed_one_after_the_other_are_told_apart_by_counts() {
    let numbered = vec![read("a.rs", Some(1), &["x"], false), read("b.rs", Some(1), &["y", "z"], false)];
    check("Bash", json!({"command": "sed -n '1,1p' a.rs && sed -n '1,2p' b.rs"}), "x\ny\nz\n", numbered);
}

#[test]
fn outputs_name_places_in_files() {
    #[track_caller]
    fn check_line(output: &str, expected: &[(&str, Option<usize>)]) {
        let mentioned =
            expected.iter().map(|(path, line)| Observation::Mentioned { path: (*path).to_owned(), line: *line });
        check(
            "Bash",
            json!({"command": "make test"}),
            output,
            [could_write("make test")].into_iter().chain(mentioned).collect(),
        );
    }
    check_line("src/a.rs:12:5: error: expected `;`", &[("src/a.rs", Some(12))]);
    check_line("error[E0308]: mismatched types\n   --> src/a.rs:12:5\n    |", &[("src/a.rs", Some(12))]);
    check_line("thread 'main' panicked at src/lib.rs:3:9:\nboom", &[("src/lib.rs", Some(3))]);
    check_line("  File \"pkg/x.py\", line 12, in f", &[("pkg/x.py", Some(12))]);
    check_line("    at foo (src/a.ts:12:5)", &[("src/a.ts", Some(12))]);
    check_line("src/a.ts(12,5): error TS2304: Cannot find name 'b'.", &[("src/a.ts", Some(12))]);
    check_line("FAIL src/a.test.ts", &[("src/a.test.ts", None)]);
    check_line("FAILED tests/test_a.py::test_b - assert 1 == 2", &[("tests/test_a.py", None)]);
    check_line("main.go:7:2: undefined: x", &[("main.go", Some(7))]);
    check_line("a.rs:1:1 warning\na.rs:1:1 note\nb.rs:2:1", &[("a.rs", Some(1)), ("b.rs", Some(2))]);
    check_line("Compiling contexture v0.1.0 in 3.2s; see README.md", &[]);
    check_line("ok 12.5: 3 passed", &[]);
}

#[test]
fn a_user_adds_a_tool_with_four_lines() {
    let entry: ToolEntry = serde_json::from_value(json!({"name": "peek", "does": "read", "path": "where"})).unwrap();
    assert_eq!(entry.does, Does::Read);
    let call = FunctionCall::new("1", "peek", json!({"where": "a.rs"}).to_string());
    let seen = Dialects::builtin().with(entry).observe(&call, &FunctionCallOutput::new("1", "x\n", Outcome::Unknown));
    assert_eq!(seen.observations, [read("a.rs", Some(1), &["x"], true)]);
}
