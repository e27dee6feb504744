//! The model behind the agent, as the engine sees it: items in, items out.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::BoxError;
use crate::item::{FunctionCall, Item};

/// One request to a model: the window, as it will be sent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// Which model, if the caller cares; `None` is the client's own default.
    pub model: Option<String>,
    /// The system prompt.
    pub instructions: Arc<str>,
    /// What the model sees, in order.
    pub items: Vec<Arc<Item>>,
    /// The tools it may ask for.
    pub tools: Arc<[ToolSchema]>,
    /// Where the prompt may be cached: each number is a count of leading `items`, so that 0 stands right
    /// behind the system prompt and the tools. Ascending; at most four, as the strictest provider allows.
    pub breakpoints: Vec<usize>,
    /// How many tokens the answer may have.
    pub max_output_tokens: Option<u64>,
}

impl ModelRequest {
    /// A request of these items and no tools.
    pub fn new(instructions: impl Into<Arc<str>>, items: Vec<Arc<Item>>) -> Self {
        Self { instructions: instructions.into(), items, ..Self::default() }
    }
}

/// A tool as the model is told about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSchema {
    /// The name on the wire: only `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// The name in the log, in traces and for gates: `layer/function`, or the tool's own name.
    pub public_name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Value,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmResponse {
    /// Messages, calls and reasoning, in order. Names of called tools may be wire names or public names.
    pub items: Vec<Item>,
    /// What it cost in tokens, as far as the provider said.
    pub usage: Usage,
    /// What it cost in money, if the client knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl LlmResponse {
    /// A response that says just this.
    pub fn text(text: impl Into<String>) -> Self {
        Self { items: vec![Item::assistant(text)], ..Self::default() }
    }

    /// The text of all messages, joined by newlines.
    pub fn output_text(&self) -> String {
        let texts: Vec<String> = self.items.iter().filter_map(|item| Some(item.as_message()?.text())).collect();
        texts.join("\n")
    }

    /// The tool calls it asks for, in order.
    pub fn calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.items.iter().filter_map(Item::as_call)
    }
}

/// Tokens of one model call, as reported by the provider; zero where it said nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Of the input, what was read from the provider's prompt cache; `None` if it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input, what was written to the cache; `None` if it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

/// A piece of a response, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More of what the model says.
    Text {
        /// The piece.
        text: String,
    },
    /// More of what it thinks.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// More of a tool call.
    Call {
        /// Which one of the response, from 0.
        index: usize,
        /// The tool's name, with the first piece.
        name: Option<String>,
        /// More of the arguments.
        arguments: String,
    },
}

impl Delta {
    /// More of what the model says.
    pub fn text(text: impl Into<String>) -> Self {
        Delta::Text { text: text.into() }
    }
}

/// Where a model hands on what arrives. Cheap to clone.
#[derive(Clone, Default)]
pub struct Deltas(Option<Arc<dyn Fn(Delta) + Send + Sync>>);

impl Deltas {
    /// Hands pieces to whoever wants them.
    pub fn to(receive: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    /// Whether someone looks at them. If not, a model need not ask its provider to stream.
    pub fn are_watched(&self) -> bool {
        self.0.is_some()
    }

    /// Hands on a piece.
    pub fn send(&self, delta: Delta) {
        if let Some(receive) = &self.0 {
            receive(delta);
        }
    }
}

impl std::fmt::Debug for Deltas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deltas").field("watched", &self.are_watched()).finish()
    }
}

/// Something that answers requests: a provider's client, a local model, a script.
///
/// The engine calls [`stream`](Model::stream) once for every step and once more for every retry after guidance,
/// never twice at the same time for one execution. An error ends the turn. Dropping the future cancels the call.
///
/// ```
/// use contexture_core::{error::BoxError, LlmResponse, Model, ModelRequest};
///
/// struct Parrot;
///
/// impl Model for Parrot {
///     async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
///         let last = request.items.last().and_then(|item| item.as_message()).map(|message| message.text());
///         Ok(LlmResponse::text(last.unwrap_or_default()))
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Answers one request.
    fn call(&self, request: ModelRequest) -> impl Future<Output = Result<LlmResponse, BoxError>> + Send;

    /// Answers one request and hands on what arrives meanwhile; the answer is whole all the same.
    ///
    /// What arrives is shown to the engine's observer as [`Event::Delta`](crate::event::Event::Delta) and goes nowhere
    /// else: what is logged is the answer. Default: [`call`](Model::call), of which nothing is seen before its end.
    fn stream(
        &self,
        request: ModelRequest,
        deltas: Deltas,
    ) -> impl Future<Output = Result<LlmResponse, BoxError>> + Send {
        let _ = deltas;
        self.call(request)
    }
}

/// [`Model`] behind a pointer.
pub(crate) trait DynModel: Send + Sync {
    fn call(&self, request: ModelRequest) -> BoxFuture<'_, Result<LlmResponse, BoxError>>;
    fn stream(&self, request: ModelRequest, deltas: Deltas) -> BoxFuture<'_, Result<LlmResponse, BoxError>>;
}

impl<M: Model> DynModel for M {
    fn call(&self, request: ModelRequest) -> BoxFuture<'_, Result<LlmResponse, BoxError>> {
        Box::pin(Model::call(self, request))
    }

    fn stream(&self, request: ModelRequest, deltas: Deltas) -> BoxFuture<'_, Result<LlmResponse, BoxError>> {
        Box::pin(Model::stream(self, request, deltas))
    }
}

/// What a layer may ask of a model: see [`call_model`](crate::layer::ContextData::call_model).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryCallModelRequest {
    /// Which model; empty is the client's own default.
    pub model: String,
    /// What it is shown.
    pub items: Vec<Item>,
    /// The system prompt.
    pub instructions: Option<String>,
}
