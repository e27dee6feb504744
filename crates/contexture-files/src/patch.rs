//! Patches as coding agents write them.
//!
//! Three forms: the `*** Begin Patch` form, search-and-replace blocks, and unified diffs.

use super::numbering::line_number;

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePatch {
    /// The file is created with this text.
    Add {
        /// The file as written.
        path: String,
        /// Its text.
        text: String,
    },
    /// The file is removed.
    Delete {
        /// The file as written.
        path: String,
    },
    /// Lines of the file are replaced, and it may be renamed.
    Update {
        /// The file as written.
        path: String,
        /// Its new name.
        moved: Option<String>,
        /// The replacements, in order.
        hunks: Vec<Hunk>,
    },
}

impl FilePatch {
    /// The file that is patched.
    pub fn path(&self) -> &str {
        match self {
            FilePatch::Add { path, .. } | FilePatch::Delete { path } | FilePatch::Update { path, .. } => path,
        }
    }
}

/// One replacement of consecutive lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The lines as they were, with context.
    pub old: Vec<String>,
    /// The lines as they are.
    pub new: Vec<String>,
    /// Which lines of `new` were added by the patch; the others are context.
    pub added: Vec<bool>,
    /// The number of the first new line, if the patch gives it.
    pub first: Option<usize>,
    /// A line that comes before it, if the patch names one.
    pub after: Option<String>,
    /// Whether it is at the end of the file.
    pub is_at_end: bool,
}

impl Hunk {
    fn is_empty(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }

    fn push(&mut self, line: &str) {
        let (mark, text) = match line.chars().next() {
            Some(mark @ (' ' | '+' | '-')) => (mark, &line[1..]),
            _ => (' ', line),
        };
        if mark != '+' {
            self.old.push(text.to_owned());
        }
        if mark != '-' {
            self.new.push(text.to_owned());
            self.added.push(mark == '+');
        }
    }
}

/// Reads the `*** Begin Patch` form.
///
/// ```
/// use contexture_files::patch::{FilePatch, parse_begin_patch};
/// let patches = parse_begin_patch("*** Begin Patch\n*** Update File: a.rs\n@@\n one\n-two\n+three\n*** End Patch");
/// let FilePatch::Update { hunks, .. } = &patches[0] else { panic!() };
/// assert_eq!(hunks[0].old, ["one", "two"]);
/// assert_eq!(hunks[0].new, ["one", "three"]);
/// ```
pub fn parse_begin_patch(text: &str) -> Vec<FilePatch> {
    let mut patches: Vec<FilePatch> = Vec::new();
    let mut hunk = Hunk::default();
    for line in text.lines() {
        if line.starts_with("*** End of File") {
            hunk.is_at_end = true;
        } else if let Some(directive) = line.strip_prefix("*** ") {
            end_hunk(&mut patches, &mut hunk);
            begin_file(&mut patches, directive);
        } else if let Some(named) = line.strip_prefix("@@") {
            end_hunk(&mut patches, &mut hunk);
            hunk.after = Some(named.trim().to_owned()).filter(|named| !named.is_empty());
        } else {
            match patches.last_mut() {
                Some(FilePatch::Add { text, .. }) => {
                    if let Some(added) = line.strip_prefix('+') {
                        text.push_str(added);
                        text.push('\n');
                    }
                }
                Some(FilePatch::Update { .. }) => hunk.push(line),
                _ => {}
            }
        }
    }
    end_hunk(&mut patches, &mut hunk);
    patches
}

fn begin_file(patches: &mut Vec<FilePatch>, directive: &str) {
    let path_after = |name: &str| directive.strip_prefix(name).map(|path| path.trim().to_owned());
    if let Some(path) = path_after("Update File: ") {
        patches.push(FilePatch::Update { path, moved: None, hunks: Vec::new() });
    } else if let Some(path) = path_after("Add File: ") {
        patches.push(FilePatch::Add { path, text: String::new() });
    } else if let Some(path) = path_after("Delete File: ") {
        patches.push(FilePatch::Delete { path });
    } else if let (Some(to), Some(FilePatch::Update { moved, .. })) = (path_after("Move to: "), patches.last_mut()) {
        *moved = Some(to);
    }
}

fn end_hunk(patches: &mut [FilePatch], hunk: &mut Hunk) {
    let done = std::mem::take(hunk);
    if let (false, Some(FilePatch::Update { hunks, .. })) = (done.is_empty(), patches.last_mut()) {
        hunks.push(done);
    }
}

/// Reads search-and-replace blocks: `<<<<<<< SEARCH`, `=======`, `>>>>>>> REPLACE`.
///
/// ```
/// use contexture_files::patch::parse_search_replace;
/// let pairs = parse_search_replace("<<<<<<< SEARCH\n:start_line:4\n-------\na\n=======\nb\n>>>>>>> REPLACE\n");
/// assert_eq!(pairs, [("a".to_owned(), "b".to_owned())]);
/// ```
pub fn parse_search_replace(text: &str) -> Vec<(String, String)> {
    search_blocks(text).into_iter().map(|block| (block.search, block.replace)).collect()
}

/// One search-and-replace block.
pub(crate) struct SearchBlock {
    pub(crate) search: String,
    pub(crate) replace: String,
    /// Where the search begins, if the block says so in `:start_line:4`; 0 if that is not a number.
    pub(crate) first: Option<usize>,
}

/// Reads search-and-replace blocks with the line that they give.
pub(crate) fn search_blocks(text: &str) -> Vec<SearchBlock> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !is_search_mark(line) {
            continue;
        }
        let mut search: Vec<&str> = lines.by_ref().take_while(|line| *line != "=======").collect();
        let mut first = None;
        if let Some(rule) = search.iter().take(3).position(|line| *line == "-------") {
            let hint = search.drain(..=rule).find_map(|line| line.trim().strip_prefix(":start_line:"));
            first = hint.map(|line| line_number(line.trim()).unwrap_or_default());
        }
        let replace: Vec<&str> = lines.by_ref().take_while(|line| !is_replace_mark(line)).collect();
        blocks.push(SearchBlock { search: search.join("\n"), replace: replace.join("\n"), first });
    }
    blocks
}

fn is_search_mark(line: &str) -> bool {
    (line.starts_with("<<<<<<<") || line.starts_with("-------")) && line.contains("SEARCH")
}

fn is_replace_mark(line: &str) -> bool {
    (line.starts_with(">>>>>>>") || line.starts_with("+++++++")) && line.contains("REPLACE")
}

/// Reads a unified diff, as `git diff` prints it.
///
/// ```
/// use contexture_files::patch::{FilePatch, parse_unified};
/// let patches = parse_unified("--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ fn\n one\n-two\n+three\n");
/// let FilePatch::Update { path, hunks, .. } = &patches[0] else { panic!() };
/// assert_eq!((path.as_str(), hunks[0].first), ("x.rs", Some(1)));
/// ```
pub fn parse_unified(text: &str) -> Vec<FilePatch> {
    let mut patches: Vec<FilePatch> = Vec::new();
    let mut hunk = Hunk::default();
    let mut left = (0_usize, 0_usize);
    let mut old_path = None;
    for line in text.lines() {
        if left != (0, 0) {
            take_diff_line(&mut hunk, &mut left, line);
        } else if let Some(path) = line.strip_prefix("--- ") {
            old_path = diff_path(path);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            end_hunk(&mut patches, &mut hunk);
            match (diff_path(path), old_path.take()) {
                (Some(path), _) => patches.push(FilePatch::Update { path, moved: None, hunks: Vec::new() }),
                (None, Some(path)) => patches.push(FilePatch::Delete { path }),
                (None, None) => {}
            }
        } else if let Some((old_len, first, new_len)) = diff_range(line) {
            end_hunk(&mut patches, &mut hunk);
            hunk.first = Some(first);
            left = (old_len, new_len);
        }
    }
    end_hunk(&mut patches, &mut hunk);
    patches
}

/// Adds a line to a hunk of known length; `left` counts the remaining old and new lines.
fn take_diff_line(hunk: &mut Hunk, left: &mut (usize, usize), line: &str) {
    match line.chars().next() {
        Some('\\') => return,
        Some('+') => left.1 = left.1.saturating_sub(1),
        Some('-') => left.0 = left.0.saturating_sub(1),
        Some(' ') | None => *left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
        Some(_) => {
            // No longer a diff: the output was cut.
            *left = (0, 0);
            return;
        }
    }
    hunk.push(line);
}

fn diff_path(written: &str) -> Option<String> {
    let path = written.split('\t').next().unwrap_or(written).trim();
    if path == "/dev/null" {
        return None;
    }
    let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    Some(bare.to_owned())
}

/// Old length, first new line and new length of `@@ -1,2 +3,4 @@`.
fn diff_range(line: &str) -> Option<(usize, usize, usize)> {
    let inner = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (old, new) = inner.split_once(" +")?;
    let pair = |range: &str| -> Option<(usize, usize)> {
        match range.split_once(',') {
            Some((first, len)) => Some((line_number(first)?, line_number(len)?)),
            None => Some((line_number(range)?, 1)),
        }
    };
    let (_, old_len) = pair(old)?;
    let (first, new_len) = pair(new)?;
    Some((old_len, first, new_len))
}
