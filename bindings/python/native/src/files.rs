//! Counting tokens, and files that texts name.

use std::path::Path;

use contexture::bpe::Bpe;
use contexture::fs::LocalFs;
use contexture::host::{FsAdapter, ReadLimits};
use contexture::reference::kinds::AllowList;
use contexture::reference::{Reference, find};
use contexture::tokens::{Estimate, TokenCounter};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::failure::{Failure, Kind, detached};

/// Largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The number of tokens of a text.
#[pyfunction]
pub(crate) fn count_tokens(py: Python<'_>, text: &str, counter: &str) -> PyResult<u64> {
    detached(py, || match counter {
        "o200k" => Ok(Bpe::o200k().count(text)),
        "estimate" => Ok(Estimate.count(text)),
        other => Err(Failure::new(Kind::Input, format!("there is no counter `{other}`"))
            .hint("there are `o200k`, which counts, and `estimate`, which divides bytes by four")),
    })
}

/// The files that a text names, as JSON, with their texts if a directory is given.
#[pyfunction]
#[pyo3(signature = (text, base_dir))]
pub(crate) fn find_references(py: Python<'_>, text: &str, base_dir: Option<&str>) -> PyResult<String> {
    detached(py, || {
        let allowed = AllowList::default();
        let files = base_dir.map(opened).transpose()?;
        let found = find(text, |name| allowed.is_name(name));
        let found: Vec<Value> =
            found.iter().map(|reference| described(text, reference, files.as_ref(), &allowed)).collect();
        Ok(Value::from(found).to_string())
    })
}

fn opened(base_dir: &str) -> Result<LocalFs, Failure> {
    let fail = |error: &dyn std::error::Error| {
        Failure::new(Kind::Input, format!("`{base_dir}` cannot be the base directory: {error}"))
    };
    let path = Path::new(base_dir).canonicalize().map_err(|error| fail(&error))?;
    LocalFs::open(&path).map_err(|error| fail(&error))
}

fn described(text: &str, reference: &Reference<'_>, files: Option<&LocalFs>, allowed: &AllowList) -> Value {
    // Python counts characters.
    let start = text[..reference.range.start].chars().count();
    let length = text[reference.range.clone()].chars().count();
    let lines = reference.lines.map(|lines| (lines.first, lines.last));
    let read = files.map(|files| read(files, reference, allowed));
    let (content, problem) = match read {
        None => (None, None),
        Some(Ok(content)) => (Some(content), None),
        Some(Err(problem)) => (None, Some(problem)),
    };
    json!({
        "path": reference.path, "start": start, "end": start + length, "lines": lines,
        "text": content, "problem": problem,
    })
}

/// The text of a file, or the lines of it that are named; otherwise why it is not read.
fn read(files: &LocalFs, reference: &Reference<'_>, allowed: &AllowList) -> Result<String, String> {
    if !allowed.allows(reference.path) {
        return Err("files of this kind are not read".to_owned());
    }
    let limits = ReadLimits { max_bytes: MAX_FILE_BYTES, follow_symlinks: false };
    // A runtime of this call: one that lives longer would have threads, which a fork loses.
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let file = runtime.block_on(files.read(reference.path, limits)).map_err(|error| error.code.as_str().to_owned())?;
    Ok(match reference.lines {
        None => file.text,
        Some(lines) => {
            let (before, count) = (lines.first as usize - 1, (lines.last - lines.first) as usize + 1);
            file.text.split_inclusive('\n').skip(before).take(count).collect()
        }
    })
}
