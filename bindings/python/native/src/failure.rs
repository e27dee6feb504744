//! Failures as the exceptions of `contexture`.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

/// An exception of `contexture`.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Input,
    Closed,
    Store,
    Other,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Kind::Input => "InputError",
            Kind::Closed => "ClosedError",
            Kind::Store => "StoreError",
            Kind::Other => "ContextureError",
        }
    }
}

/// A failure, before it is an exception.
pub(crate) struct Failure {
    kind: Kind,
    sentence: String,
    hint: Option<&'static str>,
}

impl Failure {
    /// A failure with a sentence.
    pub(crate) fn new(kind: Kind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), hint: None }
    }

    /// A failure for an error, with its causes.
    pub(crate) fn of(kind: Kind, error: &dyn Error) -> Self {
        let mut sentence = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            sentence.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Self::new(kind, sentence)
    }

    /// The same with what can be done about it.
    pub(crate) fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// The exception.
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        let made = || {
            let class = py.import("contexture._errors")?.getattr(self.kind.class())?;
            class.call1((self.sentence.as_str(), self.hint))
        };
        made().map_or_else(|error: PyErr| error, PyErr::from_value)
    }
}

/// Does something without the lock of the interpreter. A panic becomes an exception.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    let done = done.unwrap_or_else(|_| {
        let failure = Failure::new(Kind::Other, "something went wrong inside contexture");
        Err(failure.hint("please report it, with what was printed before"))
    });
    done.map_err(|failure| failure.raised(py))
}
