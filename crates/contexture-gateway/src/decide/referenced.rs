//! Files that a person names in a message: `#src/main.rs`, `#src/main.rs:10-40`.

use std::ops::Range;
use std::path::Path;

use contexture::fs::LocalFs;
use contexture::host::{FsAdapter, ReadLimits};
use contexture::redact::redact_part;
use contexture::reference::kinds::{AllowList, language};
use contexture::reference::{LineRange, Reference, find};
use contexture::tokens::TokenCounter;
use contexture::window::{fence_for, shorten};

use super::notes::references_notes;
use crate::account::record::DecidedNote;

/// Largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Most files per message.
const MAX_FILES: usize = 16;

/// Most tokens for all files of one message together.
const MAX_TOKENS: u64 = 8_000;

/// The files that a text names, as they are sent after it.
pub(crate) struct Referenced {
    /// The text to send.
    pub text: String,
    /// What is said about it.
    pub notes: Vec<DecidedNote>,
}

/// The files of a text that a person typed; `None` if it names none.
///
/// For a file that cannot be read, the text says so and gives its name as written.
pub(crate) fn referenced(directory: &Path, typed: &str, counter: &dyn TokenCounter) -> Option<Referenced> {
    let allowed = AllowList::default();
    let mut named: Vec<Reference<'_>> = Vec::new();
    for reference in references_of(typed) {
        if !named.iter().any(|other| other.path == reference.path && other.lines == reference.lines) {
            named.push(reference);
        }
    }
    if named.is_empty() {
        return None;
    }
    let files = LocalFs::open(directory).ok()?;
    let each = MAX_TOKENS / named.len().min(MAX_FILES) as u64;
    let mut shown = Shown { files, allowed, counter, most: each, hidden: 0, redacted: 0 };
    let mut text = String::from("# Referenced Files\n");
    for reference in named.into_iter().take(MAX_FILES) {
        text.push_str(&shown.file(&reference));
    }
    Some(Referenced { text, notes: references_notes(shown.hidden, shown.redacted) })
}

/// The references in a text.
pub(crate) fn references_of(text: &str) -> Vec<Reference<'_>> {
    let allowed = AllowList::default();
    find(text, |name| allowed.is_name(name))
}

/// Shows files.
struct Shown<'c> {
    files: LocalFs,
    allowed: AllowList,
    counter: &'c dyn TokenCounter,
    /// The most tokens of one.
    most: u64,
    /// How many were refused, because their names say that they hold secrets.
    hidden: usize,
    /// Out of how many secrets were taken.
    redacted: usize,
}

impl Shown<'_> {
    fn file(&mut self, reference: &Reference<'_>) -> String {
        let path = reference.path.replace(['\n', '\r', '`'], " ");
        let not_shown = |why: &str| format!("\n## `{path}`\n\nnot shown: {why}\n");
        if self.allowed.hides(reference.path) {
            self.hidden += 1;
            return not_shown("its name says that it holds secrets");
        }
        if !self.allowed.allows(reference.path) {
            return not_shown("files of this kind are not read");
        }
        let limits = ReadLimits { max_bytes: MAX_FILE_BYTES, follow_symlinks: false };
        // This runs on a blocking thread, so it may wait.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return String::new() };
        let text = match runtime.block_on(self.files.read(reference.path, limits)) {
            Ok(file) => file.text,
            Err(error) => return not_shown(error.code.as_str()),
        };
        let (lines, part) = match reference.lines {
            Some(range) => (format!(", lines {}-{}", range.first, range.last), bytes_of(&text, range)),
            None => (String::new(), 0..text.len()),
        };
        let redacted = redact_part(&text, part.clone());
        self.redacted += usize::from(redacted != text[part]);
        let part = shorten(self.counter, &redacted, self.most);
        let fence = fence_for(&part);
        let end = if part.is_empty() || part.ends_with('\n') { "" } else { "\n" };
        format!("\n## `{path}`{lines}\n\n{fence}{}\n{part}{end}{fence}\n", language(reference.path))
    }
}

/// Where lines are in a text.
fn bytes_of(text: &str, lines: LineRange) -> Range<usize> {
    let before = |count: u32| text.split_inclusive('\n').take(count as usize).map(str::len).sum();
    before(lines.first - 1)..before(lines.last)
}
