//! `search_files`: finds lines by a regular expression.

use contexture_core::error::BoxError;
use contexture_core::tool::{Tool, ToolContext};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{parse, schema_of};
use super::list_files::DirectoryWalk;
use super::workspace::Workspace;

/// Most matches that one call shows.
const MAX_HITS: usize = 200;

/// How much of a line is shown.
const MAX_LINE_BYTES: usize = 400;

/// The largest size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// Finds lines by a regular expression.
#[derive(Clone, Debug)]
pub struct SearchFiles(Workspace);

#[derive(Deserialize, JsonSchema)]
struct SearchFilesArguments {
    /// A regular expression, matched against single lines.
    pattern: String,
    /// Only files beneath this directory, relative to the working directory, or only this file.
    path: Option<String>,
    /// Only files whose path matches this glob, such as `*.rs`.
    glob: Option<String>,
    /// Whether upper and lower case are the same.
    ignore_case: Option<bool>,
}

impl SearchFiles {
    /// Creates the tool for a directory.
    pub fn new(workspace: Workspace) -> Self {
        Self(workspace)
    }
}

impl Tool for SearchFiles {
    fn name(&self) -> &str {
        "search_files"
    }

    fn description(&self) -> &str {
        "Finds lines by a regular expression in text files that .gitignore does not leave out, as path:line:text."
    }

    fn parameters(&self) -> Value {
        schema_of::<SearchFilesArguments>()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let SearchFilesArguments { pattern, path, glob, ignore_case } = parse(arguments)?;
        let pattern = RegexBuilder::new(&pattern)
            .case_insensitive(ignore_case.unwrap_or(false))
            .size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|error| format!("`{pattern}` is no regular expression: {error}"))?;
        let mut walk = DirectoryWalk::new(&self.0, path.as_deref(), glob.as_deref())?;
        let (mut hits, mut shown) = (0, String::new());
        loop {
            // The walk blocks on the disk; files are then read by handle, below the directory.
            let (next, rest) = tokio::task::spawn_blocking(move || (walk.next(), walk)).await?;
            walk = rest;
            let Some(file) = next else { break };
            // Files that are not text, too large or deleted are skipped.
            let Ok(read) = self.0.look(&file).await else { continue };
            hits += add_hits(&mut shown, &file, &read.text, &pattern, MAX_HITS - hits);
            if hits >= MAX_HITS {
                shown.push_str(&format!("[the first {MAX_HITS} lines; say path or glob, or a narrower pattern]\n"));
                break;
            }
        }
        Ok(if hits == 0 { "(no lines found)".to_owned() } else { shown })
    }
}

/// Adds the matching lines of a file. Returns how many.
fn add_hits(shown: &mut String, file: &str, text: &str, pattern: &Regex, limit: usize) -> usize {
    let lines = text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)).take(limit);
    let mut hits = 0;
    for (index, line) in lines {
        hits += 1;
        let cut = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
        let more = if cut.len() < line.len() { "…" } else { "" };
        shown.push_str(&format!("{file}:{}:{cut}{more}\n", index + 1));
    }
    hits
}
