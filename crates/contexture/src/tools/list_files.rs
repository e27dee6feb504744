//! `list_files`: lists files.

use std::path::Path;
use std::sync::Arc;

use contexture_core::error::BoxError;
use contexture_core::host::{FileError, FileErrorCode, FsAdapter, ReadLimits};
use contexture_core::tool::{Tool, ToolContext};
use contexture_text::pattern::path_matches;
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{parse, schema_of};
use super::workspace::{Workspace, hinted};

/// Most files that one call lists.
const MAX_FILES: usize = 500;

/// How many files are visited before a search gives up: more than any source tree has.
const MAX_WALKED: usize = 1_000_000;

/// Lists files.
#[derive(Clone, Debug)]
pub struct ListFiles(Workspace);

#[derive(Deserialize, JsonSchema)]
struct ListFilesArguments {
    /// Only files beneath this directory, relative to the working directory.
    path: Option<String>,
    /// Only files whose path matches this glob, such as `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
}

impl ListFiles {
    /// Creates the tool for a directory.
    pub fn new(workspace: Workspace) -> Self {
        Self(workspace)
    }
}

impl Tool for ListFiles {
    fn name(&self) -> &str {
        "list_files"
    }

    fn description(&self) -> &str {
        "Names files beneath the working directory, without those that .gitignore leaves out."
    }

    fn parameters(&self) -> Value {
        schema_of::<ListFilesArguments>()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let ListFilesArguments { path, glob } = parse(arguments)?;
        let walk = DirectoryWalk::new(&self.0, path.as_deref(), glob.as_deref())?;
        let mut found = tokio::task::spawn_blocking(move || walk.collect(MAX_FILES + 1)).await??;
        if found.is_empty() {
            return Ok("(no files)".to_owned());
        }
        // A directory may have been replaced by a link during the walk, so only files below the base are listed.
        let names: Vec<&str> = found.iter().map(String::as_str).collect();
        let limits = ReadLimits { max_bytes: u64::MAX, follow_symlinks: false };
        let stamps = self.0.files().stat_many(&names, limits).await;
        let mut stamps = stamps.into_iter();
        found.retain(|_| stamps.next().is_some_and(|stamp| stamp.is_ok()));
        if found.is_empty() {
            return Ok("(no files)".to_owned());
        }
        let is_cut = found.len() > MAX_FILES;
        found.truncate(MAX_FILES);
        let mut shown = found.join("\n") + "\n";
        if is_cut {
            shown.push_str(&format!("[more than {MAX_FILES} files; say path or glob]\n"));
        }
        Ok(shown)
    }
}

/// A walk over the files below a directory, ordered by name.
pub(super) struct DirectoryWalk {
    walk: ignore::Walk,
    base: std::path::PathBuf,
    hidden: Arc<[String]>,
}

impl DirectoryWalk {
    /// Files below a directory that match a glob. `.gitignore` applies inside and outside of a repository; hidden files
    /// are included, except `.git`.
    pub(super) fn new(workspace: &Workspace, path: Option<&str>, glob: Option<&str>) -> Result<Self, BoxError> {
        let base = workspace.directory().to_owned();
        let start = match path.map(str::trim).filter(|path| !matches!(*path, "" | "." | "./" | "/")) {
            Some(path) => base.join(workspace.relative(path).map_err(hinted)?),
            None => base.clone(),
        };
        if std::fs::symlink_metadata(&start).is_err() {
            let path = path.unwrap_or_default();
            return Err(format!("there is no directory `{path}`; list_files without a path shows what there is").into());
        }
        if has_link(&base, &start) {
            let path = path.unwrap_or_default();
            let message = "a part of the path is a symbolic link";
            return Err(FileError::new(FileErrorCode::SymlinkRejected, path, message).into());
        }
        let mut builder = WalkBuilder::new(&start);
        builder.hidden(false).require_git(false).follow_links(false).sort_by_file_path(Path::cmp);
        builder.filter_entry(|entry| entry.file_name() != ".git");
        builder.overrides(matching(&base, glob)?);
        Ok(Self { walk: builder.build(), base, hidden: workspace.hidden().clone() })
    }

    /// The first files.
    fn collect(self, limit: usize) -> Result<Vec<String>, BoxError> {
        Ok(self.take(limit).collect())
    }
}

impl Iterator for DirectoryWalk {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        // Unreadable entries are skipped.
        let entries = self.walk.by_ref().take(MAX_WALKED).filter_map(Result::ok);
        let mut files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let is_shown = |path: &&str| !self.hidden.iter().any(|pattern| path_matches(pattern, path));
        files.find_map(|entry| {
            let path = entry.path().strip_prefix(&self.base).ok()?;
            path.to_str().filter(is_shown).map(str::to_owned)
        })
    }
}

/// Whether a part of a path below the base is a symbolic link.
fn has_link(base: &Path, path: &Path) -> bool {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    path.ancestors().take_while(|part| *part != base).any(is_link)
}

fn matching(base: &Path, glob: Option<&str>) -> Result<Override, BoxError> {
    let mut globs = OverrideBuilder::new(base);
    if let Some(glob) = glob.filter(|glob| !glob.is_empty()) {
        // A leading exclusion mark is not part of a glob here.
        let glob = glob.trim_start_matches('!');
        globs.add(glob).map_err(|error| format!("`{glob}` is no glob: {error}"))?;
    }
    Ok(globs.build()?)
}
