//! The outcome of a call: from the structure of its output, or from its text if the structure says nothing.

use contexture_agents::{Says, Tool};
use contexture_core::item::Outcome;

mod fields;
pub(crate) mod rows;
mod words;

use self::words::{
    COUNTED, DENIED, DIFFERENT, DONE, DONE_DESPITE, FAILED, FAILED_INSIDE, INTERRUPTED, OPEN_ENDED, PLAIN, STATED,
    SURELY_FAILED, WRONG,
};

/// The outcome of a call, as far as files are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It did what it was asked for.
    Done,
    /// It did nothing.
    Undone,
    /// It failed, and may have done part of its work.
    Failed,
    /// Unknown.
    Open,
}

/// The outcome of a tool call that reads or changes a file as a whole or not at all.
///
/// Structure decides where it says that the call failed. Where it says that it was done, or nothing, the text may still
/// say otherwise: many harnesses mark nothing, and some mark everything as done.
pub(crate) fn of_tool(tool: &str, outcome: Outcome, text: &str) -> Completion {
    match outcome {
        Outcome::Failed | Outcome::Denied => Completion::Undone,
        Outcome::Interrupted => Completion::Failed,
        Outcome::Done | Outcome::Unknown => match by_row(tool, text).unwrap_or_else(|| verdict(text)) {
            OutputVerdict::Refused | OutputVerdict::Failed => Completion::Undone,
            OutputVerdict::Interrupted => Completion::Failed,
            OutputVerdict::Done => Completion::Done,
            OutputVerdict::Doubtful => Completion::Open,
            OutputVerdict::Silent if outcome == Outcome::Done => Completion::Done,
            OutputVerdict::Silent => Completion::Open,
        },
    }
}

/// What the rows of a tool say about a text, if they know it.
fn by_row(tool: &str, text: &str) -> Option<OutputVerdict> {
    let text = untagged(text);
    let head = text.get(..text.floor_char_boundary(DIFFERS_BYTES)).unwrap_or(text);
    let has = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if rows::of(tool).any(|says| has(head, says.differs()) || has(text, says.differs_anywhere())) {
        return Some(OutputVerdict::Doubtful);
    }
    if rows::of(tool).any(|says| says.undone().iter().any(|form| rows::after(form, text).is_some())) {
        return Some(OutputVerdict::Failed);
    }
    let done = rows::of(tool).flat_map(Says::done).find_map(|form| rows::after(form, text))?;
    let (rest, is_open) = done;
    if is_open {
        return Some(OutputVerdict::Done);
    }
    let is_blank = |line: &&str| line.trim().is_empty();
    let rest = without_remarks(rest);
    let line = rest.lines().find(|line| !is_blank(line)).filter(|_| !rest.starts_with('\n')).unwrap_or_default();
    let words = words_of(&rest.to_lowercase());
    let differs = DIFFERENT.iter().any(|phrase| has_phrase(&words, phrase));
    Some(if is_plain(line) && !differs { OutputVerdict::Done } else { OutputVerdict::Doubtful })
}

/// Bytes at the start of a text in which it is looked for what says that something else came out.
const DIFFERS_BYTES: usize = 4_000;

/// A text without the tag around what a system says.
fn untagged(text: &str) -> &str {
    let text = text.trim_start();
    text.strip_prefix("<system>").map_or(text, str::trim_start)
}

/// The beginning of a text without remarks that mean nothing.
fn without_remarks(text: &str) -> String {
    let mut rest: String = text.chars().take(LINE_CHARS).collect();
    let remarks = || contexture_agents::every(|agent| agent.output().remarks());
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
        Outcome::Unknown if says_denied(text) || says_failed(text) || is_complaint(text) => Completion::Undone,
        Outcome::Unknown if says_interrupted(text) => Completion::Failed,
        Outcome::Unknown => Completion::Open,
    }
}

/// The outcome of a command line; `exit` is the status that the harness wrote into its output.
pub(crate) fn of_run(tool: &str, outcome: Outcome, text: &str, exit: Option<i64>) -> Completion {
    match (outcome, exit) {
        (Outcome::Denied, _) => Completion::Undone,
        (Outcome::Failed | Outcome::Interrupted, _) => Completion::Failed,
        (Outcome::Done | Outcome::Unknown, Some(code)) if code != 0 => Completion::Failed,
        (Outcome::Done, _) | (Outcome::Unknown, Some(_)) => Completion::Done,
        (Outcome::Unknown, None) if says_denied(text) => Completion::Undone,
        (Outcome::Unknown, None) if says_interrupted(text) || has_exit_code(text) => Completion::Failed,
        (Outcome::Unknown, None) if text.trim_start().starts_with("<tool_use_error>") => Completion::Failed,
        (Outcome::Unknown, None) if contexture_agents::tool(tool).is_some_and(Tool::marks_failures) => Completion::Done,
        (Outcome::Unknown, None) if says_failed(text) => Completion::Failed,
        (Outcome::Unknown, None) => Completion::Open,
    }
}

/// What the text of an output says about its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputVerdict {
    /// The call was refused and did not run.
    Refused,
    /// Nothing was done.
    Failed,
    /// It was interrupted, or its output is hidden.
    Interrupted,
    /// It was done as asked.
    Done,
    /// Something went wrong, or came out differently.
    Doubtful,
    /// Nothing.
    Silent,
}

fn verdict(text: &str) -> OutputVerdict {
    let text = untagged(text);
    let words = words_of(first_line(text));
    let has = |list: &[&str]| list.iter().any(|phrase| has_phrase(&words, phrase));
    let head = head(text);
    let head_words = words_of(&head);
    let differs = DIFFERENT.iter().any(|phrase| has_phrase(&head_words, phrase));
    if let Some(told) = fields::verdict_of_fields(text) {
        return told;
    }
    match () {
        () if says_denied(text) => OutputVerdict::Refused,
        () if says_interrupted(text) => OutputVerdict::Interrupted,
        () if differs => OutputVerdict::Doubtful,
        () if DONE_DESPITE.iter().any(|start| begins_with(&head, start)) => OutputVerdict::Done,
        // A text that begins like a failure and then tells of a success leaves it open.
        () if says_failed(text) && has(DONE) && !begins_surely_failed(text) => OutputVerdict::Doubtful,
        () if says_failed(text) => OutputVerdict::Failed,
        () if has(WRONG) || has_sign(first_line(text)) || tells_of_part(first_line(text)) => OutputVerdict::Doubtful,
        () if has(OPEN_ENDED) || is_diff(text) => OutputVerdict::Done,
        () if (has(DONE) || has(&["made"])) && is_plain(first_line(text)) => OutputVerdict::Done,
        () if has(DONE) => OutputVerdict::Doubtful,
        () if words.is_empty() => OutputVerdict::Silent,
        () if has(STATED) => OutputVerdict::Doubtful,
        () => OutputVerdict::Silent,
    }
}

/// Whether a line says that something was done and nothing else.
fn is_plain(line: &str) -> bool {
    let words = words_of(line);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = |word: &String| PLAIN.contains(&word.as_str()) || DONE.contains(&word.as_str()) || is_number(word);
    let is_more = words.windows(2).any(|pair| {
        let count: usize = if is_number(&pair[0]) { pair[0].parse().unwrap_or(usize::MAX) } else { 1 };
        count != 1 && COUNTED.contains(&pair[1].as_str())
    });
    words.iter().all(is_known) && !is_more && !tells_of_part(line) && !quotes_text(line) && !moves_away(&words)
}

/// Whether a line says that only a part was done: `1 of 2`, `0/3`.
fn tells_of_part(line: &str) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_less = |done: &str, all: &str| is_number(done) && is_number(all) && done != all;
    let words = words_of(line);
    words.windows(3).any(|run| run[1] == "of" && is_less(&run[0], &run[2]))
        || line.split_whitespace().filter_map(|part| part.split_once('/')).any(|(done, all)| is_less(done, all))
}

/// Signs with which tools mark what went wrong.
const SIGNS: &[char] = &['❌', '✗', '✘', '✖', '⛔', '⚠'];

/// Whether a line has the name of an error, such as `AssertionError` or `EPIPE`, the sign of one, or is a number alone.
fn has_sign(line: &str) -> bool {
    let is_error = |part: &str| {
        let name = part.trim_matches(|c: char| !c.is_alphanumeric());
        let is_code = name.len() > 3 && name.starts_with('E') && name.bytes().all(|byte| byte.is_ascii_uppercase());
        is_code || (!name.contains(['/', '\\']) && (name.ends_with("Error") || name.ends_with("Exception")))
    };
    let is_number = || line.trim().parse::<u64>().is_ok();
    line.contains(SIGNS) || line.split_whitespace().any(is_error) || is_number()
}

/// Whether a line says that something was taken from somewhere, or put where it is not the file.
fn moves_away(words: &[String]) -> bool {
    ["removed from", "moved from", "from the", "in a", "to a"].iter().any(|phrase| has_phrase(words, phrase))
}

/// Whether a line quotes something that is no name: text that came out, perhaps.
fn quotes_text(line: &str) -> bool {
    line.split('`').skip(1).step_by(2).any(|quoted| !quoted.is_empty() && !is_name(quoted) && !quoted.contains('.'))
}

/// How many characters at the start of a text are examined.
const HEAD_CHARS: usize = 240;

fn head(text: &str) -> String {
    text.trim_start().chars().take(HEAD_CHARS).collect::<String>().to_lowercase()
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
        let marks = part.matches('`').count() + part.matches('"').count();
        let was_quoted = is_quoted;
        is_quoted ^= marks % 2 == 1;
        if was_quoted || marks > 0 || is_name(part) {
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
    DENIED.iter().any(|start| begins_with(&head, start))
        || head.contains("rejected by user")
        || head.contains("rejected by the user")
}

/// Whether an output says that a call was interrupted, or hides what it did.
fn says_interrupted(text: &str) -> bool {
    let head = head(text);
    INTERRUPTED.iter().any(|start| begins_with(&head, start)) || head.contains("interrupted by user")
}

fn begins_surely_failed(text: &str) -> bool {
    let head = head(text);
    SURELY_FAILED.iter().any(|start| begins_with(&head, start))
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
    let says_inside = || {
        let words = words_of(&head);
        FAILED_INSIDE.iter().any(|phrase| has_phrase(&words, phrase))
    };
    FAILED.iter().any(|start| begins_with(&head, start)) || says_inside() || has_exit_code(result)
}

/// Whether a text is a diff, which tools print of what they changed.
fn is_diff(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix("```diff").map_or(text, str::trim_start);
    ["Index: ", "--- a/", "--- /", "diff --git "].iter().any(|start| text.starts_with(start)) && text.contains("\n+++ ")
}

/// Most words of a complaint that is all that a tool returned.
const MOST_COMPLAINT_WORDS: usize = 40;

/// Whether a text is nothing but a sentence that complains, as a tool returns it in place of what it should show.
pub(crate) fn is_complaint(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "authenticate",
        "denied",
        "error",
        "exceeded",
        "expired",
        "failed",
        "forbidden",
        "not found",
        "refused",
        "rejected",
        "retry",
        "timed out",
        "timeout",
        "unable",
        "unauthorized",
        "unavailable",
        "could not",
        "cannot",
        "does not exist",
        "doesn't exist",
        "no such",
        "not allowed",
        "not permitted",
        "permission",
        "login",
        "log in",
        "sign in",
        "outside",
        "cancelled",
        "canceled",
        "blocked",
        "disconnected",
        "too large",
        "binary",
    ];
    let text = text.trim();
    if text.lines().count() > 2 {
        return false;
    }
    let words = words_of(text);
    let is_sentence = words.len() >= 2 && words.len() <= MOST_COMPLAINT_WORDS;
    is_sentence && WORDS.iter().any(|phrase| has_phrase(&words, phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_matched_as_words() {
        let open = [
            "Session token expired; sign in again and retry.",
            "Hook took too long",
            "The operation was unsuccessful",
            "The lock is broken",
            "0 edits applied",
            "Replaced 0 occurrences",
            "The edit was abandoned",
            "Nothing was removed",
            "Please sign in",
            "Edit proposed; awaiting approval",
            "Applied 2 of 3 hunks; 1 hunk failed",
            "User modified the content before it was saved",
            "File saved. The formatter changed 3 lines",
            "Patch applied with fuzz 2",
        ];
        for text in open {
            let told = of_tool("change", Outcome::Unknown, text);
            assert!(matches!(told, Completion::Open | Completion::Undone), "{text}: {told:?}");
            assert_ne!(of_tool("change", Outcome::Unknown, text), Completion::Done, "{text}");
        }
        let done = [
            "errors.py: replaced 1 occurrence",
            "failover.py updated",
            "error.py updated",
            "src/not_found.rs has been updated.",
            "The file /p/failed/a.rs has been updated successfully.",
            "File created successfully at: /p/no/such.txt",
            "Wrote `invalid.txt`",
            "Success. Updated the following files:\nM failed.rs",
            "This file has errors, please fix\n<file_diagnostics>",
            "ok",
            "Done!",
            "Applied 3 edits",
            "The file a.rs has been edited. Here's the result of running `cat -n` on a snippet:\n 1\terror not found",
            "```diff\nIndex: a.rs\n--- a.rs\toriginal\n+++ a.rs\tmodified\n",
        ];
        for text in done {
            assert_eq!(of_tool("change", Outcome::Unknown, text), Completion::Done, "{text}");
        }
    }

    #[test]
    fn structure_decides_where_it_says_failure() {
        assert_eq!(of_tool("change", Outcome::Failed, "File updated"), Completion::Undone);
        assert_eq!(of_tool("change", Outcome::Done, "anything at all"), Completion::Done);
        assert_eq!(of_tool("change", Outcome::Done, "Error: no such file"), Completion::Undone);
        assert_eq!(
            of_tool("change", Outcome::Done, "Session token expired; sign in again and retry."),
            Completion::Open
        );
        assert_eq!(of_run("Bash", Outcome::Unknown, "error: x", None), Completion::Done, "it would be marked");
        assert_eq!(of_run("bash", Outcome::Unknown, "x", None), Completion::Open);
        assert_eq!(of_run("bash", Outcome::Unknown, "x", Some(0)), Completion::Done);
        assert_eq!(of_run("Bash", Outcome::Unknown, "Exit code 2\nx", None), Completion::Failed);
    }
}
