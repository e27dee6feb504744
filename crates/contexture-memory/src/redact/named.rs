//! Values beside a name that tells what they are.

use std::ops::Range;
use std::sync::LazyLock;

use contexture_core::tokens::{ceil_boundary, floor_boundary};

use super::random::{alternates, is_word};
use super::table::{
    AUTH, CREDS, KEY, LINKS, NAMES, Name, OPEN_KEYS, OTHER_NAMES, PASS, PASSWORD, PAT, SCHEMES, SESSION, SETTERS,
    SHORT_NAMES, SIGNATURE, SIGNING_KEY, STAGES,
};
use super::value::{ValueForm, is_fingerprint, is_key, is_password, is_uuid};
use super::{Secret, mark_len};

/// How many characters there may be between a name and its value.
const MAX_GAP: usize = 24;
/// How much of a text before a name tells how its value is given.
const MAX_BEFORE: usize = 200;
/// By how many characters a value is judged. It may be longer.
const MAX_JUDGED: usize = 256;
/// The longest part of a name after the telling one.
const MAX_SUFFIX: usize = 64;
/// The shortest signature.
const MIN_SIGNATURE: usize = 16;
/// The shortest key of a name that says no more than that.
const MIN_KEY: usize = 20;
/// The shortest value that is a password because it is random.
const MIN_RANDOM: usize = 8;
/// The first character of scripts without spaces between words.
const CJK: char = '\u{2E80}';

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
    let mut at = 0;
    while at < text.len() {
        let name = if may_begin(text.as_bytes(), at) && text.is_char_boundary(at) { name_at(text, at) } else { None };
        let value = name.and_then(|(name, len)| Some((name, value_after(text, at..at + len, name)?)));
        at = value.as_ref().map_or(at + 1, |(_, value)| value.end.max(at + 1));
        found.extend(value.map(|(name, range)| Secret { range, kind: name.1 }));
    }
}

/// With which two bytes a name can begin: most places of a text are passed over by this alone.
static BEGINNINGS: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let mut beginnings = vec![false; 1 << 16];
    for Name(name, _) in NAMES {
        beginnings[beginning(name.as_bytes()[0], name.as_bytes()[1])] = true;
        // A capital letter of another script has other bytes.
        let upper = name.to_uppercase();
        beginnings[beginning(upper.as_bytes()[0], upper.as_bytes()[1])] = true;
    }
    beginnings
});

fn beginning(first: u8, second: u8) -> usize {
    usize::from(first | 0x20) << 8 | usize::from(second | 0x20)
}

fn may_begin(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1).is_some_and(|second| BEGINNINGS[beginning(bytes[at], *second)])
}

/// A telling name here, and its length in the text.
fn name_at(text: &str, at: usize) -> Option<(&'static Name, usize)> {
    let rest = &text[at..];
    let first = rest.chars().next()?;
    NAMES.iter().find_map(|name| {
        let mut wanted = name.0.chars().peekable();
        if !first.to_lowercase().eq([*wanted.peek()?]) {
            return None;
        }
        for (offset, c) in rest.char_indices() {
            let Some(next) = wanted.peek() else { return Some((name, offset)) };
            match c {
                c if c.to_lowercase().eq([*next]) => drop(wanted.next()),
                '_' | '-' | ' ' | '.' if offset > 0 => {}
                _ => return None,
            }
        }
        wanted.peek().is_none().then_some((name, rest.len()))
    })
}

/// What is between a name and its value.
struct Gap {
    /// Where the value begins.
    start: usize,
    /// Whether there is `=`, `is` and the like.
    is_linked: bool,
    /// The last sign among these.
    sign: Option<char>,
    quote: Option<char>,
    /// Whether the name is that of a function which sets the value: `setPassword("…")`.
    is_call: bool,
}

/// The value after a name: past quotes, links and spaces.
fn value_after(text: &str, name: Range<usize>, entry: &Name) -> Option<Range<usize>> {
    let after_name = name.end + suffix_len(text, &name)?;
    let gap = gap(text, &name, after_name)?;
    let rest = &text[gap.start..ceil_boundary(text, gap.start + MAX_JUDGED)];
    let before = &text[ceil_boundary(text, name.start.saturating_sub(MAX_BEFORE))..name.start];
    let quoted = gap.quote.and_then(|quote| quoted_len(rest, quote));
    let given = form(before, &text[name.clone()], &text[after_name..ceil_boundary(text, gap.start + MAX_JUDGED)]);
    let is_end = |c: char| {
        c.is_whitespace() || c >= CJK || "\"'`,;<>()[]{}\\|".contains(c) || (c == '&' && given == ValueForm::Assigned)
    };
    let end = quoted.unwrap_or_else(|| rest.find(is_end).unwrap_or(rest.len()));
    let after = &rest[end..];
    // `password = sha256(…)`, `password = form["password"]`, `const MAX_PASSWORD: usize = 64`.
    if quoted.is_none() && (after.starts_with(['(', '[']) || after.starts_with(" = ")) {
        return None;
    }
    let is_line = || gap.sign.is_some_and(|sign| ends_line(after) && is_line_before(before, sign));
    let form = match given {
        ValueForm::Loose if gap.is_linked && quoted.is_some() => ValueForm::Quoted,
        ValueForm::Loose if is_login(before) => ValueForm::Assigned,
        ValueForm::Loose if is_line() => ValueForm::Line,
        given => given,
    };
    let value = match form {
        _ if quoted.is_some() => &rest[..end],
        ValueForm::Line | ValueForm::Assigned => rest[..end].trim_end_matches(['.', ':']),
        ValueForm::Loose | ValueForm::Quoted => rest[..end].trim_end_matches(['.', ':', '!', '?']),
    };
    let is_secret =
        NamedValue { entry, before, after, value, form, gap: &gap, is_quoted: quoted.is_some() }.is_secret(&text[name]);
    let rest = &text[gap.start..];
    let len = if end == MAX_JUDGED { rest.find(is_end).unwrap_or(rest.len()) } else { value.len() };
    is_secret.then(|| gap.start..gap.start + len)
}

/// A value after a telling name, and what is around the two.
struct NamedValue<'a> {
    entry: &'a Name,
    before: &'a str,
    after: &'a str,
    value: &'a str,
    form: ValueForm,
    gap: &'a Gap,
    is_quoted: bool,
}

impl NamedValue<'_> {
    fn is_secret(&self, name: &str) -> bool {
        let NamedValue { before, value, form, .. } = *self;
        let Name(telling, kind) = *self.entry;
        match kind {
            PASSWORD => self.is_password(name),
            // `PublicKeyToken=b77a5c561934e089` identifies a key that everybody may have.
            _ if is_public(before) => false,
            SIGNATURE => form == ValueForm::Assigned && value.len() >= MIN_SIGNATURE && is_key(value, form),
            _ if telling == KEY || telling == PAT => {
                let is_open = OPEN_KEYS.iter().any(|open| before.ends_with(open));
                form == ValueForm::Assigned
                    && before.ends_with('_')
                    && !is_open
                    && value.len() >= MIN_KEY
                    && is_key(value, form)
            }
            _ if telling == AUTH => {
                let is_whole = before.ends_with(['"', '\'', '_']) && self.gap.is_linked;
                is_whole && value.len() >= MIN_SIGNATURE && is_key(value, form)
            }
            // Agents and editors number their sessions so.
            _ if telling == SESSION && is_uuid(value) => false,
            _ if telling == SIGNING_KEY && is_fingerprint(value) => false,
            _ => is_key(value, form),
        }
    }

    fn is_password(&self, name: &str) -> bool {
        let NamedValue { before, after, value, form, .. } = *self;
        let telling = self.entry.0;
        // `"password": "Passwort1 eingeben"` is a label.
        if !self.is_quoted && self.gap.quote.is_some() && after.starts_with(' ') && is_word(value) {
            return false;
        }
        let is_given = self.gap.is_linked
            || form >= ValueForm::Quoted
            || is_line_of_login(before, after)
            || before.contains("define(")
            || (self.gap.is_call && self.is_quoted && after[1..].starts_with(')'))
            || is_plainly_random(value);
        let form = if self.is_quoted && is_given && !self.gap.is_call { form.max(ValueForm::Quoted) } else { form };
        let is_name = match telling {
            PASS => is_last_part(before, name),
            // What is logged there is a user's name too: `creds: user=%q`.
            CREDS => value.split_once(':').is_some_and(|(_, password)| is_password(password, ValueForm::Loose)),
            _ if SHORT_NAMES.contains(&telling) => !before.ends_with(|c: char| c.is_alphanumeric()),
            _ => true,
        };
        is_given && is_name && is_password(value, form)
    }
}

/// Whether nobody would take a value for a word: `the password uH9AA3Z2`.
fn is_plainly_random(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    value.len() >= MIN_RANDOM
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && alternates(value.as_bytes())
}

fn gap(text: &str, name: &Range<usize>, at: usize) -> Option<Gap> {
    let is_call = text[at..].starts_with('(');
    let mut gap = Gap { start: at + usize::from(is_call), is_linked: false, sign: None, quote: None, is_call };
    if is_tag(&text[..name.start], &text[at..ceil_boundary(text, at + MAX_JUDGED)]) {
        gap = Gap { start: at + 1, is_linked: true, ..gap };
    }
    // A name that is quoted in code, as in `` `redis-cli --pass` ``, has no value after it.
    if text[at..].starts_with('`') && is_option(&text[floor_boundary(text, at.saturating_sub(MAX_BEFORE))..name.start])
    {
        return None;
    }
    while gap.start - at <= MAX_GAP {
        let rest = &text[gap.start..ceil_boundary(text, gap.start + 2 * MAX_GAP)];
        // What follows an escaped end of line is another line.
        let is_end = ["\\n", "\\r"].iter().any(|end| rest.starts_with(end));
        let skipped = rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', '`', '\\', '*', ',']).len();
        let skipped = if is_end && !gap.is_linked { 0 } else { skipped };
        // Nothing between quotes is an empty value, and what follows is another one.
        if gap.is_linked && gap.quote.is_none() && (rest.starts_with("\"\"") || rest.starts_with("''")) {
            return None;
        }
        if skipped > 0 {
            gap.quote = rest[..skipped].chars().rev().find(|c| matches!(c, '"' | '\'' | '`')).or(gap.quote);
            gap.start += skipped;
        } else if let Some(scheme) = SCHEMES.iter().find(|scheme| rest.starts_with(**scheme)) {
            gap.start += scheme.len();
        } else if let Some(link) = LINKS.iter().find(|link| begins_with_link(rest, link)) {
            (gap.is_linked, gap.quote) = (true, None);
            gap.sign = link.chars().next().filter(|c| !c.is_alphabetic());
            gap.start += link.len();
        } else if gap.is_linked && is_value_below(rest) {
            gap.start += rest.len() - rest.trim_start().len();
        } else {
            break;
        }
    }
    // `(private_key, public_key)` is a list.
    let is_list = !gap.is_linked && gap.quote.is_none() && text[at..gap.start].contains(',');
    let is_gap = gap.start > at && gap.start - at <= MAX_GAP && !is_list;
    (is_gap && mark_len(&text[gap.start..]).is_none()).then_some(gap)
}

/// How a value is given, as far as its name and what is around it tell.
fn form(before: &str, name: &str, after: &str) -> ValueForm {
    let identifier = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let is_upper = !name.contains(|c: char| c.is_ascii_lowercase()) && name.is_ascii();
    let is_direct = after.starts_with('=') && !after.starts_with("==");
    let is_parameter = is_direct && (identifier.ends_with(['?', '&', ';', '=']) || is_pair_before(identifier));
    let is_variable = is_upper && is_direct && !before.ends_with(|c: char| c.is_ascii_lowercase());
    if is_option(before) && after.starts_with('=') || is_tag(before, after) || is_parameter || is_variable {
        ValueForm::Assigned
    } else if is_option(before) && after.starts_with(' ') {
        ValueForm::Quoted
    } else {
        ValueForm::Loose
    }
}

/// Whether the name is that of an element, with its end after the value: `<password>…</password>`.
fn is_tag(before: &str, after: &str) -> bool {
    let value = after.strip_prefix('>').filter(|_| before.ends_with('<'));
    value.and_then(|value| value.split_once('<')).is_some_and(|(_, end)| end.starts_with('/'))
}

/// Whether the name is one of several with values: `user=ada password=…` and `username=ada,password=…`.
fn is_pair_before(before: &str) -> bool {
    let pair = before.strip_suffix([' ', ',']).unwrap_or_default();
    let pair = &pair[pair.rfind([' ', ',', '"', '\'']).map_or(0, |at| at + 1)..];
    let is_value = |value: &str| !value.is_empty() && !value.ends_with([',', ')', '(']);
    pair.split_once('=').is_some_and(|(name, value)| {
        is_value(value) && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether a name after this is that of an option: `--password x`.
fn is_option(before: &str) -> bool {
    let words = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "-._".contains(c));
    before[words.len()..].starts_with("--")
}

/// `DB_PASS` and `dbPass` rather than `pass`.
fn is_last_part(before: &str, name: &str) -> bool {
    before.ends_with('_') || (name.starts_with('P') && before.ends_with(|c: char| c.is_ascii_lowercase()))
}

/// Whether the name is the end of that of something public.
fn is_public(before: &str) -> bool {
    let name = before.trim_end_matches(['_', '-', ' ']);
    let name = name.strip_suffix("key").or_else(|| name.strip_suffix("Key")).unwrap_or(name);
    let name = name.trim_end_matches(['_', '-', ' ']);
    name.get(floor_boundary(name, name.len().saturating_sub("public".len()))..)
        .is_some_and(|end| end.eq_ignore_ascii_case("public"))
}

/// The length of a value up to its closing quote, if it is one word.
fn quoted_len(rest: &str, quote: char) -> Option<usize> {
    let end = rest.find(|c: char| c == quote || c == '\\' || c.is_whitespace())?;
    let closes = rest[end..].trim_start_matches('\\').starts_with(quote);
    closes.then_some(end)
}

/// Whether nothing more is in the line.
fn ends_line(after: &str) -> bool {
    let after = after.trim_start_matches(['.', '!', '?', ' ', '\t']);
    after.is_empty() || after.starts_with(['\n', '\r', '#']) || after.starts_with("\\n") || after.starts_with("\\r")
}

/// Whether a line begins with a name, as in a file of settings, or speaks of a login before it.
fn is_line_before(before: &str, sign: char) -> bool {
    let start = before.rfind('\n').map(|at| at + 1).or_else(|| Some(before.rfind("\\n")? + 2));
    let Some(start) = start.or((before.len() < MAX_BEFORE - 4).then_some(0)) else { return false };
    let line =
        before[start..].trim_start_matches(|c: char| c.is_whitespace() || c.is_ascii_digit() || "-+>|*→:".contains(c));
    let line =
        ["export ", "set ", "setx ", "env ", "ENV "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
    let lower = line.to_ascii_lowercase();
    line.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        || (sign != '='
            && !line.contains(['(', '{', '.'])
            && ["user", "login", "admin", "email"].iter().any(|word| lower.contains(word)))
}

/// Whether a password follows without a link, as in the files that keep logins: `machine x login ada password …`.
fn is_login(before: &str) -> bool {
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    line.contains("login ") && line.contains("machine ")
}

/// The same, in a line of its own.
fn is_line_of_login(before: &str, after: &str) -> bool {
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    line.trim().is_empty() && after.lines().next().unwrap_or_default().trim().is_empty()
}

/// The length of what belongs to the name too: of `API_KEY_PROD` that after `API_KEY`. `None` if it is another name, as
/// `password_hash` and `tokens`.
fn suffix_len(text: &str, name: &Range<usize>) -> Option<usize> {
    let rest = &text[name.end..ceil_boundary(text, name.end + MAX_SUFFIX)];
    if rest.starts_with('(') {
        let before = &text[floor_boundary(text, name.start.saturating_sub(MAX_SUFFIX))..name.start];
        let is_setter = SETTERS.iter().any(|setter| before.ends_with(setter));
        return is_setter.then_some(0);
    }
    if !text[name.clone()].is_ascii() {
        return Some(0);
    }
    let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let suffix = &rest[..len];
    let is_upper = !text[name.clone()].contains(|c: char| c.is_ascii_lowercase());
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = |word: &str| {
        if is_upper {
            !word.contains(|c: char| c.is_ascii_lowercase()) && !OTHER_NAMES.contains(&word)
        } else {
            is_number(word) || STAGES.contains(&word)
        }
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
