//! Conversations, and outputs in them, that tests make up.

use contexture_core::item::Role;
use contexture_wire::transcript::Record;
use proptest::prelude::*;
use serde_json::json;

use crate::records::{answers, asks, said};

/// What one step of a conversation does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Say(usize),
    Read { file: u8, first: usize, count: usize },
    Edit { file: u8, line: usize },
    Write { file: u8, count: usize },
    Run { lines: usize },
    Unanswered,
    Stray,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1..400_usize).prop_map(Step::Say),
        5 => (0..6_u8, 1..200_usize, 1..300_usize).prop_map(|(file, first, count)| Step::Read { file, first, count }),
        3 => (0..6_u8, 1..200_usize).prop_map(|(file, line)| Step::Edit { file, line }),
        1 => (0..6_u8, 1..300_usize).prop_map(|(file, count)| Step::Write { file, count }),
        2 => (0..2000_usize).prop_map(|lines| Step::Run { lines }),
        1 => Just(Step::Unanswered),
        1 => Just(Step::Stray),
    ]
}

/// The steps, and then reads of other files until a window of this budget must be folded.
pub(crate) fn until_it_folds(mut steps: Vec<Step>, budget: u64) -> Vec<Step> {
    let (reads, count) = ((budget / 500).min(12) as u8, (budget / 60).max(90) as usize);
    steps.extend((0..reads).map(|n| Step::Read { file: 100 + n, first: 1, count }));
    steps
}

pub(crate) fn line(file: u8, number: usize) -> String {
    format!("    let value_{file}_{number} = compute({number});")
}

pub(crate) fn path(file: u8) -> String {
    format!("/project/src/file_{file}.rs")
}

pub(crate) fn conversation(steps: &[Step]) -> Vec<Record> {
    let mut records = vec![said(Role::User, "Please fix the build.")];
    for (index, step) in steps.iter().enumerate() {
        // Ids repeat on purpose: some agents count from one in every session.
        let id = format!("call-{}", index % 40);
        match step {
            Step::Say(words) => records.push(said(Role::User, "please ".repeat(*words))),
            Step::Read { file, first, count } => {
                let text: String = (*first..first + count).map(|n| format!("{n}\t{}\n", line(*file, n))).collect();
                records.push(asks(&id, "Read", json!({"file_path": path(*file), "offset": first, "limit": count})));
                records.push(answers(&id, text));
            }
            Step::Edit { file, line: number } => {
                let arguments = json!({"file_path": path(*file), "old_string": line(*file, *number), "new_string": format!("    // {index}\n{}", line(*file, *number))});
                records.push(asks(&id, "Edit", arguments));
                records.push(answers(&id, "The file has been updated successfully."));
            }
            Step::Write { file, count } => {
                let content: String = (1..*count).map(|n| line(*file, n) + "\n").collect();
                records.push(asks(&id, "Write", json!({"file_path": path(*file), "content": content})));
                records.push(answers(&id, "File created successfully."));
            }
            Step::Run { lines } => {
                records.push(asks(&id, "Bash", json!({"command": "cargo build"})));
                let warning =
                    |n: usize| format!("warning: unused variable at {}:{}:5\n", path((n % 7) as u8), 1 + n * 5);
                records.push(answers(&id, (0..*lines).map(warning).collect::<String>()));
            }
            Step::Unanswered => records.push(asks(&id, "Bash", json!({"command": "sleep 1"}))),
            Step::Stray => records.push(answers(&format!("stray-{index}"), "an answer to nothing")),
        }
    }
    records.push(said(Role::Assistant, "Done."));
    records
}

/// What a command may print.
pub(crate) fn any_output() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => "[a-z ]{0,60}",
        2 => "\\PC{0,80}",
        1 => Just("error: it does not work".to_owned()),
        1 => Just("Exit code: 1".to_owned()),
        1 => "[ab]{900,2500}",
        1 => Just(String::new()),
    ];
    (prop::collection::vec(line, 0..120), prop_oneof![Just("\n"), Just("\r\n")])
        .prop_map(|(lines, end)| lines.join(end))
}
