//! Removes keys and tokens from text before it is written.
//!
//! What remembers things must not remember secrets. [`redact`] replaces what looks like one by `[redacted: …]` with its
//! kind: keys in the formats of known providers, private keys, passwords in addresses, and values of high entropy beside a
//! name that tells what they are, such as `password = …`. The rest of the text stays as it is.
//!
//! It errs on the side of removing: a commit hash after `token:` is removed too. It cannot find a secret that has no known
//! format and no telling name beside it.

mod formats;
mod named;
mod private_keys;

use std::borrow::Cow;
use std::ops::Range;

/// The beginning of what replaces a secret.
const MARK: &str = "[redacted: ";

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
/// use contexture::redact::redact;
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
    let marks: Vec<Range<usize>> = marks(text);
    found.retain(|secret| !marks.iter().any(|mark| mark.start < secret.range.end && secret.range.start < mark.end));
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

/// Where secrets were replaced before.
fn marks(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices(MARK).map(|(at, _)| at);
    starts.map(|at| at..text[at..].find(']').map_or(text.len(), |len| at + len + 1)).collect()
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
