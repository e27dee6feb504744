//! Failures, before they are exceptions of a language.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde_json::json;

/// What went wrong, as the exception that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Something that was passed cannot be used.
    Input,
    /// Something was used after it was closed.
    Closed,
    /// What is stored cannot be read or written.
    Store,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// The name of the exception, which is the same in all languages.
    pub fn class(self) -> &'static str {
        match self {
            FailureKind::Input => "InputError",
            FailureKind::Closed => "ClosedError",
            FailureKind::Store => "StoreError",
            FailureKind::Other => "ContextureError",
        }
    }
}

/// A failure: a sentence, and a hint where something can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    kind: FailureKind,
    sentence: String,
    hint: Option<&'static str>,
}

impl Failure {
    /// A failure with a sentence.
    pub fn new(kind: FailureKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), hint: None }
    }

    /// A failure for an error, with its causes.
    pub(crate) fn of(kind: FailureKind, error: &dyn Error) -> Self {
        let mut sentence = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            sentence.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Self::new(kind, sentence)
    }

    /// The same with what can be done about it.
    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// All of it as JSON, for a border that errors pass as texts.
    pub fn to_json(&self) -> String {
        json!({ "class": self.kind.class(), "sentence": self.sentence, "hint": self.hint }).to_string()
    }

    /// What went wrong.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// What was tried, and what stopped it.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<&'static str> {
        self.hint
    }
}

/// Data as JSON, for a language that reads that faster than it makes objects.
///
/// # Errors
/// It cannot be written.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::of(FailureKind::Other, &error))
}

/// Does something. A panic becomes a failure.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let failure = Failure::new(FailureKind::Other, "something went wrong inside contexture");
        Err(failure.with_hint("please report it, with what was printed before"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure() {
        let failed = caught::<()>(|| panic!("a fault")).unwrap_err();
        assert_eq!(failed.kind(), FailureKind::Other);
        assert!(failed.hint().is_some());
    }
}
