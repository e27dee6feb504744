//! What the program prints, as files: help, outputs and errors at 40, 80 and 120 columns.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p contexture-cli --test it snapshots` writes them; what changed is then seen in the
//! difference of the files.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::program::{Run, program, run};

/// The widths at which outputs are kept.
const WIDTHS: [usize; 3] = [40, 80, 120];

/// Where the files are.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");

/// A directory with recordings, files that are none, and a small project.
fn place() -> TempDir {
    let place = tempdir().expect("a directory");
    let chat = r#"[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]"#;
    let call = json!({"id": "r", "name": "Read", "arguments": {"file_path": "src/main.rs"}});
    let plain: String = [
        json!({"role": "user", "text": "Please look at the main file."}),
        json!({"role": "assistant", "text": "", "tool_calls": [call]}),
        json!({"role": "tool", "text": "1\tfn main() {}\n", "tool_call_id": "r", "name": "Read"}),
        json!({"role": "assistant", "text": "It is empty."}),
    ]
    .iter()
    .map(|line| format!("{line}\n"))
    .collect();
    for (path, text) in [
        ("sessions/-home-ada-tides/0f5c81d2-91f4-4a4e-9a36-5f9c6a1f3b20.jsonl", plain.as_str()),
        ("sessions/-home-ada-tides/77e0a4de-3f4f-4f0d-8a6c-0c3f2b7f9e11.json", chat),
        ("sessions/notes.md", "# notes\n"),
        ("notes/only.md", "# notes\n"),
        (
            "broken.jsonl",
            "{\"role\": \"user\", \"text\": \"hi\"}\n{\"role\":\n{\"role\": \"assistant\", \"text\": \"yes\"}\n",
        ),
        ("empty.jsonl", ""),
        ("nothing.toml", ""),
        ("wrong.toml", "budgets = 3\n"),
        ("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n"),
    ] {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory in it")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    fs::create_dir(place.path().join("nothing")).expect("a directory");
    place
}

fn run_at(place: &Path, arguments: &[&str], columns: usize) -> Run {
    let mut command = program(place);
    // Named from where it runs: what is printed must be the same on every machine.
    command.args(arguments).env("COLUMNS", columns.to_string()).env("CONTEXTURE_CONFIG", "nothing.toml");
    run(command, "")
}

/// Everything that a run printed, with what was run.
pub(crate) fn told(arguments: &[&str], run: &Run) -> String {
    let words =
        arguments.iter().map(|word| if word.contains([' ', '#']) { format!("'{word}'") } else { (*word).to_owned() });
    let command = ["contexture".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
    let part = |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("{name}\n{text}") };
    let (stdout, stderr) = (part("--- output", &run.stdout), part("--- errors", &run.stderr));
    format!("$ {command}\n{stdout}{stderr}--- exit code {}\n", run.code)
}

/// Compares a text with its file, or writes the file if that is asked for.
#[track_caller]
pub(crate) fn check_file(name: &str, text: &str) {
    let path = Path::new(DIRECTORY).join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(DIRECTORY).expect("a directory");
        fs::write(&path, text).expect("a file");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, kept,
        "{name} changed; if that is wanted, UPDATE_SNAPSHOTS=1 cargo test -p contexture-cli snapshots"
    );
}

/// Checks an output at every width: it is as kept, and no line of it is wider.
#[track_caller]
fn check(name: &str, arguments: &[&str]) {
    let mut text = String::new();
    for columns in WIDTHS {
        let run = run_at(place().path(), arguments, columns);
        for line in run.stdout.lines() {
            // A path alone in its line cannot be broken.
            let is_word = !line.trim().contains(' ');
            assert!(is_word || line.chars().count() <= columns, "{name}, wider than {columns}: {line}");
            assert!(!line.contains('\x1b'), "{name} has colours in a pipe: {line:?}");
        }
        text.push_str(&format!("=== {columns} columns\n{}\n", told(arguments, &run)));
    }
    check_file(name, &text);
}

#[test]
fn help() {
    check("short-help", &[]);
    check("help", &["help"]);
    for words in [
        &["chat"][..],
        &["replay"],
        &["memory"],
        &["config"],
        &["config", "window"],
        &["config", "layers"],
        &["config", "models"],
        &["completions"],
        &["store"],
        &["run"],
        &["serve"],
        &["pause"],
    ] {
        check(&format!("help-{}", words.join("-")), &[&["help"], words].concat());
        let place = place();
        let asked = run_at(place.path(), &[words, &["--help"]].concat(), 80);
        assert_eq!(asked, run_at(place.path(), &[&["help"], words].concat(), 80), "both ways to ask show the same");
    }
}

#[test]
fn outputs() {
    check("layers", &["config", "layers"]);
    check("models", &["config", "models", "claude-sonnet-4-5", "gpt-5-nobody", "unheard-of"]);
    let in_a_pipe = run_at(place().path(), &["replay", "sessions"], 80);
    check_file("replay-sessions", &told(&["replay", "sessions"], &in_a_pipe));
    check("compare-sessions", &["replay", "--compare", "sessions", "sessions"]);
    check("window-map", &["config", "window", "--map", "--message", "See #src/main.rs and #src/gone.rs"]);
    check("import-sessions", &["replay", "--emit", "plain", "sessions", "--out", "plain"]);
    check("config", &["config", "--no-config"]);
}

/// Commands that fail, and how they say so. The width makes no difference: what is told on standard error is one line.
const ERRORS: [&[&str]; 27] = [
    &["dance"],
    &["repaly"],
    &["help", "repaly"],
    &["--loud"],
    &["replay", "--emit", "plain"],
    &["replay", "--emit", "plain", "a", "--loud"],
    &["replay", "--emit", "plain", "sessions"],
    &["replay", "--emit", "plain", "notes", "--out", "plain"],
    &["replay", "--emit", "plain", "notes"],
    &["replay", "--emit", "plain", "empty.jsonl"],
    &["replay", "--emit", "plain", "-", "--json"],
    &["replay", "--compare", "no/such/file"],
    &["replay", "--compare", "--budget", "none", "sessions"],
    &["replay", "--compare", "sessions", "--budgets", "3"],
    &["replay", "--compare", "notes"],
    &["replay", "nothing"],
    &["replay", "empty.jsonl"],
    &["replay", "--counter", "o20k"],
    &["replay", "--emit", "window"],
    &["replay", "--config", "wrong.toml"],
    &["replay", "--config", "none.toml"],
    &["config", "window"],
    &["config", "window", "--message", "hi", "--base", "no/such/place"],
    &["completions", "tcsh"],
    &["memory", "show", "--store", "none.db"],
    &["memory", "why", "1a2b3c"],
    &["memory", "export", "--store", "broken.jsonl", "--json"],
];

#[test]
fn errors() {
    let place = place();
    let mut text = String::new();
    for arguments in ERRORS {
        let runs = WIDTHS.map(|columns| run_at(place.path(), arguments, columns));
        assert!(runs.iter().all(|run| *run == runs[0]), "{arguments:?} depends on the width");
        let [run, ..] = runs;
        assert!(run.code == 1 || run.code == 2, "{arguments:?} ends with {}", run.code);
        let sentences = run.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hints = run.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
        assert_eq!((sentences, hints, run.stdout.as_str()), (1, 1, ""), "{arguments:?}: {}", run.stderr);
        text.push_str(&format!("{}\n", told(arguments, &run)));
    }
    check_file("errors", &text);
}

#[test]
fn nothing_that_people_read_needs_the_guide() {
    for entry in fs::read_dir(DIRECTORY).expect("the snapshots are there") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a text");
        for word in [" rent", "dearer", "stands above"] {
            assert!(!text.contains(word), "{word:?} is in {}", path.display());
        }
    }
}
