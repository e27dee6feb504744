//! Tools that the model can call.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
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

/// The context of a tool call: whose it is, and what the tool can do on behalf of that execution.
///
/// [`child`](ToolContext::child) starts a child that does a part of the work, and [`memory`](ToolContext::memory) reads
/// and calls the layers.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ToolContext<'a> {
    /// The execution that calls the tool.
    pub execution_id: &'a ExecutionId,
    /// The thread of that execution.
    pub thread_id: &'a ThreadId,
    /// The id of this call.
    pub call_id: &'a str,
    /// The engine's own type.
    pub(crate) execution: &'a (dyn Any + Send + Sync),
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolContext({}, {})", self.thread_id, self.call_id)
    }
}

/// Runs a tool whose types are erased.
type Run = Arc<dyn for<'a> Fn(Value, ToolContext<'a>) -> BoxFuture<'a, Result<String, BoxError>> + Send + Sync>;

/// A tool made from a closure by [`tool`].
#[derive(Clone)]
pub struct ClosureTool {
    name: String,
    description: String,
    parameters: Value,
    run: Run,
}

/// Makes a tool from a closure. The schema of its arguments comes from their type; a text that it returns is shown as it
/// is, anything else as JSON.
///
/// A tool that keeps a state of its own is that of a [layer](crate::layer::LayerBuilder::tool), which stores it.
///
/// ```
/// use contexture_core::tool::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Task {
///     /// What to do, with everything that a helper without this conversation must know.
///     task: String,
/// }
///
/// let task = tool("task", "Lets a helper do a part of the work; returns its report.", |task: Task, ctx| {
///     Box::pin(async move {
///         let mut helper = ctx.child().keep_tools(|name| name != "task").start().await?;
///         let report = helper.turn(task.task).await?.text();
///         Ok(ctx.join(helper, report).await?)
///     })
/// });
/// # let _ = task;
/// ```
pub fn tool<I, O, F>(name: impl Into<String>, description: impl Into<String>, call: F) -> ClosureTool
where
    I: DeserializeOwned + JsonSchema,
    O: Serialize,
    F: for<'a> Fn(I, ToolContext<'a>) -> BoxFuture<'a, Result<O, BoxError>> + Send + Sync + 'static,
{
    let call = Arc::new(call);
    let run: Run = Arc::new(move |arguments, ctx| {
        let call = call.clone();
        Box::pin(async move {
            let arguments = serde_json::from_value(arguments);
            let running = arguments.map(|arguments: I| call(arguments, ctx));
            Ok(as_text(serde_json::to_value(running?.await?)?))
        })
    });
    let parameters = schemars::schema_for!(I).to_value();
    ClosureTool { name: name.into(), description: description.into(), parameters, run }
}

impl Tool for ClosureTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Value {
        self.parameters.clone()
    }

    async fn call(&self, arguments: Value, ctx: ToolContext<'_>) -> Result<String, BoxError> {
        (self.run)(arguments, ctx).await
    }
}

/// A result as text for the model: a text as it is, anything else as JSON.
pub(crate) fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
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
