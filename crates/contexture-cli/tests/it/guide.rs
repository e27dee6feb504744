//! What the guide to file-aware history shows is what the program prints.

use std::path::Path;

use serde_json::{Map, Value};

use crate::program::run_in;

const GUIDE: &str = include_str!("../../../../docs/file-aware-history.md");

/// The most characters of a text that the guide shows.
const MAX_CHARS: usize = 64;

fn emitted(what: &str) -> Vec<Map<String, Value>> {
    let run = run_in(Path::new("."), &["replay", "--emit", what], "");
    run.stdout.lines().map(|line| serde_json::from_str(line).expect("every line is an object")).collect()
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A window, one line for each message: who speaks, how many tokens, and how it begins.
fn outline(window: &[Value]) -> String {
    let line = |message: &Value| {
        let text = message["text"].as_str().expect("a text");
        let calls = message["tool_calls"].as_array().expect("calls");
        let call = calls.first().map(|call| {
            let argument = call["arguments"].as_object().and_then(|all| all.values().next()).and_then(Value::as_str);
            format!("{} {}", call["name"].as_str().expect("a name"), argument.unwrap_or_default())
        });
        let begins = call.unwrap_or_else(|| text.lines().next().unwrap_or_default().trim().to_owned());
        format!("{:<9} {:>4}  {}\n", message["role"].as_str().expect("a role"), text.len() / 4, clip(&begins))
    };
    window.iter().map(line).collect()
}

#[track_caller]
fn check(block: &str) {
    let fenced = format!("```text\n{block}```\n");
    assert!(GUIDE.contains(&fenced), "the guide does not show what the program prints, which is\n\n{fenced}");
}

#[test]
fn the_fold_of_the_guide_is_the_first_of_the_example() {
    let decisions = emitted("decisions");
    let fold = decisions.iter().find(|decision| decision["decision"] == "fold").expect("the example is folded");
    let mut windows: Vec<Vec<Value>> = Vec::new();
    for request in emitted("windows") {
        let mut window = windows.last().cloned().unwrap_or_default();
        window.truncate(request["keep"].as_u64().expect("a count") as usize);
        window.extend(request["messages"].as_array().expect("messages").iter().cloned());
        windows.push(window);
        if request["before"] == fold["at"] {
            break;
        }
    }
    let [.., before, after] = windows.as_slice() else { panic!("a request stands before the fold") };
    check(&outline(before));
    check(&outline(after));
    let mut fields = String::new();
    for (name, value) in fold {
        fields.push_str(&format!("{name}: {}\n", clip(&value.to_string())));
    }
    check(&fields);
}

#[test]
fn the_readme_is_short() {
    let readme = include_str!("../../../../README.md");
    let (before, _) = readme.split_once("## More").expect("a part for the rest");
    let words = before.split_whitespace().count();
    assert!(words <= 900, "README.md has {words} words before \"More\"");
}
