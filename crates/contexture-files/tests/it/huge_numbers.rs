//! Line numbers that no file has: nothing of them is believed, and nothing overflows.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::dialect::Dialects;
use contexture_files::model::FileModel;
use serde_json::{Value, json};

const HUGE: u64 = u64::MAX;

/// Takes in a call twice over a file that is known, as reads and changes of one file follow each other.
#[track_caller]
fn check(name: &str, arguments: Value, result: &str) {
    let dialects = Dialects::builtin();
    let mut model = FileModel::new();
    let observe = |name: &str, arguments: Value, result: &str| {
        let call = FunctionCall::new("1", name, arguments.to_string());
        dialects.observe(&call, &FunctionCallOutput::new("1", result, Outcome::Unknown))
    };
    let known = observe("Read", json!({"file_path": "a.rs"}), "1\tfn main() {\n2\t    run();\n3\t}\n");
    let huge = observe(name, arguments, result);
    let changed = json!({"file_path": "a.rs", "old_string": "run();", "new_string": "run();\n    stop();"});
    let changed = observe("Edit", changed, "The file was updated.");
    for (at, seen) in [&known, &huge, &huge, &changed, &huge, &known].into_iter().enumerate() {
        seen.observations.iter().for_each(|observation| model.apply(at as u32 + 1, observation));
    }
    let text = model.get("a.rs").expect("the file is known").text();
    assert!(text.contains("fn main() {"), "{text}");
}

#[test]
fn numbers_that_no_line_has_do_no_harm() {
    for number in [HUGE, HUGE - 1, HUGE / 2, u64::from(u32::MAX)] {
        let lines = "fn one() {}\nfn two() {}\nfn three() {}\n";
        check("Read", json!({"file_path": "a.rs", "offset": number, "limit": number}), lines);
        check("view", json!({"path": "a.rs", "view_range": [number, number]}), lines);
        check("insert", json!({"path": "a.rs", "insert_line": number, "new_str": "x"}), "Done.");
        let editor = json!({"command": "insert", "path": "a.rs", "insert_line": number, "new_str": "x"});
        check("str_replace_editor", editor, "Done.");
        for command in [
            format!("sed -n '{number},+{number}p' a.rs"),
            format!("sed -n '{number},{number}p' a.rs"),
            format!("sed -n '2,+{number}p' a.rs"),
            format!("head -n {number} a.rs"),
            format!("head -{number} a.rs | tail -n {number}"),
            format!("tail -n +{number} a.rs"),
            format!("tail -n {number} a.rs | head -{number}"),
            format!("nl a.rs | sed -n '{number},{number}p'"),
        ] {
            check("Bash", json!({"command": command}), lines);
        }
        let found = format!("a.rs:{number}:fn one() {{}}\na.rs:{number}:fn two() {{}}\n{number}:fn three() {{}}\n");
        check("Bash", json!({"command": "grep -n fn a.rs"}), &found);
        check("Grep", json!({"pattern": "fn", "path": "a.rs"}), &found);
        check("Read", json!({"file_path": "a.rs"}), &format!("{number}\tfn one() {{}}\n{number}\tfn two() {{}}\n"));
        let diff = format!(
            "--- a/a.rs\n+++ b/a.rs\n@@ -{number},3 +{number},3 @@\n fn main() {{\n-    run();\n+    go();\n }}\n"
        );
        check("Bash", json!({"command": format!("git apply <<'EOF'\n{diff}EOF")}), "");
        check("Bash", json!({"command": "git diff"}), &diff);
        let diff =
            format!("--- a/a.rs\n+++ b/a.rs\n@@ -1,{number} +1,{number} @@\n fn main() {{\n-    run();\n+    go();\n");
        check("Bash", json!({"command": "git diff a.rs"}), &diff);
    }
}
