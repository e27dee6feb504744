//! Failures as the exceptions of `contexture`.

use contexture_in_process::Failure;
use pyo3::prelude::*;

/// Does something without the lock of the interpreter. A failure becomes an exception.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    py.detach(work).map_err(|failure| raised(py, &failure))
}

fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let made = || {
        let class = py.import("contexture._errors")?.getattr(failure.kind().class())?;
        class.call1((failure.sentence(), failure.hint()))
    };
    made().map_or_else(|error: PyErr| error, PyErr::from_value)
}
