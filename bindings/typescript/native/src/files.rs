//! Counting tokens, and files that texts name.

use contexture_in_process::{FoundReference, OffsetUnit};
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use crate::work::{Work, number, promised, thrown};

/// A file that a text names as `#path`.
#[napi(object)]
pub struct Reference {
    /// The path as written. It was not checked: it may lead anywhere.
    pub path: String,
    /// Where it begins in the text.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// The first line that it is limited to.
    pub first_line: Option<u32>,
    /// The last line that it is limited to.
    pub last_line: Option<u32>,
    /// The text of the file, if a base directory was given and it can be read there.
    pub text: Option<String>,
    /// Why the file was not read.
    pub problem: Option<String>,
}

impl From<FoundReference> for Reference {
    fn from(found: FoundReference) -> Self {
        let FoundReference { path, start, end, lines, text, problem } = found;
        let (first_line, last_line) = lines.unzip();
        Self { path, start: number(start), end: number(end), first_line, last_line, text, problem }
    }
}

/// The number of tokens of a text.
#[napi]
pub fn count_tokens(text: String, counter: String) -> napi::Result<u32> {
    contexture_in_process::count_tokens(&text, &counter).map(number).map_err(|failure| thrown(&failure))
}

/// The files that a text names, with their texts if a directory is given.
#[napi(ts_return_type = "Promise<Array<Reference>>")]
pub fn find_references(text: String, base_dir: Option<String>) -> AsyncTask<Work<Vec<Reference>>> {
    promised(move || {
        let found = contexture_in_process::references(&text, base_dir.as_deref(), OffsetUnit::Utf16)?;
        Ok(found.into_iter().map(Reference::from).collect())
    })
}
