//! What the pages show and tell people to type is what the program does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::program;

const README: &str = include_str!("../../../../README.md");
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");

/// What stands above a block of shell commands that is not tried.
const NOT_TRIED: &str = "<!-- not tried";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that are meant to be read.
fn pages() -> Vec<(String, String)> {
    let mut paths = vec![root().join("README.md"), root().join("CONTRIBUTING.md"), root().join("ARCHITECTURE.md")];
    let docs = fs::read_dir(root().join("docs")).expect("the pages are there");
    paths.extend(docs.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.extension().is_some()));
    paths.sort();
    let read = |path: PathBuf| (path.display().to_string(), fs::read_to_string(&path).expect("a page is text"));
    paths.into_iter().map(read).collect()
}

/// The blocks of shell commands of a page, and whether each is said to be not tried.
fn shell_blocks(page: &str) -> Vec<(Vec<&str>, bool)> {
    let mut blocks = Vec::new();
    let (mut above, mut block) = ("", None);
    for line in page.lines() {
        match (&mut block, line.trim()) {
            (None, "```sh" | "```console" | "```bash") => block = Some((Vec::new(), above.starts_with(NOT_TRIED))),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some((lines, _)), line) => lines.push(line),
            (None, line) if !line.is_empty() => above = line,
            (None, _) => {}
        }
    }
    blocks
}

/// The words of a command, without the remark behind it. `None` for a line that is none.
fn words(line: &str) -> Option<Vec<&str>> {
    let command = line.split(" #").next().unwrap_or_default().trim();
    (!command.is_empty() && !command.starts_with('#')).then(|| command.split_whitespace().collect())
}

/// Runs the program without a home, a configuration or any other variable.
fn bare(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_contexture"));
    command.env_clear().current_dir(directory).args(arguments);
    command.output().expect("the program runs")
}

/// Tries a command of a page: with this build in place of the one that it asks for.
#[track_caller]
fn try_command(page: &str, line: &str) {
    let place = tempfile::tempdir().expect("a directory");
    match words(line).as_deref() {
        None => {}
        // It is tried by a test of its own, since it takes longest.
        Some(["cargo", "run", "--release", "--", "demo", ..]) => {}
        Some(["cargo", "run", "--release", "--", arguments @ ..] | ["contexture", arguments @ ..]) => {
            let output = program(place.path()).args(arguments).output().expect("the program runs");
            assert!(output.status.success(), "{page}: `{line}`: {output:?}");
        }
        Some(["cargo", "install", "--locked", "--path", path]) => {
            assert!(root().join(path).join("Cargo.toml").is_file(), "{page}: `{line}`");
        }
        // This test is a part of it.
        Some(["cargo", "test", "--workspace"]) => {}
        Some(_) => panic!("{page}: `{line}` is neither tried nor said to be not tried (`{NOT_TRIED} …`)"),
    }
}

#[test]
fn every_block_of_commands_is_tried_or_says_that_it_is_not() {
    for (name, page) in pages() {
        for (lines, is_not_tried) in shell_blocks(&page) {
            if !is_not_tried {
                lines.iter().for_each(|line| try_command(&name, line));
            }
        }
    }
}

#[test]
fn the_readme_begins_with_two_commands() {
    let blocks = shell_blocks(README);
    let first: Vec<_> = blocks[0].0.iter().filter_map(|line| words(line)).map(|words| words.join(" ")).collect();
    assert_eq!(first, ["cargo run --release -- demo", "cargo test --workspace"]);
    assert!(WORKSPACE.contains("default-members = [\"crates/contexture-cli\"]"), "`cargo run` has to find the program");
    let lines = README.lines().count();
    assert!(lines <= 75, "README.md has {lines} lines, and is to fit a screen and a half");
}

#[test]
fn links_between_pages_lead_somewhere() {
    for (name, page) in pages() {
        for (at, _) in page.match_indices("](") {
            let target = page[at + 2..].split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains(':') || path.contains(char::is_whitespace) {
                continue;
            }
            let target = Path::new(&name).parent().expect("a page is in a directory").join(path);
            assert!(target.exists(), "{name} names {path}, which is not there");
        }
    }
}

/// The demo asks for nothing, leaves nothing, and prints what the guide shows of it. Its requests are played to where the
/// first fold is behind them: all of them take half a minute without optimisation.
#[test]
fn the_demo_runs_in_an_empty_environment() {
    let place = tempfile::tempdir().expect("a directory");
    let output = bare(place.path(), &["demo", "--requests", "170"]);
    let told = String::from_utf8(output.stdout).expect("text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{told}{errors}");
    assert_eq!(fs::read_dir(place.path()).expect("it is there").count(), 0);
    for part in ["The first of ", "what people said", "What the model still knew", " instead of $"] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
    // Figures move with every change of the fold; what is counted does not.
    let guide = fs::read_to_string(root().join("docs/file-aware-history.md")).expect("the guide is there");
    let shown =
        guide.split_once("```text\nThe first of ").and_then(|(_, rest)| rest.split_once("\n```")).expect("a fold").0;
    let fold = told.split_once("\nThe first of ").and_then(|(_, rest)| rest.split_once("\n\n")).expect("a fold").0;
    let names = |text: &str| -> Vec<String> {
        let names = text.lines().skip(1).map(|line| line.split("  ").next().unwrap_or_default().to_owned());
        names.take(6).collect()
    };
    assert_eq!(names(shown), names(fold), "docs/file-aware-history.md shows another table");
}
