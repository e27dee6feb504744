//! Values of high entropy beside a name that tells what they are.

use std::ops::Range;

use super::random::{entropy, is_name, is_word};
use super::{Secret, mark_len};

/// A telling name, and what its value is.
struct Name(&'static str, &'static str);

/// Names without case, spaces, dashes and underscores. Longer ones first where one begins another.
const NAMES: &[Name] = &[
    Name("password", "password"),
    Name("passphrase", "password"),
    Name("passwort", "password"),
    Name("contraseña", "password"),
    Name("passwd", "password"),
    Name("passcode", "password"),
    Name("pwd", "password"),
    Name(PASS, "password"),
    Name("密码", "password"),
    Name("密碼", "password"),
    Name("パスワード", "password"),
    Name("비밀번호", "password"),
    Name("apikey", "key"),
    Name("apitoken", "token"),
    Name("accesskeyid", "key"),
    Name("accesskey", "key"),
    Name("accesstoken", "token"),
    Name("authtoken", "token"),
    Name("refreshtoken", "token"),
    Name("secretaccesskey", "key"),
    Name("secretkey", "key"),
    Name("privatekey", "key"),
    Name("signingkey", "key"),
    Name("encryptionkey", "key"),
    Name("masterkey", "key"),
    Name("accountkey", "key"),
    Name("clientsecret", "secret"),
    Name("credentials", "secret"),
    Name("credential", "secret"),
    Name("authorization", "token"),
    Name("bearer", "token"),
    Name("basic", "token"),
    Name("secret", "secret"),
    Name("token", "token"),
    Name("密钥", "key"),
    Name("令牌", "token"),
    Name("トークン", "token"),
];

/// Words between a name and its value.
const LINKS: &[&str] =
    &["is", "was", "to", "ist", "bearer", "basic", "token", "=>", ":=", "=", ":", "：", "＝", "是", "为", "為", "は"];

/// How many characters there may be between a name and its value.
const MAX_GAP: usize = 24;
/// The shortest value of a password, and of anything else.
const MIN_PASSWORD: usize = 6;
const MIN_VALUE: usize = 16;
/// What ends the name of another thing that only begins with a telling name, as `PASSWORD_HASH`.
const OTHER_NAMES: &[&str] = &[
    "HASH",
    "FILE",
    "PATH",
    "DIR",
    "URL",
    "URI",
    "LENGTH",
    "LEN",
    "SIZE",
    "TTL",
    "NAME",
    "EXPIRES",
    "EXPIRY",
    "MIN",
    "MAX",
    "POLICY",
    "FIELD",
    "COUNT",
    "LIMIT",
    "TYPE",
    "ALGORITHM",
    "ENDPOINT",
    "COST",
    "VERSION",
];
/// Where a key is used, at the end of its name.
const STAGES: &[&str] = &["prod", "production", "dev", "test", "staging", "live", "base", "main", "old", "new"];
/// What fields of programs begin with.
const OBJECTS: &[&str] = &[
    "config", "cfg", "conf", "settings", "self", "this", "args", "opts", "options", "params", "req", "request", "data",
];
/// What the length of a password is counted in.
const UNITS: &[&str] =
    &["character", "char", "digit", "letter", "symbol", "word", "byte", "bit", "day", "month", "step"];
/// The first character of scripts without spaces between words.
const CJK: char = '\u{2E80}';

const PASSWORD: &str = "password";
/// A name only at the end of another one, as in `DB_PASS`.
const PASS: &str = "pass";

/// Bits for each character that a random value of that length has at least.
const MIN_ENTROPY: f64 = 3.0;

/// What the values of telling names are called.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|Name(_, kind)| *kind)
}

/// The telling names.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|Name(name, _)| *name)
}

/// Adds the values beside telling names.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    for at in 0..text.len() {
        if !may_begin(text.as_bytes(), at) || !text.is_char_boundary(at) {
            continue;
        }
        let Some((kind, len)) = name_at(text, at) else { continue };
        if let Some(range) = value_after(text, at..at + len, kind) {
            found.push(Secret { range, kind });
        }
    }
}

/// Whether a name can begin with these two bytes: most places of a text are passed over by this alone.
fn may_begin(bytes: &[u8], at: usize) -> bool {
    let second = bytes.get(at + 1).map_or(0, |byte| byte | 0x20);
    match bytes[at] | 0x20 {
        b'p' => matches!(second, b'a' | b'w' | b'r'),
        b'a' => matches!(second, b'p' | b'c' | b'u'),
        b's' => matches!(second, b'e' | b'i'),
        b'c' => matches!(second, b'o' | b'l' | b'r'),
        b'b' => matches!(second, b'e' | b'a'),
        b'r' | b't' | b'e' | b'm' => matches!(second, b'e' | b'o' | b'n' | b'a'),
        _ => bytes[at] >= 0xC0,
    }
}

/// A telling name here, with its kind and its length in the text.
fn name_at(text: &str, at: usize) -> Option<(&'static str, usize)> {
    let rest = &text[at..];
    let begin = [rest.as_bytes()[0] | 0x20, rest.as_bytes().get(1)? | 0x20];
    // Only a first filter, in which case does not matter.
    let begins = |name: &str| name.as_bytes()[0] | 0x20 == begin[0] && name.as_bytes()[1] | 0x20 == begin[1];
    NAMES.iter().filter(|Name(name, _)| begins(name)).find_map(|Name(name, kind)| {
        let mut wanted = name.chars().peekable();
        for (offset, c) in rest.char_indices() {
            let Some(next) = wanted.peek() else { return Some((*kind, offset)) };
            match c {
                c if c.to_lowercase().eq([*next]) => drop(wanted.next()),
                '_' | '-' | ' ' if offset > 0 => {}
                _ => return None,
            }
        }
        wanted.peek().is_none().then_some((*kind, rest.len()))
    })
}

/// The value after a name: past quotes, links and spaces.
fn value_after(text: &str, name: Range<usize>, kind: &str) -> Option<Range<usize>> {
    let at = name.end + suffix_len(text, &name)?;
    let mut start = at;
    let mut link = if is_option(text, &name) { Link::Option } else { Link::None };
    let mut quote = None;
    if text[at..].starts_with('>') && text[..name.start].ends_with('<') {
        (link, start) = (Link::Word, at + 1);
    }
    while start - at <= MAX_GAP {
        let rest = &text[start..];
        let skipped = rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', '`', '\\', '*', ',']).len();
        if skipped > 0 {
            quote = rest[..skipped].chars().rev().find(|c| matches!(c, '"' | '\'' | '`')).or(quote);
            start += skipped;
        } else if let Some(found) = LINKS.iter().find(|link| begins_with_link(rest, link)) {
            (link, quote) = (Link::Word, None);
            start += found.len();
        } else if link == Link::Word && is_value_below(rest) {
            start += rest.len() - rest.trim_start().len();
        } else {
            break;
        }
    }
    let rest = &text[start..];
    if start - at > MAX_GAP || start == at || mark_len(rest).is_some() {
        return None;
    }
    let is_end = |c: char| c.is_whitespace() || c >= CJK || "\"'`,;<>()[]{}\\|".contains(c);
    let end = rest.find(is_end).unwrap_or(rest.len());
    let value = rest[..end].trim_end_matches(['.', ':', '!', '?']);
    // `"password": "Passwort1 eingeben"` is a label.
    let is_phrase = quote.is_some_and(|quote| rest[end..].starts_with(' ') && rest[end..].contains(quote));
    let is_secret = match kind {
        PASSWORD => {
            let is_linked = link != Link::None || is_netrc(line_before(text, name.start), &rest[end..]);
            let is_named = !text[name.clone()].eq_ignore_ascii_case(PASS) || text[..name.start].ends_with('_');
            is_named && is_linked && is_password(value) && !(is_phrase && is_word(value))
        }
        _ => is_key(value),
    };
    (is_secret && !is_variable(value)).then(|| start..start + value.len())
}

/// What is between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    None,
    /// Nothing, but the name is an option: `--password x`.
    Option,
    /// `=`, `is` and the like.
    Word,
}

fn is_option(text: &str, name: &Range<usize>) -> bool {
    let words = text[..name.start].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
    text[words.len()..name.start].starts_with("--") && text[name.end..].starts_with(' ')
}

/// Whether a password follows without a link, as in the files that keep logins: in a line of its own, or after the login.
fn is_netrc(before: &str, after: &str) -> bool {
    let is_alone = before.trim().is_empty() && after.lines().next().unwrap_or_default().trim().is_empty();
    is_alone || (before.contains("login ") && before.contains("machine "))
}

fn line_before(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
    &text[line..at]
}

/// The length of what belongs to the name too: of `API_KEY_PROD` that after `API_KEY`. `None` if it is another name, as
/// `password_hash` and `tokens`.
fn suffix_len(text: &str, name: &Range<usize>) -> Option<usize> {
    let rest = &text[name.end..];
    if rest.starts_with('(') {
        return None;
    }
    if !text[name.clone()].is_ascii() {
        return Some(0);
    }
    let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let suffix = &rest[..len];
    let is_upper = !text[name.clone()].contains(|c: char| c.is_ascii_lowercase());
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = |word: &str| match is_upper {
        true => !word.contains(|c: char| c.is_ascii_lowercase()) && !OTHER_NAMES.contains(&word),
        false => is_number(word) || STAGES.contains(&word),
    };
    let is_suffix = match suffix.strip_prefix('_') {
        Some(words) => words.split('_').all(is_ours),
        None => is_number(suffix) && (suffix.is_empty() || is_upper),
    };
    is_suffix.then_some(len)
}

/// Whether the next line is indented and has one word: the value of a key in YAML.
fn is_value_below(rest: &str) -> bool {
    let Some(below) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) else { return false };
    let line = below.lines().next().unwrap_or_default();
    line.starts_with([' ', '\t']) && line.split_whitespace().count() == 1
}

fn begins_with_link(rest: &str, link: &str) -> bool {
    let Some(begin) = rest.get(..link.len()) else { return false };
    let is_word = link.bytes().all(|byte| byte.is_ascii_alphabetic());
    begin.eq_ignore_ascii_case(link) && (!is_word || rest[link.len()..].starts_with([' ', '\t', ':', '=', '"', '\'']))
}

/// Whether a value is the name of a variable, a type or an address.
fn is_variable(value: &str) -> bool {
    value.starts_with(['$', '%']) && value[1..].chars().all(|c| c.is_alphanumeric() || c == '_')
        || value.contains("::")
        || value.contains("://")
        || value.contains("->")
}

/// Whether a value can be a password. People's are short: a digit or a sign among letters is enough if it is said to be one.
fn is_password(value: &str) -> bool {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    let is_mixed = has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic());
    let has_sign = has(|c| "!@#$%^&*+?~".contains(c));
    let is_digits = value.chars().all(|c| c.is_ascii_digit());
    value.is_ascii()
        && value.len() >= MIN_PASSWORD
        && (is_mixed || has_sign || is_digits)
        && !is_place(value)
        && !is_field(value)
        && !is_rule(value)
}

/// The path of a directory, as in `PWD=/home/ada1`.
fn is_place(value: &str) -> bool {
    (value.starts_with(['/', '~']) || value.starts_with("./")) && value.split(['/', '.', '-', '_']).all(is_word)
}

/// A field in a program, as `config.db.password1`.
fn is_field(value: &str) -> bool {
    let parts: Vec<&str> = value.split('.').collect();
    let is_name = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && part.split('_').all(is_word)
    };
    let tells = |part: &&str| {
        let part = part.to_ascii_lowercase();
        ["pass", "secret", "key", "token", "pwd", "env"].iter().any(|word| part.contains(word))
    };
    parts.len() > 1
        && parts.iter().all(is_name)
        && (parts.len() > 2 || parts.iter().any(tells) || OBJECTS.contains(&parts[0]))
}

/// What a password must be like, as `12-characters`.
fn is_rule(value: &str) -> bool {
    let Some((number, word)) = value.split_once('-') else { return false };
    let word = word.to_ascii_lowercase();
    number.bytes().all(|byte| byte.is_ascii_digit()) && UNITS.contains(&word.strip_suffix('s').unwrap_or(&word))
}

/// Whether a value is a key or a token: long and random, rather than a path or some words.
fn is_key(value: &str) -> bool {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    let is_mixed = has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic());
    value.is_ascii() && value.len() >= MIN_VALUE && is_mixed && entropy(value) >= MIN_ENTROPY && !is_name(value)
}
