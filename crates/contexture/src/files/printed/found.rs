//! Single lines of files in what commands printed: hits of searches, diffs, annotated lines.

use super::super::mentions::looks_like_file;
use super::super::numbering::{Passage, line_number, split_lines};
use super::super::observation::Observation;
use super::super::patch::{FilePatch, parse_unified};
use super::Version;
use super::attribute::is_cut_mark;

/// Lines that a search found: `path:12:text`, or `12:text` for one file.
pub(crate) fn observe_search(output: &str, only: Option<&str>) -> Vec<Observation> {
    let mut found: Vec<(String, Vec<Passage>)> = Vec::new();
    for line in split_lines(output).filter(|line| !is_cut_mark(line)) {
        let Some((path, number, text)) = search_line(line, only) else { continue };
        if found.last().is_none_or(|(last, _)| *last != path) {
            found.push((path, Vec::new()));
        }
        push_line(&mut found.last_mut().expect("one was just pushed").1, number, text);
    }
    found.into_iter().map(|(path, blocks)| Observation::Found { path, blocks }).collect()
}

fn search_line<'a>(line: &'a str, only: Option<&str>) -> Option<(String, usize, &'a str)> {
    if let Some(path) = only
        && let Some((number, text)) = split_location(line)
    {
        return Some((path.to_owned(), number, text));
    }
    let end = line.find(':')?;
    let (path, rest) = (&line[..end], &line[end + 1..]);
    let (number, text) = split_location(rest)?;
    looks_like_file(path).then(|| (path.to_owned(), number, text))
}

fn split_location(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].strip_prefix([':', '-'])?;
    Some((line_number(&text[..digits])?, rest))
}

/// The new sides of a printed diff: lines of the files as they are now if the diff is against the working tree.
pub(super) fn observe_diff(output: &str, version: Version) -> Vec<Observation> {
    let update = |patch: FilePatch| match patch {
        FilePatch::Update { path, hunks, .. } => {
            Some((path, hunks.into_iter().map(|hunk| Passage { first: hunk.first, lines: hunk.new }).collect()))
        }
        _ => None,
    };
    parse_unified(output).into_iter().filter_map(update).map(|(path, blocks)| shown(path, blocks, version)).collect()
}

/// Lines of a file that `git blame` printed.
pub(super) fn observe_blame(lines: &[&str], path: &str, version: Version) -> Vec<Observation> {
    let mut blocks: Vec<Passage> = Vec::new();
    for (number, text) in lines.iter().filter_map(|line| blamed_line(line)) {
        push_line(&mut blocks, number, text);
    }
    if blocks.is_empty() { Vec::new() } else { vec![shown(path.to_owned(), blocks, version)] }
}

/// The number and the text of `1a2b3c4d (Ada 2024-05-01 10:00:00 +0200 12) text`.
fn blamed_line(line: &str) -> Option<(usize, &str)> {
    let opened = line.find('(')?;
    let closed = opened + line[opened..].find(')')?;
    let number = line_number(line[opened..closed].rsplit(' ').next()?)?;
    let text = &line[closed + 1..];
    Some((number, text.strip_prefix(' ').unwrap_or(text)))
}

/// Lines of a version as an observation.
fn shown(path: String, blocks: Vec<Passage>, version: Version) -> Observation {
    match version {
        Version::Current => Observation::Found { path, blocks },
        Version::Other => Observation::Old { path, blocks },
    }
}

/// Adds a line to the last block if it follows it.
fn push_line(blocks: &mut Vec<Passage>, number: usize, text: &str) {
    match blocks.last_mut() {
        Some(block) if block.first.is_some_and(|first| first + block.lines.len() == number) => {
            block.lines.push(text.to_owned());
        }
        _ => blocks.push(Passage { first: Some(number), lines: vec![text.to_owned()] }),
    }
}
