//! Texts of others for a terminal: they neither control it nor read differently from what they are.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use contexture_core::window::is_invisible;

/// A text by which somebody decides, such as a command that is about to run: whatever controls a terminal, turns the
/// direction of writing around or cannot be seen is written out, as `\u{202e}`. Line feeds and tabs stay.
///
/// ```
/// use contexture_terminal::harmless::written_out;
/// assert_eq!(written_out("a\u{202e}b\x1b[2J\r\nc"), "a\\u{202e}b\\u{1b}[2J\nc");
/// ```
pub fn written_out(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => shown.push(character),
            // The end of a line in some files.
            '\r' if characters.peek().is_none_or(|next| *next == '\n') => {}
            character if is_unsafe(character) => shown.extend(character.escape_unicode()),
            character => shown.push(character),
        }
    }
    shown
}

/// The same on one line: white space of any kind is one space.
///
/// ```
/// use contexture_terminal::harmless::on_one_line;
/// assert_eq!(on_one_line(" a\n\tb\u{7} "), "a b\\u{7}");
/// ```
pub fn on_one_line(text: &str) -> String {
    written_out(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text that is only read, such as an answer: what controls a terminal or turns the direction of writing around is
/// left out, and what is a blank or hides text (tags, fillers) is written out. Characters that join others stay, since some
/// scripts and pictures need them.
///
/// ```
/// use contexture_terminal::harmless::spoken;
/// assert_eq!(spoken("a\u{e0041}\u{3164}b\u{2028}c"), "a\\u{e0041}\\u{3164}b\nc");
/// assert_eq!(spoken("می\u{200c}خواهم \u{202e}👩\u{200d}💻\x1b[2J"), "می\u{200c}خواهم 👩\u{200d}💻[2J");
/// ```
pub fn spoken(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || turns(c));
    let mut shown = String::with_capacity(text.len());
    // The flags of some countries are a black flag and tags.
    let mut is_flag = false;
    for character in text.chars().filter(|c| is_kept(*c)) {
        let is_tag = matches!(character, '\u{e0000}'..='\u{e007f}');
        is_flag = character == '\u{1f3f4}' || (is_flag && is_tag);
        match character {
            '\u{2028}' | '\u{2029}' => shown.push('\n'),
            '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => shown.extend(character.escape_unicode()),
            character if is_tag && !is_flag => shown.extend(character.escape_unicode()),
            character => shown.push(character),
        }
    }
    shown
}

/// A text that somebody may want exactly as it is: so it is, unless standard output is a terminal.
pub fn for_output(text: &str) -> Cow<'_, str> {
    match io::stdout().is_terminal() {
        true => Cow::Owned(written_out(text)),
        false => Cow::Borrowed(text),
    }
}

fn is_unsafe(character: char) -> bool {
    character.is_control() || is_invisible(character) || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_invisible_character_is_written_out() {
        let check = |text: &str, expected: &str| assert_eq!(written_out(text), expected);
        for code in
            [0x202a, 0x202e, 0x2066, 0x2069, 0x200e, 0x200f, 0x61c, 0x200b, 0x200d, 0xfeff, 0xe0041, 0x9b, 0x2028]
        {
            let character = char::from_u32(code).unwrap();
            check(&format!("a{character}b"), &format!("a\\u{{{code:x}}}b"));
        }
        check("plain\ttext\n漢字 é 👍", "plain\ttext\n漢字 é 👍");
        check("a\r\nb\rc\r", "a\nb\\u{d}c");
        assert_eq!(spoken("a\u{202e}b\u{2066}c\r\n\x07d"), "abc\nd");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}]){0,40}") {
            let harmful = |c: char| is_unsafe(c) && !matches!(c, '\n' | '\t');
            prop_assert!(!written_out(&text).contains(harmful));
            prop_assert!(!on_one_line(&text).contains(['\n', '\t']));
            prop_assert!(!spoken(&text).contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')));
        }
    }
}
