//! Private keys in the forms of files.

use contexture_core::tokens::{ceil_boundary, floor_boundary};

use super::Secret;

pub(super) const KIND: &str = "private key";

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// The shortest encoded part of a key.
const MIN_BODY: usize = 16;

/// The private keys of a text: from their first line to their last, or as far as encoded text goes.
pub(super) fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut ends = KeyEnd::default();
    while let Some(at) = text[from..].find(BEGIN).map(|at| from + at) {
        from = at + BEGIN.len();
        let Some(len) = text[from..].find(DASHES) else { break };
        let title = &text[from..from + len];
        if !title.contains("PRIVATE KEY") || title.len() > 64 {
            continue;
        }
        let body = from + len + DASHES.len();
        let end = body_end(text, body, title, &mut ends);
        // Code that only names the first line has no key after it.
        if text[body..end].bytes().filter(u8::is_ascii_alphanumeric).take(MIN_BODY).count() == MIN_BODY {
            found.push(Secret { range: at..end, kind: KIND });
        }
        from = end;
    }
    found.extend(putty_keys(text));
    web_keys(text, &mut found);
    found
}

/// The last line of the next key, which is looked for once.
#[derive(Default)]
struct KeyEnd {
    searched: usize,
    found: Option<usize>,
}

impl KeyEnd {
    fn next_after(&mut self, text: &str, at: usize) -> Option<usize> {
        if self.found.is_none_or(|found| found < at) && self.searched <= at {
            self.found = text[at..].find(END).map(|len| at + len);
            self.searched = self.found.map_or(text.len() + 1, |found| found + 1);
        }
        self.found.filter(|found| *found >= at)
    }
}

/// The end of a key: after its last line, or before the first character that no key has.
fn body_end(text: &str, body: usize, title: &str, ends: &mut KeyEnd) -> usize {
    if let Some(at) = ends.next_after(text, body) {
        let close = format!("{END}{title}{DASHES}");
        if text[at..].starts_with(&close) {
            return at + close.len();
        }
    }
    let rest = &text[body..];
    // Also with what stands before lines that are quoted, numbered or commented.
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "+/=\\ \t\r\n-:,>|#*".contains(c);
    body + rest.find(|c| !is_of_key(c)).unwrap_or(rest.len())
}

/// The private parts of keys of PuTTY.
fn putty_keys(text: &str) -> impl Iterator<Item = Secret> {
    const PRIVATE: &str = "Private-Lines:";
    text.match_indices(PRIVATE).filter_map(|(at, _)| {
        let at = at + PRIVATE.len();
        let rest = &text[at..];
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || "+/=\\ \t\r\n".contains(c);
        let body = &rest[..rest.find(|c| !is_of_key(c)).unwrap_or(rest.len())];
        let end = body.find("Private").unwrap_or(body.len());
        (end > 32).then(|| Secret { range: at..at + end, kind: KIND })
    })
}

/// The private parts of JSON web keys: what RFC 7518 calls `d`, `k` and the primes of RSA, beside `kty`.
fn web_keys(text: &str, found: &mut Vec<Secret>) {
    /// The longest key of RSA with its names.
    const MAX_KEY: usize = 16 * 1024;
    const PRIVATE: [&str; 7] = ["d", "k", "p", "q", "dp", "dq", "qi"];
    let mut done = 0;
    for at in text.match_indices("kty").map(|(at, _)| at).filter(|at| text[..*at].ends_with('"')) {
        if at < done {
            continue;
        }
        let near = &text[ceil_boundary(text, at.saturating_sub(MAX_KEY)).max(done)..at];
        let start = at - near.rfind('{').map_or(near.len(), |open| near.len() - open);
        let rest = &text[at..floor_boundary(text, at + MAX_KEY)];
        let end = at + rest.find('}').unwrap_or(rest.len());
        let mut parts = text[start..end].split('"').scan(start, |at, part| {
            let from = *at;
            *at += part.len() + 1;
            Some((from, part.trim_end_matches('\\')))
        });
        while let Some((_, name)) = parts.next() {
            if !PRIVATE.contains(&name) || parts.next().is_none_or(|(_, gap)| gap.trim() != ":") {
                continue;
            }
            let value = parts.next().filter(|(_, value)| value.len() >= MIN_BODY);
            let is_key = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let value = value.filter(|(_, value)| is_key(value));
            found.extend(value.map(|(at, value)| Secret { range: at..at + value.len(), kind: KIND }));
        }
        done = end;
    }
}
