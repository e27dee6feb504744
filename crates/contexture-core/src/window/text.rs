//! Escapes text of layers and files, so that it can be shown between the window's own tags.

use std::borrow::Cow;

use crate::id::LayerId;

/// The tags of the window. No content can open or close one.
const TAGS: [&str; 6] = ["memory", "updates", "replace", "change", "add", "retract"];

/// Escapes `<` where it would begin one of the window's own tags, also with spaces or in other case.
///
/// ```
/// use contexture_core::window::escape_tags;
/// assert_eq!(escape_tags("a < b </memory> <b> <address>"), "a < b &lt;/memory> <b> <address>");
/// assert_eq!(escape_tags("< / Memory\n>"), "&lt; / Memory\n>");
/// ```
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    let mut found = text.match_indices('<').map(|(at, _)| at).filter(|at| begins_tag(&text[at + 1..])).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut done = 0;
    for at in found {
        escaped.push_str(&text[done..at]);
        escaped.push_str("&lt;");
        done = at + 1;
    }
    escaped.push_str(&text[done..]);
    Cow::Owned(escaped)
}

/// Whether the text after a `<` is the name of one of our tags and not the start of a longer name.
fn begins_tag(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| c == '/' || is_blank(c));
    let is_tag = |tag: &&str| {
        name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
            && !name[tag.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
    };
    TAGS.iter().any(is_tag)
}

/// White space and invisible characters.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Returns a fence of backticks that is longer than any run of them in `text`, and at least three.
///
/// ```
/// use contexture_core::window::fence_for;
/// assert_eq!(fence_for("plain"), "```");
/// assert_eq!(fence_for("a ```` b"), "`````");
/// ```
pub fn fence_for(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}

/// The block of a layer that returned plain text.
pub(crate) fn memory_block(layer: &LayerId, text: &str) -> String {
    format!("<memory layer=\"{}\">\n{}\n</memory>", attribute(layer), escape_tags(text))
}

/// A layer's id as the value of an attribute.
pub(super) fn attribute(layer: &LayerId) -> String {
    layer.as_str().replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('\n', " ")
}
