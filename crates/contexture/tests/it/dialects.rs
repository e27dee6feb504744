//! Which call tells what about which file.

use contexture::files::dialect::{Dialects, Does, ToolEntry};
use contexture::files::numbering::Block;
use contexture::files::observation::Observation;
use contexture::transcript::ToolCall;
use serde_json::{Value, json};

#[track_caller]
fn check(name: &str, arguments: Value, result: &str, expected: Vec<Observation>) {
    let call = ToolCall { id: "1".into(), name: name.into(), arguments };
    assert_eq!(Dialects::builtin().observe(&call, result).observations, expected);
}

fn read(path: &str, first: Option<usize>, lines: &[&str], whole: bool) -> Observation {
    Observation::Read { path: path.into(), block: block(first, lines), whole }
}

fn block(first: Option<usize>, lines: &[&str]) -> Block {
    Block { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
}

fn edit(path: &str, old: &str, new: &str) -> Observation {
    Observation::Edit { path: path.into(), old: old.into(), new: new.into(), all: false }
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

#[test]
fn narrowed_reads_know_where_they_start() {
    let arguments = json!({"file_path": "a.rs", "offset": 7, "limit": 2});
    check("Read", arguments, "     7→x\n     8→y", vec![read("a.rs", Some(7), &["x", "y"], false)]);
    let arguments = json!({"path": "a.rs", "view_range": [7, 8]});
    check("view", arguments, "x\ny", vec![read("a.rs", Some(7), &["x", "y"], false)]);
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
    check("replace_in_file", json!({"path": "a.rs", "diff": diff}), "ok", expected.clone());
    check("unheard_of", json!({"path": "a.rs", "old_str": "old", "new_str": "new"}), "ok", expected);
}

#[test]
fn a_failed_edit_changes_nothing() {
    let arguments = json!({"file_path": "a.rs", "old_string": "old", "new_string": "new"});
    check("Edit", arguments, "<tool_use_error>String to replace not found in file.", vec![]);
    check(
        "apply_patch",
        json!({"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}),
        "apply_patch verification failed: x",
        vec![],
    );
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
    let marked = vec![read("a", Some(1), &["x"], true), read("b", Some(1), &["y"], true)];
    check("cat a; echo ---; cat b", "x\n---\ny\n", marked);
    let codex = "Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 0\nOriginal token count: 1\nOutput:\nx\n";
    check("cat a.rs", codex, vec![read("a.rs", Some(1), &["x"], true)]);
    check("cargo build 2>&1 | tail -5", "warning: unused\n", vec![]);
}

#[test]
fn output_that_nobody_can_tell_apart_belongs_to_all() {
    let together =
        Observation::ReadTogether { paths: vec!["a".into(), "b".into()], block: block(None, &["x", "y", "z"]) };
    check("Bash", json!({"command": "sed -n '1,50p' a && sed -n '1,50p' b"}), "x\ny\nz", vec![together]);
}

#[test]
fn searches_find_lines_of_files() {
    let found = Observation::Found {
        path: "src/a.rs".into(),
        blocks: vec![block(Some(4), &["x", "y"]), block(Some(9), &["z"])],
    };
    check("Bash", json!({"command": "rg -n x src"}), "src/a.rs:4:x\nsrc/a.rs:5:y\nsrc/a.rs:9:z", vec![found]);
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

#[test]
fn outputs_name_places_in_files() {
    #[track_caller]
    fn check_line(output: &str, expected: &[(&str, Option<usize>)]) {
        let mentioned =
            expected.iter().map(|(path, line)| Observation::Mentioned { path: (*path).to_owned(), line: *line });
        check("Bash", json!({"command": "make test"}), output, mentioned.collect());
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
    let call = ToolCall { id: "1".into(), name: "peek".into(), arguments: json!({"where": "a.rs"}) };
    let seen = Dialects::builtin().with(entry).observe(&call, "x\n");
    assert_eq!(seen.observations, [read("a.rs", Some(1), &["x"], true)]);
}
