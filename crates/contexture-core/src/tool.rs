//! Tools that the agent's author gives to the model.

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::error::BoxError;
use crate::id::{ExecutionId, ThreadId};

/// Something the model can ask for.
///
/// The engine calls [`call`](Tool::call) after every gate has let it pass and after the intent to run it is
/// durable. If the process dies while it runs, it is not run again: the model is told that the outcome is
/// unknown. An error is answered to the model as an error output; the turn goes on.
pub trait Tool: Send + Sync + 'static {
    /// The public name, unique among all tools.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> &str;

    /// JSON schema of its arguments.
    fn parameters(&self) -> Value;

    /// Does it. The arguments are JSON and were checked against [`parameters`](Tool::parameters).
    fn call(&self, arguments: Value, ctx: ToolContext<'_>) -> impl Future<Output = Result<String, BoxError>> + Send;
}

/// What a tool is told about where it runs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolContext<'a> {
    /// The run that asks.
    pub execution_id: &'a ExecutionId,
    /// The conversation that asks.
    pub thread_id: &'a ThreadId,
    /// The name of this one call.
    pub call_id: &'a str,
}

/// [`Tool`] behind a pointer.
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
