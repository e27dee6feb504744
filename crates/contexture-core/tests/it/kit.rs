//! Helpers for the tests of layers, beyond the published test kit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture_core::engine::{Engine, EngineBuilder};
use contexture_core::error::BoxError;
use contexture_core::layer::*;
use contexture_core::testing::{CountingIds, ManualClock};
use contexture_core::tool::{Tool, ToolContext};
use contexture_core::{MemoryConfig, Slot};
use serde_json::{Value, json};

/// A layer of the thread at a slot, with the defaults for everything else.
pub fn spec(id: &str, slot: i32) -> LayerSpec {
    LayerSpec::new(id, Slot(slot), MemoryScope::Thread)
}

/// An engine with a clock that only the test advances.
pub fn timed<Ls>(memory: MemoryConfig<Ls>) -> (EngineBuilder<Ls>, ManualClock) {
    let clock = ManualClock::new();
    (Engine::builder(memory, Arc::new(clock.clone()), Arc::new(CountingIds::new())), clock)
}

/// Advances the time as soon as something sleeps, and runs the tasks that it wakes.
pub async fn pass(clock: &ManualClock, duration: Duration) {
    while clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(duration);
    settle().await;
}

/// Runs background tasks until they wait.
pub async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// A list that hooks write into, so that a test can check which were called, and when. Clones share it.
#[derive(Clone, Default)]
pub struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Takes the entries since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A tool made from a closure.
pub struct FnTool<F>(pub &'static str, pub F);

impl<F, Fut> Tool for FnTool<F>
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, BoxError>> + Send,
{
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Does what the test says."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        (self.1)(arguments).await
    }
}

/// A tool that returns `done` and counts how often it ran.
pub fn counting_tool(name: &'static str, diary: &Diary) -> impl Tool + use<> {
    let diary = diary.clone();
    FnTool(name, move |_| {
        diary.note(name);
        async { Ok("done".to_owned()) }
    })
}
