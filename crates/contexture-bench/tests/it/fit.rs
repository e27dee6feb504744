//! Fits weights to recordings in which it is known what is needed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use contexture_bench::fit::{Baseline, FitOptions, FitReport, Variant, run};
use contexture_measure::random::Rng;
use serde_json::json;

/// Lines of each file that is read.
const FILE_LINES: usize = 90;

/// A budget that a conversation exceeds as soon as a few files were read.
const BUDGET: u64 = 2_000;

/// A recording in the plain format.
#[derive(Default)]
struct Recording {
    text: String,
    calls: usize,
}

impl Recording {
    fn say(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}", json!({ "role": "user", "text": text }));
    }

    fn call(&mut self, tool: &str, arguments: serde_json::Value, output: &str) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let calls = json!([{ "id": id, "name": tool, "arguments": arguments }]);
        let _ = writeln!(self.text, "{}", json!({ "role": "assistant", "text": "", "tool_calls": calls }));
        let _ = writeln!(self.text, "{}", json!({ "role": "tool", "text": output, "tool_call_id": id }));
    }

    fn read(&mut self, file: usize) {
        self.call("Read", json!({ "file_path": path(file) }), &numbered(file));
    }

    fn edit(&mut self, file: usize, line: usize) {
        let (old, new) = (line_text(file, line), format!("changed {file} {line}"));
        let arguments = json!({ "file_path": path(file), "old_string": old, "new_string": new });
        self.call("Edit", arguments, &format!("The file {} has been updated.", path(file)));
    }
}

fn path(file: usize) -> String {
    format!("/project/src/part{file}.rs")
}

/// Lines that have no word in common with other lines or messages.
fn line_text(file: usize, line: usize) -> String {
    format!("    let w{file}x{line} = q{line}y{file}(f{file}{line}g, h{line}{file}k);")
}

fn numbered(file: usize) -> String {
    (0..FILE_LINES).map(|line| format!("{:6}→{}\n", line + 1, line_text(file, line))).collect()
}

/// An agent that reads ten files and changes those named in the task long after they were read, so that the most
/// recently seen chunks are never needed.
fn named_files_are_needed(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let first = rng.below(4);
    let named = [first, first + 1];
    let mut recording = Recording::default();
    recording.say(&format!("Please change {} and {}.", path(named[0]), path(named[1])));
    (0..10).for_each(|file| recording.read(file));
    for file in named {
        recording.call("Bash", json!({ "command": "date" }), "now");
        recording.edit(file, rng.below(FILE_LINES));
    }
    recording.text
}

/// A directory with recordings of three projects.
fn recordings() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..12 {
        let name = format!("{}__{number}.jsonl", ["one", "two", "three"][number % 3]);
        std::fs::write(directory.path().join(name), named_files_are_needed(number as u64)).unwrap();
    }
    directory
}

fn report(directory: &Path) -> FitReport {
    run(&FitOptions { paths: vec![directory.to_owned()], budget: BUDGET, without: Vec::new() }).unwrap()
}

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_contexture-bench")).arg("fit").args(arguments).output().unwrap()
}

#[test]
fn a_planted_sign_is_found_and_preferred_to_baselines() {
    let report = report(recordings().path());
    let weight =
        |name: &str| report.json()["weights"].as_array().unwrap().iter().position(|w| w["name"] == name).unwrap();
    let pending = weight("pending");
    assert!(report.judgement.fitted[pending] > 0.5, "{}", report.text());
    assert!(report.judgement.fitted_without.iter().all(|weights| weights[pending] > 0.5), "{}", report.text());
    let mean = |variant: Variant| report.tested(variant).unwrap().capture.mean();
    assert!(mean(Variant::Refitted) > mean(Variant::Baseline(Baseline::Newest)) + 0.2, "{}", report.text());
    assert!(mean(Variant::Refitted) > mean(Variant::Baseline(Baseline::File)) + 0.2, "{}", report.text());
}

#[test]
fn what_was_seen_is_counted_and_projects_are_held_out_in_turn() {
    let report = report(recordings().path());
    assert_eq!((report.counts.recordings, report.counts.useful_recordings, report.counts.projects), (12, 12, 3));
    assert_eq!(report.judgement.groups, ["one", "three", "two"]);
    assert!(report.counts.needed_chunks > 0 && report.counts.chunks > report.counts.needed_chunks);
}

#[test]
fn recordings_of_one_project_are_held_out_in_groups() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let name = format!("{number}.jsonl");
        std::fs::write(directory.path().join(name), named_files_are_needed(number)).unwrap();
    }
    assert_eq!(report(directory.path()).judgement.groups, ["group 1", "group 2", "group 3"]);
}

#[test]
fn two_runs_print_the_same() {
    let directory = recordings();
    let path = directory.path().to_str().unwrap();
    for format in [&["--budget", "2000"][..], &["--budget", "2000", "--json"]] {
        let arguments: Vec<&str> = [path].into_iter().chain(format.iter().copied()).collect();
        let (one, two) = (program(&arguments), program(&arguments));
        assert!(one.status.success() && !one.stdout.is_empty() && one.stderr.is_empty());
        assert_eq!(one.stdout, two.stdout);
    }
}

#[test]
fn bad_input_gets_one_sentence_and_a_hint() {
    let check = |arguments: &[&str], sentence: &str, hint: &str| {
        let output = program(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines.len() == 2 && lines[0].contains(sentence) && lines[1].contains(hint), "{told}");
    };
    let (empty, full) = (tempfile::tempdir().unwrap(), recordings());
    let full = full.path().to_str().unwrap();
    check(&["/nowhere/at/all"], "open `/nowhere/at/all`", "name a file");
    check(&[empty.path().to_str().unwrap()], "have no files", "name a directory");
    check(&[full, "--budget", "100000000"], "0 of 12 recordings have an edit", "a smaller --budget");
    check(&[full, "--without", "luck"], "there is no weight `luck`", "the weights are seen, hit");
    check(&[], "not provided", "fit --help");
}
