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
fn a_view_says_since_when_lines_may_have_changed() {
    let text: String = (1..=30).map(|line| format!("{line:6}→let line_{line} = {line};\n")).collect();
    let read = ("Read", json!({"file_path": "src/a.rs"}), text);
    let format = ("Bash", json!({"command": "cargo fmt"}), String::new());
    let sure = shown_after(std::slice::from_ref(&read));
    assert!(sure.contains("## `src/a.rs`: whole file, 30 lines, sure\n"), "{sure}");
    let presumed = shown_after(&[read, format]);
    assert!(presumed.contains("## `src/a.rs`: 30 lines, presumed (`cargo fmt` ran since)\n"), "{presumed}");
    let untidy: String = (1..=30).map(|line| format!("{line:6}→let line_{line}=f({line},1){{\n")).collect();
    let read = ("Read", json!({"file_path": "src/a.rs"}), untidy);
    let format = ("Bash", json!({"command": "cargo fmt"}), String::new());
    let unsure = shown_after(&[read, format]);
    assert!(unsure.contains("## `src/a.rs`: 30 lines, in doubt (may have changed since `cargo fmt`)\n"), "{unsure}");
}
