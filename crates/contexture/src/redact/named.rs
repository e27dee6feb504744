//! Values of high entropy beside a name that tells what they are.

use super::{MARK, Secret};

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
const LINKS: &[&str] = &["is", "was", "to", "ist", "bearer", "basic", "token", "=>", ":=", "=", ":", "是", "为", "は"];

/// How many characters there may be between a name and its value.
const MAX_GAP: usize = 24;
/// The shortest value of a password, and of anything else.
const MIN_PASSWORD: usize = 6;
const MIN_VALUE: usize = 16;
/// Bits for each character that a random value of that length has at least.
const MIN_ENTROPY: f64 = 3.0;

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
        if let Some(range) = value_after(text, at + len, kind) {
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
fn value_after(text: &str, at: usize, kind: &str) -> Option<std::ops::Range<usize>> {
    let mut start = at;
    // `password_hash`, `tokens` and `PASSWORD2` are names of their own.
    if text[at..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '(') {
        return None;
    }
    let mut is_linked = false;
    while start - at <= MAX_GAP {
        let rest = &text[start..];
        let skipped = rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', '`', '\\', '*', ',']).len();
        if skipped > 0 {
            start += skipped;
        } else if let Some(link) = LINKS.iter().find(|link| begins_with_link(rest, link)) {
            is_linked = true;
            start += link.len();
        } else {
            break;
        }
    }
    let rest = &text[start..];
    if start - at > MAX_GAP || start == at || rest.starts_with(MARK) {
        return None;
    }
    let end = rest.find(|c: char| c.is_whitespace() || "\"'`,;<>()[]{}\\|，。；、".contains(c)).unwrap_or(rest.len());
    let value = rest[..end].trim_end_matches(['.', ':', '!', '?']);
    is_secret(value, kind, is_linked).then(|| start..start + value.len())
}

fn begins_with_link(rest: &str, link: &str) -> bool {
    let Some(begin) = rest.get(..link.len()) else { return false };
    let is_word = link.bytes().all(|byte| byte.is_ascii_alphabetic());
    begin.eq_ignore_ascii_case(link) && (!is_word || rest[link.len()..].starts_with([' ', '\t', ':', '=', '"', '\'']))
}

/// Whether a value is random rather than a word, a type, a variable or a call.
fn is_secret(value: &str, kind: &str, is_linked: bool) -> bool {
    let chars = value.chars().count();
    let has = |test: fn(char) -> bool| value.chars().any(test);
    let is_variable = value.starts_with(['$', '%']) && value[1..].chars().all(|c| c.is_alphanumeric() || c == '_')
        || value.contains("::")
        || value.contains("://")
        || value.contains("->");
    if is_variable || !value.is_ascii() {
        return false;
    }
    let is_mixed = has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic());
    match kind {
        // People's passwords are short: a digit or a sign among letters is enough if it is said to be one.
        "password" => {
            let has_sign = value.chars().any(|c| "!@#$%^&*+?~".contains(c));
            let is_digits = value.chars().all(|c| c.is_ascii_digit());
            is_linked && chars >= MIN_PASSWORD && (is_mixed || has_sign || is_digits)
        }
        _ => chars >= MIN_VALUE && is_mixed && entropy(value) >= MIN_ENTROPY && !is_path(value),
    }
}

/// A path or a dotted name has short parts between its separators.
fn is_path(value: &str) -> bool {
    value.contains(['/', '.']) && value.split(['/', '.', '-', '_']).all(|part| part.len() < MIN_VALUE)
}

/// Shannon entropy, in bits for each byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let len = value.len() as f64;
    let share = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / len);
    share.map(|share| -share * share.log2()).sum()
}
