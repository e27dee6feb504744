//! Removes what a harness puts around a command's output, where that is certain.

use std::borrow::Cow;
use std::sync::LazyLock;

use contexture_agents::{Frame, Tells, Trailer, every, tool as known};
use serde_json::Value;

/// A command's output without what the harness added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Framed<'a> {
    /// The output.
    pub(crate) text: Cow<'a, str>,
    /// Whether it is complete to the byte. Otherwise blank lines may be missing at both ends, and spaces at the end of
    /// the last line.
    pub(crate) is_exact: bool,
    /// The exit status, if the harness gives it.
    pub(crate) exit: Option<i64>,
    /// Whether the command is still running.
    pub(crate) is_running: bool,
    /// The directory of the shell after the command, if the harness gives it.
    pub(crate) directory: Option<String>,
    /// The directory that the shell was put back into, according to a line that the command may have printed itself;
    /// empty if that line is not the last.
    pub(crate) reset: Option<String>,
}

/// How lines begin of the head that Codex puts before an output.
const CODEX_HEAD: [&str; 7] = [
    "Command: ",
    "Chunk ID: ",
    "Wall time: ",
    "Exit code: ",
    "Process exited with code ",
    "Original token count: ",
    "Process running with session ID ",
];

/// Most lines that such a head has.
const MAX_HEAD_LINES: usize = 200;

/// Removes what the harness of a tool adds to output.
pub(crate) fn framed<'a>(tool: &str, result: &'a str) -> Framed<'a> {
    let frame = known(tool).and_then(|tool| tool.frame());
    let framed = match frame {
        Some(Frame::Codex) => codex(result).or_else(|| codex_object(result)),
        Some(Frame::Tags) => returned(result),
        Some(Frame::Gemini) | None => None,
    };
    if let Some(framed) = framed {
        return framed;
    }
    // A large output is kept elsewhere, and only its beginning is shown among other text.
    if is_elsewhere(result) {
        return Framed { is_exact: false, ..plain("") };
    }
    let is_of_gemini = frame == Some(&Frame::Gemini);
    if let Some(framed) = is_of_gemini.then(|| gemini(result)).flatten() {
        return framed;
    }
    let mut framed = plain(result);
    trailer(tool, &mut framed);
    framed
}

/// Whether an agent has taken an output away, perhaps with a preview among other text.
pub(crate) fn is_elsewhere(result: &str) -> bool {
    every(|agent| agent.output().elsewhere()).any(|start| result.trim_start().starts_with(start))
}

/// How lines begin that Gemini CLI puts after a command's output if something went wrong.
const GEMINI_TROUBLE: [&str; 3] = ["Error: ", "Signal: ", "Background PIDs: "];

/// `Output: …`, then what became of the command: its status only if that is not 0, and its group.
fn gemini(result: &str) -> Option<Framed<'_>> {
    let text = result.strip_prefix("Output: ")?;
    let last = |text: &'_ str, start: &str| -> Option<(usize, i64)> {
        let at = text.rfind('\n')?;
        Some((at, text[at + 1..].strip_prefix(start)?.parse().ok()?))
    };
    let text = last(text, "Process Group PGID: ").map_or(text, |(end, _)| &text[..end]);
    let status = last(text, "Exit Code: ");
    let text = status.map_or(text, |(end, _)| &text[..end]);
    let newest = text.rsplit('\n').next().unwrap_or_default();
    // Such a line may be the command's own: then nothing is certain.
    if GEMINI_TROUBLE.iter().any(|start| newest.starts_with(start)) {
        return Some(Framed { is_exact: false, exit: status.map(|(_, exit)| exit), ..plain("") });
    }
    let text = if text == "(empty)" { "" } else { text };
    Some(Framed { is_exact: false, exit: Some(status.map_or(0, |(_, exit)| exit)), ..plain(text) })
}

fn plain(result: &str) -> Framed<'_> {
    let is_exact = result.is_empty() || result.ends_with('\n');
    Framed { text: Cow::Borrowed(result), is_exact, exit: None, is_running: false, directory: None, reset: None }
}

/// `Chunk ID: …`, `Process exited with code 0`, …, `Output:` and the output.
fn codex(result: &str) -> Option<Framed<'_>> {
    let (head, text) = match result.strip_suffix("\nOutput:") {
        Some(head) => (head, ""),
        None => result.split_once("\nOutput:\n")?,
    };
    let begins = |line: &str| CODEX_HEAD.iter().find(|start| line.starts_with(**start));
    begins(head.lines().next()?)?;
    // If the command has several lines, they are part of the head.
    let is_head = head.lines().count() <= MAX_HEAD_LINES
        && (head.starts_with("Command: ") || head.lines().all(|line| begins(line).is_some()));
    let value = |start: &str| head.lines().rev().find_map(|line| line.strip_prefix(start));
    let exit = value("Process exited with code ").or_else(|| value("Exit code: "));
    let exit = exit.and_then(|code| code.trim().parse().ok());
    let is_running = value("Process running with session ID ").is_some();
    let is_cut = text.starts_with("Total output lines: ");
    is_head.then_some(Framed {
        // What follows is neither the beginning nor the end of the output.
        text: Cow::Borrowed(if is_cut { "" } else { text }),
        is_exact: !is_cut,
        exit,
        is_running,
        directory: None,
        reset: None,
    })
}

/// `<returncode>0</returncode>`, then the output between tags.
fn returned(result: &str) -> Option<Framed<'_>> {
    let (code, rest) = result.strip_prefix("<returncode>")?.split_once("</returncode>")?;
    let exit = Some(code.trim().parse().ok()?);
    // An output that was cut has other tags.
    let text = rest.trim_start().strip_prefix("<output>\n").and_then(|rest| rest.trim_end().strip_suffix("</output>"));
    Some(Framed { is_exact: false, exit, ..plain(text.unwrap_or_default()) })
}

/// `{"output": …, "metadata": {"exit_code": 0}}`.
fn codex_object(result: &str) -> Option<Framed<'_>> {
    if !result.starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(result).ok()?;
    let text = value.get("output")?.as_str()?.to_owned();
    let exit = value.get("metadata")?.get("exit_code")?.as_i64()?;
    Some(Framed {
        text: Cow::Owned(text),
        is_exact: true,
        exit: Some(exit),
        is_running: false,
        directory: None,
        reset: None,
    })
}

/// The lines that harnesses put after the output. Nothing from such a line on counts as output.
fn trailers() -> &'static [&'static Trailer] {
    static ALL: LazyLock<Vec<&Trailer>> = LazyLock::new(|| every(|agent| agent.output().trailers()).collect());
    &ALL
}

/// Removes lines of the harness from the end.
fn trailer<'a>(tool: &str, framed: &mut Framed<'a>) {
    let Cow::Borrowed(result) = framed.text else { return };
    // A file may have such lines too, so everything from the first of them on is left out.
    let starts = result.match_indices('\n').map(|(at, _)| at + 1);
    let is_trailer = |at: &usize| trailers().iter().any(|trailer| result[*at..].starts_with(trailer.starts()));
    if let Some(at) = [0].into_iter().chain(starts).find(is_trailer) {
        let closing = closing(tool, &result[at..]);
        let telling = |tells: Tells| trailers().iter().filter(move |trailer| trailer.tells() == Some(&tells));
        let value = |trailer: &Trailer| {
            let text = closing.iter().find_map(|line| line.strip_prefix(trailer.starts()))?;
            trailer.then().map_or(Some(text), |then| Some(text.split_once(then)?.1))
        };
        let code = |text: &str| text.trim_end_matches(['>', '.', ']']).trim().parse().ok();
        framed.exit = telling(Tells::Exit).find_map(|trailer| value(trailer)).and_then(code);
        let directory = telling(Tells::Directory).find_map(|trailer| value(trailer));
        framed.directory = directory.map(|text| text.trim_end_matches(']').to_owned());
        let last = result.trim_end().lines().next_back().unwrap_or_default();
        let reset = telling(Tells::Reset).map(|trailer| trailer.starts()).find(|reset| result[at..].contains(reset));
        framed.reset = reset.map(|reset| last.strip_prefix(reset).unwrap_or_default().to_owned());
        framed.text = Cow::Borrowed(result[..at].trim_end_matches('\n'));
        framed.is_exact = false;
    }
    if every(|agent| agent.output().nothing()).any(|nothing| framed.text.trim() == *nothing) {
        framed.text = Cow::Borrowed("");
        framed.is_exact = false;
    }
    framed.is_running |= result.starts_with("Command running in background");
    // This tool gives the exit status in the first line, and what follows is not only the output.
    if known(tool).and_then(|tool| tool.frame()) == Some(&Frame::Gemini) && result.starts_with("Command: ") {
        let exit = result.lines().rev().find_map(|line| line.strip_prefix("Exit Code: "));
        framed.exit = exit.and_then(|code| code.trim().parse().ok());
        framed.text = Cow::Borrowed("");
        framed.is_exact = false;
    }
    // This one too, but only if the command failed.
    if let Some(code) = result.lines().next().and_then(|line| line.strip_prefix("Exit code ")) {
        framed.exit = framed.exit.or_else(|| code.trim().parse().ok().filter(|code| *code != 0));
    }
}

/// The lines at the very end that a tool writes there, the last one first. Lines of this form before other output, or
/// from another tool, were printed by the command.
fn closing<'a>(tool: &str, added: &'a str) -> Vec<&'a str> {
    let is_closing = |line: &&str| {
        trailers().iter().any(|trailer| trailer.closes().contains(&tool) && line.starts_with(trailer.starts()))
    };
    added.trim_end().lines().rev().map(str::trim).take_while(is_closing).collect()
}

/// Words, in lower case, of a line that replaces lines that were left out.
const CUT_WORDS: [&str; 13] = [
    "truncated",
    "omitted",
    "clipped",
    "elided",
    "cut off",
    "left out",
    "too long",
    "too large",
    "not shown",
    "skipped",
    "more line",
    "more char",
    "more byte",
];

/// How many lines next to those that a harness left out may be incomplete.
pub(crate) const FRAYED: usize = 2;

/// Longest line that can replace lines that were left out, in bytes.
const MAX_CUT_MARK_BYTES: usize = 200;

/// What a line that replaces others begins with, and what it ends with.
const CUT_STARTS: [&str; 8] = ["…", "...", "[", "<", "(", "*", "-", "="];
const CUT_ENDS: [&str; 9] = ["…", "...", "]", ">", ")", "*", "-", "=", "."];

/// Whether a line begins with a byte of [`CUT_STARTS`].
fn may_be_framed(line: &str) -> bool {
    let starts = |first: u8| CUT_STARTS.iter().any(|start| start.as_bytes()[0] == first);
    line.bytes().next().is_some_and(starts)
}

/// Whether a line replaces, or may replace, lines that a harness left out.
///
/// Harnesses put such a line between brackets, dots or the like. Lines of code often have the same words, but begin and
/// end differently.
pub(crate) fn is_cut_mark(line: &str) -> bool {
    if line.len() > MAX_CUT_MARK_BYTES {
        return line.contains(" truncated…") || line.contains("[Omitted long");
    }
    let bare = line.trim();
    // A cheap test first: most lines have neither dots nor a frame, and this runs for every line of every output.
    let may_be_dotted = bare.bytes().any(|byte| byte == b'.' || byte == "…".as_bytes()[0]);
    let is_dotted = may_be_dotted && (bare.contains('…') || bare.contains("..."));
    let is_framed = may_be_framed(bare)
        && CUT_STARTS.iter().any(|start| bare.starts_with(start))
        && CUT_ENDS.iter().any(|end| bare.ends_with(end));
    (is_dotted || is_framed) && {
        let line = bare.to_ascii_lowercase();
        CUT_WORDS.iter().any(|word| line.contains(word))
    }
}
