//! What a view says of the lines that it shows.

use contexture_core::item::Role;
use contexture_wire::transcript::Record;
use serde_json::json;

use crate::records::{answers, call, folder, push, said, text};

/// The text of all that a folder shows after calls with their answers, and a long talk behind them.
fn shown_after(calls: &[(&str, serde_json::Value, String)]) -> String {
    let mut folder = folder(8_000);
    let mut push = |record: Record| {
        push(&mut folder, &record);
        folder.request().to_vec()
    };
    push(said(Role::User, "go on with src/a.rs"));
    for (index, (name, arguments, answer)) in calls.iter().enumerate() {
        push(Record::response("", [call(&index.to_string(), name, arguments)]));
        push(answers(&index.to_string(), answer));
    }
    let windows = (0..8).map(|_| push(said(Role::Assistant, "a word ".repeat(600))));
    let last = windows.last().expect("eight requests were made");
    last.iter().map(|shown| text(&shown.item) + "\n").collect()
}

#[test]
fn a_view_says_at_which_message_lines_were_seen_and_what_changed_them() {
    let text: String = (1..=30).map(|line| format!("{line:6}→let line_{line} = {line};\n")).collect();
    let read = ("Read", json!({"file_path": "src/a.rs"}), text);
    let seen = shown_after(std::slice::from_ref(&read));
    assert!(seen.contains("## `src/a.rs`: whole file, 30 lines, as you saw or wrote it at message "), "{seen}");
    let format = ("Bash", json!({"command": "cargo fmt"}), String::new());
    let open = shown_after(&[read.clone(), format]);
    assert!(open.contains("## `src/a.rs`: 30 lines, as you saw or wrote it at message "), "{open}");
    let pattern = ("Bash", json!({"command": "sed -i 's/l.t/x/' src/a.rs"}), String::new());
    let changed = shown_after(&[read, pattern]);
    let heading = "## `src/a.rs`: 30 lines, changed since by `sed -i s/l.t/x/ src/a.rs`\n";
    assert!(changed.contains(heading), "{changed}");
}
