//! Files that a user names in a message: `#src/main.rs`, `#src/main.rs:10-40`.

use std::path::Path;

use contexture::fs::LocalFs;
use contexture::host::{FsAdapter, ReadLimits};
use contexture::item::{Item, Origin, Role};
use contexture::reference::kinds::{AllowList, language};
use contexture::reference::{Reference, find};
use contexture::tokens::TokenCounter;
use contexture::window::{fence_for, shorten};
use contexture::wire::Unit;

/// Largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Most files per message.
const MAX_FILES: usize = 16;

/// Most tokens for all files of one message together.
const MAX_TOKENS: u64 = 8_000;

/// The text to send after a message for the files that it names; `None` if it names none.
///
/// Only user messages are searched. For a file that cannot be read, the text says so and gives its name as written.
pub(crate) fn referenced(directory: &Path, units: &[Unit], counter: &dyn TokenCounter) -> Option<String> {
    let allowed = AllowList::default();
    let said: Vec<String> = units.iter().filter_map(|unit| said(&unit.item)).collect();
    let mut named: Vec<Reference<'_>> = Vec::new();
    for reference in said.iter().flat_map(|text| find(text, |name| allowed.is_name(name))) {
        if !named.iter().any(|other| other.path == reference.path && other.lines == reference.lines) {
            named.push(reference);
        }
    }
    if named.is_empty() {
        return None;
    }
    let files = LocalFs::open(directory).ok()?;
    let each = MAX_TOKENS / named.len().min(MAX_FILES) as u64;
    let mut text = String::from("# Referenced Files\n");
    for reference in named.into_iter().take(MAX_FILES) {
        text.push_str(&shown(&files, &allowed, &reference, counter, each));
    }
    Some(text)
}

/// The text that a user wrote in an item.
fn said(item: &Item) -> Option<String> {
    let message =
        item.as_message().filter(|message| message.role == Role::User && message.meta.origin == Origin::Said)?;
    Some(message.text())
}

fn shown(
    files: &LocalFs,
    allowed: &AllowList,
    reference: &Reference<'_>,
    counter: &dyn TokenCounter,
    most: u64,
) -> String {
    let path = reference.path.replace(['\n', '\r', '`'], " ");
    if !allowed.allows(reference.path) {
        return format!("\n## `{path}`\n\nnot shown: files of this kind are not read\n");
    }
    let limits = ReadLimits { max_bytes: MAX_FILE_BYTES, follow_symlinks: false };
    // This runs on a blocking thread, so it may wait.
    let read =
        tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.block_on(files.read(reference.path, limits)));
    let text = match read {
        Some(Ok(file)) => file.text,
        Some(Err(error)) => return format!("\n## `{path}`\n\nnot shown: {}\n", error.code.as_str()),
        None => return String::new(),
    };
    let (lines, part) = match reference.lines {
        Some(range) => {
            let chosen =
                text.split_inclusive('\n').skip(range.first as usize - 1).take((range.last - range.first) as usize + 1);
            (format!(", lines {}-{}", range.first, range.last), chosen.collect::<String>())
        }
        None => (String::new(), text),
    };
    let part = shorten(counter, &part, most);
    let fence = fence_for(&part);
    let end = if part.is_empty() || part.ends_with('\n') { "" } else { "\n" };
    format!("\n## `{path}`{lines}\n\n{fence}{}\n{part}{end}{fence}\n", language(reference.path))
}
