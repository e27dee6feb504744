//! Truncation by age that takes into account which files are in use.
//!
//! This is a small alternative to folding: it shortens old tool outputs one by one, and spares those of files that are
//! still in use. `contexture_fold` does more and keeps the prefix unchanged. This needs no state besides the tracker, and
//! suits hosts that only want to trim a list of items.

use std::collections::HashMap;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item};
use serde::{Deserialize, Serialize};

use super::dialect::Dialects;
use super::observation::Kind;

/// How many characters of a file's text a [`FileReference`] keeps.
pub const PREVIEW_CHARS: usize = 200;

/// What is remembered of a file that was read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReference {
    /// The path as the agent wrote it.
    pub path: String,
    /// The step of the last access.
    pub last_access_step: u64,
    /// The time of the last access, in milliseconds since the epoch.
    pub last_access_time_ms: u64,
    /// The first 200 characters of its text.
    pub content_preview: String,
    /// How many lines its text had.
    pub line_count: usize,
    /// Whether this agent wrote to it.
    pub was_modified: bool,
    /// Whether the user named it.
    pub was_named: bool,
}

/// Which files are in use.
///
/// ```
/// use contexture_files::tracker::FileTracker;
/// let mut tracker = FileTracker::new();
/// tracker.track_file_access("src/lib.rs", 3, 0, "pub fn one() {}\n");
/// assert!(!tracker.is_file_stale("src/lib.rs", 8, 5));
/// assert!(tracker.is_file_stale("src/lib.rs", 9, 5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTracker {
    references: HashMap<String, FileReference>,
}

impl FileTracker {
    /// A tracker that knows no file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a file was read, with its text.
    pub fn track_file_access(&mut self, path: &str, step: u64, time_ms: u64, content: &str) {
        let reference = self.reference(path, step);
        reference.last_access_time_ms = time_ms;
        reference.content_preview = content.chars().take(PREVIEW_CHARS).collect();
        reference.line_count = content.lines().count();
    }

    /// Notes that this agent wrote to a file.
    pub fn track_file_modification(&mut self, path: &str, step: u64) {
        self.reference(path, step).was_modified = true;
    }

    /// Notes that the user named a file.
    pub fn track_user_reference(&mut self, path: &str, step: u64) {
        self.reference(path, step).was_named = true;
    }

    fn reference(&mut self, path: &str, step: u64) -> &mut FileReference {
        let reference = self.references.entry(path.to_owned()).or_default();
        reference.path = path.to_owned();
        reference.last_access_step = reference.last_access_step.max(step);
        reference
    }

    /// What is remembered of a file.
    pub fn get(&self, path: &str) -> Option<&FileReference> {
        self.references.get(path)
    }

    /// Files accessed within the last `max_age` steps, the newest first.
    pub fn recent_files(&self, current_step: u64, max_age: u64) -> Vec<&FileReference> {
        let is_recent = |file: &&FileReference| !self.is_file_stale(&file.path, current_step, max_age);
        let mut recent: Vec<&FileReference> = self.references.values().filter(is_recent).collect();
        recent.sort_by(|a, b| b.last_access_step.cmp(&a.last_access_step).then_with(|| a.path.cmp(&b.path)));
        recent
    }

    /// Whether a file was not accessed within the last `max_age` steps; an unknown file is stale.
    pub fn is_file_stale(&self, path: &str, current_step: u64, max_age: u64) -> bool {
        self.get(path).is_none_or(|file| current_step.saturating_sub(file.last_access_step) > max_age)
    }

    /// Whether this agent wrote to a file.
    pub fn was_modified(&self, path: &str) -> bool {
        self.get(path).is_some_and(|file| file.was_modified)
    }
}

/// How long an output is kept. Lower values are truncated first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationPriority {
    /// Searches and shell output: easily run again.
    Aggressive,
    /// Files read by tools, and anything else.
    Standard,
    /// Files that the user named.
    Longer,
    /// Files that this agent wrote.
    Never,
}

/// Returns how long the output of a call is kept.
pub fn truncation_priority(call: &FunctionCall, dialects: &Dialects, tracker: &FileTracker) -> TruncationPriority {
    let path = dialects.path(call);
    let file = path.as_deref().and_then(|path| tracker.get(path));
    match dialects.kind(call) {
        Kind::Write | Kind::Edit => TruncationPriority::Never,
        Kind::Read if file.is_some_and(|file| file.was_modified) => TruncationPriority::Never,
        Kind::Read if file.is_some_and(|file| file.was_named) => TruncationPriority::Longer,
        Kind::Search | Kind::Run => TruncationPriority::Aggressive,
        Kind::Read | Kind::Answer | Kind::Other => TruncationPriority::Standard,
    }
}

/// Returns the text that replaces a truncated file's.
pub fn file_stub(path: &str, line_count: usize, read_tool: &str) -> String {
    format!("[File: {path} ({line_count} lines) - content truncated, use {read_tool} to re-read]")
}

/// Returns a hint on how to see a truncated file again.
pub fn truncated_file_hint(path: &str, age: u64, line_count: usize, read_tool: &str) -> String {
    format!(
        "[File content truncated. To see current content, call {read_tool} again.\nPath: {path}\nLast read: {age} steps ago\nLines: {line_count}]"
    )
}

/// When outputs are truncated. Ages are counted in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruncationConfig {
    /// Searches and shell output older than this are truncated.
    pub aggressive_age: u64,
    /// Other outputs older than this are truncated, unless their file is in use.
    pub max_age: u64,
    /// Files that the user named are kept this long.
    pub longer_age: u64,
}

impl Default for TruncationConfig {
    fn default() -> Self {
        Self { aggressive_age: 3, max_age: 8, longer_age: 30 }
    }
}

/// Truncates old tool outputs, except those of files that are in use.
///
/// An item's age is the number of responses after it. A stub names the tool with which this agent read the file.
pub fn truncate_with_file_awareness(
    items: &[Item],
    tracker: &FileTracker,
    dialects: &Dialects,
    config: &TruncationConfig,
) -> Vec<Item> {
    let steps = responses(items).filter(|begins| *begins).count() as u64;
    let mut calls: HashMap<&str, &FunctionCall> = HashMap::new();
    let mut step = 0;
    let mut kept = Vec::with_capacity(items.len());
    for (item, begins) in items.iter().zip(responses(items)) {
        step += u64::from(begins);
        calls.extend(item.as_call().map(|call| (&*call.call_id, call)));
        let age = Age { steps: steps - step, current_step: steps };
        let shorter = item.as_output().and_then(|output| {
            let text = truncated(output, calls.get(&*output.call_id)?, age, tracker, dialects, config)?;
            (text.len() < output.output.len()).then(|| FunctionCallOutput { output: text, ..output.clone() })
        });
        kept.push(shorter.map_or_else(|| item.clone(), Item::from));
    }
    kept
}

/// For each item, whether a response of the model begins with it. Consecutive items by the model are one response.
fn responses(items: &[Item]) -> impl Iterator<Item = bool> {
    let before = std::iter::once(false).chain(items.iter().map(Item::is_of_model));
    items.iter().zip(before).map(|(item, follows)| item.is_of_model() && !follows)
}

/// The age of an output, and the step from which it is counted.
#[derive(Clone, Copy)]
struct Age {
    steps: u64,
    current_step: u64,
}

/// Returns what is shown for an output of an age, if it is to be truncated.
fn truncated(
    output: &FunctionCallOutput,
    call: &FunctionCall,
    age: Age,
    tracker: &FileTracker,
    dialects: &Dialects,
    config: &TruncationConfig,
) -> Option<String> {
    let limit = match truncation_priority(call, dialects, tracker) {
        TruncationPriority::Never => return None,
        TruncationPriority::Longer => config.longer_age,
        TruncationPriority::Standard => config.max_age,
        TruncationPriority::Aggressive => config.aggressive_age,
    };
    if age.steps <= limit {
        return None;
    }
    let lines = output.output.lines().count();
    match (dialects.kind(call), dialects.path(call)) {
        (Kind::Read, Some(path)) => {
            if !tracker.is_file_stale(&path, age.current_step, limit) {
                return None;
            }
            let stub = file_stub(&path, lines, &call.name);
            Some(format!("{stub}\n{}", truncated_file_hint(&path, age.steps, lines, &call.name)))
        }
        _ => Some(format!("[Output of {} truncated ({lines} lines)]", call.name)),
    }
}
