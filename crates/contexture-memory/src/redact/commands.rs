//! Passwords in the options of programs: `mysql -pVALUE`, `curl -u user:VALUE`.
//!
//! A text is read once, word by word. A word that is the name of a program begins a command, which ends at the end of the
//! line or at `|`, `;` and `&`. So commands are found in sentences, in scripts, and in JSON.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::Secret;
use super::table::{How, PASSWORD, PROGRAMS, PasswordProgram, READERS, SENTENCE};
use super::value::{ValueForm, is_key, is_stand_in};

/// The longest password, and the shortest.
const MAX_VALUE: usize = 256;
const MIN_VALUE: usize = 3;

static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static PasswordProgram>>> = LazyLock::new(|| {
    let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
    for program in PROGRAMS {
        program.0.iter().for_each(|name| by_name.entry(*name).or_default().push(program));
    }
    for (name, _) in READERS {
        by_name.entry(name).or_default();
    }
    by_name.entry("echo").or_default();
    by_name.entry("printf").or_default();
    by_name
});

/// Adds the passwords that are given to programs.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let mut command = CommandProgress::default();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' if at > 0 && bytes[at - 1] == b'\\' => {}
            b'\n' | b';' | b'&' => command = CommandProgress::default(),
            b'|' => command = CommandProgress { piped: command.echoed.take(), ..CommandProgress::default() },
            b'\\' => at += escape(bytes, at, &mut command),
            b'<' if bytes[at..].starts_with(b"<<<") => {
                command.expect_input();
                at += 2;
            }
            quote @ (b'"' | b'\'') if command.wants_quoted() && bytes.get(at + 1) != Some(&b',') => {
                let value = quoted(bytes, at + 1, quote);
                at = value.as_ref().map_or(at, |value| value.end);
                found.extend(value.and_then(|value| command.value(text, value)));
            }
            byte if is_separator(byte) => {}
            _ => {
                let end = at + bytes[at..].iter().take_while(|byte| !is_end(**byte)).count();
                found.extend(command.word(text, at..end));
                at = end;
                continue;
            }
        }
        at += 1;
    }
}

/// How much more than one byte an escape has; one that ends a line ends the command.
fn escape(bytes: &[u8], at: usize, command: &mut CommandProgress) -> usize {
    match bytes.get(at + 1) {
        Some(b'n' | b'r') if at == 0 || bytes[at - 1] != b'\\' => {
            *command = CommandProgress::default();
            1
        }
        _ => 0,
    }
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`()[]{}<>,".contains(&byte)
}

fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`()<>|;&\\".contains(&byte)
}

/// What is between quotes, if that is short and on one line.
fn quoted(bytes: &[u8], start: usize, quote: u8) -> Option<Range<usize>> {
    let len = bytes[start..].iter().take(MAX_VALUE).position(|byte| *byte == quote || *byte == b'\n')?;
    (bytes[start + len] == quote).then_some(start..start + len)
}

/// What is known of the command that is being read.
#[derive(Default)]
struct CommandProgress {
    name: Option<&'static str>,
    programs: &'static [&'static PasswordProgram],
    /// Which of the programs had the word that must come before their option.
    ready: u64,
    /// How many words were no options.
    words: usize,
    /// How the next word gives a password.
    pending: Option<How>,
    /// The last word that `echo` writes, and what was written to this program.
    echoed: Option<Range<usize>>,
    piped: Option<Range<usize>>,
}

impl CommandProgress {
    fn wants_quoted(&self) -> bool {
        self.pending.is_some() || matches!(self.name, Some("echo" | "printf"))
    }

    /// Reads a word, and returns the password that it gives.
    fn word(&mut self, text: &str, word: Range<usize>) -> Option<Secret> {
        let read = &text[word.clone()];
        if self.pending.is_some() && (!read.starts_with('-') || self.pending == Some(How::Joined)) {
            return self.value(text, word);
        }
        self.pending = None;
        if let Some((name, programs)) = program(read) {
            let piped = self.piped.take();
            *self = CommandProgress { name: Some(name), programs, piped, ..CommandProgress::default() };
            return if READERS.contains(&(name, "")) { self.read_from_pipe(text) } else { None };
        }
        let name = self.name?;
        if matches!(name, "echo" | "printf") {
            self.echoed = Some(word);
            return None;
        }
        if READERS.contains(&(name, read)) {
            return self.read_from_pipe(text);
        }
        let is_option =
            read.starts_with('-') && read.len() > 1 || read.starts_with("/p:") || read.starts_with("/user:");
        let secret = self.programs.iter().enumerate().find_map(|(index, program)| {
            let PasswordProgram(_, before, option, how) = **program;
            if is_before(read, before) {
                self.ready |= 1 << index;
            }
            let is_ready = before.is_empty() || self.ready & 1 << index != 0;
            let (value, pending) =
                if is_ready { given(text, &word, option, how, self.words, is_option) } else { (None, None) };
            self.pending = pending.or(self.pending);
            secret(text, value?)
        });
        self.words += usize::from(!is_option);
        secret
    }

    /// The value that was expected.
    fn value(&mut self, text: &str, value: Range<usize>) -> Option<Secret> {
        let Some(how) = self.pending.take() else {
            self.echoed = Some(value);
            return None;
        };
        secret(text, after_sign(text, value, how)?)
    }

    fn read_from_pipe(&mut self, text: &str) -> Option<Secret> {
        let piped = self.piped.take()?;
        secret(text, after_sign(text, piped, self.input())?)
    }

    /// How what is written to the program gives a password.
    fn input(&self) -> How {
        if self.name == Some("chpasswd") { How::After(':') } else { How::Next }
    }

    /// What follows `<<<` is written to a program, which may read a password.
    fn expect_input(&mut self) {
        if self.name.is_some_and(|name| READERS.iter().any(|(reader, _)| *reader == name)) {
            self.pending = Some(self.input());
        }
    }
}

/// The program of that name, also with the path of its file.
fn program(word: &str) -> Option<(&'static str, &'static [&'static PasswordProgram])> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let (name, programs) = BY_NAME.get_key_value(name)?;
    Some((*name, programs.as_slice()))
}

fn is_before(word: &str, before: &str) -> bool {
    match before {
        "" => false,
        // Options of one letter may be joined: `-bc`.
        "-b" | "-nb" => {
            word.starts_with('-') && !word.starts_with("--") && before[1..].chars().all(|letter| word.contains(letter))
        }
        _ => word == before,
    }
}

/// The password that a word gives, or how the next one gives it.
fn given(
    text: &str,
    word: &Range<usize>,
    option: &str,
    how: How,
    words: usize,
    is_option: bool,
) -> (Option<Range<usize>>, Option<How>) {
    let read = &text[word.clone()];
    let joined =
        || Some(word.start + option.len()..word.end).filter(|value| !value.is_empty() && read.starts_with(option));
    match how {
        How::Word(at) | How::Key(at) => {
            let is_key = how == How::Word(at) || read.contains(|c: char| c.is_ascii_digit());
            let is_plain = !read.contains('=') && !read.contains("://");
            ((!is_option && words == at && is_key && is_plain).then(|| word.clone()), None)
        }
        How::AfterWord(name) => (None, next(text, word.end, How::Next).filter(|_| read == name)),
        How::Login => (login(read).filter(|_| words == 0).map(|at| word.start + at.start..word.start + at.end), None),
        How::UserInfo => (user_info(read).map(|at| word.start + at.start..word.start + at.end), None),
        How::Setting => (setting(read).map(|at| word.start + at.start..word.start + at.end), None),
        _ if read == option || (option == "/user:" && joined().is_some()) => (None, next(text, word.end, how)),
        How::Joined | How::Either => (joined(), None),
        How::After(_) if !option.starts_with("--") => (joined().and_then(|value| after_sign(text, value, how)), None),
        // `--user=ada:x`.
        How::After(_) | How::Next => {
            let value = joined().filter(|value| text[value.clone()].starts_with('='));
            (value.and_then(|value| after_sign(text, value.start + 1..value.end, how)), None)
        }
    }
}

/// Where the password of `ada/password@host` is.
fn login(word: &str) -> Option<Range<usize>> {
    let at = word.find('@').unwrap_or(word.len());
    let slash = word[..at].find('/').filter(|slash| *slash > 0)?;
    (!word.starts_with(['/', '.', '-', '@'])).then_some(slash + 1..at)
}

/// Where the password of `corp/ada:password@host` is.
fn user_info(word: &str) -> Option<Range<usize>> {
    let at = word.rfind('@')?;
    let colon = word[..at].find(':')?;
    Some(colon + 1..at)
}

/// Where the password of `auth.password=VALUE` is.
fn setting(word: &str) -> Option<Range<usize>> {
    let (name, value) = word.split_once('=')?;
    let lower = name.to_ascii_lowercase();
    let is_password = ["password", "passwd", "passphrase"].iter().any(|end| lower.ends_with(end));
    let len = value.find(',').unwrap_or(value.len());
    is_password.then_some(name.len() + 1..name.len() + 1 + len)
}

/// How the word after an option gives a password: not if only the option is quoted, as in `` `-p` ``.
fn next(text: &str, end: usize, how: How) -> Option<How> {
    let after = text[end..].trim_start_matches('\\').as_bytes();
    let is_joined = matches!(after, [b'"' | b'\'', next, ..] if !b" ,)].\n".contains(next));
    let is_listed = matches!(after, [b'"' | b'\'', b',', ..]);
    let is_apart = matches!(after, [b' ' | b'\t', ..]);
    match how {
        How::Joined => is_joined.then_some(How::Joined),
        _ => (is_joined || is_listed || is_apart).then_some(how),
    }
}

/// The part of a value after the user's name.
fn after_sign(text: &str, value: Range<usize>, how: How) -> Option<Range<usize>> {
    let How::After(sign) = how else { return Some(value) };
    let read = &text[value.clone()];
    let at = read.find(sign).filter(|_| !read.contains("://"))?;
    // The sources of a password of openssl, of which only one is the password itself.
    let is_source = ["env", "file", "fd", "stdin"].contains(&&read[..at]);
    // Some servers take a key as the name of the user, and whatever is after it: `curl -u KEY:X`.
    if read.len() - at <= MIN_VALUE && is_key(&read[..at], ValueForm::Assigned) {
        return Some(value.start..value.start + at);
    }
    (!is_source).then_some(value.start + at + sign.len_utf8()..value.end)
}

fn secret(text: &str, value: Range<usize>) -> Option<Secret> {
    let trimmed = text[value.clone()].trim_end_matches([',', ']', '}', '\\']);
    let is_word = SENTENCE.contains(&trimmed);
    let is_password = (MIN_VALUE..=MAX_VALUE).contains(&trimmed.len()) && !is_stand_in(trimmed) && !is_word;
    is_password.then(|| Secret { range: value.start..value.start + trimmed.len(), kind: PASSWORD })
}
