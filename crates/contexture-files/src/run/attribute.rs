//! Decides which lines of an output belong to which file, where the boundaries are certain.

use crate::commands::prints::{FilePart, PrintedLines, Prints};
use crate::commands::sed::Ranges;
use crate::found::{observe_hits, observe_old_diff};
use crate::framing::{FRAYED, Framed, is_cut_mark};
use crate::numbering::{Passage, line_number, split_lines};
use crate::observation::Observation;
use crate::path::Directory;

/// One pipeline: what it printed and what it did.
pub(super) struct PipelineEffects {
    pub(super) prints: Prints,
    pub(super) is_proven: bool,
    /// Whether it certainly ran.
    pub(super) is_run: bool,
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
    // A text that may not have been printed cannot serve as a mark.
    let is_marked = steps.iter().all(|step| step.is_run || !matches!(step.prints, Prints::Text(_)));
    // A file that is changed between two prints may have another length.
    let is_still = steps.iter().all(|step| step.changed.is_empty());
    let cuts = if is_unclear || !is_marked { None } else { cut(&prints, all, is_still) };
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
    observations.extend(super::compared(looked, &output.text));
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

/// Returns the lines of each print, or `None` if it is unknown where one ends and the next begins.
fn cut<'a>(prints: &[&Prints], all: OutputLines<'a>, is_still: bool) -> Option<Vec<Option<OutputLines<'a>>>> {
    let mut cuts = vec![None; prints.len()];
    let sources: Vec<usize> = (0..prints.len()).filter(|index| *prints[*index] != Prints::Nothing).collect();
    if let [only] = sources.as_slice() {
        cuts[*only] = Some(all);
        return Some(cuts);
    }
    // Something unknown between the others may print anything.
    if sources.iter().any(|index| matches!(prints[*index], Prints::Unknown | Prints::Looked(_))) {
        return None;
    }
    if all.lines.iter().any(|line| is_cut_mark(line)) {
        return None;
    }
    let marks = marks(prints, &sources, all.lines)?;
    let (mut start, mut next) = (0, 0);
    for mark in marks.into_iter().chain([(sources.len(), all.lines.len())]) {
        let (source, line) = mark;
        let lines = OutputLines {
            lines: all.lines.get(start..line)?,
            from_start: start > 0 || all.from_start,
            to_end: line < all.lines.len() || all.to_end,
        };
        share(prints, &sources[next..source], lines, is_still, &mut cuts)?;
        (start, next) = (line + 1, source + 1);
    }
    Some(cuts)
}

/// Finds the known texts between other prints: the place among the sources, and the line. Each text must be one line
/// that no other line of the output can be mistaken for.
fn marks(prints: &[&Prints], sources: &[usize], lines: &[&str]) -> Option<Vec<(usize, usize)>> {
    let text_of = |source: &usize| match prints[*source] {
        Prints::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let texts: Vec<(usize, &str)> =
        sources.iter().enumerate().filter_map(|(place, source)| Some((place, text_of(source)?))).collect();
    let mut marks = Vec::new();
    let mut from = 0;
    for (place, text) in &texts {
        let mark = text.strip_suffix('\n').filter(|mark| !mark.contains('\n') && !mark.trim().is_empty())?;
        // If a file's last line has no line feed, this text is appended to that line.
        let expected = texts.iter().filter(|(_, other)| other.trim_end_matches('\n').ends_with(mark)).count();
        let found = lines.iter().filter(|line| line.ends_with(mark)).count();
        let line = from + lines[from..].iter().position(|line| *line == mark)?;
        if found != expected {
            return None;
        }
        marks.push((*place, line));
        from = line + 1;
    }
    Some(marks)
}

/// Divides the lines between two marks among the prints: all to a single one, or by counts that allow only one
/// division.
fn share<'a>(
    prints: &[&Prints],
    sources: &[usize],
    lines: OutputLines<'a>,
    is_still: bool,
    cuts: &mut [Option<OutputLines<'a>>],
) -> Option<()> {
    match sources {
        [] => return lines.lines.is_empty().then_some(()),
        [only] => {
            cuts[*only] = Some(lines);
            return Some(());
        }
        _ => {}
    }
    if let Some(parts) = by_numbers(prints, sources, lines.lines) {
        let last = parts.len() - 1;
        for (index, (source, part)) in sources.iter().zip(parts).enumerate() {
            let to_end = index < last || lines.to_end;
            cuts[*source] = Some(OutputLines { lines: part, from_start: true, to_end });
        }
        return Some(());
    }
    // Each printed at most its count. If the sum is reached, each printed exactly its count.
    let most: Option<Vec<usize>> = sources.iter().map(|source| most_lines(prints[*source])).collect();
    let most = most.filter(|counts| counts.iter().sum::<usize>() == lines.lines.len() && lines.to_end);
    let by_length = || {
        let is_complete = is_still && lines.from_start && lines.to_end;
        is_complete.then(|| by_length(prints, sources, lines.lines.len())).flatten()
    };
    let counts = most.or_else(by_length)?;
    let mut start = 0;
    for (source, count) in sources.iter().zip(counts) {
        let part = &lines.lines[start..start + count];
        cuts[*source] = Some(OutputLines { lines: part, from_start: true, to_end: true });
        start += count;
    }
    Some(())
}

/// Divides the lines of prints in which every line carries its number. Each print is one run of numbers that begins
/// where it was asked to. If there are as many runs as prints, each print has its own run, since runs can only be
/// joined or be missing.
fn by_numbers<'a>(prints: &[&Prints], sources: &[usize], lines: &'a [&'a str]) -> Option<Vec<&'a [&'a str]>> {
    let asked = |source: &usize| match prints[*source] {
        Prints::File(PrintedLines { part: FilePart::Ranges(ranges), is_numbered: true, .. }) => match ranges.as_slice()
        {
            [range] => Some(*range),
            _ => None,
        },
        _ => None,
    };
    let asked: Vec<(usize, Option<usize>)> = sources.iter().map(asked).collect::<Option<_>>()?;
    let numbers: Vec<usize> = lines.iter().map(|line| Some(numbered_line(line)?.0)).collect::<Option<_>>()?;
    let mut parts = Vec::with_capacity(asked.len());
    let mut start = 0;
    for (index, (first, most)) in asked.iter().enumerate() {
        let follows = numbers[start..].iter().enumerate().take_while(|(place, number)| **number == first + place);
        let count = follows.take(most.unwrap_or(usize::MAX)).count();
        // If a later print could begin within this run, it is unknown where this one ends.
        let run = first + 1..first + count;
        if count == 0 || asked[index + 1..].iter().any(|(later, _)| run.contains(later)) {
            return None;
        }
        parts.push(&lines[start..start + count]);
        start += count;
    }
    (start == lines.len()).then_some(parts)
}

/// Most lengths of a file that are tried.
const MAX_LENGTH: usize = 10_000;

/// Returns how many lines each of some prints of one file has, if only one length of the file explains their total.
fn by_length(prints: &[&Prints], sources: &[usize], count: usize) -> Option<Vec<usize>> {
    let of = |source: &usize| match prints[*source] {
        Prints::File(PrintedLines { path, part: FilePart::Ranges(ranges), is_numbered: false, .. }) => {
            Some((path, ranges))
        }
        _ => None,
    };
    let asked: Vec<(&String, &Ranges)> = sources.iter().map(of).collect::<Option<_>>()?;
    let end = |(first, most): &(usize, Option<usize>)| first.saturating_add(most.unwrap_or(count));
    let longest = asked.iter().flat_map(|(_, ranges)| ranges.iter().map(end)).max()?;
    if asked.iter().any(|(path, _)| *path != asked[0].0) || longest > MAX_LENGTH {
        return None;
    }
    let mut found: Option<Vec<usize>> = None;
    for length in 0..=longest {
        let printed = |(first, most): &(usize, Option<usize>)| {
            (length + 1).saturating_sub(*first).min(most.unwrap_or(usize::MAX))
        };
        let counts: Vec<usize> = asked.iter().map(|(_, ranges)| ranges.iter().map(printed).sum::<usize>()).collect();
        // If the file's last line has no line feed, what is printed next is joined to it.
        let shows_last =
            |(first, most): &(usize, Option<usize>)| length >= *first && most.is_none_or(|most| length < first + most);
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or_default();
        let joined = asked[..last].iter().filter(|(_, ranges)| ranges.iter().any(shows_last)).count();
        let sum: usize = counts.iter().sum();
        if joined > 0 && sum == count + joined {
            return None;
        }
        if sum == count && found.replace(counts.clone()).is_some_and(|before| before != counts) {
            return None;
        }
    }
    found
}

/// A line that begins with its number and a tab.
fn numbered_line(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.trim_start_matches(' ').split_once('\t')?;
    Some((line_number(number)?, text))
}

/// How many lines a print has at most.
fn most_lines(prints: &Prints) -> Option<usize> {
    match prints {
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
        Prints::Diff => Some(observe_old_diff(&lines.lines.join("\n"), directory)),
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
