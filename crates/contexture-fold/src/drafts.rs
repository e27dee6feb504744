//! Drafts: what the agent wanted to write and what is in no file, because the call failed or was refused.
//!
//! A person who refuses an edit speaks of its text next ("shorter, please"), and an edit that failed is made again. The
//! text is nowhere else: no file has it, and the dialogue has only the words around the call.

use contexture_files::argument_names::names;
use contexture_files::observation::{Kind, Seen};
use serde_json::Value;

/// Longest draft, in bytes. Chosen: an edit of eighty lines.
const MAX_DRAFT_BYTES: usize = 4_000;

/// How each line of a draft begins, so that none can be taken for a record.
const LINE_MARK: &str = "| ";

/// Of a longer draft, one part in this many is its end and the rest is its start.
const END_PART: usize = 3;

/// What a call would have written, in marked lines; empty if it was carried out or has no text.
pub(super) fn draft(seen: &Seen, arguments: &Value) -> String {
    if !seen.failed || !matches!(seen.kind, Kind::Edit | Kind::Write) {
        return String::new();
    }
    let mut lines = Vec::new();
    collect(arguments, &mut lines);
    cut(&lines).iter().map(|line| format!("{LINE_MARK}{line}\n")).collect()
}

/// The lines that arguments would write, in their order.
fn collect(arguments: &Value, lines: &mut Vec<String>) {
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let name = name.as_str();
        let is_text =
            [names().replacement(), names().content(), names().insert()].iter().any(|names| names.contains(&name));
        match value {
            Value::String(text) if is_text => lines.extend(text.lines().map(visible)),
            Value::String(patch) if names().patch().contains(&name) => {
                let added = patch.lines().filter(|line| !line.starts_with("+++"));
                lines.extend(added.filter_map(|line| line.strip_prefix('+')).map(visible));
            }
            Value::Array(edits) if names().edits().contains(&name) => {
                edits.iter().for_each(|edit| collect(edit, lines))
            }
            _ => {}
        }
    }
}

/// A line without anything that ends it or turns it around.
fn visible(line: &str) -> String {
    let breaks = |c: char| {
        (c.is_control() && c != '\t') || matches!(c, '\u{85}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    line.trim_end().replace(breaks, " ")
}

/// The lines of a draft that fit: the start and the end, with a note of what is between them.
fn cut(lines: &[String]) -> Vec<String> {
    let size = |line: &String| line.len() + LINE_MARK.len() + 1;
    let all: usize = lines.iter().map(size).sum();
    if all <= MAX_DRAFT_BYTES {
        return lines.to_vec();
    }
    let end = fitting(lines.iter().rev().map(size), MAX_DRAFT_BYTES / END_PART);
    let start = fitting(lines.iter().map(size), MAX_DRAFT_BYTES - MAX_DRAFT_BYTES / END_PART).min(lines.len() - end);
    let left_out = lines.len() - start - end;
    let note = format!("[… {left_out} lines left out …]");
    let kept = lines[..start].iter().cloned();
    kept.chain([note]).chain(lines[lines.len() - end..].iter().cloned()).collect()
}

/// How many of some sizes fit.
fn fitting(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut used = 0;
    sizes
        .take_while(|size| {
            used += size;
            used <= room
        })
        .count()
}
