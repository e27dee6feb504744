//! What a read tool printed: whether numbers were added by the tool, and which text is the file's.

use contexture_agents::{PrintedForm, tool as known};

use crate::framing::{is_cut_mark, is_elsewhere};
use crate::numbering::{Passage, Style, split_lines, split_number};

/// What a read was asked for.
pub(super) struct ReadRequest<'a> {
    pub(super) tool: &'a str,
    /// What the number of the first line may be; empty if that is not known.
    pub(super) firsts: Vec<usize>,
    pub(super) is_narrowed: bool,
    /// The first and the last line, if the call states both.
    pub(super) range: Option<(usize, usize)>,
    /// The file as written.
    pub(super) path: &'a str,
}

impl ReadRequest<'_> {
    fn may_begin_at(&self, line: usize) -> bool {
        self.firsts.iter().any(|first| (*first).max(1) == line)
    }
}

/// Tags between which an agent prints numbered lines.
const TAGS: [&str; 3] = ["<path>", "<file>", "<content>"];

/// How the last line of an own read begins if it shows the end of a file.
const OWN_END: &str = "(End of file: ";

/// All that an own read prints of an empty file.
const OWN_EMPTY: &str = "(the file is empty)";

/// Most lines that read tools show when they are not asked for a number of lines.
const MOST_LINES: usize = 2_000;

/// Length from which read tools truncate lines, in characters.
const LONG_LINE: usize = 2_000;

/// Where a tool may or may not number lines, this many numbered lines prove that the numbers are the tool's.
const LEAST_NUMBERED: usize = 3;

/// Most lines that a tool prints before the first line of a file.
const MOST_HEADINGS: usize = 4;

/// The passages that a read shows, each with whether it is the whole file.
pub(super) fn passages(asked: &ReadRequest<'_>, result: &str) -> Vec<(Passage, bool)> {
    let form = known(asked.tool).and_then(|tool| tool.prints());
    let lines: Vec<&str> = split_lines(result).collect();
    if let Some(own) = own(&lines, asked) {
        return own;
    }
    if form == Some(&PrintedForm::Headed)
        && let Some(passage) = cut_file(result)
    {
        return without_long_lines(passage, false);
    }
    if let Some(tagged) = tagged(&lines, asked) {
        return tagged;
    }
    if let Some(inner) = fenced(&lines) {
        let is_numbered = inner.iter().enumerate().all(|(at, line)| {
            let number = split_number(line, Style::Colon).map(|(number, _)| number);
            number.is_some_and(|number| asked.firsts.iter().any(|first| number == first + at))
        });
        let shown = is_numbered.then(|| numbered(inner, &[Style::Colon], asked)).flatten();
        return shown.map(|(passage, _)| without_long_lines(passage, false)).unwrap_or_default();
    }
    let found = match form {
        Some(PrintedForm::Numbered(styles)) => numbered(&lines, styles, asked),
        Some(PrintedForm::Wrapped(styles)) if TAGS.iter().any(|tag| result.trim_start().starts_with(tag)) => {
            numbered(&lines, styles, asked)
        }
        Some(PrintedForm::Maybe(styles)) if styles.iter().any(|style| is_surely_numbered(&lines, *style, asked)) => {
            numbered(&lines, styles, asked)
        }
        Some(PrintedForm::Wrapped(_) | PrintedForm::Maybe(_)) => plain(&lines, asked, result),
        Some(PrintedForm::Headed) | None => either(&lines, asked, result),
    };
    let Some((passage, whole)) = found else { return Vec::new() };
    without_long_lines(passage, whole)
}

/// What Gemini CLI says before a part of a file, and before its text.
const CUT_START: &str = "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines ";
const CUT_TEXT: &str = "\n\n--- FILE CONTENT (truncated) ---\n";

/// The lines of a part of a file, of which Gemini CLI says which they are.
fn cut_file(result: &str) -> Option<Passage> {
    let (head, text) = result.strip_prefix(CUT_START)?.split_once(CUT_TEXT)?;
    let (first, rest) = head.split_once('-')?;
    let (last, rest) = rest.split_once(" of ")?;
    let (total, _) = rest.split_once(" total lines.\n")?;
    let (first, last, total): (usize, usize, usize) = (first.parse().ok()?, last.parse().ok()?, total.parse().ok()?);
    let passage = Passage { first: Some(first), lines: text.split('\n').map(str::to_owned).collect() };
    // The line after the last end of a line is counted too, and is none.
    let is_all = first >= 1 && last < total && passage.lines.len() == last + 1 - first && !text.contains(CONTEXT);
    (is_all && !passage.lines.iter().any(|line| line.ends_with("... [truncated]"))).then_some(passage)
}

/// What Gemini CLI puts after an output when it has found more instructions of the project.
const CONTEXT: &str = "\n\n--- Newly Discovered Project Context ---\n";

/// What Roo prints before the lines of a file, with their numbers.
const TAGGED: &str = "<content lines=\"";

/// The lines of the only file between tags that say which lines they are, each with its number. `None` if there are no
/// such tags.
fn tagged(lines: &[&str], asked: &ReadRequest<'_>) -> Option<Vec<(Passage, bool)>> {
    let open = lines.iter().take(MOST_HEADINGS).position(|line| line.trim_start().starts_with(TAGGED))?;
    let (first, last) = lines[open].trim_start().strip_prefix(TAGGED)?.strip_suffix("\">")?.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    let end = open + 1 + lines[open + 1..].iter().position(|line| line.trim_start().starts_with("</content>"))?;
    let is_one = lines.iter().filter(|line| line.contains("<path>")).count() == 1;
    let shown = numbered(&lines[open + 1..end], &[Style::Bar], asked).filter(|(passage, _)| {
        is_one
            && passage.first == Some(first)
            && first + passage.lines.len() == last + 1
            && end - open == last + 2 - first
    });
    let is_cut = lines[end..].iter().any(|line| line.contains("<notice>"));
    Some(shown.map(|(passage, whole)| without_long_lines(passage, whole && !is_cut)).unwrap_or_default())
}

/// The lines between fences, after a heading with the name of the file.
fn fenced<'a, 'b>(lines: &'a [&'b str]) -> Option<&'a [&'b str]> {
    match lines {
        [heading, open, inner @ .., close] if heading.starts_with("### ") && open.starts_with("```") => {
            Some(if close.starts_with("```") { inner } else { &[] })
        }
        _ => None,
    }
}

/// Whether every line begins with its number in some form that is not known: `[1] text`, `L1: text`, `(1) text`.
fn is_counted(lines: &[&str], asked: &ReadRequest<'_>) -> bool {
    let number = |line: &str| {
        let start = line.find(|c: char| c.is_ascii_digit()).filter(|start| *start <= MOST_BEFORE_NUMBER)?;
        // A word before the number is text.
        if line[..start].chars().filter(|c| c.is_alphanumeric()).count() > 1 {
            return None;
        }
        let digits = line[start..].bytes().take_while(u8::is_ascii_digit).count();
        line[start..start + digits].parse::<usize>().ok()
    };
    let Some(first) = lines.first().and_then(|line| number(line)) else { return false };
    let follows = |(at, line): (usize, &&str)| number(line) == Some(first + at);
    lines.len() > 1 && asked.firsts.contains(&first) && lines.iter().enumerate().all(follows)
}

/// Most bytes before a number that a tool puts before a line.
const MOST_BEFORE_NUMBER: usize = 8;

/// What the tool `read_file` of this library printed, if it says so itself: how many lines it has shown, or that there
/// are none. Without that, one or two numbered lines could as well be the text of a table.
fn own(lines: &[&str], asked: &ReadRequest<'_>) -> Option<Vec<(Passage, bool)>> {
    let (end, numbered) = lines.split_last()?;
    if numbered.is_empty() && *end == OWN_EMPTY && asked.may_begin_at(1) {
        return Some(vec![(Passage { first: Some(1), lines: Vec::new() }, true)]);
    }
    let (first, last, total) = match end.strip_prefix(OWN_END) {
        Some(rest) => {
            let total: usize = rest.strip_suffix(" lines)").or_else(|| rest.strip_suffix(" line)"))?.parse().ok()?;
            (split_number(numbered.first()?, Style::Tab)?.0, total, total)
        }
        None => own_part(end)?,
    };
    let mut passage = Passage { first: Some(first), lines: Vec::new() };
    for (index, line) in numbered.iter().enumerate() {
        let (_, text) = split_number(line, Style::Tab).filter(|(number, _)| *number == first + index)?;
        passage.lines.push(text.to_owned());
    }
    let is_all_of_it = asked.may_begin_at(first) && first + numbered.len() == last + 1 && last <= total;
    let whole = first == 1 && last == total;
    (is_all_of_it && !numbered.is_empty()).then(|| without_long_lines(passage, whole))
}

/// The first line, the last, and how many the file has: `[lines 2-3 of 4; go on with offset 4]`.
fn own_part(end: &str) -> Option<(usize, usize, usize)> {
    let (range, rest) = end.strip_prefix("[lines ")?.split_once(" of ")?;
    let (first, last) = range.split_once('-')?;
    let (total, next) = rest.strip_suffix(']')?.split_once("; go on with offset ")?;
    let (first, last, total): (usize, usize, usize) = (first.parse().ok()?, last.parse().ok()?, total.parse().ok()?);
    (next.parse() == Ok(last + 1)).then_some((first, last, total))
}

/// Lines that carry consecutive numbers, after a few headings and before notes of the tool.
fn numbered(lines: &[&str], styles: &[Style], asked: &ReadRequest<'_>) -> Option<(Passage, bool)> {
    let start = |style: Style| (0..lines.len().min(MOST_HEADINGS)).find(|at| split_number(lines[*at], style).is_some());
    let (style, at) = styles.iter().find_map(|style| Some((*style, start(*style)?)))?;
    let (first, _) = split_number(lines[at], style)?;
    let mut passage = Passage { first: Some(first), lines: Vec::new() };
    for line in &lines[at..] {
        match split_number(line, style) {
            Some((number, text)) if number == first + passage.lines.len() => passage.lines.push(text.to_owned()),
            _ => break,
        }
    }
    if first == 0 {
        return None;
    }
    let count = passage.lines.len();
    // A remark that is not understood may say that there is more.
    let is_more = !lines[..at].iter().all(|line| is_heading(line)) || !are_endings(&lines[at + count..]);
    // Some tools show the end of a file's last line as an additional empty line.
    let is_ended = passage.lines.last().is_some_and(|last| last.is_empty());
    if is_ended {
        passage.lines.pop();
    }
    let whole = first == 1 && !asked.is_narrowed && !is_ended && !is_more && count < MOST_LINES;
    (!passage.lines.is_empty()).then_some((passage, whole))
}

/// How the lines begin that tools print before a file's.
const HEADINGS: [&str; 6] =
    ["<file", "<path", "<type", "<content", "Here's the result of running `cat -n`", "<system-reminder>"];

/// How the lines begin that tools print after a file's when they have shown all that was asked for.
const ENDINGS: [&str; 4] = ["</file", "</content", "(End of file", "<system-reminder>"];

fn is_heading(line: &str) -> bool {
    line.trim().is_empty() || HEADINGS.iter().any(|start| line.trim_start().starts_with(start))
}

/// Whether the lines after a file's were added by the tool, and none of them says that there is more.
fn are_endings(lines: &[&str]) -> bool {
    let is_ending =
        |line: &&str| line.trim().is_empty() || ENDINGS.iter().any(|start| line.trim_start().starts_with(start));
    // A reminder of the harness extends to the end.
    lines.iter().take_while(|line| !line.starts_with("<system-reminder>")).all(is_ending)
}

/// Output of a tool that may or may not number lines.
fn either(lines: &[&str], asked: &ReadRequest<'_>, result: &str) -> Option<(Passage, bool)> {
    let sure = [Style::Arrow, Style::Tab, Style::Bar];
    let is_run = |style: Style| {
        let number = |index: usize| split_number(lines[index], style).map(|(number, _)| number);
        let runs_from = |first: &usize| (0..lines.len()).all(|index| number(index) == Some(first + index));
        asked.firsts.iter().any(runs_from)
    };
    if let Some(style) = sure.into_iter().find(|style| is_run(*style)) {
        // A file may have a column of numbers itself.
        let is_sure = style == Style::Arrow || is_surely_numbered(lines, style, asked);
        return numbered(lines, &[style], asked).filter(|_| is_sure && lines.len() >= LEAST_NUMBERED);
    }
    // A single number that is out of place may be that of a tool.
    if lines.iter().any(|line| sure.into_iter().any(|style| split_number(line, style).is_some())) {
        return None;
    }
    plain(lines, asked, result)
}

/// Whether every line carries its number, from where it was asked for, and the numbers are the tool's: they are exactly
/// those of the range that was asked for in a file of code, or the rest of some line is what no column of a table or
/// item of a list would be: nothing, an indented text, or a closing bracket.
fn is_surely_numbered(lines: &[&str], style: Style, asked: &ReadRequest<'_>) -> bool {
    let numbered: Option<Vec<(usize, &str)>> = lines.iter().map(|line| split_number(line, style)).collect();
    let Some(numbered) = numbered.filter(|numbered| !numbered.is_empty()) else { return false };
    let first = numbered[0].0;
    let follows = numbered.iter().enumerate().all(|(index, (number, _))| *number == first + index);
    if follows && asked.range == Some((first, first + numbered.len() - 1)) && !may_have_lists(asked.path) {
        return true;
    }
    if numbered.len() < LEAST_NUMBERED {
        return false;
    }
    let is_code = |text: &str| text.trim().is_empty() || text.starts_with([' ', '\t', '}', ')', ']']);
    follows && asked.may_begin_at(first) && numbered.iter().any(|(_, text)| is_code(text))
}

/// Whether a file is of a kind in which lines begin with numbers that count them: text, data, or not known.
fn may_have_lists(path: &str) -> bool {
    const KINDS: [&str; 12] =
        ["md", "markdown", "mdx", "txt", "text", "rst", "adoc", "org", "tex", "csv", "tsv", "log"];
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let kind = name.rsplit_once('.').map(|(_, kind)| kind.to_lowercase());
    kind.is_none_or(|kind| KINDS.contains(&kind.as_str()))
}

/// Lines as they are in the file, and before them nothing.
fn plain(lines: &[&str], asked: &ReadRequest<'_>, result: &str) -> Option<(Passage, bool)> {
    if let Some(told) = part_of(lines) {
        return told;
    }
    let (lines, result, is_cut) = match more_follows(lines) {
        Some(count) => {
            let kept = &lines[..count];
            (kept, kept.join("\n") + "\n", true)
        }
        None => (lines, result.to_owned(), false),
    };
    if lines.is_empty() || result.trim().is_empty() || is_note(&result) || lines.iter().any(|line| is_cut_mark(line)) {
        return None;
    }
    let is_run = |style: Style| {
        let number = |index: usize| split_number(lines[index], style).map(|(number, _)| number);
        let runs_from = |first: &usize| (0..lines.len()).all(|index| number(index) == Some(first + index));
        asked.firsts.iter().any(runs_from)
    };
    // Numbers from the first line on may be the tool's, or the file's.
    let styles = [Style::Arrow, Style::Tab, Style::Bar, Style::Colon, Style::Dot, Style::Bare];
    if styles.into_iter().any(is_run) || is_counted(lines, asked) || is_wrapped(&result, asked) {
        return None;
    }
    let first = Some(&asked.firsts).filter(|firsts| firsts.len() == 1).map(|firsts| firsts[0]);
    let whole = !is_cut && !asked.is_narrowed && first == Some(1) && lines.len() < MOST_LINES;
    Some((Passage::plain(first, &result), whole))
}

/// The lines of a part of a file, of which a line before or after them says which they are: `Showing lines 1-30 of 60`. The
/// outer `None` says that there is no such line, the inner one that it does not fit.
fn part_of(lines: &[&str]) -> Option<Option<(Passage, bool)>> {
    let numbers = |line: &&str| {
        let (_, rest) = line.split_once("howing lines ")?;
        let (first, rest) = rest.split_once('-')?;
        let (last, rest) = rest.split_once(" of ")?;
        let total = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((first.parse().ok()?, last.parse().ok()?, total.parse().ok()?))
    };
    let (body, told): (&[&str], (usize, usize, usize)) = match lines {
        [heading, body @ ..] if numbers(heading).is_some() => (body, numbers(heading)?),
        [body @ .., note] => (body, numbers(note)?),
        [] => return None,
    };
    let start = body.iter().take_while(|line| line.is_empty()).count();
    let end = body.len() - body[start..].iter().rev().take_while(|line| line.is_empty()).count();
    let ((first, last, total), body) = (told, &body[start..end]);
    let is_all = first > 0 && first + body.len() == last + 1 && last <= total;
    let passage = || Passage { first: Some(first), lines: body.iter().map(|line| (*line).to_owned()).collect() };
    Some(is_all.then(|| (passage(), first == 1 && last == total)))
}

/// How many lines are before a remark at the end that more of the file follows: `[25 more lines in file. Use
/// offset=51 to continue.]`, after an empty line.
fn more_follows(lines: &[&str]) -> Option<usize> {
    let (last, before) = lines.split_last()?;
    let is_remark = last.starts_with('[') && last.ends_with(']') && last.contains("offset=");
    let says_more = last.contains("more lines in file") || last.starts_with("[Showing lines ");
    (is_remark && says_more && before.last() == Some(&"")).then(|| before.len() - 1)
}

/// Whether a text is as likely the value of a tool that returns JSON, or fenced by it, as the text of the file.
fn is_wrapped(text: &str, asked: &ReadRequest<'_>) -> bool {
    let bare = text.trim();
    let is_data = asked.path.rsplit('.').next().is_some_and(|extension| extension.starts_with("json"));
    let is_object = bare.starts_with('{') && bare.ends_with('}') || bare.starts_with('[') && bare.ends_with(']');
    let is_value = is_object && !is_data && serde_json::from_str::<serde_json::Value>(bare).is_ok();
    let has_field =
        bare.starts_with('{') && ["\"content\"", "\"text\"", "\"error\""].iter().any(|name| bare.contains(name));
    is_value || (is_data && has_field && is_object) || bare.starts_with("```")
}

/// Whether a read's output is, or contains, a remark of the tool.
fn is_note(text: &str) -> bool {
    let starts =
        ["File unchanged", "<system-reminder>", "IMPORTANT:", "[File content truncated", "<file", "<path", "<content"];
    // A heading that says which lines follow.
    let first = text.trim_start().lines().next().unwrap_or_default().trim_end();
    let is_heading = first.starts_with(['[', '(']) && first.ends_with([']', ')']) && first.contains("line");
    let is_named = first.starts_with("File: ") || first.starts_with("Path: ") || first.starts_with("Contents of ");
    is_heading
        || is_named
        || starts.iter().any(|start| text.trim_start().starts_with(start))
        || is_elsewhere(text)
        || text.contains("<system-reminder>")
        || text.contains(CONTEXT)
}

/// The runs of a passage between lines that the tool may have truncated.
fn without_long_lines(passage: Passage, whole: bool) -> Vec<(Passage, bool)> {
    let is_long = |line: &String| line.len() >= LONG_LINE && line.chars().count() >= LONG_LINE;
    if !passage.lines.iter().any(is_long) {
        return vec![(passage, whole)];
    }
    let mut runs: Vec<(Passage, bool)> = Vec::new();
    let mut is_open = false;
    for (index, line) in passage.lines.into_iter().enumerate() {
        if is_long(&line) {
            is_open = false;
            continue;
        }
        match runs.last_mut() {
            Some((run, _)) if is_open => run.lines.push(line),
            _ => runs.push((Passage { first: passage.first.map(|first| first + index), lines: vec![line] }, false)),
        }
        is_open = true;
    }
    runs
}
