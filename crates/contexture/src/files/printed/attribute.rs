//! Which part of an output each pipeline printed.

use std::ops::Range;

use super::super::mentions::looks_like_file;
use super::super::numbering::{Passage, line_number, numbered, split_lines};
use super::super::observation::Observation;
use super::found::{observe_blame, observe_diff, observe_search};
use super::{Headed, Printed, Prints, join};

/// Gives each print its part of the output: what every one of them tells, in their order.
pub(super) fn attribute<'a>(all: impl Iterator<Item = &'a Prints>, output: &str) -> Vec<Vec<Observation>> {
    let all: Vec<&Prints> = all.collect();
    let mut told: Vec<Vec<Observation>> = all.iter().map(|_| Vec::new()).collect();
    let places: Vec<usize> = (0..all.len()).filter(|index| *all[*index] != Prints::Nothing).collect();
    let lines: Vec<&str> = split_lines(output).collect();
    if lines.is_empty() {
        return told;
    }
    let prints: Vec<&Prints> = places.iter().map(|place| all[*place]).collect();
    let groups = groups(&prints, &lines).unwrap_or_else(|| vec![(0..prints.len(), 0..lines.len())]);
    for (group, range) in groups {
        attribute_group(&prints[group.clone()], &lines[range], &mut told, &places[group]);
    }
    told
}

/// Prints and lines between known lines of text, such as `echo ---` prints; `None` if one of these is missing.
fn groups(prints: &[&Prints], lines: &[&str]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let mut groups = Vec::new();
    let (mut first_print, mut first_line) = (0, 0);
    for (index, print) in prints.iter().enumerate() {
        let Prints::Text(text) = print else { continue };
        let mark = text.split('\n').next().unwrap_or_default().trim();
        let found = first_line + lines[first_line..].iter().position(|line| line.trim() == mark)?;
        groups.push((first_print..index, first_line..found));
        (first_print, first_line) = (index + 1, (found + text.split('\n').count()).min(lines.len()));
    }
    groups.push((first_print..prints.len(), first_line..lines.len()));
    Some(groups)
}

/// Gives the prints of a group their parts of its lines.
fn attribute_group(prints: &[&Prints], lines: &[&str], told: &mut [Vec<Observation>], places: &[usize]) {
    let (Some(last), false) = (places.last(), lines.is_empty()) else { return };
    if let [only] = prints {
        told[*last] = take(only, lines);
        return;
    }
    let Some(ends) = boundaries(prints, lines) else {
        told[*last].extend(together(prints, lines));
        return;
    };
    let mut start = 0;
    for ((prints, place), end) in prints.iter().zip(places).zip(ends) {
        told[*place] = take(prints, &lines[start..end]);
        start = end;
    }
}

/// Where each print's lines end, if that can be said without a guess.
fn boundaries(prints: &[&Prints], lines: &[&str]) -> Option<Vec<usize>> {
    let mut ends = Vec::with_capacity(prints.len());
    let mut at = 0;
    for (index, print) in prints.iter().enumerate() {
        let end = match (print, prints.get(index + 1)) {
            (_, None) => lines.len(),
            // A file with a line prints its first.
            (Prints::File(Printed { first: Some(1), count: Some(1), .. }), Some(_)) => at + 1,
            // The same file further down: it only prints if the first range is complete.
            (Prints::File(before), Some(Prints::File(behind)))
                if before.path == behind.path
                    && before.more.is_empty()
                    && before.first < behind.first
                    && before.count.is_some_and(|count| lines.len() - at > count) =>
            {
                at + before.count.unwrap_or(0)
            }
            (Prints::File(Printed { numbered: true, .. }), Some(Prints::File(Printed { numbered: true, .. }))) => {
                at + numbered_run(lines.get(at..)?)?
            }
            (Prints::File(Printed { count: Some(count), .. }), Some(_))
                if counts_fill(&prints[index..], lines.len() - at) =>
            {
                at + count
            }
            _ => return None,
        };
        if end > lines.len() {
            return None;
        }
        ends.push(end);
        at = end;
    }
    Some(ends)
}

/// Whether the lines that are left are exactly those that the rest of the commands ask for.
fn counts_fill(prints: &[&Prints], left: usize) -> bool {
    let counts: Option<usize> = prints
        .iter()
        .map(|print| match print {
            Prints::File(Printed { count, .. }) => *count,
            _ => None,
        })
        .sum();
    counts == Some(left)
}

/// How many lines from the start carry numbers that rise one by one, if others follow.
fn numbered_run(lines: &[&str]) -> Option<usize> {
    let number = |line: &&str| -> Option<usize> { line_number(line.trim_start().split_once('\t')?.0) };
    let first = number(lines.first()?)?;
    (1..lines.len()).find(|index| number(&lines[*index]) != Some(first + index))
}

/// Lines of several files that nobody can tell apart.
fn together(prints: &[&Prints], lines: &[&str]) -> Option<Observation> {
    let files = |print: &&Prints| match print {
        Prints::File(printed) => vec![printed.path.clone()],
        Prints::Files(paths) => paths.clone(),
        _ => Vec::new(),
    };
    let paths: Vec<String> = prints.iter().flat_map(files).collect();
    (!paths.is_empty()).then(|| Observation::ReadTogether { paths, block: block_of(None, lines) })
}

fn block_of(first: Option<usize>, lines: &[&str]) -> Passage {
    Passage { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
}

/// What the lines of one print tell.
fn take(prints: &Prints, lines: &[&str]) -> Vec<Observation> {
    match prints {
        Prints::File(printed) => take_file(printed, lines),
        Prints::Files(_) => together(&[prints], lines).into_iter().collect(),
        Prints::Headed(headed) => take_headed(headed, lines),
        Prints::Matches(path) => observe_search(&lines.join("\n"), path.as_deref()),
        Prints::Diff(version) => observe_diff(&lines.join("\n"), *version),
        Prints::Blame(path, version) => observe_blame(lines, path, *version),
        Prints::Nothing | Prints::Text(_) | Prints::Anything => Vec::new(),
    }
}

/// Lines of files, each behind a line that names it.
fn take_headed(headed: &Headed, lines: &[&str]) -> Vec<Observation> {
    let named = |line: &&str| -> Option<String> {
        let name = line.strip_prefix(headed.prefix.as_str())?.strip_suffix(headed.suffix.as_str())?.trim();
        (looks_like_file(name) || name.contains('/')).then(|| join(headed.directory.as_deref(), name))
    };
    let heads: Vec<(usize, String)> =
        lines.iter().enumerate().filter_map(|(index, line)| Some((index, named(line)?))).collect();
    let ends = heads.iter().skip(1).map(|(index, _)| *index).chain([lines.len()]);
    let mut observations = Vec::new();
    for ((start, path), end) in heads.iter().zip(ends) {
        let mut body = &lines[start + 1..end];
        // `head` and `tail` put a blank line before every name but the first.
        if let ([rest @ .., ""], true) = (body, end < lines.len()) {
            body = rest;
        }
        if !body.is_empty() {
            observations.extend(take_file(&Printed { path: path.clone(), ..headed.each.clone() }, body));
        }
    }
    observations
}

/// Lines of one file.
fn take_file(printed: &Printed, lines: &[&str]) -> Vec<Observation> {
    if let [only] = lines
        && is_complaint(only)
    {
        return Vec::new();
    }
    let read = |(block, whole)| Observation::Read { path: printed.path.clone(), block, whole };
    blocks_of(printed, lines).into_iter().map(read).collect()
}

/// Whether the only line printed is as likely a complaint of the command as a file's text.
fn is_complaint(line: &str) -> bool {
    line.trim().is_empty()
        || ["No such file", "Permission denied", "Is a directory"].iter().any(|text| line.contains(text))
}

/// The runs of lines that were printed of a file, each with whether it is the whole file.
fn blocks_of(printed: &Printed, lines: &[&str]) -> Vec<(Passage, bool)> {
    if printed.numbered
        && let Some(blocks) = numbered(&lines.join("\n"))
    {
        return blocks.into_iter().map(|block| (block, false)).collect();
    }
    if !printed.more.is_empty() {
        return ranges_of(printed, lines);
    }
    let whole = printed.first == Some(1) && printed.count.is_none();
    let parts: Vec<&[&str]> = lines.split(|line| is_cut_mark(line)).collect();
    let is_cut = parts.len() > 1;
    let first = |index: usize| printed.first.filter(|_| index == 0);
    let parts = parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(index, part)| (block_of(first(index), part), whole && !is_cut)).collect()
}

/// The runs of a print of several ranges. A later range only prints if the file reaches it, so all but the last
/// that prints are complete.
fn ranges_of(printed: &Printed, lines: &[&str]) -> Vec<(Passage, bool)> {
    let more = printed.more.iter().map(|(first, count)| (Some(*first), *count));
    let mut blocks = Vec::new();
    let mut rest = lines;
    for (first, count) in [(printed.first, printed.count)].into_iter().chain(more) {
        let (part, behind) = rest.split_at(count.unwrap_or(rest.len()).min(rest.len()));
        if part.is_empty() {
            break;
        }
        blocks.push((block_of(first, part), false));
        rest = behind;
    }
    blocks
}

/// Whether a line says that the harness left out lines here. Some cut within lines, and then the two pieces of the
/// line are worth nothing.
pub(super) fn is_cut_mark(line: &str) -> bool {
    let line = line.trim();
    let is_whole = line.len() < 120
        && line.contains("truncated")
        && (line.contains('…') || line.contains("...") || line.starts_with('['));
    is_whole || line.contains(" truncated…")
}
