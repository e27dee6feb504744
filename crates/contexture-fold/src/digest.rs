//! A short account of what happened: what the user said, what was changed, what was done.

use std::collections::VecDeque;
use std::sync::Arc;

use contexture_core::item::FunctionCall;

use super::cap::{says_error, short_hash};
use contexture_files::model::{DiskChange, FileModel, FileState};
use contexture_files::observation::{Kind, Seen};
use contexture_text::one_line::one_line;
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Longest line of the ledger, in characters.
const MAX_LINE_CHARS: usize = 140;

/// Longest remark on a failure, in characters.
const MAX_FAILURE_CHARS: usize = 160;

/// Shortest output that the ledger names by its hash.
const LEAST_NAMED_BYTES: usize = 600;

/// Most calls that are remembered. A few dozen of them fit into a ledger.
const MAX_ENTRIES: usize = 1_000;

/// The ledger: one line for every call that deserves one, newest calls only.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: VecDeque<Entry>,
    /// The tool that shows an output by its hash; without one, hashes are left out.
    tool: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
struct Entry {
    at: usize,
    line: String,
    /// The hash of the tool's output, if the output may be worth asking for again.
    output: Option<String>,
}

impl Ledger {
    /// Sets the tool that shows outputs by their hash, so that the ledger names hashes.
    pub fn set_output_tool(&mut self, tool: Arc<str>) {
        self.tool = Some(tool);
    }

    /// Notes a finished call whose result is the message at position `at`.
    pub fn note(&mut self, at: usize, call: &FunctionCall, seen: &Seen, result: &str) {
        let subject = match (&seen.command, seen.paths.first()) {
            (Some(command), _) => format!("`{}`", one_line(command.lines().next().unwrap_or_default())),
            (None, Some(path)) => format!("`{}`", one_line(path)),
            (None, None) => String::new(),
        };
        let verb = match seen.kind {
            Kind::Read => "read",
            Kind::Write => "wrote",
            Kind::Edit => "changed",
            Kind::Search | Kind::Run | Kind::Other => &call.name,
        };
        let mut line = clip(&format!("{} {subject}", one_line(verb)), MAX_LINE_CHARS);
        if let Some(failure) = failure(seen, result) {
            line.push_str(" — ");
            line.push_str(&clip(&one_line(failure), MAX_FAILURE_CHARS));
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { at, line, output: self.names(call, seen, result).then(|| short_hash(result)) });
    }

    /// Whether the output is named by its hash. Files can be read again, and what the output tool showed can be asked
    /// for again, so neither is.
    fn names(&self, call: &FunctionCall, seen: &Seen, result: &str) -> bool {
        let is_long = result.len() >= LEAST_NAMED_BYTES;
        let is_printed = matches!(seen.kind, Kind::Run | Kind::Search | Kind::Other);
        self.tool.as_deref().is_some_and(|tool| is_long && is_printed && *call.name != *tool)
    }

    /// Returns the newest lines before a message that fit, oldest first. A run of the same line is written once.
    pub fn render(&self, before: usize, bytes: usize) -> String {
        let hint = self.tool.as_ref().map_or(String::new(), |tool| format!("({tool} shows an output by its hash)\n"));
        let mut names_any = false;
        let mut left = bytes.saturating_sub(hint.len());
        let mut lines: Vec<String> = Vec::new();
        let mut newer: Option<&str> = None;
        for entry in self.entries.iter().rev().skip_while(|entry| entry.at >= before) {
            if newer.replace(&entry.line) == Some(&entry.line) {
                continue;
            }
            let output = entry.output.as_ref().map(|hash| format!(" (output {hash})")).unwrap_or_default();
            let line = format!("- {}{output}\n", entry.line);
            if line.len() > left {
                break;
            }
            left -= line.len();
            lines.push(line);
            names_any |= entry.output.is_some();
        }
        lines.extend(names_any.then_some(hint));
        lines.iter().rev().map(String::as_str).collect()
    }

    /// Writes all lines.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { entries, tool: _ } = self;
        let mut before = (0, "");
        packer.list(entries, |packer, Entry { at, line, output }| {
            packer.number(at - before.0);
            packer.text_after(before.1, line);
            packer.text(output.as_deref().unwrap_or_default());
            before = (*at, line);
        });
    }

    /// Reads them again.
    pub(super) fn wake(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), Damaged> {
        let mut before = (0_usize, String::new());
        let entries = unpacker.list(|unpacker| {
            let at = before.0.checked_add(unpacker.number()?).ok_or(Damaged)?;
            let line = unpacker.text_after(&before.1)?;
            let output = Some(unpacker.text()?.as_ref().to_owned()).filter(|hash| !hash.is_empty());
            before = (at, line.clone());
            Ok(Entry { at, line, output })
        })?;
        self.entries = entries.into();
        Ok(())
    }
}

/// Returns the first line that says what went wrong, if something did.
fn failure<'a>(seen: &Seen, result: &'a str) -> Option<&'a str> {
    if !seen.failed && seen.kind != Kind::Run {
        return None;
    }
    if seen.failed {
        return result.lines().find(|line| !line.trim().is_empty());
    }
    result.lines().find(|line| says_error(line))
}

fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Lists the files that this agent changed, newest first, as many as fit.
pub fn changed_files(model: &FileModel, bytes: usize) -> String {
    let mut changed: Vec<_> = model.files().iter().filter(|file| file.edits > 0).collect();
    changed.sort_by_key(|file| std::cmp::Reverse(file.edited));
    let mut left = bytes;
    let mut text = String::new();
    for file in changed {
        let state = if file.deleted { "deleted" } else { "changed" };
        let times = if file.edits == 1 { "once".to_owned() } else { format!("{} times", file.edits) };
        let line = format!("- `{}` ({state} {times})\n", one_line(&file.path));
        if line.len() > left {
            break;
        }
        left -= line.len();
        text.push_str(&line);
    }
    text
}

/// Most files that are listed as changed on the disk.
const MAX_DISK_CHANGES: usize = 12;

/// Lists the files whose known text is no longer on the disk, according to a comparison, newest first.
pub fn lost_on_disk(model: &FileModel, is_wanted: impl Fn(&FileState, &DiskChange) -> bool) -> String {
    let lost = model.files().iter().filter_map(|file| Some((file, file.disk_change.as_ref()?)));
    let mut lost: Vec<(&FileState, &DiskChange)> = lost.filter(|(file, change)| is_wanted(file, change)).collect();
    lost.sort_by_key(|(_, change)| std::cmp::Reverse(change.at));
    let line = |(file, change): &(&FileState, &DiskChange)| {
        let path = clip(&one_line(&file.path), MAX_LINE_CHARS);
        match (file.deleted, change.lost) {
            (true, _) => format!("- `{path}` is gone from the disk\n"),
            (false, 1) => format!("- `{path}` changed on disk: 1 line that you knew is not there any more\n"),
            (false, count) => {
                format!("- `{path}` changed on disk: {count} lines that you knew are not there any more\n")
            }
        }
    };
    lost.iter().filter(|(file, change)| file.deleted || change.lost > 0).take(MAX_DISK_CHANGES).map(line).collect()
}
