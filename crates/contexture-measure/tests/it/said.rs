//! The measure `said`, on recordings whose values are computed by hand.

use contexture::fold::Prices;
use contexture::transcript::{Record, Transcript};
use contexture_measure::judge::{Measures, WindowJudge};
use contexture_measure::policies::{MadeMessage, ShownMessage, WindowChange, WindowEntry};
use contexture_measure::recorded::RecordedSession;
use serde_json::{Value, json};

/// Two lines of 30 bytes each.
const FIRST: &str = "the first of two lines of text";
const SECOND: &str = "another line of 30 characters.";

fn transcript(lines: &[Value]) -> Transcript {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Transcript::read(text.as_bytes()).expect("a recording in the plain form").0
}

fn user(text: &str) -> Value {
    json!({"role": "user", "text": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "text": text})
}

fn full(index: usize) -> WindowEntry {
    WindowEntry::RecordedSession { index, shown: ShownMessage::Full }
}

fn made(line: &Value) -> WindowEntry {
    let record: Record = transcript(std::slice::from_ref(line)).records.swap_remove(0);
    WindowEntry::Made(MadeMessage::new(record))
}

fn measure(lines: &[Value], requests: Vec<(usize, Vec<WindowEntry>)>) -> Measures {
    let transcript = transcript(lines);
    let recorded = RecordedSession::new(&transcript);
    let mut judge = WindowJudge::new(&recorded, Prices::ANTHROPIC);
    requests.into_iter().for_each(|(before, added)| judge.take(WindowChange { before, keep: 0, added }));
    judge.finish(1_000.0)
}

/// Checks how much is found of what was said before a response, in a window of these entries.
#[track_caller]
fn check(said: &[Value], window: Vec<WindowEntry>, expected: f64) {
    let lines: Vec<Value> = said.iter().cloned().chain([assistant("ok")]).collect();
    let measures = measure(&lines, vec![(said.len(), window)]);
    assert_eq!(measures.said_requests, 1);
    assert!((measures.said_share() - expected).abs() < 1e-12, "{} and {expected}", measures.said_share());
}

/// Checks a text that was said against one that is shown.
#[track_caller]
fn check_text(said: &str, shown: &str, expected: f64) {
    check(&[user(said)], vec![made(&user(shown))], expected);
}

#[test]
fn it_is_the_share_of_the_bytes_of_lines_that_are_shown() {
    assert_eq!((FIRST.len(), SECOND.len()), (30, 30));
    let both = format!("{FIRST}\n{SECOND}");
    check(&[user(&both)], vec![full(0)], 1.0);
    check_text(&both, SECOND, 0.5);
    check_text(&both, "nothing of it", 0.0);
    let tripled = format!("{FIRST} {FIRST} {FIRST}");
    assert_eq!(tripled.len(), 92);
    check_text(&format!("{tripled}\n{SECOND}"), &tripled, 92.0 / 122.0);
    // Bytes are counted, not characters.
    check_text(&format!("{}\n{SECOND}", "ü".repeat(20)), SECOND, 30.0 / 70.0);
}

#[test]
fn a_line_counts_once_and_from_20_characters_on() {
    check_text(&format!("{FIRST}\n{FIRST}\n{FIRST}\n{SECOND}"), SECOND, 0.5);
    let (nineteen, twenty) = ("a line of 19 chars.", "a line of 20 chars..");
    assert_eq!((nineteen.len(), twenty.len()), (19, 20));
    check_text(&format!("{nineteen}\n{FIRST}"), FIRST, 1.0);
    check_text(&format!("{twenty}\n{FIRST}"), FIRST, 30.0 / 50.0);
    check_text(&format!("{}\n{FIRST}", "ü".repeat(19)), FIRST, 1.0);
    // Only marks are left out before it, and they do not make a line longer.
    check_text(&format!("- > * | {nineteen}\n{FIRST}"), FIRST, 1.0);
}

#[test]
fn marks_and_line_breaks_do_not_matter() {
    check_text(&format!("  - {FIRST}\r\n> * {SECOND}  "), &format!("| {FIRST}\n{SECOND}"), 1.0);
    let (start, end) = FIRST.split_at(FIRST.find("two").expect("a word of it"));
    check_text(FIRST, &format!("before {start}\n\t {end} behind"), 1.0);
    check_text(FIRST, &FIRST.replace("two", "2"), 0.0);
}

#[test]
fn people_are_the_user_the_system_and_developers() {
    for role in ["system", "developer"] {
        check(&[json!({"role": role, "text": FIRST}), user(SECOND)], vec![full(1)], 0.5);
    }
    let attached = |kind: &str| {
        let meta = json!({"origin": "attachment", "kind": kind});
        json!({"role": "user", "text": FIRST, "meta": meta})
    };
    check(&[attached("nested_memory"), user(SECOND)], vec![full(1)], 0.5);
    check(&[attached("skill_listing"), user(SECOND)], vec![full(1)], 0.5);
    for note in ["edited_text_file", "task_reminder", "hook_success", "file", "directory", "selected_lines_in_ide"] {
        check(&[attached(note), user(SECOND)], vec![full(1)], 1.0);
    }
    // What the model and tools say is not what people said.
    let lines = [user(SECOND), assistant(FIRST), assistant("ok")];
    assert_eq!(measure(&lines, vec![(2, vec![full(0)])]).said_share(), 1.0);
}

#[test]
fn it_does_not_matter_who_shows_it_unless_lines_are_numbered() {
    let arguments = json!({"content": format!("{FIRST}\n")});
    let call = json!({"id": "w", "name": "Write", "arguments": arguments});
    check(&[user(FIRST)], vec![made(&json!({"role": "assistant", "text": "", "tool_calls": [call]}))], 1.0);
    let numbered = format!("12\t{FIRST}");
    check(&[user(FIRST)], vec![made(&assistant(&numbered))], 1.0);
    // The user's numbers are the user's. The line is found all the same, as a part of the longer one.
    check(&[user(FIRST)], vec![made(&user(&numbered))], 1.0);
    check(&[user(&format!("12: {FIRST}"))], vec![made(&assistant(&format!("12: {FIRST}")))], 0.0);
    check(&[user(&format!("12: {FIRST}"))], vec![made(&user(&format!("12: {FIRST}")))], 1.0);
}

#[test]
fn stubs_and_heads_show_nothing() {
    let entry = |shown| vec![WindowEntry::RecordedSession { index: 0, shown }, full(1)];
    let said = [user(FIRST), user(SECOND)];
    check(&said, entry(ShownMessage::Full), 1.0);
    check(&said, entry(ShownMessage::Stub), 0.5);
    check(&said, entry(ShownMessage::Head), 0.5);
}

#[test]
fn it_is_averaged_over_requests_before_which_something_was_said() {
    let lines = [user("hi"), assistant("?"), user(FIRST), assistant("?"), user(SECOND), assistant("?")];
    let requests = vec![(1, vec![full(0)]), (3, vec![full(0), full(2)]), (5, vec![full(4)])];
    let measures = measure(&lines, requests);
    assert_eq!((measures.requests, measures.said_requests, measures.said), (3, 2, 1.5));
    assert_eq!(measures.said_share(), 0.75);
    let silent = measure(&lines, vec![(1, vec![full(0)])]);
    assert_eq!((silent.said_requests, silent.said_share()), (0, 1.0));
}

#[test]
fn a_window_that_only_grew_lacks_what_it_lacked() {
    let lines = [user(FIRST), assistant("?"), user(SECOND), assistant("?"), user(FIRST), assistant("?")];
    // The first line is missing at first, comes back at the end, and is counted as missing until the window changes.
    let window = |entries: &[usize]| entries.iter().map(|&index| full(index)).collect::<Vec<_>>();
    let grown = vec![(1, window(&[1])), (3, window(&[1, 2])), (5, window(&[1, 2, 3, 4]))];
    assert_eq!(measure(&lines, grown).said, 0.0 + 0.5 + 0.5);
    let changed = vec![(1, window(&[1])), (3, window(&[1, 2])), (5, window(&[2, 3, 4]))];
    assert_eq!(measure(&lines, changed).said, 0.0 + 0.5 + 1.0);
}
