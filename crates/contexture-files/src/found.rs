//! Single lines of files in the output of searches.

use super::framing::{FRAYED, is_cut_mark};
use super::mentions::looks_like_file;
use super::numbering::{Passage, line_number};
use super::observation::Observation;
use super::path::Directory;

/// Lines that a search found: `path:12:text`, or `12:text` for one file.
pub(crate) fn observe_hits(lines: &[&str], only: Option<&str>, directory: &Directory) -> Vec<Observation> {
    let mut found: Vec<(String, Vec<Passage>)> = Vec::new();
    // A file name may contain line feeds, so what follows a line that is not a hit may be the rest of a name.
    let mut is_clear = true;
    for (index, line) in lines.iter().enumerate() {
        let was_clear = std::mem::replace(&mut is_clear, has_location(line) || *line == "--");
        // Lines next to those that were left out may be incomplete.
        let around = index.saturating_sub(FRAYED)..(index + FRAYED + 1).min(lines.len());
        if lines[around].iter().any(|line| is_cut_mark(line)) || !(was_clear || only.is_some()) {
            continue;
        }
        let Some((path, number, text)) = hit(line, only, directory) else { continue };
        if found.last().is_none_or(|(last, _)| *last != path) {
            found.push((path, Vec::new()));
        }
        push_line(&mut found.last_mut().expect("one was just pushed").1, number, text);
    }
    found.into_iter().map(|(path, blocks)| Observation::Found { path, blocks }).collect()
}

fn hit<'a>(line: &'a str, only: Option<&str>, directory: &Directory) -> Option<(String, usize, &'a str)> {
    if let Some(path) = only {
        let (number, text) = split_location(line, &[':', '-'])?;
        return Some((path.to_owned(), number, text));
    }
    // The colon of a drive does not end a path.
    let from = if super::path::on_drive(line).is_some() { 2 } else { 0 };
    let end = from + line[from..].find(':')?;
    let (number, text) = split_location(&line[end + 1..], &[':'])?;
    // A line around a hit has its own number between dashes, and may continue with anything.
    if has_dashed_number(&line[from..end]) {
        return None;
    }
    // The name itself may have a number between colons, and then the number of the line follows later.
    if has_inner_location(&line[end + 1..]) {
        return None;
    }
    let path = directory.place(&line[..end])?;
    looks_like_file(&path).then_some((path, number, text))
}

/// Whether a line has a number between colons, or between dashes.
fn has_location(line: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    line.split(':').skip(1).any(is_number) || has_dashed_number(line)
}

/// Whether a text has another number between colons or dashes after its first part.
fn has_inner_location(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').skip(1).collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.split_last().is_some_and(|(_, inner)| inner.iter().any(is_number)) || has_dashed_number(text)
}

/// Whether a text has a number between dashes.
fn has_dashed_number(text: &str) -> bool {
    let mut parts = text.split('-');
    let has_first = parts.next().is_some();
    let inner: Vec<&str> = parts.collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    has_first && inner.len() > 1 && inner[..inner.len() - 1].iter().any(is_number)
}

fn split_location<'a>(text: &'a str, ends: &[char]) -> Option<(usize, &'a str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].strip_prefix(ends)?;
    Some((line_number(&text[..digits]).filter(|number| *number > 0)?, rest))
}

/// Adds a line to the last passage if it directly follows it, or begins a new passage.
fn push_line(blocks: &mut Vec<Passage>, number: usize, text: &str) {
    match blocks.last_mut() {
        Some(block) if block.first.is_some_and(|first| first + block.lines.len() == number) => {
            block.lines.push(text.to_owned());
        }
        _ => blocks.push(Passage { first: Some(number), lines: vec![text.to_owned()] }),
    }
}
