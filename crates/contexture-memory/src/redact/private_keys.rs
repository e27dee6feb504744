//! Private keys in the forms of files.

use super::Secret;

pub(super) const KIND: &str = "private key";

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// The private keys of a text: from their first line to their last, or as far as encoded text goes.
pub(super) fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(BEGIN).map(|at| from + at) {
        from = at + BEGIN.len();
        let Some(len) = text[from..].find(DASHES) else { break };
        let title = &text[from..from + len];
        if !title.contains("PRIVATE KEY") || title.len() > 64 {
            continue;
        }
        let body = from + len + DASHES.len();
        let end = body_end(text, body, title);
        found.push(Secret { range: at..end, kind: KIND });
        from = end;
    }
    found.extend(putty_key(text));
    found
}

/// The end of a key: after its last line, or before the first character that no key has.
fn body_end(text: &str, body: usize, title: &str) -> usize {
    let close = format!("{END}{title}{DASHES}");
    if let Some(at) = text[body..].find(&close) {
        return body + at + close.len();
    }
    let rest = &text[body..];
    // Also with what stands before lines that are quoted, numbered or commented.
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "+/=\\ \t\r\n-:,>|#*".contains(c);
    body + rest.find(|c| !is_of_key(c)).unwrap_or(rest.len())
}

/// The private part of a key of PuTTY.
fn putty_key(text: &str) -> Option<Secret> {
    const PRIVATE: &str = "Private-Lines:";
    let at = text.find(PRIVATE)? + PRIVATE.len();
    let rest = &text[at..];
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "+/=\\ \t\r\n".contains(c);
    let end = rest.find("Private-").or_else(|| rest.find(|c| !is_of_key(c))).unwrap_or(rest.len());
    (end > 32).then(|| Secret { range: at..at + end, kind: KIND })
}
