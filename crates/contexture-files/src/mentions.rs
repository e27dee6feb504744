//! Places in files that the output of compilers, linters and tests names.

use super::numbering::{line_number, split_lines};
use super::observation::Observation;
use super::path::join;

/// Most places taken from one output. A long list of complaints names the same files many times.
pub const MAX_MENTIONS: usize = 200;

/// Longest line that is examined, in bytes. Longer lines were not written for people.
const MAX_LINE_BYTES: usize = 1_000;

/// Words that make a path without a line number worth noting: test runners list files like this.
const VERDICTS: [&str; 5] = ["FAIL", "FAILED", "ERROR", "✗", "❯"];

/// A place that an output names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The path as written.
    pub path: &'a str,
    /// The line, if one is named.
    pub line: Option<usize>,
}

/// Returns the places that an output names, in order, without consecutive repeats.
///
/// ```
/// use contexture_files::mentions::{Place, places};
/// let output = "error[E0425]: not found\n  --> src/a.rs:12:5\nFile \"x.py\", line 7, in <module>\n";
/// let expected = [Place { path: "src/a.rs", line: Some(12) }, Place { path: "x.py", line: Some(7) }];
/// assert_eq!(places(output), expected);
/// ```
pub fn places(output: &str) -> Vec<Place<'_>> {
    let mut found: Vec<Place<'_>> = Vec::new();
    for line in split_lines(output).filter(|line| line.len() <= MAX_LINE_BYTES && line.contains('.')) {
        for place in places_of_line(line) {
            if found.last() != Some(&place) {
                found.push(place);
            }
        }
        if found.len() >= MAX_MENTIONS {
            found.truncate(MAX_MENTIONS);
            break;
        }
    }
    found
}

/// Returns the places that an output names, as observations. A bare name is relative to the directory. Longer paths are
/// as often relative to the project, so the model finds them by their ends.
pub(crate) fn observe_mentions(output: &str, directory: Option<&str>) -> Vec<Observation> {
    let mentioned = |place: Place<'_>| {
        let path = match directory {
            Some(directory) if !place.path.contains('/') => join(directory, place.path),
            _ => place.path.to_owned(),
        };
        Observation::Mentioned { path, line: place.line }
    };
    places(output).into_iter().map(mentioned).collect()
}

/// The places that a line of output names.
fn places_of_line(line: &str) -> impl Iterator<Item = Place<'_>> {
    let is_verdict = line.split_whitespace().next().is_some_and(|word| VERDICTS.contains(&word));
    words_with_rest(line).filter(|(word, _)| word.contains('.')).filter_map(move |(word, rest)| {
        let (path, tail) = split_path(word)?;
        let number = if tail.is_empty() { number_behind(rest) } else { leading_number(tail) };
        (number.is_some() || is_verdict).then_some(Place { path, line: number.filter(|line| *line > 0) })
    })
}

/// Returns the words of a line, each with the rest of the line after it.
fn words_with_rest(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_break = |c: char| c.is_whitespace() || "()[]{}<>\"'`,;|=".contains(c);
    let mut left = line;
    std::iter::from_fn(move || {
        left = left.trim_start_matches(is_break);
        let (word, rest) = left.split_at(left.find(is_break).unwrap_or(left.len()));
        left = rest;
        (!word.is_empty()).then_some((word, rest))
    })
}

/// Splits a word into a path and what follows its first colon: `src/a.rs` and `12:5`.
fn split_path(word: &str) -> Option<(&str, &str)> {
    let word = word.strip_prefix("file://").unwrap_or(word);
    // The colon after a drive letter does not precede a line number.
    let from = if word.as_bytes().get(1) == Some(&b':') { 2 } else { 0 };
    let end = word[from..].find(':').map_or(word.len(), |at| from + at);
    let (path, tail) = (&word[..end], word.get(end + 1..).unwrap_or_default());
    let path = path.trim_end_matches('.');
    looks_like_file(path).then_some((path, tail))
}

/// What may separate a path from its line number, besides a colon.
const LEADS: [&str; 4] = ["(", ", line ", " on line ", " line "];

/// Returns the line number in `(12,5)` or `", line 12` after a path.
fn number_behind(rest: &str) -> Option<usize> {
    let rest = rest.trim_start_matches(['"', '\'', '`']);
    leading_number(LEADS.iter().find_map(|lead| rest.strip_prefix(lead))?)
}

pub(super) fn leading_number(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    line_number(&text[..digits])
}

/// Whether a word names a file: its last part has an extension.
pub(crate) fn looks_like_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        !extension.is_empty() && extension.len() <= 8 && extension.chars().all(|c| c.is_ascii_alphanumeric())
    })
}
