//! Whatever files there are and whatever the budget, the message fits, and no file is forgotten.

use std::sync::Arc;

use contexture::Item;
use contexture::bpe::Bpe;
use contexture::host::FileErrorCode;
use contexture::layers::FileReferenceOptions;
use contexture::layers::file_reference::ReportStatus;
use contexture::layers::file_reference::testing::Conversation;
use contexture::testing::MemoryFs;
use contexture::tokens::{Estimate, TokenCounter, count_item};
use proptest::prelude::*;

use crate::wait;

/// Every byte a token: the densest counter there can be.
struct Bytes;

impl TokenCounter for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

fn counters() -> [Arc<dyn TokenCounter>; 3] {
    [Arc::new(Bpe::o200k()), Arc::new(Estimate), Arc::new(Bytes)]
}

/// Takes in the files, and checks the message at every budget.
fn check(
    files: &[(String, Option<String>)],
    budgets: &[u64],
    counter: &Arc<dyn TokenCounter>,
) -> Result<(), TestCaseError> {
    let fs = MemoryFs::new();
    let mut message = String::new();
    for (path, text) in files {
        message.push_str(&format!("#\"{path}\" "));
        match text {
            Some(text) => fs.set(path, text.as_str()),
            None => fs.set_error(path, FileErrorCode::ReadFailed),
        }
    }
    let mut talk =
        Conversation::new(Arc::new(fs), FileReferenceOptions::default()).unwrap().with_counter(counter.clone());
    wait(talk.say(&message));
    for budget in budgets {
        // A message that still fits is kept; here every budget is to be tried.
        talk.restart().unwrap();
        talk.budget = *budget;
        let Some(shown) = wait(talk.recall()) else {
            prop_assert!(*budget < 80 || counter.name() == "bytes", "nothing is said with {budget} tokens");
            continue;
        };
        let tokens = count_item(&**counter, &Item::developer(shown.as_str()));
        prop_assert!(tokens <= *budget, "{tokens} of {budget} by {}: {shown}", counter.name());
        let more = shown.lines().last().is_some_and(|line| line.starts_with("- and "));
        for report in talk.report() {
            let named = shown.contains(&format!("`{}`", report.path));
            prop_assert!(named || more, "{} is not named: {shown}", report.path);
            let is_shown = matches!(report.status, ReportStatus::Shown | ReportStatus::Excerpt);
            prop_assert_eq!(report.tokens > 0, is_shown);
        }
    }
    Ok(())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z ]{1,40}",
        "(fn [a-z]{1,8}\\(\\) \\{\\}\n){1,80}",
        "(.{0,60}\n){0,40}",
        "`{1,300}",
        "(~{1,9}\n|`{1,9}\n|#{1,3} x\n){1,60}",
        "[ \t\n]{1,400}",
        "(日本|語|é|🦀|\r\n|\u{301}){1,200}",
        "[0-9a-f]{100,3000}",
        "(a{1,50}=+){1,40}",
    ]
}

fn some_files() -> impl Strategy<Value = Vec<(String, Option<String>)>> {
    let path = prop_oneof![4 => "[a-z]{1,8}(/[a-z]{1,8}){0,2}\\.(rs|md|txt)", 1 => "[a-z é日]{1,40}[a-z]\\.md"];
    let path = path.prop_filter("a path in quotes has no spaces around it", |path| path.trim() == path);
    prop::collection::vec((path, prop::option::weighted(0.9, text())), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_message_is_within_any_budget(files in some_files(), budgets in prop::collection::vec(0..3000_u64, 4), tiny in 0..50_u64) {
        for counter in counters() {
            check(&files, &[&*budgets, &[tiny]].concat(), &counter)?;
        }
    }
}

#[test]
fn the_message_is_within_every_small_budget() {
    let files: Vec<_> = (0..5).map(|n| (format!("file{n}.rs"), Some(format!("fn f{n}() {{}}\n").repeat(20)))).collect();
    let budgets: Vec<u64> = (0..400).collect();
    for counter in counters() {
        check(&files, &budgets, &counter).unwrap();
    }
}

fn shown(path: &str, text: &str, budget: u64) -> String {
    let fs = MemoryFs::new();
    fs.set(path, text);
    let mut talk =
        Conversation::new(Arc::new(fs), FileReferenceOptions::default()).unwrap().with_counter(Arc::new(Bpe::o200k()));
    talk.budget = budget;
    wait(talk.ask(&format!("#{path}")))
}

#[test]
fn a_small_budget_gives_an_excerpt_of_the_only_file() {
    let text: String = (1..=500).map(|n| format!("line number {n}\n")).collect();
    for budget in [100, 110, 130] {
        let shown = shown("long.txt", &text, budget);
        assert!(shown.contains("line number 1\n"), "{budget}: {shown}");
        assert!(Bpe::o200k().count(&shown) + 4 <= budget, "{budget}: {shown}");
    }
}

#[test]
fn one_long_line_shows_head_marker_and_tail() {
    let middle: String = (0..).map(|n| format!("var a{n}={n};")).take(70_000).collect();
    let text = format!("var first=1;{}var last=1;", &middle[..1_000_000]);
    let shown = shown("dist/app.min.js", &text, 2000);
    assert!(shown.contains("```javascript\nvar first=1;"), "{}", &shown[..200]);
    assert!(shown.contains(" bytes left out …]\n"), "{shown}");
    assert!(shown.ends_with("var last=1;\n```"), "{}", &shown[shown.len() - 200..]);
    let tokens = Bpe::o200k().count(&shown);
    assert!((1700..2000).contains(&tokens), "{tokens} tokens of 2000");
}

#[test]
fn a_long_file_is_cut_at_the_ends_of_lines() {
    let text: String = (1..=5000).map(|n| format!("line number {n}\n")).collect();
    let shown = shown("long.txt", &text, 1000);
    assert!(shown.contains("```text\nline number 1\n"), "{shown}");
    assert!(shown.ends_with("line number 5000\n```"), "{shown}");
    let marker = shown.lines().find(|line| line.starts_with("[… lines ")).unwrap();
    let numbers: Vec<usize> = marker.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let [first, last, of] = numbers[..] else { panic!("{marker}") };
    assert_eq!(of, 5000);
    assert!(shown.contains(&format!("line number {}\n[…", first - 1)), "{marker}");
    assert!(shown.contains(&format!("…]\nline number {}\n", last + 1)), "{marker}");
}

#[test]
fn a_huge_file_leaves_room_for_the_others() {
    let fs = MemoryFs::new();
    fs.set("huge.rs", "fn huge() {}\n".repeat(10_000));
    fs.set("small.rs", "fn small() {}\n");
    fs.set("other.rs", "fn other() {}\n");
    let mut talk =
        Conversation::new(Arc::new(fs), FileReferenceOptions::default()).unwrap().with_counter(Arc::new(Bpe::o200k()));
    talk.budget = 1000;
    let shown = wait(talk.ask("huge matters: #huge.rs #small.rs #other.rs"));
    assert!(shown.contains("fn small() {}\n```") && shown.contains("fn other() {}\n```"), "{shown}");
    assert!(Bpe::o200k().count(&shown) > 850, "and uses what is left: {}", Bpe::o200k().count(&shown));
}

#[test]
fn what_just_fits_is_shown_whole() {
    let text = "fn main() {}\n".repeat(40);
    let whole = shown("a.rs", &text, 10_000);
    let needed = Bpe::o200k().count(&whole) + 4;
    let tight = shown("a.rs", &text, needed + needed / 50 + 4);
    assert_eq!(tight, whole);
}

#[test]
fn a_message_that_still_fits_is_kept_when_the_budget_varies() {
    let fs = MemoryFs::new();
    fs.set("large.rs", "fn large() {}\n".repeat(1000));
    let [counter, ..] = counters();
    let talk = Conversation::new(Arc::new(fs), FileReferenceOptions::default()).unwrap();
    let mut talk = talk.with_counter(counter.clone());
    talk.budget = 1000;
    let first = wait(talk.ask("#large.rs")).len();
    for (budget, same) in [(1100, true), (990, true), (1250, true), (700, false), (1000, false)] {
        talk.budget = budget;
        let shown = wait(talk.recall()).unwrap();
        assert!(counter.count(&shown) + 4 <= budget);
        assert_eq!(shown.len() == first, same || budget == 1000, "{budget}");
    }
}

#[test]
fn a_thousand_names_do_not_push_out_the_file_that_matters() {
    let fs = MemoryFs::new();
    let mut message = String::new();
    for n in 0..1000 {
        fs.set(&format!("src/module/file{n}.rs"), "fn f() {}\n".repeat(500));
        message.push_str(&format!("#src/module/file{n}.rs "));
    }
    let mut talk =
        Conversation::new(Arc::new(fs), FileReferenceOptions::default()).unwrap().with_counter(Arc::new(Bpe::o200k()));
    talk.budget = 6000;
    wait(talk.ask(&message));
    let shown = wait(talk.ask("What does #src/module/file500.rs do?"));
    assert!(shown.contains("## `src/module/file500.rs`"), "{shown}");
    assert!(shown.lines().last().unwrap().starts_with("- and "), "{shown}");
    assert!(Bpe::o200k().count(&shown) <= 6000);
}
