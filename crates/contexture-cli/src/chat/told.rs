//! Tools that say when they are called, and whose outputs show no keys.

use contexture::error::BoxError;
use contexture::tool::{Tool, ToolContext};
use contexture::tools::{Approval, McpTool};
use serde_json::Value;

use super::gate::Gate;
use super::happening::{Call, Happening, Happenings, Intent};
use super::secrets::Secrets;

/// A tool that says when it is called. That it failed is known from its output.
pub(super) struct Told<T> {
    tool: T,
    teller: Teller,
}

/// What every tool is told with.
#[derive(Clone)]
pub(super) struct Teller {
    pub(super) happenings: Happenings,
    pub(super) secrets: Secrets,
}

impl Teller {
    /// The same tool, which says when it is called.
    pub(super) fn told<T>(&self, tool: T) -> Told<T> {
        Told { tool, teller: self.clone() }
    }
}

impl<T: Tool> Tool for Told<T> {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn parameters(&self) -> Value {
        self.tool.parameters()
    }

    async fn call(&self, arguments: Value, ctx: ToolContext<'_>) -> Result<String, BoxError> {
        // If nobody looks any more, the turn is about to be dropped.
        let call = Call::new(ctx.call_id, self.tool.name(), &arguments);
        let _ = self.teller.happenings.send(Happening::Called(call));
        let secrets = &self.teller.secrets;
        match self.tool.call(arguments, ctx).await {
            Ok(output) => Ok(secrets.hidden_in(output)),
            Err(error) => Err(secrets.hidden_in(error.to_string()).into()),
        }
    }
}

/// A tool of an MCP server that is called only if that is allowed.
pub(super) struct Guarded {
    tool: McpTool,
    gate: Gate,
}

impl Guarded {
    pub(super) fn new(tool: McpTool, gate: &Gate) -> Self {
        Self { tool, gate: gate.clone() }
    }
}

impl Tool for Guarded {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn parameters(&self) -> Value {
        self.tool.parameters()
    }

    async fn call(&self, arguments: Value, ctx: ToolContext<'_>) -> Result<String, BoxError> {
        let intent = Intent::Call(self.tool.name().to_owned(), arguments.to_string());
        match self.gate.decide(intent).await {
            Approval::Allowed => self.tool.call(arguments, ctx).await,
            Approval::Denied(reason) => Err(format!("not done: {reason}").into()),
        }
    }
}
