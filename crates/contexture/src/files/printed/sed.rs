//! Scripts of `sed`: which lines they print, and what they do to a file in place.

use super::super::numbering::line_number;
use super::super::observation::LineChange;

/// The ranges of a `sed -n` script that only prints: `1,20p`, `5p`, `7,$p`, `1,5p;9,12p`.
///
/// Each is a first line and a count. They must rise, so that what is printed is in order.
pub(super) fn ranges(script: &str) -> Option<Vec<(usize, Option<usize>)>> {
    let mut ranges: Vec<(usize, Option<usize>)> = Vec::new();
    for part in script.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = sed_range(part)?;
        let rises = ranges.last().is_none_or(|(before, count)| count.is_some_and(|count| before + count <= first));
        if !rises {
            return None;
        }
        ranges.push((first, last.map(|last| last.saturating_sub(first) + 1)));
    }
    (!ranges.is_empty()).then_some(ranges)
}

fn sed_range(part: &str) -> Option<(usize, Option<usize>)> {
    let range = part.strip_suffix('p')?;
    let Some((first, last)) = range.split_once(',') else {
        let line = line_number(range.trim())?;
        return Some((line, Some(line)));
    };
    let first = line_number(first.trim())?;
    match last.trim() {
        "$" => Some((first, None)),
        last => match last.strip_prefix('+') {
            Some(more) => Some((first, Some(first + line_number(more)?))),
            None => Some((first, Some(line_number(last)?))),
        },
    }
}

/// What a script does to a file's lines, if it is plain: substitutions of plain text, deletions by number or by
/// plain text.
pub(super) fn line_changes(script: &str, extended: bool) -> Option<Vec<LineChange>> {
    let mut changes = Vec::new();
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let (change, behind) = line_change(rest, extended)?;
        changes.push(change);
        let behind = behind.trim_start_matches(' ');
        rest = match behind.chars().next() {
            None => "",
            Some(';' | '\n') => behind.trim_start_matches([' ', ';', '\n']),
            Some(_) => return None,
        };
    }
    (!changes.is_empty()).then_some(changes)
}

/// One command of a script and what stands behind it.
fn line_change(script: &str, extended: bool) -> Option<(LineChange, &str)> {
    if let Some(inner) = script.strip_prefix('/') {
        let (pattern, rest) = delimited(inner, '/')?;
        let behind = rest.strip_prefix('d')?;
        return Some((LineChange::DeleteMatching { text: plain_pattern(pattern, '/', extended)? }, behind));
    }
    let (lines, rest) = address(script)?;
    match (rest.chars().next()?, lines) {
        ('d', Some((first, last))) => Some((LineChange::Delete { first, last }, &rest[1..])),
        ('s', lines) => substitution(&rest[1..], lines, extended),
        _ => None,
    }
}

/// The lines that a command is limited to: `5`, `5,9`. Counting from the end is not plain.
fn address(script: &str) -> Option<(Option<(usize, usize)>, &str)> {
    let digits = script.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Some((None, script));
    }
    let first = line_number(&script[..digits]).filter(|first| *first > 0)?;
    let rest = &script[digits..];
    let Some(behind) = rest.strip_prefix(',') else { return Some((Some((first, first)), rest)) };
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    let last = line_number(&behind[..digits])?;
    Some((Some((first, last.max(first))), &behind[digits..]))
}

/// A substitution from its delimiter on.
fn substitution(rest: &str, lines: Option<(usize, usize)>, extended: bool) -> Option<(LineChange, &str)> {
    let delimiter = rest.chars().next().filter(|c| !c.is_alphanumeric() && *c != '\\' && *c != '\n')?;
    let (pattern, rest) = delimited(&rest[delimiter.len_utf8()..], delimiter)?;
    let (replacement, rest) = delimited(rest, delimiter)?;
    let (all, rest) = match rest.strip_prefix('g') {
        Some(behind) => (true, behind),
        None => (false, rest),
    };
    let old = plain_pattern(pattern, delimiter, extended)?;
    let new = plain_replacement(replacement, delimiter)?;
    Some((LineChange::Substitute { lines, old, new, all }, rest))
}

/// What stands before the next delimiter that is not escaped, and what stands behind it.
fn delimited(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (index, c) in text.char_indices() {
        if c == delimiter && !is_escaped {
            return Some((&text[..index], &text[index + c.len_utf8()..]));
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

/// The text that a pattern stands for, if it stands for one only.
fn plain_pattern(pattern: &str, delimiter: char, extended: bool) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped if escaped == delimiter || "./*[]^$\\".contains(escaped) => text.push(escaped),
                escaped if extended && "+?(){}|@".contains(escaped) => text.push(escaped),
                '"' => text.push('"'),
                _ => return None,
            },
            '.' | '*' | '[' | ']' | '^' | '$' | '\n' => return None,
            '+' | '?' | '(' | ')' | '{' | '}' | '|' | '@' if extended => return None,
            c => text.push(c),
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The text that a replacement stands for, if it does not depend on what it replaces.
fn plain_replacement(replacement: &str, delimiter: char) -> Option<String> {
    let mut text = String::with_capacity(replacement.len());
    let mut chars = replacement.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped if escaped == delimiter || "&\\/\"".contains(escaped) => text.push(escaped),
                _ => return None,
            },
            '&' | '\n' | '$' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}
