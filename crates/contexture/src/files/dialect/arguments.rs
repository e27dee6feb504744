//! The arguments of a call by meaning, and what a successful call tells about files.

use serde_json::Value;

use super::reads::{Asked, passages};
use super::{
    ALL_NAMES, COMMAND_NAMES, CONTENT_NAMES, Does, EDITS_NAMES, NEW_NAMES, OLD_NAMES, PATCH_NAMES, PATH_NAMES,
    START_NAMES, ToolEntry, WORKDIR_NAMES, own_name, text_of, value_of,
};
use crate::files::found::observe_hits;
use crate::files::numbering::{MAX_LINE_NUMBER, line_number, split_lines};
use crate::files::observation::Observation;
use crate::files::patched::observe_patch;
use crate::files::path::Directory;

/// Tools whose edits may also remove the line feed after a piece that is replaced by nothing.
const TAKES_FEED: &[&str] = &["Edit", "MultiEdit"];

/// The number in a value, limited to the greatest line number: a read from beyond it is still a part of a file.
fn number_in(value: &Value) -> Option<usize> {
    let number = value.as_u64()?;
    Some(usize::try_from(number).unwrap_or(MAX_LINE_NUMBER).min(MAX_LINE_NUMBER))
}

/// The arguments of a call, by meaning.
pub(super) struct Arguments<'a> {
    pub(super) value: &'a Value,
    pub(super) entry: Option<&'a ToolEntry>,
    /// The tool's name.
    pub(super) tool: &'a str,
}

impl<'a> Arguments<'a> {
    fn path(&self) -> Option<&'a str> {
        text_of(self.value, self.entry.and_then(|entry| entry.path.as_deref()), PATH_NAMES)
    }

    pub(super) fn workdir(&self) -> Option<&'a str> {
        text_of(self.value, None, WORKDIR_NAMES)
    }

    /// The command line. A list of words is joined, and `bash -lc TEXT` is unwrapped.
    pub(super) fn command(&self) -> Option<String> {
        let named = self.entry.and_then(|entry| entry.command.as_deref());
        if let Some(text) = text_of(self.value, named, COMMAND_NAMES) {
            return Some(text.to_owned());
        }
        let words = value_of(self.value, named, COMMAND_NAMES)?.as_array()?;
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        match words.as_slice() {
            [shell, flag, text] if shell.ends_with("sh") && flag.starts_with('-') => Some((*text).to_owned()),
            words => Some(words.join(" ")),
        }
    }

    fn patch_text(&self) -> Option<&'a str> {
        if let Value::String(text) = self.value {
            return Some(text);
        }
        text_of(self.value, self.entry.and_then(|entry| entry.content.as_deref()), PATCH_NAMES)
    }

    pub(super) fn paths(&self, does: Does) -> Vec<String> {
        match does {
            Does::Run | Does::Nothing => Vec::new(),
            _ => self.path().map(str::to_owned).into_iter().collect(),
        }
    }

    pub(super) fn observe(&self, does: Does, result: &str) -> Vec<Observation> {
        let path = self.path().map(str::to_owned);
        match (does, path) {
            (Does::Read, Some(path)) => self.observe_read(path, result),
            (Does::Write, Some(path)) => {
                self.content().map(|text| Observation::Write { path, text }).into_iter().collect()
            }
            (Does::Append, Some(path)) => {
                self.content().map(|text| Observation::Append { path, text }).into_iter().collect()
            }
            (Does::Edit, Some(path)) => self.observe_edits(&path),
            (Does::Insert, Some(path)) => self.observe_insert(path).into_iter().collect(),
            (Does::Patch, path) => self.patch_text().map(|text| observe_patch(text, path)).unwrap_or_default(),
            (Does::Delete, Some(path)) => vec![Observation::Delete { path }],
            (Does::Move, _) => self.observe_move(),
            (Does::Search, path) => self.observe_search(path.as_deref(), result),
            (Does::Rework, Some(path)) => vec![Observation::Changed { path, by: format!("`{}`", self.tool) }],
            _ => Vec::new(),
        }
    }

    fn content(&self) -> Option<String> {
        let named = self.entry.and_then(|entry| entry.content.as_deref());
        text_of(self.value, named, CONTENT_NAMES).map(str::to_owned)
    }

    fn number(&self, names: &[&str]) -> Option<usize> {
        let value = value_of(self.value, None, names)?;
        number_in(value).or_else(|| line_number(value.as_str()?.trim()))
    }

    /// The first line that a read was asked for; 1 by default.
    fn first_line(&self) -> usize {
        let range = value_of(self.value, None, &["view_range", "line_range"]).and_then(Value::as_array);
        let first = range.and_then(|range| range.first()).and_then(number_in);
        first.or_else(|| self.number(START_NAMES)).unwrap_or(1).max(1)
    }

    fn is_narrowed(&self) -> bool {
        const LIMITS: &[&str] = &["limit", "n_lines", "view_range", "end_line", "endLine", "line_range"];
        self.first_line() > 1 || value_of(self.value, None, LIMITS).is_some_and(|value| !value.is_null())
    }

    /// Whether the command continues after the call.
    pub(super) fn is_in_background(&self) -> bool {
        let names = ["run_in_background", "is_background", "background", "async", "detach"];
        value_of(self.value, None, &names).and_then(Value::as_bool) == Some(true)
    }

    fn observe_read(&self, path: String, result: &str) -> Vec<Observation> {
        let asked = Asked { tool: own_name(self.tool), first: self.first_line(), is_narrowed: self.is_narrowed() };
        if path.ends_with(".ipynb") {
            return Vec::new();
        }
        let read = |(block, whole)| Observation::Read { path: path.clone(), block, whole };
        passages(&asked, result).into_iter().map(read).collect()
    }

    /// Hits of a search, if each line certainly carries its number.
    fn observe_search(&self, path: Option<&str>, result: &str) -> Vec<Observation> {
        let is_numbered = value_of(self.value, None, &["-n"]).and_then(Value::as_bool) == Some(true);
        if !is_numbered || text_of(self.value, None, &["output_mode"]) != Some("content") {
            return Vec::new();
        }
        let lines: Vec<&str> = split_lines(result).collect();
        // Spaces may be missing at the end of the last one.
        let lines = &lines[..lines.len().saturating_sub(1)];
        let hits = |path: &str| observe_hits(lines, Some(path), &Directory::Start);
        let is_named = lines.iter().any(|line| !line.starts_with(|c: char| c.is_ascii_digit()) && *line != "--");
        match path {
            Some(path) if !is_named => hits(path),
            _ => observe_hits(lines, None, &Directory::Start),
        }
    }

    fn observe_edits(&self, path: &str) -> Vec<Observation> {
        let named_old = self.entry.and_then(|entry| entry.old.as_deref());
        let named_new = self.entry.and_then(|entry| entry.new.as_deref());
        let pair = |value: &Value| -> Option<Observation> {
            let old = text_of(value, named_old, OLD_NAMES)?.to_owned();
            let new = text_of(value, named_new, NEW_NAMES).unwrap_or_default().to_owned();
            let all = value_of(value, None, ALL_NAMES).and_then(Value::as_bool).unwrap_or(false);
            let takes_feed = TAKES_FEED.contains(&own_name(self.tool)) && new.is_empty() && !old.ends_with('\n');
            Some(if old.is_empty() {
                Observation::Write { path: path.to_owned(), text: new }
            } else {
                Observation::Edit { path: path.to_owned(), old, new, all, takes_feed }
            })
        };
        let listed: &[Value] = match value_of(self.value, None, EDITS_NAMES) {
            Some(Value::Array(list)) => list,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let edits: Vec<Observation> = listed.iter().filter_map(pair).chain(pair(self.value)).collect();
        if edits.is_empty() {
            vec![Observation::Changed { path: path.to_owned(), by: "an edit".to_owned() }]
        } else {
            edits
        }
    }

    /// Lines that are inserted: `insert_line` is the line before them, `line` the one after, 0 the end.
    fn observe_insert(&self, path: String) -> Option<Observation> {
        let text = self.content().or_else(|| text_of(self.value, None, NEW_NAMES).map(str::to_owned))?;
        let after = match (self.number(&["insert_line", "after_line"]), self.number(&["line"])) {
            (None, Some(0)) => return Some(Observation::Append { path, text }),
            (None, Some(line)) => line - 1,
            (after, _) => after.or_else(|| self.number(START_NAMES)).unwrap_or(0),
        };
        Some(Observation::Insert { path, after, text })
    }

    fn observe_move(&self) -> Vec<Observation> {
        let from = text_of(self.value, None, &["source", "from", "old_path", "oldPath", "source_path"]);
        let to = text_of(self.value, None, &["destination", "to", "new_path", "newPath", "destination_path"]);
        match (from, to) {
            (Some(from), Some(to)) => vec![Observation::Move { from: from.to_owned(), to: to.to_owned() }],
            _ => Vec::new(),
        }
    }
}
