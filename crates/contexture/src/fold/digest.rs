//! What happened, in short: what the user said, what was changed, what was done.

use crate::files::model::FileModel;
use crate::files::observation::{Kind, Seen};
use crate::transcript::ToolCall;

/// Longest line of the ledger, in characters.
const MAX_LINE_CHARS: usize = 140;

/// Longest remark on a failure, in characters.
const MAX_FAILURE_CHARS: usize = 160;

/// One line for every call that is worth one.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    at: usize,
    line: String,
}

impl Ledger {
    /// Notes a finished call whose answer is the message at a position.
    pub fn note(&mut self, at: usize, call: &ToolCall, seen: &Seen, result: &str) {
        let subject = match (&seen.command, seen.paths.first()) {
            (Some(command), _) => format!("`{}`", command.lines().next().unwrap_or_default()),
            (None, Some(path)) => path.clone(),
            (None, None) => String::new(),
        };
        let verb = match seen.kind {
            Kind::Read => "read",
            Kind::Write => "wrote",
            Kind::Edit => "changed",
            Kind::Search | Kind::Run | Kind::Other => call.name.as_str(),
        };
        let mut line = clip(&format!("{verb} {subject}"), MAX_LINE_CHARS);
        if let Some(failure) = failure(seen, result) {
            line.push_str(" — ");
            line.push_str(&clip(failure, MAX_FAILURE_CHARS));
        }
        self.entries.push(Entry { at, line });
    }

    /// The newest lines before a message that fit, oldest first; runs of the same line stand once.
    pub fn render(&self, before: usize, bytes: usize) -> String {
        let mut left = bytes;
        let mut lines: Vec<&str> = Vec::new();
        for entry in self.entries.iter().rev().skip_while(|entry| entry.at >= before) {
            if lines.last() == Some(&entry.line.as_str()) {
                continue;
            }
            if entry.line.len() + 3 > left {
                break;
            }
            left -= entry.line.len() + 3;
            lines.push(&entry.line);
        }
        lines.iter().rev().map(|line| format!("- {line}\n")).collect()
    }
}

/// The first line that says what went wrong, if something did.
fn failure<'a>(seen: &Seen, result: &'a str) -> Option<&'a str> {
    if !seen.failed && seen.kind != Kind::Run {
        return None;
    }
    if seen.failed {
        return result.lines().find(|line| !line.trim().is_empty());
    }
    result.lines().find(|line| says_error(line))
}

/// Whether a line of output reports an error.
pub fn says_error(line: &str) -> bool {
    const MARKS: &[&str] =
        &["error:", "Error:", "error[", "FAIL", "panicked at", "Traceback", "fatal:", "✗", "undefined:"];
    MARKS.iter().any(|mark| line.contains(mark))
}

fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The files that this agent changed, newest first, as many as fit.
pub fn changed_files(model: &FileModel, bytes: usize) -> String {
    let mut changed: Vec<_> = model.files().iter().filter(|file| file.edits > 0).collect();
    changed.sort_by_key(|file| std::cmp::Reverse(file.edited));
    let mut left = bytes;
    let mut text = String::new();
    for file in changed {
        let state = if file.deleted { "deleted" } else { "changed" };
        let line = format!("- {} ({state}, {} times)\n", file.path, file.edits);
        if line.len() > left {
            break;
        }
        left -= line.len();
        text.push_str(&line);
    }
    text
}

/// The head and the tail of a text with a marker between them, within a number of bytes.
///
/// ```
/// use contexture::fold::digest::shorten;
/// assert_eq!(shorten("short", 100), "short");
/// assert!(shorten(&"x".repeat(1000), 100).len() <= 100);
/// ```
pub fn shorten(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let marker = format!("\n[… {} bytes left out …]\n", text.len());
    let Some(keep) = bytes.checked_sub(marker.len()) else {
        return text[..text.floor_char_boundary(bytes)].to_owned();
    };
    let head = text.floor_char_boundary(keep * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - (keep - keep * 2 / 3));
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}
