//! A folder for one conversation.

use contexture_in_process::{Folder, to_json};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::detached;

/// The folder that `contexture.Folder` uses.
#[pyclass(frozen, module = "contexture._native")]
pub(crate) struct NativeFolder {
    folder: Folder,
}

#[pymethods]
impl NativeFolder {
    /// A folder with options, which are JSON.
    #[new]
    #[pyo3(signature = (options, snapshot = None))]
    fn new(py: Python<'_>, options: &str, snapshot: Option<&str>) -> PyResult<Self> {
        Ok(Self { folder: detached(py, || Folder::new(options, snapshot))? })
    }

    /// The body to send, or `None` for the one that was passed; and what was decided, as JSON.
    fn request<'py>(&self, py: Python<'py>, body: &[u8]) -> PyResult<(Option<Bound<'py, PyBytes>>, String)> {
        let (changed, report) = detached(py, || {
            let folded = self.folder.request(body)?;
            Ok((folded.changed, to_json(&folded.report)?))
        })?;
        Ok((changed.map(|body| PyBytes::new(py, &body)), report))
    }

    /// Notes what was billed for a request. Returns the bill as JSON.
    fn usage(&self, py: Python<'_>, number: Option<u64>, reported: &[u8]) -> PyResult<String> {
        detached(py, || to_json(&self.folder.usage(number, reported)?))
    }

    /// Notes that the provider refused a request.
    fn refused(&self, py: Python<'_>, number: Option<u64>, original_was_accepted: bool) -> PyResult<()> {
        detached(py, || self.folder.refused(number, original_was_accepted))
    }

    /// What was decided so far, as JSON.
    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        detached(py, || self.folder.snapshot())
    }

    /// Frees what is in memory, once other threads have finished with it.
    fn close(&self) {
        self.folder.close();
    }
}
