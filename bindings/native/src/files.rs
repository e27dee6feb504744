//! Counting tokens, and files that texts name.

use std::path::Path;

use contexture::bpe::Bpe;
use contexture::fs::LocalFs;
use contexture::host::{FsAdapter, ReadLimits};
use contexture::reference::kinds::AllowList;
use contexture::reference::{Reference, find};
use contexture::tokens::{Estimate, TokenCounter};
use serde::Serialize;

use crate::failure::{Failure, FailureKind, caught};

/// Largest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What a language counts the characters of its texts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetUnit {
    /// Unicode scalar values, as in Python.
    Character,
    /// Units of UTF-16, as in JavaScript.
    Utf16,
}

impl OffsetUnit {
    fn length(self, text: &str) -> usize {
        match self {
            OffsetUnit::Character => text.chars().count(),
            OffsetUnit::Utf16 => text.encode_utf16().count(),
        }
    }
}

/// The number of tokens of a text.
///
/// # Errors
/// There is no such counter.
pub fn count_tokens(text: &str, counter: &str) -> Result<u64, Failure> {
    caught(|| match counter {
        "o200k" => Ok(Bpe::o200k().count(text)),
        "estimate" => Ok(Estimate.count(text)),
        other => Err(Failure::new(FailureKind::Input, format!("there is no counter `{other}`"))
            .with_hint("there are `o200k`, which counts, and `estimate`, which divides bytes by four")),
    })
}

/// A file that a text names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundReference {
    /// The path as written. It was not checked: it may lead anywhere.
    pub path: String,
    /// Where it begins in the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The first and the last line that it is limited to.
    pub lines: Option<(u32, u32)>,
    /// The text of the file, if it was read.
    pub text: Option<String>,
    /// Why it was not read.
    pub problem: Option<String>,
}

/// The files that a text names, with their texts if a directory is given.
///
/// # Errors
/// The directory cannot be read.
pub fn references(text: &str, base_dir: Option<&str>, unit: OffsetUnit) -> Result<Vec<FoundReference>, Failure> {
    caught(|| {
        let allowed = AllowList::default();
        let files = base_dir.map(opened).transpose()?;
        let found = find(text, |name| allowed.is_name(name));
        Ok(found.iter().map(|reference| described(text, reference, files.as_ref(), &allowed, unit)).collect())
    })
}

fn opened(base_dir: &str) -> Result<LocalFs, Failure> {
    let fail = |error: &dyn std::error::Error| {
        Failure::new(FailureKind::Input, format!("`{base_dir}` cannot be the base directory: {error}"))
            .with_hint("name a directory that exists and can be read")
    };
    let path = Path::new(base_dir).canonicalize().map_err(|error| fail(&error))?;
    LocalFs::open(&path).map_err(|error| fail(&error))
}

fn described(
    text: &str,
    reference: &Reference<'_>,
    files: Option<&LocalFs>,
    allowed: &AllowList,
    unit: OffsetUnit,
) -> FoundReference {
    let start = unit.length(&text[..reference.range.start]);
    let length = unit.length(&text[reference.range.clone()]);
    let lines = reference.lines.map(|lines| (lines.first, lines.last));
    let read = files.map(|files| read(files, reference, allowed));
    let (content, problem) = match read {
        None => (None, None),
        Some(Ok(content)) => (Some(content), None),
        Some(Err(problem)) => (None, Some(problem)),
    };
    FoundReference { path: reference.path.to_owned(), start, end: start + length, lines, text: content, problem }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, unit: OffsetUnit, start: usize) {
        assert_eq!(references(text, None, unit).unwrap()[0].start, start, "{text}");
    }

    #[test]
    fn offsets_are_in_the_units_of_the_language() {
        check("ü #a.md", OffsetUnit::Character, 2);
        check("ü #a.md", OffsetUnit::Utf16, 2);
        check("\u{1f600} #a.md", OffsetUnit::Character, 2);
        check("\u{1f600} #a.md", OffsetUnit::Utf16, 3);
    }
}
