//! Passwords after words of configuration files and of SQL, and lists of words that are a key.

use contexture_core::tokens::floor_boundary;

use super::table::{ASKED, CALLS, DIRECTIVES, LOGINS, PASSWORD, PHRASE, PHRASES, STATEMENTS};
use super::value::{ValueForm, is_password, is_stand_in};
use super::{Secret, begins_word};

/// The longest password, and the shortest.
const MAX_VALUE: usize = 128;
const MIN_VALUE: usize = 4;
/// How many words a key of words has, and how long each can be.
const MIN_WORDS: usize = 12;
const MAX_WORDS: usize = 24;
/// The longest key of words, with its name.
const MAX_PHRASE: usize = 300;
/// How far before a password that is sent it is asked for.
const MAX_ASKED: usize = 200;
const WORD_LEN: std::ops::RangeInclusive<usize> = 3..=8;

pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    [PHRASE].into_iter()
}

/// Adds the passwords of lines such as `requirepass …` and `IDENTIFIED BY '…'`, and seed phrases.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        found
            .extend(directive(line).or_else(|| entry(line)).or_else(|| login(line)).map(|secret| moved(secret, start)));
        start += line.len();
    }
    found.extend(text.match_indices("send ").filter_map(|(at, send)| sent(text, at, at + send.len())));
    for (name, index) in CALLS {
        found.extend(text.match_indices(*name).filter_map(|(at, _)| argument(text, at + name.len(), *index)));
    }
    for (at, byte) in text.bytes().enumerate() {
        match byte | 0x20 {
            b'i' | b'w' | b'p' | b'e' if begins_word(text, at) => found.extend(statement(text, at)),
            b'm' | b's' | b'r' if begins_word(text, at) => found.extend(phrase(text, at)),
            _ => {}
        }
    }
}

fn moved(secret: Secret, by: usize) -> Secret {
    Secret { range: secret.range.start + by..secret.range.end + by, ..secret }
}

fn directive(line: &str) -> Option<Secret> {
    let trimmed = line.trim_start_matches(|c: char| c.is_whitespace() || "+-".contains(c));
    let is_name = |name: &&str| trimmed.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let name = DIRECTIVES.iter().copied().find(is_name)?;
    let rest = trimmed[name.len()..].trim_end();
    let value = rest.trim_start_matches(['=', ' ', '\t', '"', '\'']);
    let is_joined = value.len() == rest.len();
    let at = line.len() - trimmed.len() + name.len() + rest.len() - value.len();
    let value = value.trim_end_matches(['"', '\'']);
    let has_spaces = value.contains(char::is_whitespace) && !rest.trim_start().starts_with('=');
    let is_password =
        (MIN_VALUE..=MAX_VALUE).contains(&value.len()) && !is_joined && !has_spaces && !is_stand_in(value);
    is_password.then(|| Secret { range: at..at + value.len(), kind: PASSWORD })
}

/// An entry of a file of PostgreSQL's passwords: `host:port:database:user:password`.
fn entry(line: &str) -> Option<Secret> {
    let mut fields = line.splitn(5, ':');
    let (host, port, database, user) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let password = fields.next()?;
    let password = &password[..password.find([' ', '\t', '\r', '\n', ':']).unwrap_or(password.len())];
    let is_number = |field: &str| field.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = port == "*" || ((4..=5).contains(&port.len()) && is_number(port));
    let is_field = |field: &&str| {
        !field.is_empty()
            && field.len() < MAX_VALUE
            && field.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte))
    };
    // The place of an error in a file has a column, and its name an ending: `main.c:1204:5:warning:unused`.
    let is_entry = is_port && [host, database, user].iter().all(is_field) && !is_number(database);
    let at = line.len() - line.splitn(5, ':').last()?.len();
    (is_entry && password.len() >= MIN_VALUE && !is_stand_in(password))
        .then(|| Secret { range: at..at + password.len(), kind: PASSWORD })
}

/// A login as people write it down: `Login: ada / VALUE`.
fn login(line: &str) -> Option<Secret> {
    let (name, rest) = line.split_once(':')?;
    let name = name.rsplit([' ', '\t', '*', '`', '(']).next()?;
    let is_name = LOGINS.iter().any(|login| name.eq_ignore_ascii_case(login));
    let (user, value) = rest.split_once(" / ").filter(|(user, _)| is_name && user.split_whitespace().count() == 1)?;
    let value = value.trim_start_matches('`');
    let value = &value[..value.find(|c: char| c.is_whitespace() || "`,;)".contains(c)).unwrap_or(value.len())];
    let at = line.len() - rest.len() + user.len() + " / ".len();
    let at = at + line[at..].find(value)?;
    // Of plain words one can't tell a password from `checking / savings`.
    is_password(value, ValueForm::Loose).then(|| Secret { range: at..at + value.len(), kind: PASSWORD })
}

/// What a script of `expect` sends to a program that asks for a password.
fn sent(text: &str, at: usize, after: usize) -> Option<Secret> {
    let before = &text[floor_boundary(text, at.saturating_sub(MAX_ASKED))..at];
    let is_asked = before.contains("expect ") && ASKED.iter().any(|word| before.contains(word));
    let given = &text[after..floor_boundary(text, after + MAX_PHRASE)];
    let rest = given.trim_start_matches("-- ").trim_start_matches('\\');
    let value = rest.strip_prefix('"').filter(|_| is_asked)?;
    let value = &value[..value.find(['"', '\\', '\n'])?];
    let start = after + given.len() - rest.len() + 1;
    ((MIN_VALUE..=MAX_VALUE).contains(&value.len()) && !is_stand_in(value))
        .then(|| Secret { range: start..start + value.len(), kind: PASSWORD })
}

/// The argument of a function that begins here, if it is in quotes.
fn argument(text: &str, at: usize, index: usize) -> Option<Secret> {
    let line = text[at..floor_boundary(text, at + MAX_PHRASE)].lines().next()?;
    let given = line.split(',').nth(index)?;
    let before: usize = line.split(',').take(index).map(|part| part.len() + 1).sum();
    let value = given.trim_start();
    let start = at + before + given.len() - value.len() + 1;
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let len = value[1..].find(quote)?;
    (len >= MIN_VALUE && !is_stand_in(&value[1..=len])).then(|| Secret { range: start..start + len, kind: PASSWORD })
}

fn statement(text: &str, at: usize) -> Option<Secret> {
    let rest = &text[at..];
    let is_here = |words: &&str| {
        // A function of a program is no statement: `password('…')`.
        let is_name = !words.ends_with('(') && *words != "PASSWORD";
        rest.get(..words.len()).is_some_and(|begin| begin == *words || (is_name && begin.eq_ignore_ascii_case(words)))
    };
    let words = STATEMENTS.iter().copied().find(is_here)?;
    let value = rest[words.len()..].trim_start_matches(' ');
    // `env::var("PASSWORD")` ends with a quote, too.
    if !words.ends_with('(') && value.len() == rest.len() - words.len() {
        return None;
    }
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let start = text.len() - value.len() + 1;
    let len = value.bytes().skip(1).take(MAX_VALUE).position(|byte| byte == quote as u8)?;
    let value = &text[start..start + len];
    (len >= MIN_VALUE && !is_stand_in(value)).then(|| Secret { range: start..start + len, kind: PASSWORD })
}

fn phrase(text: &str, at: usize) -> Option<Secret> {
    let rest = &text[at..];
    let is_here = |name: &&&str| rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let name = PHRASES.iter().find(is_here)?;
    let rest = &rest[..floor_boundary(rest, MAX_PHRASE)];
    let words = rest[name.len()..].trim_start_matches([' ', ':', '=', '"', '\'', '`']);
    let (start, mut len) = (at + rest.len() - words.len(), 0);
    let mut count = 0;
    for word in words.split(' ').take(MAX_WORDS) {
        let letters = word.bytes().take(WORD_LEN.end() + 1).take_while(u8::is_ascii_lowercase).count();
        if !WORD_LEN.contains(&letters) {
            break;
        }
        len += letters + usize::from(count > 0);
        count += 1;
        if letters < word.len() {
            break;
        }
    }
    (count >= MIN_WORDS).then(|| Secret { range: start..start + len, kind: PHRASE })
}
