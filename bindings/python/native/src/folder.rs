//! A folder for one conversation.

use std::sync::{Arc, Mutex, PoisonError};

use contexture_gateway::in_process::{
    OptionsError, RequestError, SnapshotError, UsageError, WireFolder, WireFolderOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::{Failure, Kind, detached};

/// What a body should have been.
const BODY_HINT: &str = "a request is the JSON body of Anthropic messages, OpenAI chat completions or OpenAI responses";

/// The folder that `contexture.Folder` uses.
#[pyclass(frozen, module = "contexture._native")]
pub(crate) struct NativeFolder {
    /// `None` after it was closed.
    folder: Mutex<Option<Arc<WireFolder>>>,
}

#[pymethods]
impl NativeFolder {
    /// A folder with options, which are JSON.
    #[new]
    #[pyo3(signature = (options, snapshot = None))]
    fn new(py: Python<'_>, options: &str, snapshot: Option<&str>) -> PyResult<Self> {
        let folder = detached(py, || {
            let options: WireFolderOptions =
                serde_json::from_str(options).map_err(|error| Failure::of(Kind::Input, &error))?;
            match snapshot {
                None => WireFolder::new(options).map_err(wrong_options),
                Some(snapshot) => WireFolder::restore(options, snapshot).map_err(wrong_snapshot),
            }
        })?;
        Ok(Self { folder: Mutex::new(Some(Arc::new(folder))) })
    }

    /// The body to send, or `None` for the one that was passed; and what was decided, as JSON.
    fn request<'py>(&self, py: Python<'py>, body: &[u8]) -> PyResult<(Option<Bound<'py, PyBytes>>, String)> {
        let folder = self.open(py)?;
        let (body, report) = detached(py, || {
            let folded = folder.request(body).map_err(|error| no_request(&error))?;
            Ok((folded.report.is_changed.then_some(folded.body), as_json(&folded.report)?))
        })?;
        Ok((body.map(|body| PyBytes::new(py, &body)), report))
    }

    /// Notes what was billed for a request. Returns the bill as JSON.
    fn usage(&self, py: Python<'_>, number: Option<u64>, reported: &[u8]) -> PyResult<String> {
        let folder = self.open(py)?;
        detached(py, || as_json(&folder.usage(number, reported).map_err(|error| no_usage(&error))?))
    }

    /// Notes that the provider refused a request.
    fn refused(&self, py: Python<'_>, number: Option<u64>, original_was_accepted: bool) -> PyResult<()> {
        let folder = self.open(py)?;
        detached(py, || folder.refused(number, original_was_accepted).map_err(|error| no_usage(&error)))
    }

    /// What was decided so far, as JSON.
    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        let folder = self.open(py)?;
        detached(py, || Ok(folder.snapshot()))
    }

    /// Frees what is in memory, once other threads have finished with it.
    fn close(&self) {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl NativeFolder {
    fn open(&self, py: Python<'_>) -> PyResult<Arc<WireFolder>> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        folder.ok_or_else(|| {
            let failure = Failure::new(Kind::Closed, "the folder is closed");
            failure.hint("make another one, or go on from a snapshot with `Folder.restore`").raised(py)
        })
    }
}

fn as_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::of(Kind::Other, &error))
}

fn wrong_options(error: OptionsError) -> Failure {
    Failure::of(Kind::Input, &error)
}

fn wrong_snapshot(error: SnapshotError) -> Failure {
    match error {
        SnapshotError::Options(error) => wrong_options(error),
        error => Failure::of(Kind::Input, &error).hint("pass what `Folder.snapshot` returned"),
    }
}

fn no_request(error: &RequestError) -> Failure {
    Failure::of(Kind::Input, error).hint(BODY_HINT)
}

fn no_usage(error: &UsageError) -> Failure {
    let failure = Failure::of(Kind::Input, error);
    match error {
        UsageError::NoUsage => failure.hint("pass the `usage` of a response, or the whole response"),
        _ => failure.hint("each request is reported once, after `request` has returned"),
    }
}
