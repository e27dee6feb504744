//! Which call tells what about which file.

use contexture::files::dialect::{Dialects, Does, ToolEntry};
use contexture::files::numbering::Passage;
use contexture::files::observation::{LineChange, Observation};
use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};
use serde_json::{Value, json};

#[track_caller]
fn check(name: &str, arguments: Value, result: &str, expected: Vec<Observation>) {
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let call = FunctionCall::new("1", name, arguments);
    let output = FunctionCallOutput::new("1", result, Outcome::Unknown);
    assert_eq!(Dialects::builtin().observe(&call, &output).observations, expected);
}

fn read(path: &str, first: Option<usize>, lines: &[&str], whole: bool) -> Observation {
    Observation::Read { path: path.into(), block: block(first, lines), whole }
}

fn block(first: Option<usize>, lines: &[&str]) -> Passage {
    Passage { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
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
    check("replace_in_file", json!({"path": "a.rs", "diff": diff}), "ok", expected.clone());
    check("StrReplaceFile", json!({"path": "a.rs", "edit": {"old": "old", "new": "new"}}), "ok", expected.clone());
    check("StrReplaceFile", json!({"path": "a.rs", "edit": [{"old": "old", "new": "new"}]}), "ok", expected.clone());
    check("unheard_of", json!({"path": "a.rs", "old_str": "old", "new_str": "new"}), "ok", expected.clone());
    let arguments = json!({"path": "a.rs", "edits": [{"oldText": "old", "newText": "new"}]});
    check("unheard_of", arguments.clone(), "ok", expected.clone());
    check("unheard_of", json!({"path": "a.rs", "edits": ["old", "new"]}), "ok", vec![]);
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

#[test]
fn a_failed_edit_changes_nothing() {
    let arguments = json!({"file_path": "a.rs", "old_string": "old", "new_string": "new"});
    check("Edit", arguments, "<tool_use_error>String to replace not found in file.", vec![]);
    let arguments = json!({"path": "a.rs", "edit": {"old": "old", "new": "new"}});
    check("StrReplaceFile", arguments, "No replacements were made. The old string was not found.", vec![]);
    let arguments = json!({"path": "a.rs", "edits": [{"oldText": "old", "newText": "new"}], "dryRun": true});
    check("mcp__filesystem__edit_file", arguments, "-old\n+new", vec![]);
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
fn lines_that_the_harness_cut_are_left_out() {
    let output = "x\ny and…317 tokens truncated…more\nz\n";
    let parts = vec![read("a.rs", Some(3), &["x"], false), read("a.rs", None, &["z"], false)];
    check("Bash", json!({"command": "sed -n '3,900p' a.rs"}), output, parts);
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

const DIFF: &str =
    "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -4,2 +4,2 @@ fn\n x\n-old\n+new\n";

#[test]
fn only_a_diff_against_the_working_tree_shows_current_lines() {
    let blocks = || vec![block(Some(4), &["x", "new"])];
    let found = || vec![Observation::Found { path: "src/a.rs".into(), blocks: blocks() }];
    let old = || vec![Observation::Old { path: "src/a.rs".into(), blocks: blocks() }];
    for command in ["git diff", "git diff HEAD", "git diff -- src/a.rs", "git diff main src/a.rs", "git -C . diff main"]
    {
        check("Bash", json!({"command": command}), DIFF, found());
    }
    for command in [
        "git show",
        "git show HEAD~3 -- src/a.rs",
        "git log -p -2",
        "git diff main..topic",
        "git diff main topic",
        "git diff --cached",
        "git stash show -p",
        "git diff -R",
    ] {
        check("Bash", json!({"command": command}), DIFF, old());
    }
    let earlier = vec![read("HEAD~1:src/a.rs", Some(1), &["x"], true)];
    check("Bash", json!({"command": "git show HEAD~1:src/a.rs"}), "x\n", earlier);
}

#[test]
fn blame_shows_lines_of_the_working_tree_unless_told_otherwise() {
    let output = "1a2b3c4d (Ada L 2024-05-01 10:00:00 +0200 7) x\n00000000 (Not Committed Yet 2024-05-02 8) y\n";
    let blocks = || vec![block(Some(7), &["x", "y"])];
    let found = vec![Observation::Found { path: "a.rs".into(), blocks: blocks() }];
    check("Bash", json!({"command": "git blame -L 7,8 a.rs"}), output, found);
    let old = vec![Observation::Old { path: "a.rs".into(), blocks: blocks() }];
    check("Bash", json!({"command": "git blame v1.0 -- a.rs"}), output, old);
}

fn changed(path: &str, by: &str) -> Observation {
    Observation::Changed { path: path.into(), by: format!("`{by}`") }
}

fn swept(under: Option<&str>, extensions: &[&str], by: &str) -> Observation {
    let extensions = extensions.iter().map(|extension| (*extension).to_owned()).collect();
    Observation::Swept { under: under.map(str::to_owned), extensions, by: format!("`{by}`") }
}

#[test]
fn commands_that_may_change_files_are_said() {
    let check = |command: &str, expected| check("Bash", json!({"command": command}), "", expected);
    check("cargo fmt", vec![swept(None, &["rs"], "cargo fmt")]);
    check("cargo fmt --check", vec![]);
    check("cd web && npx prettier --write src/a.ts", vec![changed("web/src/a.ts", "npx prettier --write src/a.ts")]);
    check("prettier --check src", vec![]);
    check("eslint --fix src/", vec![swept(Some("src"), SCRIPT_EXTENSIONS, "eslint --fix src/")]);
    check("gofmt -w ./...", vec![swept(None, &["go"], "gofmt -w ./...")]);
    check("gofmt -l .", vec![]);
    check("ruff format", vec![swept(None, &["py", "pyi"], "ruff format")]);
    check("python -m black a.py", vec![changed("a.py", "python -m black a.py")]);
    check("git checkout -- a.rs", vec![changed("a.rs", "git checkout -- a.rs")]);
    check("git checkout main", vec![swept(None, &[], "git checkout main")]);
    check("git checkout -b topic", vec![]);
    check("git reset --hard", vec![swept(None, &[], "git reset --hard")]);
    check("git reset a.rs", vec![]);
    check("git stash list", vec![]);
    check("git stash", vec![swept(None, &[], "git stash")]);
    check("make > out.txt", vec![changed("out.txt", "make")]);
    check(
        "sed -i 's/a.*b/c/' x.rs y.rs",
        vec![changed("x.rs", "sed -i s/a.*b/c/ x.rs y.rs"), changed("y.rs", "sed -i s/a.*b/c/ x.rs y.rs")],
    );
    check("sed -i 's/a/b/' src/*.rs", vec![swept(Some("src"), &["rs"], "sed -i s/a/b/ src/*.rs")]);
}

const SCRIPT_EXTENSIONS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];

#[test]
fn a_pull_that_brought_nothing_changes_nothing() {
    check("Bash", json!({"command": "git pull"}), "Already up to date.\n", vec![]);
}

#[test]
fn changes_that_can_be_computed_are() {
    let check = |command: &str, expected| check("Bash", json!({"command": command}), "", expected);
    let rewrite = |command: &str, changes| {
        vec![Observation::Rewrite { path: "a.rs".into(), changes, by: format!("`{command}`") }]
    };
    let substitute =
        |old: &str, new: &str, all| LineChange::Substitute { lines: None, old: old.into(), new: new.into(), all };
    check("sed -i 's/a/b/g' a.rs", rewrite("sed -i s/a/b/g a.rs", vec![substitute("a", "b", true)]));
    check("sed -i '' 's|x\\.y|z|' a.rs", rewrite("sed -i  s|x\\.y|z| a.rs", vec![substitute("x.y", "z", false)]));
    check(
        "sed -i '3d;5,6d' a.rs",
        rewrite(
            "sed -i 3d;5,6d a.rs",
            vec![LineChange::Delete { first: 3, last: 3 }, LineChange::Delete { first: 5, last: 6 }],
        ),
    );
    check(
        "sed -i '/dbg/d' a.rs",
        rewrite("sed -i /dbg/d a.rs", vec![LineChange::DeleteMatching { text: "dbg".into() }]),
    );
    let copy = || vec![Observation::Copy { from: "a".into(), to: "b".into() }];
    check("cat a > b", copy());
    check("cp a.rs src/", vec![Observation::Copy { from: "a.rs".into(), to: "src/a.rs".into() }]);
    check("echo one two >> a", vec![Observation::Append { path: "a".into(), text: "one two\n".into() }]);
    check("printf 'one\\ntwo\\n' > a", vec![Observation::Write { path: "a".into(), text: "one\ntwo\n".into() }]);
    check("cat <<'E' | tee a\nx\nE", vec![Observation::Write { path: "a".into(), text: "x\n".into() }]);
    let by = "`cat`".to_owned();
    check("cat > a <<E\n$x\nE", vec![Observation::Guess { path: "a".into(), text: "$x\n".into(), by }]);
}

#[test]
fn what_a_failed_command_line_did_before_it_failed_counts() {
    let text = "Exit code: 1\nWall time: 0\nOutput:\nboom\n";
    let write = Observation::Write { path: "a".into(), text: "x\n".into() };
    check("Bash", json!({"command": "cat > a <<'E'\nx\nE\nmake"}), text, vec![write]);
    let doubt = swept(Some("a.rs"), &[], "sed -i s/a/b/ a.rs");
    check("Bash", json!({"command": "make && sed -i s/a/b/ a.rs"}), text, vec![doubt]);
    check(
        "Bash",
        json!({"command": "apply_patch <<'E'\n*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\nE"}),
        text,
        vec![],
    );
}

#[test]
fn files_printed_one_after_the_other_are_told_apart() {
    let check = |command: &str, output: &str, expected| check("Bash", json!({"command": command}), output, expected);
    let both = |whole| vec![read("a.rs", Some(1), &["x"], whole), read("b.rs", Some(1), &["y", "z"], whole)];
    check("head -n 5 a.rs b.rs", "==> a.rs <==\nx\n\n==> b.rs <==\ny\nz\n", both(false));
    check("tail -n +1 *.rs", "==> a.rs <==\nx\n\n==> b.rs <==\ny\nz\n", both(true));
    check("for f in a.rs b.rs; do echo $f; cat $f; done", "a.rs\nx\nb.rs\ny\nz\n", both(true));
    check("for f in *.rs; do echo \"== $f ==\"; cat \"$f\"; done", "== a.rs ==\nx\n== b.rs ==\ny\nz\n", both(true));
    let numbered = vec![read("a.rs", Some(1), &["x"], false), read("b.rs", Some(1), &["y", "z"], false)];
    check("nl -ba a.rs; nl -ba b.rs", "     1\tx\n     1\ty\n     2\tz\n", numbered.clone());
    check("sed -n '1,1p' a.rs && sed -n '1,2p' b.rs", "x\ny\nz\n", numbered);
    let joint =
        Observation::ReadTogether { paths: vec!["a.rs".into(), "b.rs".into()], block: block(None, &["x", "y"]) };
    check("cat a.rs b.rs; echo --; cat c.rs", "x\ny\n--\nz\n", vec![joint, read("c.rs", Some(1), &["z"], true)]);
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
    let call = FunctionCall::new("1", "peek", json!({"where": "a.rs"}).to_string());
    let seen = Dialects::builtin().with(entry).observe(&call, &FunctionCallOutput::new("1", "x\n", Outcome::Unknown));
    assert_eq!(seen.observations, [read("a.rs", Some(1), &["x"], true)]);
}
