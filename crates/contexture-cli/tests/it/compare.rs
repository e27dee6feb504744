//! `contexture replay --compare`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::program::{Run, run_in};

/// A recording in which a file is read, nine others follow, and the first is edited.
fn recording() -> String {
    let mut lines = vec![json!({"role": "user", "text": "fix it"})];
    for n in 0..10 {
        let call = json!({"id": format!("r{n}"), "name": "Read", "arguments": {"file_path": format!("{n}.rs")}});
        lines.push(json!({"role": "assistant", "text": "", "tool_calls": [call]}));
        let text = format!("     1→fn number_{n}_of_ten() {{}}\n{}", "// filling\n".repeat(100));
        lines.push(json!({"role": "tool", "text": text, "tool_call_id": format!("r{n}"), "name": "Read"}));
    }
    let arguments = json!({"file_path": "0.rs", "old_string": "fn number_0_of_ten() {}", "new_string": ""});
    lines.push(
        json!({"role": "assistant", "text": "", "tool_calls": [{"id": "e", "name": "Edit", "arguments": arguments}]}),
    );
    lines.push(json!({"role": "tool", "text": "done", "tool_call_id": "e", "name": "Edit"}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn policies_are_compared_in_a_table() {
    let expected = "\
1 recording, 11 requests, budget 1k tokens

policy            recall   cost   said   told   used  peak  over  stale  above
pass-through      1.0000  1.000  1.000  1.000  1.000  2.9k     1  0.000      0
sliding window    0.0000  1.782  1.000  1.000  0.000   868     0  0.000      1
half-window drop  0.0000  0.788  1.000  1.000  0.000   868     0  0.000      0
keep the last 10  1.0000  1.000  1.000  1.000  1.000  2.9k     1  0.000      0
clear all but 3   0.0000  1.851  1.000  1.000  0.000  1.1k     1  0.000      1
prune beyond 40k  1.0000  1.000  1.000  1.000  1.000  2.9k     1  0.000      0

next: `contexture help replay` explains the columns, `contexture replay FILE`
  shows what became of one recording
";
    let mut run = run_in(Path::new("."), &["replay", "--compare", "-", "--budget", "1000"], &recording());
    let own = run.stdout.lines().nth(3).unwrap_or_default().to_owned();
    assert!(own.starts_with("contexture  "), "our own policy stands first:\n{}", run.stdout);
    // Its measures may get better without anything being wrong here.
    run.stdout = run.stdout.replace(&format!("{own}\n"), "");
    assert_eq!(run, Run { code: 0, stdout: expected.to_owned(), stderr: String::new() });
}

#[test]
fn the_table_is_there_as_json_too() {
    let run = run_in(Path::new("."), &["replay", "--compare", "-", "--budget", "1000", "--json"], &recording());
    let comparison: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &comparison["recordings"], &comparison["budget"]), (0, &json!(1), &json!(1000)));
    let policies = comparison["policies"].as_array().unwrap();
    let names: Vec<_> = policies.iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 7);
    assert_eq!(names[..2], ["contexture", "pass-through"]);
    assert_eq!((&policies[1]["sums"]["targets"], &policies[1]["cost"]), (&json!(1), &json!(1.0)));
}

#[test]
fn files_that_are_no_recordings_are_skipped() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a.jsonl"), recording()).unwrap();
    fs::write(directory.path().join("notes.md"), "# notes\n").unwrap();
    let run = run_in(directory.path(), &["replay", "--compare", "."], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout.lines().next(), Some("1 recording, 11 requests, budget 112k tokens; 1 other file skipped"));
    let run = run_in(directory.path(), &["replay", "--compare", "notes.md"], "");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("error: none of the files is a recording in a known format\nhint: "), "{}", run.stderr);
}

#[test]
fn broken_lines_are_told_with_their_number() {
    let run = run_in(Path::new("."), &["replay", "--compare", "-"], &format!("{}{{\"role\":\n", recording()));
    assert_eq!((run.code, run.stderr.as_str()), (0, "-:24: skipped, EOF while parsing a value (column 8)\n"));
}
