//! Removes keys and tokens from text before it is written.
//!
//! What remembers things must not remember secrets. [`redact`] replaces what looks like one by `[redacted: …]` with its
//! kind: keys in the formats of known providers, private keys, passwords in addresses and in the options of programs, and
//! values beside a name that tells what they are, such as `password = …`. The rest of the text stays as it is.
//!
//! Everything that is stored, indexed, exported or shown as memory uses this one function, and the forms of secrets are
//! one table. Time is proportional to the length of the text, whatever the text is.
//!
//! It errs on the side of removing: a commit hash after `token:` is removed too. It cannot find a secret that has no known
//! format and no telling name beside it, nor a password of letters in a sentence: "the password is swordfish".

mod commands;
mod cookies;
mod formats;
mod named;
mod private_keys;
mod random;
mod settings;
mod signs;
mod table;
mod value;

use std::borrow::Cow;
use std::ops::Range;

use contexture_core::tokens::{ceil_boundary, floor_boundary};
use serde_json::Value;

/// The beginning of what replaces a secret.
const MARK: &str = "[redacted: ";

/// More than the longest kind of a secret.
const MAX_KIND: usize = 40;

/// How much of a text around a part of it is searched: more than the longest key.
const AROUND_BYTES: usize = 64 * 1024;

/// How often a text is searched again because removing a secret brought two others together.
const MAX_PASSES: usize = 4;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// What it is, for people: `GitHub token`.
    pub kind: &'static str,
}

/// Returns the text with every secret replaced by its kind.
///
/// ```
/// use contexture_memory::redact::redact;
/// assert_eq!(redact("the database password is hunter2-Xq9"), "the database password is [redacted: password]");
/// assert_eq!(redact("The release is on Friday."), "The release is on Friday.");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut redacted = Cow::Borrowed(text);
    for _ in 0..MAX_PASSES {
        let secrets = secrets(&redacted);
        if secrets.is_empty() {
            break;
        }
        redacted = Cow::Owned(replaced(&redacted, &secrets));
    }
    redacted
}

/// Returns the secrets of a text, in order and without overlaps.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut found = private_keys::find(text);
    formats::find(text, &mut found);
    named::find(text, &mut found);
    settings::find(text, &mut found);
    commands::find(text, &mut found);
    cookies::find(text, &mut found);
    let marks: Vec<Range<usize>> = marks(text);
    found.retain(|secret| {
        let mark = marks.get(marks.partition_point(|mark| mark.end < secret.range.end));
        mark.is_none_or(|mark| mark.start > secret.range.start)
    });
    found.sort_by_key(|secret| (secret.range.start, std::cmp::Reverse(secret.range.end)));
    let mut secrets: Vec<Secret> = Vec::new();
    for secret in found {
        match secrets.last_mut() {
            Some(last) if secret.range.start < last.range.end => last.range.end = last.range.end.max(secret.range.end),
            _ => secrets.push(secret),
        }
    }
    secrets
}

/// Returns a part of a text without secrets, also those that begin before it or end after it.
///
/// Whoever cuts a text first and redacts it then keeps half a key, or a password without the name that tells what it is.
///
/// # Panics
/// The range is not one of the text.
pub fn redact_part(text: &str, part: Range<usize>) -> String {
    let (from, to) = (
        floor_boundary(text, part.start.saturating_sub(AROUND_BYTES)),
        ceil_boundary(text, part.end.saturating_add(AROUND_BYTES)),
    );
    let within = |at: usize| (at + from).clamp(part.start, part.end) - part.start;
    let secrets: Vec<Secret> = secrets(&text[from..to])
        .into_iter()
        .map(|secret| Secret { range: within(secret.range.start)..within(secret.range.end), ..secret })
        .filter(|secret| !secret.range.is_empty())
        .collect();
    redact(&replaced(&text[part], &secrets)).into_owned()
}

/// Returns the start of a text without secrets, which has at most so many bytes.
pub(crate) fn redacted_start(text: &str, max_bytes: usize) -> String {
    let redacted = redact(text);
    let cut = floor_boundary(&redacted, max_bytes);
    let end =
        marks(&redacted).into_iter().find(|mark| mark.start < cut && cut < mark.end).map_or(cut, |mark| mark.start);
    redacted[..end].to_owned()
}

/// Removes secrets from all texts of a JSON value; its name may tell what it is. Names of fields stay as they are.
pub fn redact_value(name: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            let prefix = format!("{name}: ");
            let named = format!("{prefix}{text}");
            let redacted = redact(&named);
            *text = redacted.strip_prefix(&prefix).map_or_else(|| redact(text).into_owned(), str::to_owned);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| redact_value(name, value)),
        Value::Object(object) => object.iter_mut().for_each(|(name, value)| redact_value(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Where secrets were replaced before. What only looks so is text like any other.
fn marks(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices(MARK).map(|(at, _)| at);
    starts.filter_map(|at| Some(at..at + mark_len(&text[at..])?)).collect()
}

/// The length of the mark that a text begins with.
fn mark_len(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(MARK)?;
    let kind = &rest[..rest.bytes().take(MAX_KIND).position(|byte| byte == b']')?];
    let kinds = formats::kinds().chain(named::kinds()).chain(settings::kinds());
    let is_kind = kinds.chain([cookies::KIND, private_keys::KIND]).any(|known| known == kind);
    is_kind.then_some(MARK.len() + kind.len() + 1)
}

fn replaced(text: &str, secrets: &[Secret]) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut at = 0;
    for Secret { range, kind } in secrets {
        redacted.push_str(&text[at..range.start]);
        redacted.push_str(MARK);
        redacted.push_str(kind);
        redacted.push(']');
        at = range.end;
    }
    redacted.push_str(&text[at..]);
    redacted
}

/// Whether a word can begin here: not inside of another, but after an escape such as `\n` or `%3D`.
fn begins_word(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    match before {
        [.., b'\\', b'n' | b't' | b'r' | b'"' | b'\''] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        _ => !text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_'),
    }
}

#[cfg(test)]
mod tests;
