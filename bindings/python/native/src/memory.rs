//! What outlives a conversation: facts, and the search over past conversations.

use contexture_in_process::{Memory, NewFact, to_json};
use pyo3::prelude::*;

use crate::failure::detached;

/// The memory that `contexture.Memory` uses.
#[pyclass(frozen, module = "contexture._native")]
pub(crate) struct NativeMemory {
    memory: Memory,
}

#[pymethods]
impl NativeMemory {
    /// Opens a store, which is made if it does not exist.
    #[new]
    fn new(py: Python<'_>, store: &str, owner: &str, is_project: bool) -> PyResult<Self> {
        Ok(Self { memory: detached(py, || Memory::open(store, owner, is_project))? })
    }

    /// Adds messages, as JSON, to a conversation that can be searched. Returns how many are new.
    fn import_messages(&self, py: Python<'_>, thread: &str, messages: &str) -> PyResult<usize> {
        detached(py, || self.memory.import_messages(thread, messages))
    }

    /// Adds a recorded session of an agent. Returns how many messages are new.
    fn import_recording(&self, py: Python<'_>, thread: &str, bytes: &[u8]) -> PyResult<usize> {
        detached(py, || self.memory.import_recording(thread, bytes))
    }

    /// What past conversations say about a text, as JSON.
    fn search(&self, py: Python<'_>, text: &str, budget: u64, is_full: bool) -> PyResult<String> {
        detached(py, || to_json(&self.memory.search(text, budget, is_full)?))
    }

    /// Remembers a fact. Returns its name.
    fn remember(
        &self,
        py: Python<'_>,
        text: String,
        entity: Option<String>,
        attribute: Option<String>,
        value: Option<String>,
    ) -> PyResult<String> {
        detached(py, || self.memory.remember(NewFact { text, entity, attribute, value }))
    }

    /// The facts, as JSON; those that are no longer true too if they are asked for.
    fn facts(&self, py: Python<'_>, with_past: bool) -> PyResult<String> {
        detached(py, || to_json(&self.memory.facts(with_past)?))
    }

    /// Forgets a fact for good. Returns how many facts are gone with it.
    fn forget(&self, py: Python<'_>, id: &str) -> PyResult<usize> {
        detached(py, || self.memory.forget(id))
    }

    /// Closes the store.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.memory.close();
            Ok(())
        })
    }
}
