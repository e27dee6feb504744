//! Decides which lines of an output belong to which file, where the boundaries are certain.

use crate::commands::prints::{FilePart, PrintedLines, Prints};
use crate::found::observe_hits;
use crate::framing::{FRAYED, Framed, is_cut_mark};
use crate::numbering::{Passage, line_number, split_lines};
use crate::observation::Observation;
use crate::path::Directory;

/// One pipeline: what it printed and what it did.
pub(super) struct PipelineEffects {
    pub(super) prints: Prints,
    pub(super) is_proven: bool,
    /// Whether it is one command, so that what is proven of the pipeline is proven of the command that reads.
    pub(super) is_single: bool,
    /// The files that it looked at.
    pub(super) looked: Vec<String>,
    pub(super) changed: Vec<Observation>,
}

/// Lines of an output that belong together, and what is certain about their ends.
#[derive(Clone, Copy)]
struct OutputLines<'a> {
    lines: &'a [&'a str],
    /// Whether no line is missing before the first.
    from_start: bool,
    /// Whether no line is missing after the last, and the last one is complete.
    to_end: bool,
}

/// Returns what every pipeline changed and showed, in order.
pub(super) fn attribute(
    steps: Vec<PipelineEffects>,
    output: &Framed<'_>,
    programs: &[&str],
    is_failed: bool,
    directory: &Directory,
) -> Vec<Observation> {
    let lines: Vec<&str> = split_lines(&output.text).collect();
    let all = OutputLines { lines: &lines, from_start: output.is_exact, to_end: output.is_exact };
    let prints: Vec<Prints> = steps.iter().map(|step| step.prints.clone()).collect();
    let prints: Vec<&Prints> = prints.iter().collect();
    let is_unclear = is_failed || lines.iter().any(|line| is_complaint(line, programs));
    let cuts = if is_unclear { None } else { cut(&prints, all) };
    let mut observations = Vec::new();
    let mut looked: Vec<String> = Vec::new();
    let cuts = cuts.unwrap_or_else(|| steps.iter().map(|_| None).collect());
    for (step, cut) in steps.into_iter().zip(cuts) {
        observations.extend(step.changed);
        let told = cut.and_then(|lines| take(&step.prints, lines, step.is_proven && step.is_single, directory));
        match told {
            Some(told) => observations.extend(told),
            None => looked.extend(step.looked),
        }
    }
    observations.extend(super::printed(looked, &output.text));
    observations
}

/// How the names of shells begin in error messages.
const SHELLS: [&str; 9] =
    ["bash: ", "-bash: ", "/bin/bash: ", "/usr/bin/bash: ", "sh: ", "/bin/sh: ", "zsh:", "(eval):", "dash: "];

/// How error messages end, regardless of the program.
const COMPLAINTS: [&str; 8] = [
    ": No such file or directory",
    ": command not found",
    ": not found",
    ": Permission denied",
    ": Operation not permitted",
    ": Is a directory",
    ": Not a directory",
    ": File exists",
];

/// Whether a line is as likely an error message of a command as a line of a file.
fn is_complaint(line: &str, programs: &[&str]) -> bool {
    // A program names itself as it was called.
    let named = line.split_once(": ").map(|(name, _)| name.rsplit('/').next().unwrap_or(name));
    SHELLS.iter().any(|shell| line.starts_with(shell))
        || named.is_some_and(|name| programs.contains(&name))
        || COMPLAINTS.iter().any(|end| line.ends_with(end))
}

/// Returns the lines of each print, or `None` if it is unknown where one ends and the next begins: each printed at most
/// its count, so that each printed just that if their sum is reached.
fn cut<'a>(prints: &[&Prints], all: OutputLines<'a>) -> Option<Vec<Option<OutputLines<'a>>>> {
    let mut cuts = vec![None; prints.len()];
    let sources: Vec<usize> = (0..prints.len()).filter(|index| *prints[*index] != Prints::Nothing).collect();
    if let [only] = sources.as_slice() {
        cuts[*only] = Some(all);
        return Some(cuts);
    }
    let most: Vec<usize> = sources.iter().map(|source| most_lines(prints[*source])).collect::<Option<_>>()?;
    let is_cut = || all.lines.iter().any(|line| is_cut_mark(line));
    if most.iter().sum::<usize>() != all.lines.len() || !all.to_end || is_cut() {
        return None;
    }
    let mut start = 0;
    for (source, count) in sources.iter().zip(most) {
        let lines = &all.lines[start..start + count];
        cuts[*source] = Some(OutputLines { lines, from_start: true, to_end: true });
        start += count;
    }
    Some(cuts)
}

/// A line that begins with its number and a tab.
fn numbered_line(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.trim_start_matches(' ').split_once('\t')?;
    Some((line_number(number)?, text))
}

/// How many lines a print has at most.
fn most_lines(prints: &Prints) -> Option<usize> {
    match prints {
        Prints::Text(text) => text.ends_with('\n').then(|| text.lines().count()),
        Prints::File(PrintedLines { part: FilePart::Last(count), .. }) => Some(*count),
        Prints::File(PrintedLines { part: FilePart::Ranges(ranges), .. }) => {
            ranges.iter().map(|(_, count)| *count).sum()
        }
        _ => None,
    }
}

/// Returns what the lines of one print tell; `None` if it only looked at files.
fn take(prints: &Prints, lines: OutputLines<'_>, is_proven: bool, directory: &Directory) -> Option<Vec<Observation>> {
    match prints {
        Prints::File(shown) if shown.is_numbered => take_numbered(shown, lines),
        Prints::File(shown) => take_plain(shown, lines, is_proven),
        Prints::Hits(path) => {
            let end = lines.lines.len() - usize::from(!lines.to_end && !lines.lines.is_empty());
            Some(observe_hits(&lines.lines[..end], path.as_deref(), directory))
        }
        Prints::Nothing | Prints::Text(_) => Some(Vec::new()),
        Prints::Looked(_) | Prints::Unknown => None,
    }
}

fn read(path: &str, first: Option<usize>, lines: &[&str], whole: bool) -> Observation {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    Observation::Read { path: path.to_owned(), block: Passage { first, lines }, whole }
}

/// Takes lines that carry their numbers.
fn take_numbered(shown: &PrintedLines, lines: OutputLines<'_>) -> Option<Vec<Observation>> {
    let end = lines.lines.len() - usize::from(!lines.to_end && !lines.lines.is_empty());
    let numbered: Vec<(usize, &str)> =
        lines.lines[..end].iter().map(|line| numbered_line(line)).collect::<Option<_>>()?;
    let first = numbered.first()?.0;
    let runs: Vec<&[(usize, &str)]> = numbered.chunk_by(|one, next| next.0 == one.0 + 1).collect();
    let is_asked = match &shown.part {
        FilePart::Ranges(ranges) => {
            let begins = |run: &&[(usize, &str)]| ranges.iter().any(|(asked, _)| *asked == run[0].0);
            first == ranges.first()?.0 && runs.iter().all(begins) && runs.is_sorted_by_key(|run| run[0].0)
        }
        FilePart::Last(_) => runs.len() == 1,
    };
    if !is_asked {
        return None;
    }
    let whole = shown.part == FilePart::Ranges(vec![(1, None)]) && lines.to_end && runs.len() == 1;
    let told = |run: &&[(usize, &str)]| {
        let texts: Vec<&str> = run.iter().map(|(_, text)| *text).collect();
        read(&shown.path, Some(run[0].0), &texts, whole)
    };
    Some(runs.iter().map(told).collect())
}

/// Takes lines as they are in the file.
fn take_plain(shown: &PrintedLines, lines: OutputLines<'_>, is_proven: bool) -> Option<Vec<Observation>> {
    let count = lines.lines.len();
    let asked = most_lines(&Prints::File(shown.clone()));
    if asked.is_some_and(|asked| count > asked) {
        return None;
    }
    let FilePart::Ranges(ranges) = &shown.part else {
        let kept = count - usize::from(!lines.to_end && count > 0);
        if lines.lines.iter().any(|line| is_cut_mark(line)) {
            return None;
        }
        return (kept > 0).then(|| vec![read(&shown.path, None, &lines.lines[..kept], false)]);
    };
    if count == 0 {
        let is_empty = is_proven && ranges.as_slice() == [(1, None)] && lines.from_start && lines.to_end;
        return Some(if is_empty { vec![read(&shown.path, Some(1), &[], true)] } else { Vec::new() });
    }
    if let Some(at) = lines.lines.iter().position(|line| is_cut_mark(line)) {
        return take_cut(shown, ranges, lines, at);
    }
    let is_placed = lines.from_start || asked == Some(count);
    let is_whole = matches!(ranges.as_slice(), [(1, most)] if most.is_none_or(|most| count < most))
        && lines.from_start
        && lines.to_end;
    let kept = &lines.lines[..count - usize::from(!lines.to_end)];
    match ranges.as_slice() {
        [(first, _)] => Some(vec![read(&shown.path, Some(*first).filter(|_| is_placed), kept, is_whole)]),
        _ if !is_placed => None,
        ranges => {
            let mut observations = Vec::new();
            let mut rest = kept;
            for (first, most) in ranges {
                let (part, after) = rest.split_at(most.map_or(rest.len(), |most| most.min(rest.len())));
                if !part.is_empty() {
                    observations.push(read(&shown.path, Some(*first), part, false));
                }
                rest = after;
            }
            Some(observations)
        }
    }
}

/// Takes lines of which the harness left out some in the middle.
fn take_cut(
    shown: &PrintedLines,
    ranges: &[(usize, Option<usize>)],
    lines: OutputLines<'_>,
    at: usize,
) -> Option<Vec<Observation>> {
    let [(first, _)] = ranges else { return None };
    let before = &lines.lines[..at.saturating_sub(FRAYED)];
    let marks = lines.lines.iter().rposition(|line| is_cut_mark(line)).unwrap_or(at);
    let after = lines.lines.get(marks + 1 + FRAYED..).unwrap_or_default();
    let after = &after[..after.len() - usize::from(!lines.to_end && !after.is_empty())];
    let parts = [(Some(*first).filter(|_| lines.from_start), before), (None, after)];
    let read = |(first, part): (Option<usize>, &[&str])| read(&shown.path, first, part, false);
    Some(parts.into_iter().filter(|(_, part)| !part.is_empty()).map(read).collect())
}
