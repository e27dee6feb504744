//! Secrets in the formats of known providers.

use std::sync::LazyLock;

use super::random::{alternates, is_name_of_words};
use super::signs::KeyCharacters;
use super::table::{FORMATS, KeyFormat, PASSWORD, SHAPES, SecretShape};
use super::value::is_stand_in;
use super::{Secret, begins_word};

const WEB_TOKEN: &str = "web token";
const BOT_TOKEN: &str = "bot token";
const DISCORD_TOKEN: &str = "Discord token";
const LABELLED: &str = "labelled key";
/// What begins a part of a label whose value is no secret.
const OPEN_LABELS: [&str; 6] = ["sha", "md", "pk", "pub", "hash", "etag"];
/// By how many characters a key is judged. It may be longer.
const MAX_JUDGED: usize = 512;
/// A beginning of at most so many characters may begin a name, too.
const WORDLIKE: usize = 5;
/// After so many characters of encoded data, what looks like the beginning of a key is data.
const ENCODED: usize = 48;

/// What secrets of these formats are called.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    let formats = FORMATS.iter().map(|KeyFormat(.., kind)| *kind);
    formats.chain(SHAPES.iter().map(|SecretShape(.., kind)| *kind)).chain([
        WEB_TOKEN,
        BOT_TOKEN,
        DISCORD_TOKEN,
        LABELLED,
        PASSWORD,
    ])
}

/// The formats by the first byte of a key.
static BY_FIRST: LazyLock<Vec<Vec<&'static KeyFormat>>> = LazyLock::new(|| {
    let mut by_first: Vec<Vec<&'static KeyFormat>> = (0..256).map(|_| Vec::new()).collect();
    for format in &*FORMATS {
        by_first[usize::from(format.0.as_bytes()[0])].push(format);
    }
    by_first
});

/// Adds the secrets of known formats.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let mut dots = Dots::default();
    let mut at = 0;
    while at < bytes.len() {
        // Most places are inside of a word.
        let is_inside = at >= 2 && bytes[at - 1].is_ascii_lowercase() && bytes[at - 2].is_ascii_lowercase();
        if is_inside || !bytes[at].is_ascii_alphanumeric() || !begins_word(text, at) {
            at += 1;
            continue;
        }
        let secret = key_from(bytes, at, &mut dots);
        at = secret.as_ref().map_or(at + 1, |secret| secret.range.end);
        found.extend(secret);
    }
    SHAPES.iter().for_each(|shape| find_shape(text, shape, found));
    find_discord(text, found);
}

fn key_from(bytes: &[u8], at: usize, dots: &mut Dots) -> Option<Secret> {
    let formats = &BY_FIRST[usize::from(bytes[at])];
    let key = formats.iter().find_map(|format| key_at(bytes, at, format));
    key.or_else(|| web_token(bytes, at, dots))
        .or_else(|| bot_token(bytes, at))
        .or_else(|| address_password(bytes, at))
        .or_else(|| labelled(bytes, at))
}

/// A random text after a label, as most makers of tokens write them by now: `acme_…`. Identifiers are shorter, checksums have
/// one kind of letters or the name of their function, and a key whose label says that it is public is no secret.
fn labelled(bytes: &[u8], at: usize) -> Option<Secret> {
    const LABEL: std::ops::RangeInclusive<usize> = 2..=16;
    const LEAST: usize = 36;
    const LEAST_OF_EACH: usize = 2;
    const LEAST_WORD: usize = 5;
    const LEAST_RANDOM: usize = 12;
    let rest = &bytes[at..];
    let is_label = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'_';
    let len = rest.iter().take(LABEL.end() + 1).take_while(is_label).count();
    let end =
        if rest.get(len) == Some(&b'-') { len + 1 } else { rest[..len].iter().rposition(|byte| *byte == b'_')? + 1 };
    let label = std::str::from_utf8(&rest[..end]).ok().filter(|label| LABEL.contains(&(label.len() - 1)))?;
    let is_open = OPEN_LABELS.iter().any(|open| label.split(['_', '-']).any(|part| part.starts_with(open)));
    // After a dash, it is the middle of a name; after a backslash, the letter of an escape.
    let is_inside = matches!(bytes[..at].last(), Some(b'-' | b'.' | b'\\'));
    if is_open || is_inside || !rest[0].is_ascii_lowercase() || is_encoded(&bytes[..at]) {
        return None;
    }
    let key = &rest[end..end + KeyCharacters::Word.run(&rest[end..], MAX_JUDGED)];
    let count = |test: fn(&u8) -> bool| key.iter().filter(|byte| test(byte)).count();
    let is_random = [u8::is_ascii_digit, u8::is_ascii_lowercase, u8::is_ascii_uppercase];
    let is_key = key.len() >= LEAST && is_random.into_iter().all(|test| count(test) >= LEAST_OF_EACH);
    let after = rest.get(end + key.len());
    let parts = || key.split(|byte| matches!(byte, b'-' | b'_'));
    let is_word = |part: &[u8]| part.len() >= LEAST_WORD && part.iter().all(u8::is_ascii_lowercase);
    let has_random = parts().any(|part| part.len() >= LEAST_RANDOM && alternates(part)) && !parts().any(is_word);
    (is_key && !is_name_of_words(key) && has_random && !matches!(after, Some(b'+' | b'/' | b'=')))
        .then(|| Secret { range: at..at + end + key.len(), kind: LABELLED })
}

fn key_at(bytes: &[u8], at: usize, format: &KeyFormat) -> Option<Secret> {
    let KeyFormat(begin, signs, least, kind) = *format;
    let rest = bytes[at..].strip_prefix(begin.as_bytes())?;
    let judged = &rest[..signs.run(rest, MAX_JUDGED)];
    let len = trimmed(judged);
    let has = |test: fn(&u8) -> bool| judged.iter().any(test);
    // Words joined by dashes, such as `sk-learn-is-a-library-for-python`, have no digit; keys of that length do.
    let is_random = match signs {
        KeyCharacters::Percent => has(|byte| *byte == b'%'),
        _ => has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase),
    };
    // Branches, classes and files begin so too: `sk-1234-fix-the-parser`, `sk-SK-translations-2024`.
    let may_be_words = matches!(signs, KeyCharacters::Word | KeyCharacters::Tilde | KeyCharacters::Wide)
        && begin.len() <= WORDLIKE
        && !begin.starts_with("xo");
    let is_key = len >= least && is_random && !(may_be_words && is_name_of_words(&judged[..len]));
    if !is_key || is_encoded(&bytes[..at]) {
        return None;
    }
    let len = if judged.len() == MAX_JUDGED { signs.run(rest, usize::MAX) } else { len };
    Some(Secret { range: at..at + begin.len() + len, kind })
}

/// Whether a text ends in encoded data, which may have the beginning of any key.
fn is_encoded(before: &[u8]) -> bool {
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let data = before.iter().rev().take(ENCODED).take_while(|byte| is_data(**byte)).count();
    data == ENCODED && matches!(before.last(), Some(b'+' | b'/'))
}

/// The length without full stops and the like at the end, which belong to the sentence.
fn trimmed(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| !matches!(byte, b'.' | b'/')).map_or(0, |last| last + 1)
}

/// A run of the characters of web tokens, and where its dots are. It is found once for all tokens that may begin in it.
#[derive(Default)]
struct Dots {
    end: usize,
    at: Vec<usize>,
}

impl Dots {
    fn read(&mut self, bytes: &[u8], from: usize) {
        if from < self.end {
            return;
        }
        self.at.clear();
        let is_of_token = |byte: u8| KeyCharacters::Word.has(byte) || byte == b'.';
        self.end = from + bytes[from..].iter().take_while(|byte| is_of_token(**byte)).count();
        self.at.extend((from..self.end).filter(|at| bytes[*at] == b'.'));
    }
}

/// A JSON web token: three parts in base64, of which the first is an object.
fn web_token(bytes: &[u8], at: usize, dots: &mut Dots) -> Option<Secret> {
    const LEAST_PART: usize = 8;
    let start = at + bytes[at..].starts_with(b"eyJ").then_some(3)?;
    dots.read(bytes, at);
    let after = &dots.at[dots.at.partition_point(|dot| *dot < start)..];
    let (first, second) = (*after.first()?, *after.get(1)?);
    let is_token = first - start >= LEAST_PART && second - first > LEAST_PART;
    let end = dots.end - bytes[second..dots.end].iter().rev().take_while(|byte| **byte == b'.').count();
    is_token.then_some(Secret { range: at..end, kind: WEB_TOKEN })
}

/// A token of a Telegram bot: digits, a colon, 35 characters.
fn bot_token(bytes: &[u8], at: usize) -> Option<Secret> {
    let rest = &bytes[at..];
    let digits = KeyCharacters::Digit.run(rest, 11);
    let key = rest[digits..].strip_prefix(b":")?;
    let len = KeyCharacters::Word.run(key, 37);
    let is_token = (8..=10).contains(&digits) && (34..=36).contains(&len);
    is_token.then(|| Secret { range: at..at + digits + 1 + len, kind: BOT_TOKEN })
}

/// The password in `scheme://user:password@host`.
fn address_password(bytes: &[u8], at: usize) -> Option<Secret> {
    let rest = &bytes[at..];
    let scheme = rest.iter().take(20).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'+').count();
    let part = rest[scheme..].strip_prefix(b"://")?;
    let end = part.iter().position(|byte| byte.is_ascii_whitespace() || b"/?#\"'`<>".contains(byte));
    let part = &part[..end.unwrap_or(part.len())];
    let host = part.iter().rposition(|byte| *byte == b'@')?;
    let colon = part[..host].iter().position(|byte| *byte == b':')?;
    let start = at + scheme + 3 + colon + 1;
    let is_variable =
        std::str::from_utf8(&part[colon + 1..host]).is_ok_and(|value| value.is_empty() || is_stand_in(value));
    (!is_variable).then(|| Secret { range: start..at + scheme + 3 + host, kind: PASSWORD })
}

/// Adds the secrets that are known by what they have inside.
fn find_shape(text: &str, shape: &SecretShape, found: &mut Vec<Secret>) {
    let SecretShape(head, head_len, middle, tail, tail_len, kind) = shape;
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices(middle) {
        let after = at + middle.len();
        let before = head.run_back(&bytes[..at], head_len.end() + 1);
        let behind = tail.run(&bytes[after..], tail_len.end() + 1);
        if head_len.contains(&before) && tail_len.contains(&behind) {
            let is_address = *tail == KeyCharacters::Host;
            let end = if is_address { at } else { after + behind };
            found.push(Secret { range: at - before..end, kind });
        }
    }
}

/// Adds tokens of Discord: the number of a bot in base64, six characters for the time, and a signature.
fn find_discord(text: &str, found: &mut Vec<Secret>) {
    const TIME_LEN: usize = 6;
    let bytes = text.as_bytes();
    let mut before = None;
    for (dot, _) in text.match_indices('.') {
        let first = before.replace(dot).filter(|first| dot - first == TIME_LEN + 1);
        let Some(first) = first.filter(|first| KeyCharacters::Word.run(&bytes[first + 1..dot], TIME_LEN) == TIME_LEN)
        else {
            continue;
        };
        let head = KeyCharacters::Word.run_back(&bytes[..first], 40);
        let tail = KeyCharacters::Word.run(&bytes[dot + 1..], 60);
        let id = &text[first - head..first];
        let is_token = (20..=30).contains(&head) && (25..=45).contains(&tail) && id.starts_with(['M', 'N', 'O']);
        if is_token && id.contains(|c: char| c.is_ascii_digit()) {
            found.push(Secret { range: first - head..dot + 1 + tail, kind: DISCORD_TOKEN });
        }
    }
}
