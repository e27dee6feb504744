//! Which lines of an output are lines of which file, where the cuts are certain.

use crate::files::commands::prints::{Part, Prints, Shown};
use crate::files::found::{observe_hits, observe_old_diff};
use crate::files::framing::{FRAYED, Framed, is_cut_mark};
use crate::files::numbering::{Passage, line_number, split_lines};
use crate::files::observation::Observation;
use crate::files::path::Directory;

/// One pipeline: what it printed and what it did.
pub(super) struct Step {
    pub(super) prints: Prints,
    pub(super) is_proven: bool,
    /// Whether it certainly ran.
    pub(super) is_run: bool,
    /// The files that it looked at.
    pub(super) looked: Vec<String>,
    pub(super) changed: Vec<Observation>,
}

/// Lines of an output that belong together, and what is certain about their ends.
#[derive(Clone, Copy)]
struct Lines<'a> {
    lines: &'a [&'a str],
    /// Whether no line is missing before the first.
    from_start: bool,
    /// Whether no line is missing after the last, and the last one is complete.
    to_end: bool,
}

/// What every pipeline changed and showed, in order.
pub(super) fn attribute(
    steps: Vec<Step>,
    output: &Framed<'_>,
    programs: &[&str],
    is_failed: bool,
    directory: &Directory,
) -> Vec<Observation> {
    let lines: Vec<&str> = split_lines(&output.text).collect();
    let all = Lines { lines: &lines, from_start: output.is_exact, to_end: output.is_exact };
    let prints: Vec<Prints> = steps.iter().map(|step| step.prints.clone()).collect();
    let prints: Vec<&Prints> = prints.iter().collect();
    let is_unclear = is_failed || lines.iter().any(|line| is_complaint(line, programs));
    // A text that may not have been printed is no mark.
    let is_marked = steps.iter().all(|step| step.is_run || !matches!(step.prints, Prints::Text(_)));
    let cuts = if is_unclear || !is_marked { None } else { cut(&prints, all) };
    let mut observations = Vec::new();
    let mut looked: Vec<String> = Vec::new();
    let cuts = cuts.unwrap_or_else(|| steps.iter().map(|_| None).collect());
    for (step, cut) in steps.into_iter().zip(cuts) {
        observations.extend(step.changed);
        let told = cut.and_then(|lines| take(&step.prints, lines, step.is_proven, directory));
        match told {
            Some(told) => observations.extend(told),
            None => looked.extend(step.looked),
        }
    }
    observations.extend(super::compared(looked, &output.text));
    observations
}

/// How names of shells begin in complaints.
const SHELLS: [&str; 9] =
    ["bash: ", "-bash: ", "/bin/bash: ", "/usr/bin/bash: ", "sh: ", "/bin/sh: ", "zsh:", "(eval):", "dash: "];

/// How complaints end, whoever makes them.
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

/// Whether a line is as likely a complaint of a command as a line of a file.
fn is_complaint(line: &str, programs: &[&str]) -> bool {
    // A program names itself as it was called.
    let named = line.split_once(": ").map(|(name, _)| name.rsplit('/').next().unwrap_or(name));
    SHELLS.iter().any(|shell| line.starts_with(shell))
        || named.is_some_and(|name| programs.contains(&name))
        || COMPLAINTS.iter().any(|end| line.ends_with(end))
}

/// The lines that each print has; `None` if nobody can say where one ends and the next begins.
fn cut<'a>(prints: &[&Prints], all: Lines<'a>) -> Option<Vec<Option<Lines<'a>>>> {
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
        let lines = Lines {
            lines: all.lines.get(start..line)?,
            from_start: start > 0 || all.from_start,
            to_end: line < all.lines.len() || all.to_end,
        };
        share(prints, &sources[next..source], lines, &mut cuts)?;
        (start, next) = (line + 1, source + 1);
    }
    Some(cuts)
}

/// Where the known texts between other prints are: the place among the sources, and the line. Each text must be one
/// line that no other line of the output can be taken for.
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
        // A file whose last line has no end would have this text at the end of that line.
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

/// Gives the prints between two marks their lines: all to a single one, or by counts that leave no choice.
fn share<'a>(prints: &[&Prints], sources: &[usize], lines: Lines<'a>, cuts: &mut [Option<Lines<'a>>]) -> Option<()> {
    match sources {
        [] => return lines.lines.is_empty().then_some(()),
        [only] => {
            cuts[*only] = Some(lines);
            return Some(());
        }
        _ => {}
    }
    let counts: Option<Vec<usize>> = sources.iter().map(|source| most_lines(prints[*source])).collect();
    let counts = counts?;
    // Each printed at most its count. If the sum is reached, each printed exactly its count.
    if counts.iter().sum::<usize>() != lines.lines.len() || !lines.to_end {
        return None;
    }
    let mut start = 0;
    for (source, count) in sources.iter().zip(counts) {
        let part = &lines.lines[start..start + count];
        cuts[*source] = Some(Lines { lines: part, from_start: true, to_end: true });
        start += count;
    }
    Some(())
}

/// How many lines a print has at most.
fn most_lines(prints: &Prints) -> Option<usize> {
    match prints {
        Prints::File(Shown { part: Part::Last(count), .. }) => Some(*count),
        Prints::File(Shown { part: Part::Ranges(ranges), .. }) => ranges.iter().map(|(_, count)| *count).sum(),
        _ => None,
    }
}

/// What lines tell that one print has; `None` if it only looked at files.
fn take(prints: &Prints, lines: Lines<'_>, is_proven: bool, directory: &Directory) -> Option<Vec<Observation>> {
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

/// Lines that carry their numbers.
fn take_numbered(shown: &Shown, lines: Lines<'_>) -> Option<Vec<Observation>> {
    let end = lines.lines.len() - usize::from(!lines.to_end && !lines.lines.is_empty());
    let split = |line: &&'_ str| -> Option<(usize, String)> {
        let (number, text) = line.trim_start_matches(' ').split_once('\t')?;
        Some((line_number(number)?, text.to_owned()))
    };
    let numbered: Vec<(usize, String)> = lines.lines[..end].iter().map(split).collect::<Option<_>>()?;
    let first = numbered.first()?.0;
    let is_run = numbered.iter().enumerate().all(|(index, (number, _))| *number == first + index);
    let wanted = match &shown.part {
        Part::Ranges(ranges) => match ranges.as_slice() {
            [(wanted, _)] => Some(*wanted),
            _ => return None,
        },
        Part::Last(_) => None,
    };
    if !is_run || wanted.is_some_and(|wanted| wanted != first) {
        return None;
    }
    let whole = shown.part == Part::Ranges(vec![(1, None)]) && lines.to_end;
    let texts: Vec<&str> = numbered.iter().map(|(_, text)| text.as_str()).collect();
    Some(vec![read(&shown.path, Some(first), &texts, whole)])
}

/// Lines as they are in the file.
fn take_plain(shown: &Shown, lines: Lines<'_>, is_proven: bool) -> Option<Vec<Observation>> {
    let count = lines.lines.len();
    let asked = most_lines(&Prints::File(shown.clone()));
    if asked.is_some_and(|asked| count > asked) {
        return None;
    }
    let Part::Ranges(ranges) = &shown.part else {
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

/// Lines of which the harness left out some in the middle.
fn take_cut(shown: &Shown, ranges: &[(usize, Option<usize>)], lines: Lines<'_>, at: usize) -> Option<Vec<Observation>> {
    let [(first, _)] = ranges else { return None };
    let before = &lines.lines[..at.saturating_sub(FRAYED)];
    let marks = lines.lines.iter().rposition(|line| is_cut_mark(line)).unwrap_or(at);
    let after = lines.lines.get(marks + 1 + FRAYED..).unwrap_or_default();
    let after = &after[..after.len() - usize::from(!lines.to_end && !after.is_empty())];
    let parts = [(Some(*first).filter(|_| lines.from_start), before), (None, after)];
    let read = |(first, part): (Option<usize>, &[&str])| read(&shown.path, first, part, false);
    Some(parts.into_iter().filter(|(_, part)| !part.is_empty()).map(read).collect())
}
