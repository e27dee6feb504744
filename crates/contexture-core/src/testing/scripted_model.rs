//! A model that follows a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::BoxError;
use crate::item::Item;
use crate::model::{Delta, Deltas, LlmResponse, Model, ModelRequest};

/// A model that responds from a script and records its requests.
///
/// After the end of the script it responds `ok`. Clones share the script and the recording.
///
/// ```
/// # use contexture_core::testing::ScriptedModel;
/// let model = ScriptedModel::new().says("hello").calls("read", r#"{"path":"a.rs"}"#).fails("overloaded");
/// assert_eq!(model.requests().len(), 0);
/// ```
#[derive(Clone, Default)]
pub struct ScriptedModel {
    inner: Arc<Mutex<Inner>>,
}

type Response = Box<dyn FnOnce(&ModelRequest) -> Result<LlmResponse, BoxError> + Send>;

#[derive(Default)]
struct Inner {
    script: VecDeque<(Vec<String>, Response)>,
    requests: Vec<ModelRequest>,
    calls: usize,
}

impl ScriptedModel {
    /// A model with an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a response with this text.
    pub fn says(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.responds(move |_| Ok(LlmResponse::text(text)))
    }

    /// Adds a response with one tool call. Call ids count up: `call-0`, `call-1`, …
    pub fn calls(self, name: &str, arguments: impl Into<String>) -> Self {
        self.calls_all(&[(name, &arguments.into())])
    }

    /// Adds a response with several tool calls.
    pub fn calls_all(self, calls: &[(&str, &str)]) -> Self {
        let first = {
            let mut inner = self.inner();
            inner.calls += calls.len();
            inner.calls - calls.len()
        };
        let items: Vec<Item> = calls
            .iter()
            .enumerate()
            .map(|(index, (name, arguments))| Item::call(&format!("call-{}", first + index), name, *arguments))
            .collect();
        self.responds(move |_| Ok(LlmResponse { items, ..LlmResponse::default() }))
    }

    /// Adds a failure.
    pub fn fails(self, message: &str) -> Self {
        let message = message.to_owned();
        self.responds(move |_| Err(message.into()))
    }

    /// Adds a response that is computed from the request.
    pub fn responds(
        self,
        respond: impl FnOnce(&ModelRequest) -> Result<LlmResponse, BoxError> + Send + 'static,
    ) -> Self {
        self.inner().script.push_back((Vec::new(), Box::new(respond)));
        self
    }

    /// Adds a response with this text, which arrives in these pieces.
    pub fn streams(self, pieces: &[&str]) -> Self {
        let text = pieces.concat();
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        self.inner().script.push_back((pieces, Box::new(move |_| Ok(LlmResponse::text(text)))));
        self
    }

    /// All requests, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.inner().requests.clone()
    }

    /// The items of the newest request, each as text.
    pub fn last_texts(&self) -> Vec<String> {
        let inner = self.inner();
        let Some(request) = inner.requests.last() else { return Vec::new() };
        request.items.iter().map(|item| text_of(item)).collect()
    }
}

/// The text of an item, for comparisons in tests.
fn text_of(item: &Item) -> String {
    match item {
        Item::Message(message) => message.text(),
        Item::FunctionCall(call) => format!("{}({})", call.name, call.arguments),
        Item::FunctionCallOutput(output) => output.output.clone(),
        Item::Reasoning(reasoning) => reasoning.text.clone(),
        Item::Opaque(value) => value.to_string(),
    }
}

impl Model for ScriptedModel {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        self.stream(request, Deltas::default()).await
    }

    async fn stream(&self, request: ModelRequest, deltas: Deltas) -> Result<LlmResponse, BoxError> {
        let next = {
            let mut inner = self.inner();
            inner.requests.push(request.clone());
            inner.script.pop_front()
        };
        let Some((pieces, answer)) = next else { return Ok(LlmResponse::text("ok")) };
        for piece in pieces {
            deltas.send(Delta::text(piece));
            // Yield between pieces, as with a real provider.
            tokio::task::yield_now().await;
        }
        answer(&request)
    }
}
