//! The program's frame: help, version, and how it fails.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::program::{check, run_in};

#[test]
fn without_arguments_it_shows_examples() {
    let run = run_in(Path::new("."), &[], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with("  contexture ")).count(), 5);
    assert!(run.stdout.lines().count() < 20, "a short help is short:\n{}", run.stdout);
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
    for arguments in [&["--help"][..], &["replay", "--help"], &["config", "window", "-h"]] {
        let run = run_in(Path::new("."), arguments, "");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains("Usage: contexture"), "{}", run.stdout);
    }
}

#[test]
fn bad_usage_is_one_sentence_and_a_hint() {
    check(
        &["config", "laers"],
        2,
        "",
        "error: there is no command `laers`\nhint: did you mean `contexture config layers`?\n",
    );
    check(&["dance"], 2, "", "error: there is no command `dance`\nhint: `contexture help` lists all commands\n");
    check(
        &["replay", "--compare", "--budget", "none", "x"],
        2,
        "",
        "error: invalid value 'none' for '--budget <N>': it must be a whole number of tokens from 1 to 1099511627776\n\
         hint: `contexture help replay` lists its arguments and flags\n",
    );
    check(
        &["replay", "--counter", "o20k"],
        2,
        "",
        "error: invalid value 'o20k' for '--counter <COUNTER>' [possible values: o200k, estimate]\n\
         hint: did you mean `o200k`?\n",
    );
    check(
        &["replay", "--emit", "plain"],
        2,
        "",
        "error: `--emit plain` needs a recording\n\
         hint: write it as `contexture replay --emit plain FILE --out DIR`\n",
    );
    check(
        &["replay", "--emit", "plain", "a", "--xyz"],
        2,
        "",
        "error: `contexture replay` does not take `--xyz`\nhint: write it as `contexture replay --emit <EMIT> <FILE>...`\n",
    );
}

#[test]
fn failed_work_is_one_sentence_and_a_hint() {
    check(
        &["replay", "--compare", "no/such/file"],
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
    for command in [&["replay"][..], &["replay", "--compare"]] {
        let arguments = [command, &["--json", "in", "in/a.jsonl", "./in/../in/a.jsonl"]].concat();
        let run = run_in(directory.path(), &arguments, "");
        let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let count = told["recordings"].as_u64().or_else(|| Some(told["recordings"].as_array()?.len() as u64));
        assert_eq!((run.code, count), (0, Some(1)), "{}", run.stdout);
    }
    let imported = run_in(directory.path(), &["replay", "--emit", "plain", "in", "in/a.jsonl"], "");
    assert_eq!((imported.code, imported.stdout.lines().count()), (0, 2));
}

#[test]
fn shells_can_complete_commands_and_flags() {
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef contexture"), ("fish", "complete -c contexture")] {
        let run = run_in(Path::new("."), &["completions", shell], "");
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        for word in [mark, "replay", "compare", "holdout"] {
            assert!(run.stdout.contains(word), "no {word:?} for {shell}");
        }
    }
}

/// What had another name in the version before works as it did, and standard error says the new name.
#[test]
fn old_names_do_the_same_and_say_so() {
    let directory = tempdir().unwrap();
    let plain = "{\"role\": \"user\", \"text\": \"hi\"}\n{\"role\": \"assistant\", \"text\": \"hello\"}\n";
    fs::write(directory.path().join("a.jsonl"), plain).unwrap();
    for (old, new) in [
        (&["compare", "a.jsonl"][..], &["replay", "--compare", "a.jsonl"][..]),
        (&["compare", "--json", "a.jsonl"], &["replay", "--compare", "--json", "a.jsonl"]),
        (&["import", "a.jsonl"], &["replay", "--emit", "plain", "a.jsonl"]),
        (&["import"], &["replay", "--emit", "plain"]),
        (&["layers", "--json"], &["config", "layers", "--json"]),
        (&["models"], &["config", "models"]),
        (&["window", "-m", "hi", "--map"], &["config", "window", "-m", "hi", "--map"]),
        (&["resume"], &["pause", "--off"]),
        (&["help", "import"], &["help", "replay"]),
        (&["help", "window"], &["help", "config", "window"]),
    ] {
        let (was, is) = (run_in(directory.path(), old, ""), run_in(directory.path(), new, ""));
        assert_eq!((was.code, &was.stdout), (is.code, &is.stdout), "{old:?}");
        let note = was.stderr.strip_suffix(&is.stderr).unwrap_or_else(|| panic!("{old:?}: {}", was.stderr));
        assert!(note.starts_with("note: `contexture ") && note.lines().count() == 1, "{old:?}: {note:?}");
        assert!(!is.stderr.contains("note: "), "{}", is.stderr);
    }
    let capped = run_in(directory.path(), &["run", "--cap-day-dollars", "5", "no-such-agent"], "");
    assert!(capped.stderr.starts_with("note: `--cap-day-dollars` is `--cap 5$/day` now"), "{}", capped.stderr);
    assert_eq!(capped.code, 2);
}

#[test]
fn a_command_that_only_has_others_beneath_it_lists_them() {
    for command in ["memory", "store"] {
        let (bare, help) = (run_in(Path::new("."), &[command], ""), run_in(Path::new("."), &[command, "-h"], ""));
        assert_eq!((bare.code, bare.stdout, bare.stderr.as_str()), (0, help.stdout, ""), "{command}");
    }
}

/// Who pipes the table somewhere reads its first lines: the sum, then a line for each session.
#[test]
fn a_list_of_models_and_of_sessions_has_one_line_for_each() {
    let models = run_in(Path::new("."), &["config", "models"], "").stdout;
    assert!(models.lines().count() > 50 && models.lines().all(|line| line.chars().count() <= 80), "{models}");
    let directory = tempdir().unwrap();
    let plain = "{\"role\": \"user\", \"text\": \"hi\"}\n{\"role\": \"assistant\", \"text\": \"hello\"}\n";
    let long = "a".repeat(120);
    for name in ["one.jsonl", "two.jsonl", &format!("{long}.jsonl")] {
        fs::write(directory.path().join(name), format!("{plain}{{\"role\": \"user\", \"text\": \"{name}\"}}\n"))
            .unwrap();
    }
    let told = run_in(directory.path(), &["replay", "."], "").stdout;
    let rows =
        told.lines().skip_while(|line| !line.starts_with("recording ")).skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["all", &format!("{long}.jsonl"), "one.jsonl", "two.jsonl"], "{told}");
}
