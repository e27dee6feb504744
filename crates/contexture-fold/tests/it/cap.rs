//! Outputs that are too long: what is kept of them, and that the rest can be had again.

use contexture_core::item::Role;
use contexture_core::tokens::{Estimate, TokenCounter};
use contexture_fold::cap::{cap, has_hash, short_hash};
use contexture_fold::rows::Rows;
use contexture_fold::{Folder, Policy, ShownItem};
use contexture_wire::transcript::Record;
use proptest::prelude::*;
use serde_json::json;

use crate::records::{answers, call, folder, is_marker, push, said, shortened, text};
use crate::steps::any_output;

const TOOL: &str = "file-history/output";

/// A log of numbered lines with some lines replaced.
fn log(lines: usize, special: &[(usize, &str)]) -> String {
    let line = |number: usize| match special.iter().find(|(at, _)| *at == number) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("{number:05} compiled one more of the many units\n"),
    };
    (1..=lines).map(line).collect()
}

#[test]
fn errors_keep_their_place_and_their_neighbours() {
    let text =
        log(2_000, &[(900, "error[E0308]: mismatched types"), (901, "  --> src/lib.rs:7:9"), (1_400, "FAIL two")]);
    let capped = cap(&Estimate, &text, 500, None);
    let kept = |line: &str| capped.find(line).unwrap_or_else(|| panic!("`{line}` is gone from\n{capped}"));
    let places = [
        kept("00001 compiled"),
        kept("[… lines "),
        kept("00899 compiled"),
        kept("error[E0308]: mismatched types\n  --> src/lib.rs:7:9\n00902 compiled"),
        kept("[… lines 903-1398 ("),
        kept("01399 compiled one more of the many units\nFAIL two\n01401"),
        kept("02000 compiled"),
    ];
    assert!(places.is_sorted(), "{places:?}\n{capped}");
}

#[test]
fn how_a_command_ended_is_kept_wherever_it_stands() {
    #[track_caller]
    fn check(at: usize, status: &str) {
        let text = log(3_000, &[(at, status)]);
        let capped = cap(&Estimate, &text, 300, Some(TOOL));
        assert!(capped.lines().any(|line| line == status), "`{status}` is gone from\n{capped}");
    }
    check(1, "Exit code: 1");
    check(1, "Exit code 101");
    check(4, "Process exited with code 2");
    check(1_500, "[exit status 137]");
    check(2_998, "test result: FAILED. 12 passed; 3 failed; 0 ignored");
    check(2_997, "npm ERR! code ELIFECYCLE");
    check(3_000, "==== 3 failed, 120 passed in 4.20s ====");
    check(3_000, "[exit status 1]");
}

#[test]
fn the_first_gap_says_what_is_missing_and_how_to_see_it() {
    let text = log(1_000, &[]);
    let capped = cap(&Estimate, &text, 400, Some(TOOL));
    let marker = capped.lines().find(|line| is_marker(line)).unwrap();
    let first = Rows::new(&text).at(capped.find("[…").unwrap()) + 1;
    let last = Rows::new(&text).at(text.len() - (capped.len() - capped.find(marker).unwrap() - marker.len())) + 1;
    let call = format!("{TOOL} {{\"hash\":\"{}\",\"from_line\":{first}}} shows them", short_hash(&text));
    assert!(marker.starts_with(&format!("[… lines {first}-{last} (")), "{marker}, not {first}-{last}");
    assert!(marker.ends_with(&format!(" bytes) left out; {call} …]")), "{marker}");
    assert!(!cap(&Estimate, &text, 400, None).contains("shows them"), "nothing is promised without a tool");
}

#[test]
fn one_endless_line_is_cut_too() {
    let text = "0123456789".repeat(10_000);
    let capped = cap(&Estimate, &text, 200, Some(TOOL));
    assert!(Estimate.count(&capped) <= 200);
    let pieces: Vec<&str> = capped.lines().filter(|line| !is_marker(line)).collect();
    assert_eq!(pieces.len(), 2, "{capped}");
    assert!(text.starts_with(pieces[0]) && text.ends_with(pieces[1]) && pieces[1].len() > 100, "{capped}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rows_are_the_text(text in any_output()) {
        let rows = Rows::new(&text);
        prop_assert_eq!(rows.iter().collect::<String>(), &text[..]);
        for (number, row) in rows.iter().enumerate() {
            let bytes = rows.bytes(number..number + 1);
            prop_assert!(row.len() <= 1_000);
            prop_assert_eq!(rows.at(bytes.start), number);
            prop_assert_eq!(rows.at(bytes.end - 1), number);
        }
    }
}

/// A conversation in which one command printed a text.
fn printed(folder: &mut Folder, name: &str, text: &str) {
    push(folder, &said(Role::User, "Build it."));
    push(folder, &Record::response("", [call("run", name, &json!({"command": "make"}))]));
    push(folder, &answers("run", text));
}

/// Whether a window shows an item of the log as it is.
fn shows_whole(window: &[ShownItem], at: usize) -> bool {
    window.iter().any(|shown| shown.position == Some(at) && shown.is_logged)
}

#[test]
fn the_whole_can_be_found_by_the_hash_that_is_shown() {
    let text = log(4_000, &[]);
    let mut folder = folder(32_000).with_output_tool(TOOL);
    printed(&mut folder, "Bash", &text);
    let Some((2, shown)) = shortened(&folder.request()[2]) else { panic!("it was not capped") };
    let (_, behind) = shown.split_once("{\"hash\":\"").unwrap();
    assert!(has_hash(&text, &behind[..12]));
    assert!(!has_hash(&text, "000000000000") && !has_hash(&text, ""));
}

#[test]
fn what_the_output_tool_shows_is_not_capped_again() {
    let mut folder = folder(32_000).with_output_tool(TOOL);
    printed(&mut folder, TOOL, &log(1_500, &[]));
    let shown = folder.request()[2].clone();
    assert_eq!((shown.position, shown.is_logged), (Some(2), true));
}

#[test]
fn an_output_that_the_limit_itself_cuts_can_be_had_again_too() {
    let text = log(80, &[(40, "error: the one that matters")]);
    let mut folder = folder(32_000).with_output_tool(TOOL);
    printed(&mut folder, "Bash", &text);
    assert!(shows_whole(folder.request(), 2), "it is not too long for a window of this size");
    folder.set_policy(Policy::new(600));
    let window = folder.request().to_vec();
    assert!(!shows_whole(&window, 2), "the limit does not cut it");
    let shown = said_in(&window);
    assert!(shown.contains(&format!("{{\"hash\":\"{}\",", short_hash(&text))), "{shown}");
    assert!(shown.contains("error: the one that matters"), "{shown}");
}

#[test]
fn an_output_that_was_folded_away_is_named_in_what_was_done() {
    let mut folder = folder(8_000).with_output_tool(TOOL);
    let text = log(20, &[]);
    printed(&mut folder, "Bash", &text);
    printed(&mut folder, "Bash", "done");
    for n in 0..90 {
        let id = format!("read {n}");
        push(&mut folder, &Record::response("", [call(&id, "Read", &json!({"file_path": format!("/src/{n}.rs")}))]));
        push(
            &mut folder,
            &answers(&id, (1..60).map(|line| format!("{line}\tlet line_{line} = {n};\n")).collect::<String>()),
        );
        folder.request();
    }
    let window = folder.request().to_vec();
    assert!(!shows_whole(&window, 2), "it was not folded away");
    let made = said_in(&window);
    assert!(made.contains(&format!("\n- $ make (#{})\n", short_hash(&text))), "{made}");
    assert!(made.contains(&format!("\n[{TOOL} shows what has a #]\n")), "{made}");
}

/// Everything that is said in a window.
fn said_in(window: &[ShownItem]) -> String {
    window.iter().map(|shown| text(&shown.item)).collect()
}
