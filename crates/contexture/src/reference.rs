//! References to files in what people write: `#src/main.rs`.
//!
//! A reference is a `#` at the start, after white space or after an opening bracket or quote, followed by a path
//! that looks like a file:
//!
//! | written | names |
//! | --- | --- |
//! | `#src/main.rs` | a file with an extension that has a letter |
//! | `#Dockerfile`, `#.gitignore` | a name that is known to be a file, or that begins with a dot |
//! | `#"my notes.md"` | anything in quotes |
//! | `#src/main.rs:10-40`, `#src/main.rs#L10-L40` | some of its lines |
//! | `#hashtag`, `#123`, `#region`, `#v1.2`, `\#a.rs` | nothing |
//!
//! Nothing is a reference in code, in links, in URLs and in HTML tags.

pub mod anchor;
pub mod kinds;
pub mod secret_names;
mod shape;
mod shield;

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use shield::Shield;

/// Some lines of a file, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineRange {
    /// The first line.
    pub first: u32,
    /// The last line, never before the first.
    pub last: u32,
}

impl LineRange {
    /// The lines between two lines, in either order; line 0 counts as line 1.
    pub fn new(one: u32, other: u32) -> Self {
        let (one, other) = (one.max(1), other.max(1));
        Self { first: one.min(other), last: one.max(other) }
    }
}

/// One reference in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'t> {
    /// Where it is, in bytes, from the `#` to the end of its line range.
    pub range: Range<usize>,
    /// The path as written, without `#` and quotes. It was not checked: it may be absolute or lead anywhere.
    pub path: &'t str,
    /// Whether the path is in quotes.
    pub quoted: bool,
    /// The lines that it is limited to.
    pub lines: Option<LineRange>,
}

/// Finds the references in a text, in order.
///
/// `is_file_name` decides which names without an extension are files: `Dockerfile`, `Makefile`, …
///
/// ```
/// use contexture::reference::find;
/// let references = find("Look at #src/main.rs:1-20, not at #hashtag.", |name| name == "Dockerfile");
/// assert_eq!(references.len(), 1);
/// assert_eq!(references[0].path, "src/main.rs");
/// ```
pub fn find(text: &str, is_file_name: impl Fn(&str) -> bool) -> Vec<Reference<'_>> {
    let mut references: Vec<Reference<'_>> = Vec::new();
    if !text.contains('#') {
        return references;
    }
    let shield = Shield::over(text);
    for (at, _) in text.match_indices('#') {
        let overlaps = references.last().is_some_and(|reference| at < reference.range.end);
        if overlaps || !may_start(&text[..at]) || shield.touches(at..at + 1) {
            continue;
        }
        let found = quoted(text, at).or_else(|| plain(text, at, &is_file_name));
        references.extend(found.filter(|reference| !shield.touches(reference.range.clone())));
    }
    references
}

/// Writes every reference as a link to an anchor: `[#src/main.rs](#src-main-rs)`.
///
/// `anchor` returns the anchor of a reference, or `None` to leave it as it is. The references must be those that
/// [`find`] returned for this text. Rewriting twice changes nothing, since nothing in a link is a reference.
pub fn rewrite<'t>(
    text: &'t str,
    references: &[Reference<'t>],
    mut anchor: impl FnMut(&Reference<'t>) -> Option<String>,
) -> Cow<'t, str> {
    let mut rewritten = String::new();
    let mut copied = 0;
    for reference in references {
        let Some(anchor) = anchor(reference) else { continue };
        let written = &text[reference.range.clone()];
        rewritten.push_str(&text[copied..reference.range.start]);
        rewritten.push('[');
        match reference.quoted {
            true => push_escaped(&mut rewritten, written),
            false => rewritten.push_str(written),
        }
        rewritten.push_str("](#");
        rewritten.push_str(&anchor);
        rewritten.push(')');
        copied = reference.range.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    rewritten.push_str(&text[copied..]);
    Cow::Owned(rewritten)
}

/// Whether a reference may begin after this text.
fn may_start(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| c.is_whitespace() || "([{<\"'“‘„‚«‹（［【「『《〈".contains(c))
}

/// What is in quotes after a `#`.
fn quoted<'t>(text: &'t str, at: usize) -> Option<Reference<'t>> {
    let after = &text[at + 1..];
    let open = after.chars().next()?;
    let close = match open {
        '"' => '"',
        '“' => '”',
        _ => return None,
    };
    let inside = &after[open.len_utf8()..];
    let length = inside.find([close, '\n', '`'])?;
    let path = &inside[..length];
    // After a `#` that is itself in quotes, as in `"#"`, a space follows instead of a name.
    let named = path.trim() == path && !path.is_empty();
    if !named || !inside[length..].starts_with(close) {
        return None;
    }
    let end = at + 1 + open.len_utf8() + length + close.len_utf8();
    let (lines, length) = shape::line_range(&text[end..]);
    Some(Reference { range: at..end + length, path, quoted: true, lines })
}

/// A path after a `#` that looks like a file.
fn plain<'t>(text: &'t str, at: usize, is_file_name: &impl Fn(&str) -> bool) -> Option<Reference<'t>> {
    let path = shape::file_path(&text[at + 1..], is_file_name)?;
    let end = at + 1 + path.len();
    let (lines, length) = shape::line_range(&text[end..]);
    Some(Reference { range: at..end + length, path, quoted: false, lines })
}

/// Escapes text so that in the brackets of a link it neither closes them nor opens a tag.
fn push_escaped(into: &mut String, text: &str) {
    for c in text.chars() {
        if matches!(c, '[' | ']' | '<' | '\\') {
            into.push('\\');
        }
        into.push(c);
    }
}
