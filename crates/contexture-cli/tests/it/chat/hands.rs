//! What hands expect: a menu, another model, a new conversation, a gauge, and answers that are told from questions.

use serde_json::json;

use super::line_mode::{chat, place};
use super::provider::{Provider, Reply};
use super::screen::Screen;
use super::terminal::Terminal;
use crate::program::run;

/// The rows on the screen.
fn rows(terminal: &Terminal, columns: usize) -> Vec<String> {
    let text = |row: &Vec<super::screen::Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<String>();
    Screen::after(&terminal.all(), columns).rows().iter().map(text).collect()
}

#[test]
fn a_slash_opens_a_menu_and_tab_completes() {
    for columns in [40, 80] {
        let (place, provider) = (place(), Provider::start(vec![Reply::Says("Two.")]));
        let mut terminal = Terminal::start(place.path(), &provider, columns, &[]);
        terminal.expect("› ");
        terminal.press("/");
        terminal.expect("▸ /help");
        terminal.press("mo");
        terminal.expect("▸ /model");
        terminal.press("\t");
        terminal.expect("› /model ");
        terminal.press("\r");
        terminal.expect("m\r\n");
        terminal.expect("› ");
        // Enter runs what is chosen.
        terminal.press("/thr\r");
        terminal.expect("There is no thread of this directory yet.");
        terminal.expect("› ");
        terminal.press("/usr/bin is a directory\r");
        terminal.expect("Two.");
        assert!(rows(&terminal, columns.into()).iter().all(|row| row.chars().count() <= columns.into()));
    }
}

#[test]
fn the_model_changes_within_a_conversation_and_a_new_one_begins() {
    let (place, provider) =
        (place(), Provider::start(vec![Reply::Bills("One."), Reply::Bills("Two."), Reply::Bills("Three.")]));
    let mut terminal = Terminal::start(place.path(), &provider, 120, &[]);
    terminal.expect("› ");
    terminal.press("first\r");
    // The gauge is beside what the turn used.
    terminal.expect("▱ ");
    terminal.expect(" of 112k · 12k tokens in");
    terminal.expect("› ");
    terminal.press("/model other\r");
    terminal.expect("other, thread ");
    terminal.expect("› ");
    terminal.press("second\r");
    terminal.expect("Two.");
    terminal.expect("› ");
    let last = provider.received().pop().expect("a request");
    assert_eq!(last["model"], "other");
    assert!(provider.last().contains("first") && provider.last().contains("One."), "it is the same conversation");
    terminal.press("/new\r");
    terminal.expect("other, thread ");
    terminal.expect("› ");
    terminal.press("/cost\r");
    terminal.expect("Nothing was used yet");
    terminal.expect("› ");
    terminal.press("third\r");
    terminal.expect("Three.");
    terminal.expect("› ");
    assert!(!provider.last().contains("first"), "it is another conversation: {}", provider.last());
    terminal.press("/cost\r");
    terminal.expect("12k tokens in (50% from the cache), 1.2k out");
}

#[test]
fn what_is_to_be_done_instead_reaches_the_model() {
    let place = place();
    let write = json!({"path": "made.txt", "content": "x"});
    let provider = Provider::start(vec![
        Reply::Calls("write_file", write.clone()),
        Reply::Calls("execute_bash", json!({"command": "touch made"})),
        Reply::Says("Done."),
    ]);
    let mut terminal = Terminal::start(place.path(), &provider, 120, &[]);
    terminal.expect("› ");
    terminal.press("write it\r");
    terminal.expect("[a]lways write files, [i]nstead …, [n]o: ");
    terminal.press("i");
    terminal.expect("instead: ");
    terminal.press("nothing");
    // Who changes their mind is asked again.
    terminal.press("\x1b");
    terminal.expect("[n]o: ");
    terminal.press("i");
    terminal.expect("instead: ");
    terminal.press("touch it\r");
    terminal.expect("[a]lways run commands, ");
    assert!(provider.last().contains("the user said no, and to do this instead: touch it"), "{}", provider.last());
    assert!(!place.path().join("project/made.txt").exists());
    terminal.press("a");
    terminal.expect("always run commands");
    terminal.expect("Done.");
    assert!(place.path().join("project/made").exists());
}

#[test]
fn answers_are_told_from_what_people_say() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("One line.\n\nAnother.")]));
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("hello\r");
    terminal.expect("Another.");
    terminal.expect("of 112k");
    terminal.expect("› ");
    let rows = rows(&terminal, 80);
    let at = rows.iter().position(|row| row == "› hello").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(rows[at + 1..at + 6], ["", "◆ One line.", "", "  Another.", ""], "{rows:?}");
}

/// A word that is longer than a row was left on the screen with every piece of it that came.
#[test]
fn a_long_word_is_on_the_screen_once() {
    for columns in [40_u16, 100] {
        let pieces: Vec<String> =
            (0..60).map(|piece| format!("{}{}", if piece == 0 { "begin" } else { "" }, "ж".repeat(7))).collect();
        let word = pieces.concat();
        let (place, provider) = (place(), Provider::start(vec![Reply::Pieces(pieces)]));
        let mut terminal = Terminal::start(place.path(), &provider, columns, &[]);
        terminal.expect("› ");
        terminal.press("go\r");
        terminal.expect("of 112k");
        terminal.expect("› ");
        let shown = rows(&terminal, columns.into()).concat();
        assert_eq!(
            (shown.matches("begin").count(), shown.matches('ж').count()),
            (1, word.matches('ж').count()),
            "{shown}"
        );
    }
}

#[test]
fn a_refused_key_is_named_and_not_the_whole_address() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Refuses]));
    let told = |arguments: &[&str]| {
        let mut command =
            chat(place.path(), &[&["--print", "--url", &provider.url, "--model", "m", "hi"], arguments].concat());
        command.env("MY_KEY", "sk-0123456789");
        run(command, "").stderr
    };
    let host = provider.url.trim_start_matches("http://").trim_end_matches("/v1");
    let without = told(&[]);
    assert!(without.contains(&format!("{host} wants a key, and none was sent (status 401)")), "{without}");
    assert!(without.contains("hint: `--key-env VARIABLE`"), "{without}");
    let with = told(&["--key-env", "MY_KEY"]);
    assert!(with.contains(&format!("{host} refused the key in MY_KEY (status 401)")), "{with}");
    assert!(!with.contains("http://") && !with.contains("sk-0123456789"), "{with}");
}
