//! Counting tokens, and files that texts name.

use contexture_in_process::{OffsetUnit, references, to_json};
use pyo3::prelude::*;

use crate::failure::detached;

/// The number of tokens of a text.
#[pyfunction]
pub(crate) fn count_tokens(py: Python<'_>, text: &str, counter: &str) -> PyResult<u64> {
    detached(py, || contexture_in_process::count_tokens(text, counter))
}

/// The files that a text names, as JSON, with their texts if a directory is given.
#[pyfunction]
#[pyo3(signature = (text, base_dir))]
pub(crate) fn find_references(py: Python<'_>, text: &str, base_dir: Option<&str>) -> PyResult<String> {
    detached(py, || to_json(&references(text, base_dir, OffsetUnit::Character)?))
}
