//! Attributes and events that a hook adds to its span.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// An attribute or event that a hook added to its span.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TraceNote {
    /// `ctx.trace.set_attribute(key, value)`.
    Attribute {
        /// Its name.
        key: String,
        /// Its value.
        value: TraceValue,
    },
    /// `ctx.trace.add_event(name, attributes)`.
    Event {
        /// Its name.
        name: String,
        /// Its attributes.
        attributes: Vec<(String, TraceValue)>,
    },
}

/// A value in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TraceValue {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
}

impl From<&str> for TraceValue {
    fn from(text: &str) -> Self {
        TraceValue::Text(text.to_owned())
    }
}

impl From<f64> for TraceValue {
    fn from(number: f64) -> Self {
        TraceValue::Number(number)
    }
}

impl From<bool> for TraceValue {
    fn from(bool: bool) -> Self {
        TraceValue::Bool(bool)
    }
}

/// Collects attributes and events for the span of one hook run. Does nothing if there is no observer.
#[derive(Clone, Debug, Default)]
pub struct HookTrace(Option<Arc<Mutex<Vec<TraceNote>>>>);

impl HookTrace {
    pub(crate) fn watched() -> Self {
        Self(Some(Arc::default()))
    }

    pub(crate) fn take(&self) -> Vec<TraceNote> {
        let Some(notes) = &self.0 else { return Vec::new() };
        std::mem::take(&mut *notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, note: impl FnOnce() -> TraceNote) {
        if let Some(notes) = &self.0 {
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(note());
        }
    }

    /// Sets an attribute.
    pub fn set_attribute(&self, key: &str, value: impl Into<TraceValue>) {
        self.push(|| TraceNote::Attribute { key: key.to_owned(), value: value.into() });
    }

    /// Adds an event.
    pub fn add_event(&self, name: &str, attributes: &[(&str, TraceValue)]) {
        self.push(|| TraceNote::Event {
            name: name.to_owned(),
            attributes: attributes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        });
    }
}
