//! Reading the views of files in a window as a model would, from their text alone.

use std::ops::Range;

use contexture_fold::ShownItem;

use crate::records::{made, text};

/// How a view begins.
const TITLE: &str = "# Files as you know them at message ";

/// One run of lines that a view shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The path as it is written in the heading.
    pub(crate) path: String,
    /// Whether the heading says that it is the whole file.
    pub(crate) is_whole: bool,
    /// The grade as the heading says it.
    pub(crate) grade: String,
    /// The number of the first line, if it is said.
    pub(crate) first: Option<usize>,
    pub(crate) lines: Vec<String>,
}

/// All that the views in a window show; an error if one of them cannot be read.
pub(crate) fn views(window: &[ShownItem]) -> Result<Vec<Shown>, String> {
    let mut shown = Vec::new();
    for text in window.iter().filter_map(made).filter(|text| text.starts_with(TITLE)) {
        Reader { lines: text.lines().skip(1).peekable(), shown: &mut shown }.read()?;
    }
    Ok(shown)
}

struct Reader<'a, I: Iterator<Item = &'a str>> {
    lines: std::iter::Peekable<I>,
    shown: &'a mut Vec<Shown>,
}

impl<'a, I: Iterator<Item = &'a str>> Reader<'a, I> {
    fn read(mut self) -> Result<(), String> {
        while let Some(line) = self.lines.next() {
            // What follows the files, such as commands that ran since, has no heading of a file.
            let Some(heading) = line.strip_prefix("## ") else { continue };
            self.file(heading)?;
        }
        Ok(())
    }

    /// `` `path`: whole file, 3 lines, sure ``, then fenced runs.
    fn file(&mut self, heading: &str) -> Result<(), String> {
        let wrong = || format!("a heading that cannot be read: {heading}");
        let (path, rest) = heading.strip_prefix('`').and_then(|rest| rest.split_once("`: ")).ok_or_else(wrong)?;
        let (rest, is_whole) = match rest.strip_prefix("whole file, ") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (count, rest) = rest.split_once(" line").ok_or_else(wrong)?;
        let count: usize = count.parse().map_err(|_| wrong())?;
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let grade = rest.strip_prefix(", ").unwrap_or(rest).to_owned();
        // What is said of single regions follows; within a run it is said before its lines.
        let (grade, inside) = match is_whole.then(|| grade.find("; line")).flatten() {
            Some(at) => (grade[..at].to_owned(), grade[at..].to_owned()),
            None => (grade, String::new()),
        };
        let before = self.shown.len();
        while self.lines.peek().is_some_and(|line| begins_run(line)) {
            self.run(path, is_whole, &grade, &inside)?;
        }
        let found: usize = self.shown[before..].iter().map(|run| run.lines.len()).sum();
        if found != count {
            return Err(format!("{heading}: {found} lines are shown"));
        }
        Ok(())
    }

    fn run(&mut self, path: &str, is_whole: bool, grade: &str, inside: &str) -> Result<(), String> {
        let line = self.lines.next().unwrap_or_default();
        let mut inside = inside.to_owned();
        let (mut first, mut grade) = (is_whole.then_some(1), grade.to_owned());
        let mut fence = line;
        if !line.starts_with("```") {
            let said = line.strip_suffix(':').ok_or_else(|| format!("a run that cannot be read: {line}"))?;
            let rest = match said.strip_prefix("from line ") {
                Some(rest) => {
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    first = Some(rest[..digits].parse().map_err(|_| format!("no number in {line}"))?);
                    &rest[digits..]
                }
                None => said.strip_prefix("lines of uncertain number").unwrap_or_default(),
            };
            if let Some(own) = rest.strip_prefix(", ") {
                own.clone_into(&mut grade);
            }
            if rest.starts_with("; ") {
                rest.clone_into(&mut inside);
            }
            fence = self.lines.next().unwrap_or_default();
        }
        let mut lines = Vec::new();
        loop {
            match self.lines.next() {
                Some(line) if line == fence => break,
                Some(line) => lines.push(line.to_owned()),
                None => return Err(format!("the fence {fence} of {path} is not closed")),
            }
        }
        // A run without lines is shown as one empty line between its fences.
        if inside.is_empty() {
            self.shown.push(Shown { path: path.to_owned(), is_whole, grade, first, lines });
            return Ok(());
        }
        for (region, own) in regions(&inside, first.unwrap_or(1), lines.len(), &grade)? {
            let number = first.map(|first| first + region.start).filter(|_| !own.starts_with("changed since"));
            let lines = lines[region].to_vec();
            self.shown.push(Shown { path: path.to_owned(), is_whole: false, grade: own, first: number, lines });
        }
        Ok(())
    }
}

/// The regions of a run with the grade of each: `; lines 3–5 changed since by …`, others as most are.
fn regions(said: &str, first: usize, count: usize, most: &str) -> Result<Vec<(Range<usize>, String)>, String> {
    let mut regions: Vec<(Range<usize>, String)> = Vec::new();
    let mut at = 0;
    for part in said.split("; line").skip(1) {
        let part = part.strip_prefix('s').unwrap_or(part).trim_start();
        let wrong = || format!("a region that cannot be read: {part}");
        let (numbers, grade) = part.split_once(' ').ok_or_else(wrong)?;
        let grade = grade.strip_prefix("of these ").unwrap_or(grade);
        let (from, to) = numbers.split_once('–').unwrap_or((numbers, numbers));
        let from: usize = from.parse().map_err(|_| wrong())?;
        let to: usize = to.parse().map_err(|_| wrong())?;
        let region = from.checked_sub(first).ok_or_else(wrong)?..to + 1 - first;
        if region.start < at || region.end > count || region.is_empty() {
            return Err(wrong());
        }
        regions.extend((at < region.start).then(|| (at..region.start, most.to_owned())));
        at = region.end;
        regions.push((region, grade.to_owned()));
    }
    regions.extend((at < count).then(|| (at..count, most.to_owned())));
    Ok(regions)
}

fn begins_run(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("from line ") || line.starts_with("lines of uncertain number")
}

/// Files that a window says were deleted.
pub(crate) fn deleted(window: &[ShownItem]) -> Vec<String> {
    let texts: Vec<String> = window.iter().filter_map(made).collect();
    let of_text = |text: &String| -> Vec<String> {
        let changed = text.lines().skip_while(|line| *line != "# What you changed").skip(1);
        let listed = changed.take_while(|line| line.starts_with("- "));
        listed.filter_map(|line| Some(line.strip_prefix("- `")?.split_once("` (deleted ")?.0.to_owned())).collect()
    };
    texts.iter().flat_map(of_text).collect()
}

/// Outputs that a window replaces by a pointer, whose text is not above it; `logged` is the text of each item.
pub(crate) fn lost_pointers(window: &[ShownItem], logged: &[String]) -> Vec<String> {
    let mut lost = Vec::new();
    for (index, shown) in window.iter().enumerate() {
        let said = text(&shown.item);
        let Some(position) = shown.position.filter(|_| said.starts_with("[Unchanged: ")) else { continue };
        let wanted: Vec<&str> = logged[position].lines().map(bare).collect();
        let has = |above: &ShownItem| {
            let text = text(&above.item);
            let lines: Vec<&str> = text.lines().map(bare).collect();
            lines.windows(wanted.len().max(1)).any(|run| run == wanted)
        };
        if !window[..index].iter().any(has) {
            lost.push(format!("{said}: {:?}", logged[position]));
        }
    }
    lost
}

/// A line without a number in front of it.
fn bare(line: &str) -> &str {
    let rest = line.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix('→').or_else(|| rest.strip_prefix('\t')).unwrap_or(line)
}
