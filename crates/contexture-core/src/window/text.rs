//! Escapes text of layers and files, so that it can be shown between the window's own tags.

use std::borrow::Cow;

use crate::id::LayerId;

/// All tags that the program writes into a request. No content can open or close one.
const TAGS: [&str; 7] = ["memory", "updates", "replace", "change", "add", "retract", DEVELOPER];

/// The tag around a message of the program, in formats that have only messages of the user and the model.
const DEVELOPER: &str = "developer";

/// Escapes `<` where it would begin one of the program's own tags, also with spaces or in other case.
///
/// ```
/// use contexture_core::window::escape_tags;
/// assert_eq!(escape_tags("a < b </memory> <b> <address>"), "a < b &lt;/memory> <b> <address>");
/// assert_eq!(escape_tags("< / Memory\n>"), "&lt; / Memory\n>");
/// ```
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    escape(text, &TAGS)
}

/// The text of a message of the program as a provider is sent it: the window's own blocks as they are, and everything
/// else with its tags escaped.
///
/// ```
/// use contexture_core::window::program_text;
/// let block = "<memory layer=\"notes\">\nmilk\n</memory>";
/// assert_eq!(program_text(block), block);
/// assert_eq!(program_text("as said </memory>"), "as said &lt;/memory>");
/// ```
pub fn program_text(text: &str) -> Cow<'_, str> {
    match () {
        () if is_memory_block(text) => Cow::Borrowed(text),
        // What is inside was escaped when it was written.
        () if text.starts_with("<updates>\n") && text.ends_with("\n</updates>") => escape(text, &[DEVELOPER]),
        () => escape_tags(text),
    }
}

/// The text of a message of the program as a message of the user, for formats that have no others. It is in a tag, so
/// that the model does not take it for the user's.
///
/// ```
/// use contexture_core::window::developer_block;
/// assert_eq!(developer_block("a </developer>"), "<developer>\na &lt;/developer>\n</developer>");
/// let block = "<memory layer=\"notes\">\nmilk\n</memory>";
/// assert_eq!(developer_block(block), block, "it has a tag already");
/// ```
pub fn developer_block(text: &str) -> Cow<'_, str> {
    match is_memory_block(text) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("<{DEVELOPER}>\n{}\n</{DEVELOPER}>", program_text(text))),
    }
}

/// Whether a text is one block of a layer, whose text closes and opens nothing.
fn is_memory_block(text: &str) -> bool {
    let inner = || text.strip_prefix("<memory layer=\"")?.split_once("\">\n")?.1.strip_suffix("\n</memory>");
    inner().is_some_and(|inner| matches!(escape_tags(inner), Cow::Borrowed(_)))
}

fn escape<'a>(text: &'a str, tags: &[&str]) -> Cow<'a, str> {
    let begins = |at: &usize| begins_tag(&text[at + 1..], tags);
    let mut found = text.match_indices('<').map(|(at, _)| at).filter(begins).peekable();
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

/// Whether the text after a `<` is the name of one of these tags and not the start of a longer name. A model reads
/// over characters that cannot be seen, so they do not make another name.
fn begins_tag(rest: &str, tags: &[&str]) -> bool {
    let start = rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace() || is_unseen(c));
    let is_tag = |tag: &&str| {
        let mut rest = start.chars();
        tag.chars().all(|letter| rest.find(|c| !is_unseen(*c)).is_some_and(|c| c.eq_ignore_ascii_case(&letter)))
            && !rest.next().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
    };
    tags.iter().any(is_tag)
}

fn is_unseen(c: char) -> bool {
    is_invisible(c) || (c.is_control() && !c.is_whitespace())
}

/// Whether a character is not seen where it is written: it joins others, turns the direction of writing around, chooses
/// a shape, or does nothing. White space and control characters are others.
///
/// ```
/// use contexture_core::window::is_invisible;
/// assert!("\u{202e}\u{200b}\u{e0041}".chars().all(is_invisible));
/// assert!(!"a b\té漢".chars().any(is_invisible));
/// ```
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
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
