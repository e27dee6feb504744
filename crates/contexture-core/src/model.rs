//! The interface to a model: items in, items out.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::BoxError;
use crate::item::{FunctionCall, Item};
use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};

/// One request to a model: the window as it will be sent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model's name; `None` is the client's default.
    pub model: Option<String>,
    /// The system prompt.
    pub instructions: Arc<str>,
    /// What the model sees, in order.
    pub items: Vec<Arc<Item>>,
    /// The tools it may call.
    pub tools: Arc<[ToolSchema]>,
    /// Where the prompt may be cached: each number is a count of leading `items`, so that 0 is directly after
    /// the system prompt and the tools. Ascending; at most four, as the strictest provider allows.
    pub breakpoints: Vec<usize>,
    /// The largest number of tokens of the response.
    pub max_output_tokens: Option<u64>,
}

impl ModelRequest {
    /// A request of these items and no tools.
    pub fn new(instructions: impl Into<Arc<str>>, items: Vec<Arc<Item>>) -> Self {
        Self { instructions: instructions.into(), items, ..Self::default() }
    }
}

/// The description of a tool for the model.
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

impl ToolSchema {
    /// How many tokens its definition takes in every request.
    pub fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        ITEM_OVERHEAD_TOKENS
            + counter.count(&self.name)
            + counter.count(&self.description)
            + counter.count(&self.parameters.to_string())
    }
}

/// A response of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LlmResponse {
    /// Messages, calls and reasoning, in order. Names of called tools may be wire names or public names.
    pub items: Vec<Item>,
    /// Its cost in tokens, as far as the provider reported it.
    pub usage: Usage,
    /// Its cost in money, if the client knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl LlmResponse {
    /// A response with only this text.
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

/// Tokens of one model call, as reported by the provider; zero where it reported nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The part of the input that was read from the provider's prompt cache; `None` if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// The part of the input that was written to the cache; `None` if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

/// A piece of a response, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More of the model's text.
    Text {
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning.
    Reasoning {
        /// The piece.
        text: String,
    },
    /// More of a tool call.
    Call {
        /// The index of the call in the response, from 0.
        index: usize,
        /// The tool's name, in the first piece.
        name: Option<String>,
        /// More of the arguments.
        arguments: String,
    },
}

impl Delta {
    /// More of the model's text.
    pub fn text(text: impl Into<String>) -> Self {
        Delta::Text { text: text.into() }
    }
}

/// Receives the pieces of a response as they arrive. Cheap to clone.
#[derive(Clone, Default)]
pub struct Deltas(Option<Arc<dyn Fn(Delta) + Send + Sync>>);

impl Deltas {
    /// Passes pieces to `receive`.
    pub fn to(receive: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    /// Whether the pieces are used. If not, a model need not stream.
    pub fn are_watched(&self) -> bool {
        self.0.is_some()
    }

    /// Passes on a piece.
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

/// A model: a provider's client, a local model, a script.
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
    /// Returns the response to one request.
    fn call(&self, request: ModelRequest) -> impl Future<Output = Result<LlmResponse, BoxError>> + Send;

    /// Returns the complete response to one request, and passes on its pieces as they arrive.
    ///
    /// The pieces go only to the engine's observer, as [`Event::Delta`](crate::event::Event::Delta); the returned
    /// response is what is logged. Default: [`call`](Model::call), without pieces.
    fn stream(
        &self,
        request: ModelRequest,
        deltas: Deltas,
    ) -> impl Future<Output = Result<LlmResponse, BoxError>> + Send {
        let _ = deltas;
        self.call(request)
    }
}

/// The object-safe form of [`Model`].
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

/// A request of a layer to a model: see [`call_model`](crate::layer::ContextData::call_model).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryCallModelRequest {
    /// The model's name; empty is the client's default.
    pub model: String,
    /// What it is shown.
    pub items: Vec<Item>,
    /// The system prompt.
    pub instructions: Option<String>,
}
