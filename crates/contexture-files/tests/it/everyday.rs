//! Lines that every engineer types all day and that only read leave every file whole, and lines that look like them but
//! could write one do not.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::FileModel;
use contexture_files::observer::Observer;
use serde_json::json;

use crate::told::{Told, told};

const FILES: [&str; 3] = ["/p/a.go", "/p/src/b.ts", "c.py"];

/// The worst that is said of any file after a line.
fn worst_after(line: &str) -> Told {
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
    FILES.into_iter().map(|path| told(&model, path)).min().unwrap()
}

/// Lines that only read, one a line; `⏎` is a line feed in one.
const READING: &str = include_str!("everyday/reading.txt");

/// Lines that could write a file.
const HARMFUL: &str = include_str!("everyday/harmful.txt");

fn lines(list: &str) -> impl Iterator<Item = String> {
    list.lines().filter(|line| !line.is_empty()).map(|line| line.replace('⏎', "\n"))
}

#[test]
fn lines_that_could_write_leave_no_file_whole() {
    let believed: Vec<String> = lines(HARMFUL).filter(|line| worst_after(line) == Told::Whole).collect();
    assert!(believed.is_empty(), "{} lines:\n{}", believed.len(), believed.join("\n"));
}

#[test]
fn lines_that_only_read_leave_every_file_whole() {
    let lowered: Vec<String> = lines(READING).filter(|line| worst_after(line) != Told::Whole).collect();
    assert!(lowered.is_empty(), "{} lines:\n{}", lowered.len(), lowered.join("\n"));
}
