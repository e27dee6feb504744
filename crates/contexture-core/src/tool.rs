//! Tools that the model can call.

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::error::BoxError;
use crate::id::{ExecutionId, ThreadId};

/// Something that the model can call.
///
/// The engine calls [`call`](Tool::call) after `before_tool_call` of every layer has allowed it and after the intent to
/// run it is durable. If the process dies while it runs, it is not run again: the model is told that the outcome is
/// unknown. An error becomes an error output for the model, and the turn continues.
pub trait Tool: Send + Sync + 'static {
    /// The public name, unique among all tools.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> &str;

    /// JSON schema of its arguments.
    fn parameters(&self) -> Value;

    /// Runs the tool. The arguments were checked against [`parameters`](Tool::parameters).
    fn call(&self, arguments: Value, ctx: ToolContext<'_>) -> impl Future<Output = Result<String, BoxError>> + Send;
}

/// The context of a tool call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolContext<'a> {
    /// The execution that calls the tool.
    pub execution_id: &'a ExecutionId,
    /// The thread of that execution.
    pub thread_id: &'a ThreadId,
    /// The id of this call.
    pub call_id: &'a str,
}

/// A tool's public name as providers take it, with only `A-Z a-z 0-9 _ -`: the slash between layer and function becomes
/// two underscores, anything else one.
pub fn wire_name(public_name: &str) -> String {
    let mut name = String::with_capacity(public_name.len() + 1);
    for character in public_name.chars() {
        match character {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' => name.push(character),
            '/' => name.push_str("__"),
            _ => name.push('_'),
        }
    }
    name
}

/// The object-safe form of [`Tool`].
pub(crate) trait DynTool: Send + Sync {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    fn parameters(&self) -> Value;
    fn call<'a>(&'a self, arguments: Value, ctx: ToolContext<'a>) -> BoxFuture<'a, Result<String, BoxError>>;
}

impl<T: Tool> DynTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn description(&self) -> &str {
        Tool::description(self)
    }

    fn parameters(&self) -> Value {
        Tool::parameters(self)
    }

    fn call<'a>(&'a self, arguments: Value, ctx: ToolContext<'a>) -> BoxFuture<'a, Result<String, BoxError>> {
        Box::pin(Tool::call(self, arguments, ctx))
    }
}
