//! Sessions that OpenCode keeps in files: what is known of one, its messages and their parts, each in a file of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

/// The messages of a session, one per line, as `opencode export` writes them.
pub(super) fn lines_of_files(storage: &Path, session: &str) -> anyhow::Result<String> {
    let mut lines = String::new();
    for message in files(&storage.join("message").join(session))? {
        let id = message.file_stem().unwrap_or_default().to_owned();
        let parts = files(&storage.join("part").join(id)).unwrap_or_default();
        let parts: Vec<Value> = parts.iter().filter_map(|part| value(part).ok()).collect();
        let Ok(info) = value(&message) else { continue };
        lines.push_str(&format!("{}\n", json!({ "info": info, "parts": parts })));
    }
    Ok(lines)
}

/// The files of a directory by name, which is their order in time.
fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("list `{}`", directory.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}

fn value(path: &Path) -> anyhow::Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}
