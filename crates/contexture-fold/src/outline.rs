//! Outlines of files that are known but not shown: what they define, so that the agent knows where to look.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::view::Chunk;
use contexture_files::model::{FileModel, FileState};
use contexture_text::one_line::one_line;

/// A file with fewer known lines that are not shown gets no outline.
const LEAST_KNOWN_LINES: usize = 10;

/// Most names of one file.
const MAX_NAMES: usize = 12;

/// Longest line of an outline, in bytes.
const MAX_LINE_BYTES: usize = 240;

/// Words that may precede one that defines something.
const MODIFIERS: &[&str] = &[
    "pub",
    "pub(crate)",
    "pub(super)",
    "export",
    "default",
    "async",
    "static",
    "abstract",
    "public",
    "private",
    "protected",
    "internal",
    "unsafe",
    "final",
    "declare",
    "override",
    "const",
    "open",
    "sealed",
];

/// Words that are followed by the name of what they define.
const DEFINERS: &[&str] = &[
    "fn",
    "func",
    "fun",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "function",
    "module",
    "mod",
    "record",
    "protocol",
    "macro_rules!",
];

/// Returns the name that a line defines, if it defines one.
///
/// ```
/// use contexture_fold::outline::defined;
/// assert_eq!(defined("pub async fn read(&self) {"), Some("read"));
/// assert_eq!(defined("func (s *Server) Close() error {"), Some("Close"));
/// assert_eq!(defined("export default class View extends Base {"), Some("View"));
/// assert_eq!(defined("return type_of(x)"), None);
/// ```
pub fn defined(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        rest = behind.trim_start();
        if DEFINERS.contains(&word) {
            break;
        }
        if !MODIFIERS.contains(&word) {
            return None;
        }
    }
    // A Go method names its receiver first.
    let rest = match rest.strip_prefix('(') {
        Some(receiver) => receiver.split_once(')')?.1.trim_start(),
        None => rest,
    };
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// Returns one line for each file that is mostly not among the shown chunks, the most recently touched first, within a
/// number of bytes.
pub(super) fn outline(model: &FileModel, chunks: &[Chunk], is_shown: impl Fn(usize) -> bool, bytes: usize) -> String {
    let mut hidden: Vec<(usize, Vec<&Chunk>)> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate().filter(|(index, _)| !is_shown(*index)) {
        match hidden.last_mut() {
            Some((file, list)) if *file == chunk.file => list.push(chunk),
            _ => hidden.push((chunk.file, vec![&chunks[index]])),
        }
    }
    hidden.sort_by_key(|(file, _)| std::cmp::Reverse(model.files()[*file].touched));
    let mut text = String::new();
    for (file, list) in hidden {
        let Some(line) = outline_of(&model.files()[file], &list) else { continue };
        if text.len() + line.len() > bytes {
            break;
        }
        text.push_str(&line);
    }
    text
}

fn outline_of(file: &FileState, hidden: &[&Chunk]) -> Option<String> {
    let lines: usize = hidden.iter().map(|chunk| chunk.lines.len()).sum();
    if lines < LEAST_KNOWN_LINES || lines * 2 < file.known_lines() {
        return None;
    }
    let of_chunk = |chunk: &&Chunk| file.segments[chunk.segment].lines[chunk.lines.clone()].iter();
    let mut seen = HashSet::new();
    let names = hidden.iter().flat_map(of_chunk).filter_map(|line| defined(&line.text));
    let names: Vec<&str> = names.filter(|name| seen.insert(*name)).take(MAX_NAMES).collect();
    let mut line = format!("- `{}` ({lines} of {} known lines not shown)", one_line(&file.path), file.known_lines());
    for (index, name) in names.iter().enumerate() {
        if line.len() + name.len() > MAX_LINE_BYTES {
            break;
        }
        // Writing to a string cannot fail.
        let _ = write!(line, "{}{name}", if index == 0 { ": " } else { ", " });
    }
    line.push('\n');
    Some(line)
}
