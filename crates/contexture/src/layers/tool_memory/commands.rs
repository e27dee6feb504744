//! The six commands of the public memory tool, over files in a state.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES};
use crate::redact;
use contexture_text::one_line::one_line;
use contexture_text::revised::Revised;

/// What the model is told if it wrote a secret.
const REMOVED: &str = "A secret in it was replaced by its kind, since keys and passwords are not kept.";
/// The root directory.
const ROOT: &str = "/memories";
/// Longest path.
const MAX_PATH_BYTES: usize = 256;
/// Most bytes of a file that one view shows.
const MAX_VIEW_BYTES: usize = 16 * 1024;

/// The most lines that are named in an error, or shown of a change.
const MAX_LISTED_LINES: usize = 20;

/// How many lines before and after a change are shown.
const LINES_AROUND: usize = 2;

/// What `tool-memory/memory` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum MemoryCommand {
    /// Lists a directory or shows a file, with numbered lines.
    View {
        /// The directory or file.
        path: String,
        /// The first and the last line to show; -1 is the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        view_range: Option<(i64, i64)>,
    },
    /// Makes a file, which must not be there.
    Create {
        /// The file.
        path: String,
        /// Its text.
        file_text: String,
    },
    /// Replaces a piece of text that is in a file exactly once.
    StrReplace {
        /// The file.
        path: String,
        /// The text to be replaced.
        old_str: String,
        /// What replaces it.
        #[serde(default)]
        new_str: String,
    },
    /// Inserts lines after a line; 0 is the start.
    Insert {
        /// The file.
        path: String,
        /// The number of the line.
        insert_line: u64,
        /// What is inserted.
        insert_text: String,
    },
    /// Removes a file, or a directory with all that is in it.
    Delete {
        /// The file or directory.
        path: String,
    },
    /// Gives a file or directory another path.
    Rename {
        /// The path that it has.
        old_path: String,
        /// The path that it gets.
        new_path: String,
    },
}

/// The input as models know it.
pub(super) fn schema() -> Value {
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    json!({
        "type": "object",
        "properties": {
            "command": { "enum": ["view", "create", "str_replace", "insert", "delete", "rename"] },
            "path": text,
            "view_range": { "type": "array", "items": number },
            "file_text": text,
            "old_str": text,
            "new_str": text,
            "insert_line": number,
            "insert_text": text,
            "old_path": text,
            "new_path": text,
        },
        "required": ["command"],
    })
}

/// Executes a command; an error changes nothing. What looks like a key or a password is not kept, and the model is told.
pub(super) fn run(command: MemoryCommand, files: &mut Revised<String>) -> Result<String, String> {
    let secrets = secrets_in(&command);
    let told = execute(command, files)?;
    Ok(if secrets { format!("{told} {REMOVED}") } else { told })
}

/// Whether a command would write a secret.
fn secrets_in(command: &MemoryCommand) -> bool {
    match command {
        MemoryCommand::Create { file_text: text, .. }
        | MemoryCommand::StrReplace { new_str: text, .. }
        | MemoryCommand::Insert { insert_text: text, .. } => !redact::secrets(text).is_empty(),
        MemoryCommand::View { .. } | MemoryCommand::Delete { .. } | MemoryCommand::Rename { .. } => false,
    }
}

fn execute(command: MemoryCommand, files: &mut Revised<String>) -> Result<String, String> {
    match command {
        MemoryCommand::View { path, view_range } => view(files, &path, view_range),
        MemoryCommand::Create { path, file_text } => {
            let path = file_path(&path)?;
            if files.get(&path).is_some() {
                return Err(format!("Error: File {path} already exists. Change it with `str_replace` or `insert`"));
            }
            put(files, &path, file_text)?;
            Ok(format!("File created successfully at: {path}"))
        }
        MemoryCommand::StrReplace { path, old_str, new_str } => str_replace(files, &path, &old_str, &new_str),
        MemoryCommand::Insert { path, insert_line, insert_text } => insert(files, &path, insert_line, &insert_text),
        MemoryCommand::Delete { path } => {
            let path = file_path(&path)?;
            let gone = beneath(files, &path)?;
            for name in gone {
                files.remove(&name);
            }
            Ok(format!("Successfully deleted {path}"))
        }
        MemoryCommand::Rename { old_path, new_path } => rename(files, &old_path, &new_path),
    }
}

/// Normalises a path below the root.
fn normal(path: &str) -> Result<String, String> {
    let shown = one_line(path);
    let rest = path.strip_prefix(ROOT).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let rest = rest.ok_or_else(|| format!("Error: the path `{shown}` must be `{ROOT}` or begin with `{ROOT}/`"))?;
    let mut normal = ROOT.to_owned();
    for name in rest.split('/').filter(|name| !name.is_empty()) {
        let is_odd = matches!(name, "." | "..") || name.contains(['\\', '%']) || name != one_line(name);
        if is_odd {
            return Err(format!("Error: the path `{shown}` has a name that is not allowed"));
        }
        normal.push('/');
        normal.push_str(name);
    }
    match normal.len() {
        bytes if bytes > MAX_PATH_BYTES => {
            Err(format!("Error: the path has {bytes} bytes, more than {MAX_PATH_BYTES}"))
        }
        _ => Ok(normal),
    }
}

fn file_path(path: &str) -> Result<String, String> {
    match normal(path)? {
        path if path == ROOT => Err(format!("Error: `{ROOT}` is the directory itself")),
        path => Ok(path),
    }
}

/// The files at or below a path.
fn beneath(files: &Revised<String>, path: &str) -> Result<Vec<String>, String> {
    let prefix = format!("{path}/");
    let is_in = |name: &str| name == path || name.starts_with(&prefix);
    let names: Vec<String> = files.iter().map(|(name, _)| name).filter(|name| is_in(name)).map(str::to_owned).collect();
    if names.is_empty() { Err(missing(path)) } else { Ok(names) }
}

fn missing(path: &str) -> String {
    format!("Error: the path {path} does not exist. `view` of {ROOT} lists what does")
}

fn text_of<'a>(files: &'a Revised<String>, path: &str) -> Result<&'a String, String> {
    files.get(path).ok_or_else(|| missing(path))
}

/// Writes a file, within the limits and without secrets.
fn put(files: &mut Revised<String>, path: &str, text: String) -> Result<(), String> {
    let text = redact::redact(&text).into_owned();
    if text.len() > MAX_FILE_BYTES {
        return Err(format!("Error: the file would have {} bytes, more than {MAX_FILE_BYTES}", text.len()));
    }
    let prefix = format!("{path}/");
    let is_file = |above: &str| files.get(above).is_some();
    let above = path.match_indices('/').skip(2).map(|(at, _)| &path[..at]).find(|above| is_file(above));
    if let Some(above) = above {
        return Err(format!("Error: {above} is a file, so nothing can be beneath it"));
    }
    if files.iter().any(|(name, _)| name.starts_with(&prefix)) {
        return Err(format!("Error: {path} is a directory"));
    }
    if files.get(path).is_none() && files.len() >= MAX_FILES {
        return Err(format!("Error: there are {MAX_FILES} files already: delete some first"));
    }
    let others: usize = files.iter().filter(|(name, _)| *name != path).map(|(_, text)| text.len()).sum();
    if others + text.len() > MAX_TOTAL_BYTES {
        return Err(format!("Error: all files would have more than {MAX_TOTAL_BYTES} bytes: delete some first"));
    }
    files.set(path, text);
    Ok(())
}

fn view(files: &Revised<String>, path: &str, range: Option<(i64, i64)>) -> Result<String, String> {
    let path = normal(path)?;
    let Some(text) = files.get(&path) else { return list(files, &path) };
    let lines: Vec<&str> = text.lines().collect();
    let count = lines.len() as i64;
    let (first, last) = match range {
        None => (1, count),
        Some((first, -1)) => (first, count),
        Some(range) => range,
    };
    if range.is_some() && (first < 1 || last < first || first > count) {
        return Err(format!("Error: `view_range` must be within lines 1 to {count}"));
    }
    let mut shown = format!("Here's the content of {path} with line numbers:");
    for (index, line) in lines.iter().enumerate().take(last.min(count) as usize).skip((first - 1) as usize) {
        if shown.len() > MAX_VIEW_BYTES {
            shown.push_str(&format!("\n[… lines {} to {count} are not shown: use `view_range` …]", index + 1));
            break;
        }
        shown.push_str(&format!("\n{:>6}\t{line}", index + 1));
    }
    Ok(shown)
}

/// Files and directories, two levels deep.
fn list(files: &Revised<String>, path: &str) -> Result<String, String> {
    if path != ROOT {
        beneath(files, path)?;
    }
    let prefix = format!("{path}/");
    let mut entries: Vec<(String, usize)> = Vec::new();
    for (name, text) in files.iter() {
        let Some(rest) = name.strip_prefix(&prefix) else { continue };
        let ends = rest.match_indices('/').map(|(at, _)| at).chain([rest.len()]).take(2);
        for end in ends {
            let entry = format!("{prefix}{}", &rest[..end]);
            match entries.iter_mut().find(|(other, _)| *other == entry) {
                Some((_, bytes)) => *bytes += text.len(),
                None => entries.push((entry, text.len())),
            }
        }
    }
    let mut shown = format!("Here're the files and directories up to 2 levels deep in {path}:");
    let all: usize = files.iter().filter(|(name, _)| name.starts_with(&prefix)).map(|(_, text)| text.len()).sum();
    for (entry, bytes) in std::iter::once((path.to_owned(), all)).chain(entries) {
        shown.push_str(&format!("\n{}\t{entry}", size(bytes)));
    }
    Ok(shown)
}

/// A number of bytes as models know it from listings: `0B`, `17B`, `1.5K`.
fn size(bytes: usize) -> String {
    let (mut size, mut units) = (bytes as f64, ["B", "K", "M"].into_iter());
    let mut unit = units.next().unwrap_or_default();
    while size >= 1024.0
        && let Some(next) = units.next()
    {
        (size, unit) = (size / 1024.0, next);
    }
    match size.fract() == 0.0 {
        true => format!("{size:.0}{unit}"),
        false => format!("{size:.1}{unit}"),
    }
}

fn str_replace(files: &mut Revised<String>, path: &str, old: &str, new: &str) -> Result<String, String> {
    let path = file_path(path)?;
    let text = text_of(files, &path)?;
    let line_at = |at: usize| text[..at].matches('\n').count() + 1;
    let found: Vec<usize> = match old.is_empty() {
        true => Vec::new(),
        false => text.match_indices(old).map(|(at, _)| line_at(at)).take(MAX_LISTED_LINES).collect(),
    };
    let problem = match found.as_slice() {
        _ if old.is_empty() => "`old_str` is empty".to_owned(),
        [] => "`old_str` did not appear verbatim in the file".to_owned(),
        [_] => String::new(),
        several => {
            let lines: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("`old_str` appears more than once, in lines {}: give more of the text around it", lines.join(", "))
        }
    };
    if !problem.is_empty() {
        return Err(format!("Error: no replacement was performed in {path}: {problem}"));
    }
    let replaced = text.replacen(old, new, 1);
    put(files, &path, replaced)?;
    let first = found.first().copied().unwrap_or(1);
    let snippet = around(text_of(files, &path)?, first, first + new.matches('\n').count());
    Ok(format!("The memory file has been edited. Here is the snippet showing the change (with line numbers):{snippet}"))
}

/// The lines of a text from one to another with those beside them, numbered.
fn around(text: &str, first: usize, last: usize) -> String {
    let (first, last) = (first.saturating_sub(LINES_AROUND).max(1), last.min(first + MAX_LISTED_LINES) + LINES_AROUND);
    let lines = (1..).zip(text.lines()).skip(first - 1).take(last + 1 - first);
    lines.map(|(number, line)| format!("\n{number:>6}\t{line}")).collect()
}

fn insert(files: &mut Revised<String>, path: &str, line: u64, inserted: &str) -> Result<String, String> {
    let path = file_path(path)?;
    let mut lines: Vec<&str> = text_of(files, &path)?.lines().collect();
    let Some(at) = usize::try_from(line).ok().filter(|at| *at <= lines.len()) else {
        return Err(format!("Error: `insert_line` must be within 0 to {}", lines.len()));
    };
    lines.splice(at..at, inserted.lines());
    let text = format!("{}\n", lines.join("\n"));
    put(files, &path, text)?;
    Ok(format!("The file {path} has been edited."))
}

fn rename(files: &mut Revised<String>, old: &str, new: &str) -> Result<String, String> {
    let (old, new) = (file_path(old)?, file_path(new)?);
    let names = beneath(files, &old)?;
    if beneath(files, &new).is_ok() {
        return Err(format!("Error: the destination {new} already exists"));
    }
    if new.starts_with(&format!("{old}/")) {
        return Err(format!("Error: {old} cannot become a part of itself"));
    }
    let mut renamed = files.clone();
    for name in names {
        let text = text_of(files, &name)?.clone();
        renamed.remove(&name);
        put(&mut renamed, &normal(&format!("{new}{}", &name[old.len()..]))?, text)?;
    }
    *files = renamed;
    Ok(format!("Successfully renamed {old} to {new}"))
}
