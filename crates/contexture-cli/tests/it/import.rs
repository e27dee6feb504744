//! `contexture replay --emit plain`.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::program::{Run, run_in};

const CHAT: &str = r#"[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]"#;

const PLAIN: &str = r#"{"role":"user","text":"hi","tool_calls":[],"tool_call_id":null,"name":null}
{"role":"assistant","text":"hello","tool_calls":[],"tool_call_id":null,"name":null}
"#;

fn run(code: i32, stdout: &str, stderr: &str) -> Run {
    Run { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}

#[test]
fn one_recording_goes_to_standard_output() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("chat.json"), CHAT).unwrap();
    assert_eq!(run_in(directory.path(), &["replay", "--emit", "plain", "chat.json"], ""), run(0, PLAIN, ""));
    assert_eq!(run_in(directory.path(), &["replay", "--emit", "plain", "-"], CHAT), run(0, PLAIN, ""));
    assert_eq!(run_in(directory.path(), &["replay", "--emit", "plain", "."], ""), run(0, PLAIN, ""));
}

#[test]
fn broken_lines_are_told_with_their_number() {
    let recording = format!("{PLAIN}{{\"role\":\n{PLAIN}");
    let expected = run(0, &PLAIN.repeat(2), "-:3: skipped, EOF while parsing a value (column 8)\n");
    assert_eq!(run_in(Path::new("."), &["replay", "--emit", "plain", "-"], &recording), expected);
}

#[test]
fn what_is_no_recording_is_told_and_fails() {
    let expected = run(
        1,
        "",
        "-: skipped, it is not a recording in a known format\n\
         error: one file could not be imported\n\
         hint: name recordings of Claude Code, Codex, OpenCode, Copilot CLI, Gemini CLI or pi, \
         chat messages as JSON, or what `contexture replay --emit plain` writes\n",
    );
    assert_eq!(run_in(Path::new("."), &["replay", "--emit", "plain", "-"], "name,size\n"), expected);
}

#[test]
fn a_directory_is_walked_and_each_recording_written_to_a_file() {
    let directory = tempdir().unwrap();
    let base = directory.path();
    fs::create_dir_all(base.join("in/deep")).unwrap();
    fs::write(base.join("in/a.json"), CHAT).unwrap();
    fs::write(base.join("in/a.txt"), CHAT).unwrap();
    fs::write(base.join("in/deep/b.jsonl"), PLAIN).unwrap();
    fs::write(base.join("in/notes.md"), "# notes\n").unwrap();
    let expected = "\
3 recordings from in to out

recording     format       messages  broken  unanswered  written to
a.json        OpenAI chat         2       0           0  a.jsonl
a.txt         OpenAI chat         2       0           0  a-2.jsonl
deep/b.jsonl  plain               2       0           0  deep/b.jsonl

next: `contexture replay out` plays them
";
    let imported = run_in(base, &["replay", "--emit", "plain", "in", "--out", "out"], "");
    assert_eq!(imported, run(0, expected, "1 file skipped that is no recording\n"));
    for written in ["out/a.jsonl", "out/a-2.jsonl", "out/deep/b.jsonl"] {
        assert_eq!(fs::read_to_string(base.join(written)).unwrap(), PLAIN);
    }
    assert!(!base.join("out/notes.jsonl").exists());
}

#[test]
fn nothing_is_overwritten() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a.jsonl"), CHAT).unwrap();
    let imported = run_in(directory.path(), &["replay", "--emit", "plain", "a.jsonl", "--out", "."], "");
    let message = "error: write `./a.jsonl`: File exists (os error 17)\nhint: name an empty directory with --out\n";
    assert_eq!(imported, run(1, "", message));
    assert_eq!(fs::read_to_string(directory.path().join("a.jsonl")).unwrap(), CHAT);
}

#[test]
fn several_recordings_need_a_directory() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a.json"), CHAT).unwrap();
    fs::write(directory.path().join("b.json"), CHAT).unwrap();
    let imported = run_in(directory.path(), &["replay", "--emit", "plain", "."], "");
    let message = "error: standard output has room for one recording only\n\
                   hint: add `--out DIR` to write one file for each\n";
    assert_eq!(imported, run(2, "", message));
    // What is no recording needs no output.
    fs::write(directory.path().join("b.json"), "# notes\n").unwrap();
    let imported = run_in(directory.path(), &["replay", "--emit", "plain", "."], "");
    assert_eq!(imported, run(0, PLAIN, "1 file skipped that is no recording\n"));
}

#[test]
fn nothing_found_is_a_failure_and_leaves_nothing_behind() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("in")).unwrap();
    fs::write(directory.path().join("in/notes.md"), "# notes\n").unwrap();
    for arguments in [&["replay", "--emit", "plain", "in", "--out", "out"][..], &["replay", "--emit", "plain", "in"]] {
        let imported = run_in(directory.path(), arguments, "");
        assert_eq!((imported.code, imported.stdout.as_str()), (1, ""));
        assert!(imported.stderr.contains("error: none of the files is a recording"), "{}", imported.stderr);
    }
    assert!(!directory.path().join("out").exists());
}

#[test]
fn the_table_is_there_as_json_too() {
    let directory = tempdir().unwrap();
    let imported = run_in(directory.path(), &["replay", "--emit", "plain", "-", "--out", "out", "--json"], CHAT);
    let rows: serde_json::Value = serde_json::from_str(&imported.stdout).unwrap();
    assert_eq!(
        rows,
        serde_json::json!([{
            "file": "-", "format": "OpenAI chat", "messages": 2, "broken": 0, "unanswered": 0, "orphans": 0,
            "out": "out/stdin.jsonl",
        }])
    );
}
