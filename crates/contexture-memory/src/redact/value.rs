//! What can be a secret beside a telling name, and what is only in its place.

use super::random::{entropy, is_name, is_word};
use super::table::{NOT_PASSWORDS, OBJECTS, PLACEHOLDERS, UNITS};

/// The shortest password of several kinds of characters in a text, and where the form leaves no doubt.
const MIN_PASSWORD: usize = 6;
const MIN_QUOTED: usize = 4;
const MIN_ASSIGNED: usize = 3;
/// The shortest key or token in a text, and where the form leaves no doubt.
const MIN_VALUE: usize = 16;
const MIN_ASSIGNED_VALUE: usize = 12;
/// Bits for each character that a random value of that length has at least.
const MIN_ENTROPY: f64 = 3.0;
const MIN_ASSIGNED_ENTROPY: f64 = 2.5;

/// How a value is given, which tells what it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueForm {
    /// Somewhere after the name, as in a sentence.
    Loose,
    /// The whole rest of a line such as `password: letmein`, where code can be too.
    Line,
    /// A string.
    Quoted,
    /// A variable of the environment, an option, a parameter of an address: always a value.
    Assigned,
}

/// Whether a value is a password, given in that form.
pub(super) fn is_password(value: &str, form: ValueForm) -> bool {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    let is_mixed = has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic());
    let has_sign = has(|c| "!@#$%^&*+?~".contains(c));
    let is_digits = value.chars().all(|c| c.is_ascii_digit());
    let least = match form {
        ValueForm::Loose | ValueForm::Line => MIN_PASSWORD,
        ValueForm::Quoted => MIN_QUOTED,
        ValueForm::Assigned => MIN_ASSIGNED,
    };
    if !value.is_ascii()
        || (form < ValueForm::Quoted && is_constant(value))
        || is_stand_in(value)
        || is_place(value)
        || is_field(value)
        || is_rule(value)
        || is_number(value)
    {
        return false;
    }
    if is_mixed || has_sign || is_digits {
        return value.len() >= least;
    }
    match form {
        ValueForm::Loose => false,
        ValueForm::Line => value.len() > MIN_QUOTED && is_plain_word(value) && !is_no_password(value),
        ValueForm::Quoted => value.len() >= MIN_QUOTED && !is_label(value) && !is_no_password(value),
        ValueForm::Assigned => value.len() >= MIN_ASSIGNED,
    }
}

/// Whether a value is a key or a token: long and random, rather than a path or some words.
pub(super) fn is_key(value: &str, form: ValueForm) -> bool {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    if form >= ValueForm::Quoted && is_uuid(value) {
        return true;
    }
    let is_mixed = has(|c| c.is_ascii_digit()) && has(|c| c.is_ascii_alphabetic());
    let (len, bits) = match form {
        ValueForm::Loose => (MIN_VALUE, MIN_ENTROPY),
        _ => (MIN_ASSIGNED_VALUE, MIN_ASSIGNED_ENTROPY),
    };
    // Words without a digit are a secret only where nothing else can be: `JWT_SECRET=mysupersecretvalue`.
    let is_chosen = form == ValueForm::Assigned && value.chars().all(|c| c.is_ascii_lowercase());
    value.is_ascii()
        && value.len() >= len
        && (is_mixed || is_chosen)
        && entropy(value) >= bits
        && !is_name(value)
        && !(form < ValueForm::Quoted && is_constant(value))
        && !is_stand_in(value)
        && !is_field(value)
}

/// Some providers' keys have this form, which is that of many harmless things.
pub(super) fn is_uuid(value: &str) -> bool {
    let lens = value.split('-').map(str::len);
    lens.eq([8, 4, 4, 4, 12]) && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Whether a value is the short id or the fingerprint of a public key, as programs of OpenPGP write it.
pub(super) fn is_fingerprint(value: &str) -> bool {
    matches!(value.len(), 8 | 16 | 40) && value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

/// Whether a value is in place of a secret: a variable, a template, asterisks, `your_password_here`.
pub(super) fn is_stand_in(value: &str) -> bool {
    let is_variable =
        value.starts_with(['$', '%']) && value[1..].chars().all(|c| c.is_alphanumeric() || "_:%".contains(c));
    let is_template = value.starts_with(['<', '{', '[', '(', '&', '-'])
        || ["${", "$(", "{{", "}}", "::", "://", "->", "%(", "#{"].iter().any(|sign| value.contains(sign));
    // A tag of YAML, as `!vault`.
    let is_tag = value.strip_prefix('!').is_some_and(|tag| tag.chars().all(|c| c.is_ascii_alphabetic()));
    let is_blind = value.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '•' | '…' | '_' | '-' | '?' | '#'));
    let lower = value.to_ascii_lowercase();
    let mut words = lower.split(['_', '-', '.', ' ']);
    is_variable
        || is_template
        || is_tag
        || is_blind
        || PLACEHOLDERS.contains(&lower.as_str())
        || words.any(|word| matches!(word, "your" | "placeholder" | "redacted"))
}

/// The name of a constant or a type: `WIN32_ERROR`.
fn is_constant(value: &str) -> bool {
    value.contains('_') && value.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// One word of small letters, as people choose it; `hashedPassword` and `new_password` are names in a program.
fn is_plain_word(value: &str) -> bool {
    // Several words with dashes are a phrase, and two may be the name of something.
    value.chars().all(|c| c.is_ascii_lowercase() || c == '-') && value.matches('-').count() != 1
}

/// A word that is shown to people: `Password`, `Required`.
fn is_label(value: &str) -> bool {
    let rest = value.trim_start_matches(|c: char| c.is_ascii_uppercase());
    rest.len() < value.len() && rest.chars().all(|c| c.is_ascii_lowercase() || ".:!?".contains(c))
}

/// A type, a state or the name of a variable.
fn is_no_password(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let tells = ["password", "passwd", "secret", "token", "credential", "apikey", "api_key", "pwd", "hash"];
    NOT_PASSWORDS.contains(&lower.as_str()) || tells.iter().any(|word| lower.contains(word))
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

/// A number of a program: `0xc0a8`, `65535i32`.
fn is_number(value: &str) -> bool {
    let digits = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_typed = digits.len() < value.len()
        && ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize", "UL", "px", "ms"].contains(&digits);
    let hex = value.strip_prefix("0x");
    is_typed || hex.is_some_and(|hex| hex.len() <= 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What a password must be like, as `12-characters`.
fn is_rule(value: &str) -> bool {
    let Some((number, word)) = value.split_once('-') else { return false };
    let word = word.to_ascii_lowercase();
    number.bytes().all(|byte| byte.is_ascii_digit()) && UNITS.contains(&word.strip_suffix('s').unwrap_or(&word))
}
