//! The program's frame: help, version, and how it fails.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::program::{check, run_in};

#[test]
fn without_arguments_it_shows_examples() {
    let run = run_in(Path::new("."), &[], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with("  contexture ")).count(), 4);
    assert!(run.stdout.lines().count() < 15, "a short help is short:\n{}", run.stdout);
}

#[test]
fn help_says_what_the_program_is_for() {
    let run = run_in(Path::new("."), &["--help"], "");
    let says =
        "Builds the context window of an LLM agent: runs agents through a gateway, and measures recorded sessions";
    let paragraph: Vec<&str> = run.stdout.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(paragraph.join(" "), says);
}

#[test]
fn the_version_is_the_crate_s() {
    check(&["--version"], 0, concat!("contexture ", env!("CARGO_PKG_VERSION"), "\n"), "");
}

#[test]
fn help_goes_to_standard_output() {
    for arguments in [&["--help"][..], &["import", "--help"], &["compare", "-h"]] {
        let run = run_in(Path::new("."), arguments, "");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains("Usage: contexture"), "{}", run.stdout);
    }
}

#[test]
fn bad_usage_is_one_sentence_and_a_hint() {
    check(&["dance"], 2, "", "error: there is no command `dance`\nhint: `contexture help` lists all commands\n");
    check(
        &["compare", "--budget", "none", "x"],
        2,
        "",
        "error: invalid value 'none' for '--budget <N>': it must be a whole number of tokens from 1 to 1099511627776\n\
         hint: `contexture help compare` lists its arguments and flags\n",
    );
    check(
        &["replay", "--counter", "o20k"],
        2,
        "",
        "error: invalid value 'o20k' for '--counter <COUNTER>' [possible values: o200k, estimate]\n\
         hint: did you mean `o200k`?\n",
    );
    check(
        &["import"],
        2,
        "",
        "error: the following required arguments were not provided: <FILE>...\n\
         hint: write it as `contexture import <FILE>...`\n",
    );
    check(
        &["import", "a", "--xyz"],
        2,
        "",
        "error: `contexture import` does not take `--xyz`\nhint: write it as `contexture import <FILE>...`\n",
    );
}

#[test]
fn failed_work_is_one_sentence_and_a_hint() {
    check(
        &["compare", "no/such/file"],
        1,
        "",
        "error: open `no/such/file`: No such file or directory (os error 2)\n\
         hint: name a file, a directory with recordings, or - for standard input; `contexture demo` has one of its own\n",
    );
}

#[test]
fn the_same_recording_named_twice_counts_once() {
    let directory = tempdir().unwrap();
    let plain = "{\"role\": \"user\", \"text\": \"hi\"}\n{\"role\": \"assistant\", \"text\": \"hello\"}\n";
    fs::create_dir(directory.path().join("in")).unwrap();
    fs::write(directory.path().join("in/a.jsonl"), plain).unwrap();
    for command in ["replay", "compare"] {
        let arguments = [command, "--json", "in", "in/a.jsonl", "./in/../in/a.jsonl"];
        let run = run_in(directory.path(), &arguments, "");
        let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let count = told["recordings"].as_u64().or_else(|| Some(told["recordings"].as_array()?.len() as u64));
        assert_eq!((run.code, count), (0, Some(1)), "{}", run.stdout);
    }
    let imported = run_in(directory.path(), &["import", "in", "in/a.jsonl"], "");
    assert_eq!((imported.code, imported.stdout.lines().count()), (0, 2));
}

#[test]
fn shells_can_complete_commands_and_flags() {
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef contexture"), ("fish", "complete -c contexture")] {
        let run = run_in(Path::new("."), &["completions", shell], "");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        for word in [mark, "replay", "compare", "provider"] {
            assert!(run.stdout.contains(word), "no {word:?} for {shell}");
        }
    }
}
