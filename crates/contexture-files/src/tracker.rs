//! Truncation by age that takes into account which files are in use.
//!
//! This is a small alternative to folding: it shortens old tool outputs one by one, and spares those of files that are
//! still in use. `contexture_fold` does more and keeps the prefix unchanged; both know of files what
//! [`FileModel`] knows. This suits hosts that only want to trim a list of items.

use std::collections::{BTreeMap, HashMap};

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Message, Origin, Role};
use serde::{Deserialize, Serialize};

use super::dialect::Dialects;
use super::model::{FileModel, FileState, Who, named_places};
use super::numbering::Passage;
use super::observation::{Kind, Observation};
use super::observer::Observer;

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
/// It is a door to the same model of files that folds are made from ([`FileModel`]): what is tracked here by hand is
/// what the model learns from calls and their outputs. [`of_items`](Self::of_items) takes everything from a
/// conversation. A file is the same under all its names, as `./src/lib.rs` and `src/lib.rs` are.
///
/// ```
/// use contexture_files::tracker::FileTracker;
/// let mut tracker = FileTracker::new();
/// tracker.track_file_access("src/lib.rs", 3, 0, "pub fn one() {}\n");
/// assert!(!tracker.is_file_stale("src/lib.rs", 8, 5));
/// assert!(tracker.is_file_stale("src/lib.rs", 9, 5));
/// ```
#[derive(Clone, Debug, Default)]
pub struct FileTracker {
    model: FileModel,
    /// The last access to each file, by its place in the model.
    accesses: BTreeMap<usize, FileAccess>,
    /// The newest moment of the model. Moments never decrease, and none is zero.
    moment: u32,
}

/// An access to a file.
#[derive(Clone, Copy, Debug, Default)]
struct FileAccess {
    step: u64,
    time_ms: u64,
}

impl FileTracker {
    /// A tracker that knows no file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that a conversation tells about files. A step is one response of the model.
    ///
    /// ```
    /// use contexture_core::Item;
    /// use contexture_files::dialect::Dialects;
    /// use contexture_files::tracker::{FileTracker, TruncationPriority};
    /// let items = [
    ///     Item::user("Look at src/lib.rs"),
    ///     Item::call("1", "Bash", r#"{"command":"sed -i s/a/b/ ./src/main.rs"}"#),
    ///     Item::output("1", ""),
    ///     Item::call("2", "Read", r#"{"file_path":"src/lib.rs"}"#),
    ///     Item::output("2", "1\tpub fn one() {}\n"),
    /// ];
    /// let tracker = FileTracker::of_items(&items, &Dialects::builtin());
    /// assert_eq!(tracker.priority("src/main.rs"), TruncationPriority::Never);
    /// assert_eq!(tracker.priority("src/lib.rs"), TruncationPriority::Longer);
    /// assert_eq!(tracker.get("src/lib.rs").unwrap().last_access_step, 2);
    /// ```
    pub fn of_items<'a>(items: impl IntoIterator<Item = &'a Item>, dialects: &Dialects) -> Self {
        let (mut tracker, mut observer) = (Self::new(), Observer::new(dialects.clone()));
        let mut calls: HashMap<&str, &FunctionCall> = HashMap::new();
        let (mut step, mut was_of_model) = (0, false);
        for item in items {
            step += u64::from(item.is_of_model() && !was_of_model);
            was_of_model = item.is_of_model();
            match item {
                Item::Message(message) => {
                    let told = observer.hear(message);
                    tracker.learn(step, &told);
                    tracker.hear(step, message);
                }
                Item::FunctionCall(call) => {
                    observer.expect(call);
                    calls.insert(&call.call_id, call);
                }
                Item::FunctionCallOutput(output) => {
                    let Some(call) = calls.get(&*output.call_id) else { continue };
                    let seen = observer.observe(call, output);
                    tracker.learn(step, &seen.observations);
                }
                Item::Reasoning(_) | Item::Opaque(_) => {}
            }
        }
        tracker
    }

    /// The model of files that it is a door to.
    pub fn model(&self) -> &FileModel {
        &self.model
    }

    /// Notes that a file was read, with its text.
    pub fn track_file_access(&mut self, path: &str, step: u64, time_ms: u64, content: &str) {
        let block = Passage::plain(Some(1), content);
        self.learn(step, &[Observation::Read { path: path.to_owned(), block, whole: true }]);
        if let Some(access) = self.model.place(path).and_then(|place| self.accesses.get_mut(&place)) {
            access.time_ms = time_ms;
        }
    }

    /// Notes that this agent wrote to a file.
    pub fn track_file_modification(&mut self, path: &str, step: u64) {
        self.learn(
            step,
            &[Observation::Changed { path: path.to_owned(), by: "a change by this agent".to_owned(), who: Who::Agent }],
        );
    }

    /// Notes that the user named a file.
    pub fn track_user_reference(&mut self, path: &str, step: u64) {
        let at = self.at(step);
        let place = self.model.name_file(at, path, Who::User);
        self.touch(place, step);
    }

    /// Learns what a call or a message tells about files.
    fn learn(&mut self, step: u64, told: &[Observation]) {
        let at = self.at(step);
        for observation in told {
            self.model.apply(at, observation);
            for path in observation.paths() {
                if let Some(place) = self.model.place(path) {
                    self.touch(place, step);
                }
            }
        }
    }

    /// Notes the files that a person or the agent named. Only a person's count as an access.
    fn hear(&mut self, step: u64, message: &Message) {
        let who = match message.role {
            Role::User if message.meta.origin == Origin::Said => Who::User,
            Role::Assistant => Who::Agent,
            _ => return,
        };
        let at = self.at(step);
        for named in named_places(&message.text_cow()) {
            if let Some(place) = self.model.name(at, named.path, who).filter(|_| who == Who::User) {
                self.touch(place, step);
            }
        }
    }

    fn at(&mut self, step: u64) -> u32 {
        let at = u32::try_from(step.saturating_add(1)).unwrap_or(u32::MAX);
        self.moment = self.moment.max(at);
        self.moment
    }

    fn touch(&mut self, place: usize, step: u64) {
        let access = self.accesses.entry(place).or_default();
        access.step = access.step.max(step);
    }

    /// What is remembered of a file.
    pub fn get(&self, path: &str) -> Option<FileReference> {
        self.reference(self.model.place(path)?)
    }

    fn reference(&self, place: usize) -> Option<FileReference> {
        let (file, access) = (&self.model.files()[place], self.accesses.get(&place)?);
        Some(FileReference {
            path: file.path.clone(),
            last_access_step: access.step,
            last_access_time_ms: access.time_ms,
            content_preview: preview(file),
            line_count: file.known_lines(),
            was_modified: file.edits > 0,
            was_named: file.named > 0,
        })
    }

    /// Files accessed within the last `max_age` steps, the newest first.
    pub fn recent_files(&self, current_step: u64, max_age: u64) -> Vec<FileReference> {
        let is_recent = |access: &FileAccess| current_step.saturating_sub(access.step) <= max_age;
        let recent = self.accesses.iter().filter(|(_, access)| is_recent(access));
        let mut recent: Vec<FileReference> = recent.filter_map(|(place, _)| self.reference(*place)).collect();
        recent.sort_by(|a, b| b.last_access_step.cmp(&a.last_access_step).then_with(|| a.path.cmp(&b.path)));
        recent
    }

    /// Whether a file was not accessed within the last `max_age` steps; an unknown file is stale.
    pub fn is_file_stale(&self, path: &str, current_step: u64, max_age: u64) -> bool {
        let access = self.model.place(path).and_then(|place| self.accesses.get(&place));
        access.is_none_or(|access| current_step.saturating_sub(access.step) > max_age)
    }

    /// Whether this agent wrote to a file.
    pub fn was_modified(&self, path: &str) -> bool {
        self.model.get(path).is_some_and(|file| file.edits > 0)
    }

    /// How long what was read of a file is kept.
    pub fn priority(&self, path: &str) -> TruncationPriority {
        match self.model.get(path) {
            Some(file) if file.edits > 0 => TruncationPriority::Never,
            Some(file) if file.named > 0 => TruncationPriority::Longer,
            _ => TruncationPriority::Standard,
        }
    }
}

/// The first characters of what is known of a file.
fn preview(file: &FileState) -> String {
    let lines = file.segments.iter().flat_map(|segment| &segment.lines);
    let texts = lines.enumerate().flat_map(|(index, line)| {
        let feed = if index > 0 { "\n" } else { "" };
        feed.chars().chain(line.text.chars())
    });
    texts.take(PREVIEW_CHARS).collect()
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
    match dialects.kind(call) {
        Kind::Write | Kind::Edit => TruncationPriority::Never,
        Kind::Search | Kind::Run => TruncationPriority::Aggressive,
        Kind::Read => dialects.path(call).map_or(TruncationPriority::Standard, |path| tracker.priority(&path)),
        Kind::Answer | Kind::Other => TruncationPriority::Standard,
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
