//! The outcome of a call: from the structure of its output, or from its text if the structure says nothing.

use contexture_agents::{Says, Tool, every};
use contexture_core::item::Outcome;

mod rows;

/// The outcome of a call, as far as files are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It did what it was asked for.
    Done,
    /// It did something else.
    Different,
    /// It did nothing.
    Undone,
    /// It failed, or nobody knows whether it did anything.
    Failed,
    /// It was probably done.
    Open,
}

/// The outcome of a tool call that changes a file as a whole or not at all.
///
/// Structure decides where it says that the call failed. Where it says that it was done, or nothing, the text may still
/// say otherwise: many harnesses mark nothing, and some mark everything as done.
pub(crate) fn of_tool(tool: &str, outcome: Outcome, text: &str) -> Completion {
    match outcome {
        Outcome::Failed | Outcome::Denied => Completion::Undone,
        Outcome::Interrupted => Completion::Failed,
        Outcome::Done | Outcome::Unknown => by_row(tool, text).unwrap_or_else(|| match () {
            () if says_undone(text) => Completion::Undone,
            () if says_different(text) => Completion::Different,
            () if says_interrupted(text) || goes_wrong(text) => Completion::Failed,
            () if outcome == Outcome::Done && is_terse(text) => Completion::Done,
            () if outcome == Outcome::Done || says_done(text) => Completion::Open,
            () => Completion::Failed,
        }),
    }
}

/// What the rows of a tool say about a text, if they know it.
fn by_row(tool: &str, text: &str) -> Option<Completion> {
    let text = untagged(text);
    let head = text.get(..text.floor_char_boundary(DIFFERS_BYTES)).unwrap_or(text);
    let has = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if rows::of(tool).any(|says| has(head, says.differs()) || has(text, says.differs_anywhere())) {
        return Some(Completion::Different);
    }
    if rows::of(tool).any(|says| says.undone().iter().any(|form| rows::after(form, text).is_some())) {
        return Some(Completion::Undone);
    }
    let (rest, is_open) = rows::of(tool).flat_map(Says::done).find_map(|form| rows::after(form, text))?;
    let line = without_remarks(rest.lines().next().unwrap_or_default());
    Some(if is_open || !goes_wrong(&line) { Completion::Done } else { Completion::Failed })
}

/// Bytes at the start of a text in which it is looked for what says that something else came out.
const DIFFERS_BYTES: usize = 4_000;

/// A text without the tag around what a system says.
fn untagged(text: &str) -> &str {
    let text = text.trim_start();
    text.strip_prefix("<system>").map_or(text, str::trim_start)
}

/// A line without remarks that mean nothing.
fn without_remarks(line: &str) -> String {
    let mut rest: String = line.chars().take(LINE_CHARS).collect();
    let remarks = || every(|agent| agent.output().remarks());
    while let Some(at) = remarks().find_map(|remark| rest.find(remark)) {
        let end = rest[at..].find(')').map_or(rest.len(), |end| at + end + 1);
        rest.replace_range(at..end, "");
    }
    rest
}

/// The outcome of a call that shows something. What it shows may contain any words.
pub(crate) fn of_read(outcome: Outcome, text: &str) -> Completion {
    match outcome {
        Outcome::Failed | Outcome::Denied => Completion::Undone,
        Outcome::Interrupted => Completion::Failed,
        Outcome::Done => Completion::Done,
        Outcome::Unknown if says_undone(text) || is_complaint(text) => Completion::Undone,
        Outcome::Unknown if says_interrupted(text) => Completion::Failed,
        Outcome::Unknown => Completion::Open,
    }
}

/// The outcome of a command line; `exit` is the status that the harness wrote into its output.
pub(crate) fn of_run(tool: &str, outcome: Outcome, text: &str, exit: Option<i64>) -> Completion {
    let is_marked = || contexture_agents::tool(tool).is_some_and(Tool::marks_failures);
    match (outcome, exit) {
        (Outcome::Denied, _) => Completion::Undone,
        (Outcome::Failed | Outcome::Interrupted, _) => Completion::Failed,
        (Outcome::Done | Outcome::Unknown, Some(code)) if code != 0 => Completion::Failed,
        (Outcome::Done, _) | (Outcome::Unknown, Some(_)) => Completion::Done,
        (Outcome::Unknown, None) if says_denied(text) => Completion::Undone,
        (Outcome::Unknown, None) if says_interrupted(text) || has_exit_code(text) => Completion::Failed,
        (Outcome::Unknown, None) if text.trim_start().starts_with("<tool_use_error>") => Completion::Failed,
        (Outcome::Unknown, None) if is_marked() => Completion::Done,
        (Outcome::Unknown, None) if says_failed(text) => Completion::Failed,
        (Outcome::Unknown, None) => Completion::Open,
    }
}

/// Whether the first line of a text says that something went wrong.
fn goes_wrong(text: &str) -> bool {
    let line = first_line(text);
    let words = words_of(line);
    every(|agent| agent.output().wrong()).any(|phrase| has_phrase(&words, phrase))
        || has_sign(line)
        || tells_of_part(line, &words)
        || line.contains("` → `")
}

/// Whether the first line of a text says that something was done, or the text shows what.
fn says_done(text: &str) -> bool {
    let words = words_of(first_line(text));
    let is_diff = ["--- ", "diff --git ", "Index: ", "@@ "].iter().any(|start| text.trim_start().starts_with(start));
    is_diff || every(|agent| agent.output().done()).any(|word| has_phrase(&words, word))
}

/// Whether a text says nothing beside that something was done.
fn is_terse(text: &str) -> bool {
    let words = words_of(text);
    let plain = || every(|agent| agent.output().plain()).chain(every(|agent| agent.output().done()));
    let is_plain = |word: &String| plain().any(|plain| plain == word);
    text.trim().lines().count() <= 1 && words.iter().all(is_plain) && !text.contains(['`', '{', '→'])
}

/// Whether a line says that only a part was done: `1 of 2`, `0/3`.
fn tells_of_part(line: &str, words: &[String]) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_less = |done: &str, all: &str| is_number(done) && is_number(all) && done != all;
    words.windows(3).any(|run| run[1] == "of" && is_less(&run[0], &run[2]))
        || line.split_whitespace().filter_map(|part| part.split_once('/')).any(|(done, all)| is_less(done, all))
}

/// Whether a line has the name of an error, such as `AssertionError` or `EPIPE`, the sign of one, or is a number alone.
fn has_sign(line: &str) -> bool {
    let is_error = |part: &str| {
        let name = part.trim_matches(|c: char| !c.is_alphanumeric());
        let is_code = name.len() > 3 && name.starts_with('E') && name.bytes().all(|byte| byte.is_ascii_uppercase());
        is_code || (!name.contains(['/', '\\']) && (name.ends_with("Error") || name.ends_with("Exception")))
    };
    let is_number = line.trim().parse::<u64>().is_ok();
    is_number || line.contains(['❌', '✗', '✘', '✖', '⛔', '⚠']) || line.split_whitespace().any(is_error)
}

/// How many characters at the start of a text are examined.
const HEAD_CHARS: usize = 240;

fn head(text: &str) -> String {
    untagged(text).chars().take(HEAD_CHARS).collect::<String>().to_lowercase()
}

/// Longest line that is examined as a whole, in characters.
const LINE_CHARS: usize = 400;

/// The first line with a word in it. What follows is often text of the file.
fn first_line(text: &str) -> &str {
    let line = text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    line.char_indices().nth(LINE_CHARS).map_or(line, |(end, _)| &line[..end])
}

/// The words of a line in lower case, without names of files and what is quoted: these may contain any words.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_quoted = false;
    for part in line.split_whitespace() {
        let marks = part.matches(['`', '"']).count();
        let was_quoted = is_quoted;
        is_quoted ^= marks % 2 == 1;
        // In an object, names of fields are words too.
        if !line.starts_with('{') && (was_quoted || marks > 0 || is_name(part)) {
            continue;
        }
        let is_end = |c: char| !(c.is_alphanumeric() || c == '\'');
        words.extend(part.split(is_end).filter(|word| !word.is_empty()).map(str::to_lowercase));
    }
    words
}

/// Whether a part of a line is a path, or a name with a dot or an underscore inside.
fn is_name(part: &str) -> bool {
    let bare = part.trim_matches(|c: char| !c.is_alphanumeric());
    let is_inner_dot = bare.split('.').count() > 1 && bare.split('.').all(|piece| !piece.is_empty());
    bare.contains(['/', '\\', '_']) || is_inner_dot
}

/// Whether words contain a phrase, as whole words.
fn has_phrase(words: &[String], phrase: &str) -> bool {
    let wanted = || phrase.split(' ');
    words.windows(wanted().count()).any(|run| run.iter().zip(wanted()).all(|(word, wanted)| word == wanted))
}

/// Whether a text in lower case begins with a phrase that ends where a word ends.
fn begins_with(head: &str, phrase: &str) -> bool {
    let Some(rest) = head.strip_prefix(phrase) else { return false };
    if !phrase.ends_with(|c: char| c.is_alphanumeric()) {
        return true;
    }
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    let mut chars = rest.chars();
    match chars.next() {
        None => true,
        // `error.py` is a name.
        Some('.' | '/' | '\\' | '_') => chars.next().is_none_or(|next| !next.is_alphanumeric()),
        Some(next) => !next.is_alphanumeric(),
    }
}

/// Whether an output says that a call was refused and did not run.
fn says_denied(text: &str) -> bool {
    let head = head(text);
    every(|agent| agent.output().denied()).any(|start| begins_with(&head, start)) || head.contains("rejected by")
}

/// Whether an output says that a call was interrupted, or hides what it did.
fn says_interrupted(text: &str) -> bool {
    let head = head(text);
    every(|agent| agent.output().stopped()).any(|start| begins_with(&head, start))
}

/// Whether an output says that something else came out than what was asked for.
fn says_different(text: &str) -> bool {
    let head = head(text);
    let words = words_of(&head);
    let is_more = |pair: &[String]| {
        pair[0].parse().is_ok_and(|count: u64| count > 1)
            && matches!(&*pair[1], "occurrences" | "replacements" | "places")
    };
    every(|agent| agent.output().different()).any(|phrase| has_phrase(&words, phrase)) || words.windows(2).any(is_more)
}

/// Whether a harness put an exit code other than 0 before the output, with or without a colon.
fn has_exit_code(text: &str) -> bool {
    let head = head(text);
    let code = head.strip_prefix("exit code: ").or_else(|| head.strip_prefix("exit code "));
    code.is_some_and(|rest| !begins_with(rest.trim_start(), "0"))
}

/// Whether a tool's output says that nothing was done.
pub fn says_failed(result: &str) -> bool {
    let head = head(result);
    every(|agent| agent.output().failed()).any(|start| begins_with(&head, start)) || has_exit_code(result)
}

/// Whether an output says that a call was refused or failed.
fn says_undone(text: &str) -> bool {
    says_denied(text) || says_failed(text)
}

/// Most words of a complaint that is all that a tool returned.
const MOST_COMPLAINT_WORDS: usize = 40;

/// Whether a text is nothing but a sentence that complains, as a tool returns it in place of what it should show.
fn is_complaint(text: &str) -> bool {
    let text = text.trim();
    let words = words_of(text);
    text.lines().count() <= 2 && (2..=MOST_COMPLAINT_WORDS).contains(&words.len()) && goes_wrong(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_matched_as_words() {
        for text in [
            "Session token expired; sign in again and retry.",
            "The operation was unsuccessful",
            "0 edits applied",
            "Replaced 0 occurrences",
            "The edit was abandoned",
            "Nothing was removed",
            "Edit proposed; awaiting approval",
            "Applied 2 of 3 hunks; 1 hunk failed",
            "{\"success\":false}",
        ] {
            let told = of_tool("change", Outcome::Unknown, text);
            assert!(matches!(told, Completion::Failed | Completion::Undone), "{text}: {told:?}");
        }
        for text in [
            "errors.py: replaced 1 occurrence",
            "failover.py updated",
            "src/not_found.rs has been updated.",
            "The file /p/failed/a.rs has been updated successfully.",
            "Wrote `invalid.txt`",
            "ok",
            "Applied 3 edits",
        ] {
            assert_eq!(of_tool("change", Outcome::Unknown, text), Completion::Open, "{text}");
            assert!(matches!(of_tool("change", Outcome::Done, text), Completion::Open | Completion::Done), "{text}");
        }
    }

    #[test]
    fn structure_decides_where_it_says_failure() {
        assert_eq!(of_tool("change", Outcome::Failed, "File updated"), Completion::Undone);
        assert_eq!(of_tool("change", Outcome::Done, "The file was changed."), Completion::Done);
        assert_eq!(of_tool("change", Outcome::Done, "anything that it may say"), Completion::Open);
        assert_eq!(of_tool("change", Outcome::Done, "Error: no such file"), Completion::Undone);
        assert_eq!(of_run("Bash", Outcome::Unknown, "error: x", None), Completion::Done, "it would be marked");
        assert_eq!(of_run("bash", Outcome::Unknown, "x", None), Completion::Open);
        assert_eq!(of_run("bash", Outcome::Unknown, "x", Some(0)), Completion::Done);
        assert_eq!(of_run("Bash", Outcome::Unknown, "Exit code 2\nx", None), Completion::Failed);
    }
}
