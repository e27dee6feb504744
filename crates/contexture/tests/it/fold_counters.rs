//! What is within its limit by real tokens, as it is by estimates: outputs, and windows of a folder.

use std::sync::{Arc, LazyLock};

use contexture::bpe::Bpe;
use contexture::fold::{Folder, Meter, Policy};
use contexture::item::Role;
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::Record;
use contexture_fold::cap::cap;
use proptest::prelude::*;
use serde_json::json;

use crate::records::{all_text, answers, asks, call, counted, is_marker, said, tokens_by, windows_by};
use crate::steps::{Step, any_output, conversation};

const TOOL: &str = "file-history/output";

static O200K: LazyLock<Arc<Bpe>> = LazyLock::new(|| Arc::new(Bpe::o200k()));

fn counters() -> [Arc<dyn TokenCounter>; 2] {
    [Arc::new(Estimate), O200K.clone()]
}

/// Counts every byte three times: far from the four bytes a token that are reckoned with.
struct Dense;

impl TokenCounter for Dense {
    fn name(&self) -> &str {
        "dense"
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64 * 3
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_capped_output_is_within_its_limit_and_shows_only_what_was_there_in_order(
        text in any_output(), limit in prop_oneof![0..40_u64, 40..2_000_u64], has_tool: bool,
    ) {
        let counters: [&dyn TokenCounter; 3] = [&Estimate, &Dense, &**O200K];
        for counter in counters {
            let capped = cap(counter, &text, limit, has_tool.then_some(TOOL));
            prop_assert!(counter.count(&capped) <= limit, "{} of {limit}", counter.count(&capped));
            if counter.count(&text) <= limit {
                prop_assert_eq!(&capped, &text);
            }
            let mut rest = text.as_str();
            for line in capped.split('\n').filter(|line| !is_marker(line)) {
                let at = rest.find(line);
                prop_assert!(at.is_some(), "{line:?} was not there, or before");
                rest = &rest[at.unwrap() + line.len()..];
            }
        }
    }
}

/// One message that is larger than any window, in every way a message can be.
fn giants() -> Vec<(&'static str, Vec<Record>)> {
    let words = "some words and ünïcödé 字 ".repeat(4_000);
    let code: String = (0..4_000).map(|n| format!("let value_{n} = {n};\n")).collect();
    let many = (0..300).map(|n| call(&format!("m{n}"), "Bash", &json!({"command": "make all"})));
    let many = Record::response("", many);
    let replies = (0..300).map(|n| answers(&format!("m{n}"), format!("reply {n} ").repeat(20)));
    vec![
        ("said by the user", vec![said(Role::User, words.clone())]),
        ("said by the agent", vec![said(Role::Assistant, words.clone())]),
        ("printed", vec![asks("p", "Bash", json!({"command": "make"})), answers("p", words.clone())]),
        ("read", vec![asks("r", "Read", json!({"file_path": "/a.rs"})), answers("r", code.clone())]),
        ("written", vec![asks("w", "Write", json!({"file_path": "/a.rs", "content": code})), answers("w", "ok")]),
        ("one line", vec![asks("l", "Bash", json!({"command": "x"})), answers("l", "x".repeat(100_000))]),
        ("many calls", std::iter::once(many).chain(replies).collect()),
    ]
}

#[test]
fn no_message_is_too_large_for_a_window_whoever_counts() {
    for (kind, giant) in giants() {
        for counter in counters() {
            for budget in [1_000, 8_000] {
                let mut folder = Folder::new(Policy::new(budget), Meter::of_texts(counter.clone()));
                folder.push(counted(&*counter, &said(Role::User, "Please go on.")));
                let rest = [said(Role::User, "And now?"), said(Role::Assistant, "Done."), said(Role::User, "Good.")];
                for record in giant.iter().chain(&rest) {
                    folder.push(counted(&*counter, record));
                    let window = folder.request().to_vec();
                    let tokens = tokens_by(&*counter, &window);
                    assert!(tokens <= budget, "{kind}: {tokens} of {budget} by {}", counter.name());
                    assert!(!window.is_empty(), "{kind}: nothing is sent");
                }
            }
        }
    }
}

#[test]
fn at_8000_tokens_work_goes_on_whoever_counts() {
    let mut steps = Vec::new();
    for round in 0..12_usize {
        let file = (round % 4) as u8;
        steps.push(Step::Read { file, first: 1, count: 60 });
        steps.push(Step::Edit { file, line: 5 + round });
        steps.push(Step::Run { lines: 40 });
    }
    let records = conversation(&steps);
    for counter in counters() {
        let folder = Folder::new(Policy::new(8_000), Meter::of_texts(counter.clone()));
        let (windows, _) = windows_by(&*counter, folder, &records);
        for window in &windows {
            let tokens = tokens_by(&*counter, window);
            assert!(tokens <= 8_000, "{tokens} by {}", counter.name());
        }
        let last = all_text(windows.last().unwrap());
        assert!(last.contains("Please fix the build."), "what was asked for is gone by {}", counter.name());
        assert!(last.contains("    // 34\n"), "the newest change is gone by {}: {last}", counter.name());
    }
}
