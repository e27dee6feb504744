//! Lines that every engineer types all day and that change nothing cast no doubt on any file, and lines that look like
//! them but change something do.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::{FileModel, Grade};
use contexture_files::observer::Observer;
use serde_json::json;

const FILES: [&str; 3] = ["/p/a.go", "/p/src/b.ts", "c.py"];

/// The worst grade of any file after a line.
fn worst_after(line: &str) -> Grade {
    let (mut observer, mut model) = (Observer::default(), FileModel::new());
    let mut call = |tool: &str, arguments: serde_json::Value, output: &str| {
        let call = FunctionCall::new("c", tool, arguments.to_string());
        let seen = observer.observe(&call, &FunctionCallOutput::new("c", output, Outcome::Done));
        seen.observations.iter().for_each(|observation| model.apply(1, observation));
    };
    for path in FILES {
        call("Read", json!({"file_path": path}), "     1→one\n     2→two\n     3→three\n");
    }
    call("Bash", json!({"command": line}), "");
    let grades = (0..FILES.len()).map(|file| model.claim(file, 0, 0..3).grade);
    grades.min().unwrap()
}

/// Harmless lines, one a line; `⏎` is a line feed in one.
const HARMLESS: &str = include_str!("everyday/harmless.txt");

/// Lines that only read: they change nothing, and no table has to presume that.
const READING: &str = include_str!("everyday/reading.txt");

/// Lines that change a file, or may.
const HARMFUL: &str = include_str!("everyday/harmful.txt");

fn lines(list: &str) -> impl Iterator<Item = String> {
    list.lines().filter(|line| !line.is_empty()).map(|line| line.replace('⏎', "\n"))
}

#[test]
fn everyday_lines_cast_no_doubt() {
    let doubtful: Vec<String> = lines(HARMLESS).filter(|line| worst_after(line) == Grade::InDoubt).collect();
    assert!(doubtful.is_empty(), "{} lines:\n{}", doubtful.len(), doubtful.join("\n"));
}

#[test]
fn lines_that_change_something_cast_doubt() {
    let believed: Vec<String> = lines(HARMFUL).filter(|line| worst_after(line) != Grade::InDoubt).collect();
    assert!(believed.is_empty(), "{} lines:\n{}", believed.len(), believed.join("\n"));
}

#[test]
fn lines_that_only_read_leave_every_file_sure() {
    let lowered: Vec<String> = lines(READING).filter(|line| worst_after(line) != Grade::Sure).collect();
    assert!(lowered.is_empty(), "{} lines:\n{}", lowered.len(), lowered.join("\n"));
}
