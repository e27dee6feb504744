//! Tools that say when they are called, and whose outputs show no keys.

use std::sync::{Mutex, PoisonError};

use contexture::client::ClientRetry;
use contexture::error::BoxError;
use contexture::tool::{Tool, ToolContext};
use contexture::tools::{Approval, McpTool};
use serde_json::Value;

use super::gate::ToolGate;
use super::happening::{AgentCall, Happening, Happenings, Intent, Tail, one_line, printed};
use super::live::MAX_PRINTED;
use super::secrets::Secrets;
use super::unreachable::short_addresses;

/// The most bytes of a line that a command has not ended.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A tool that says when it is called. That it failed is known from its output.
pub(super) struct ReportingTool<T> {
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
    pub(super) fn told<T>(&self, tool: T) -> ReportingTool<T> {
        ReportingTool { tool, teller: self.clone() }
    }

    /// Passes on whole lines that commands print, without the keys in them.
    pub(super) fn printed(&self) -> impl Fn(&[u8]) + Send + Sync + 'static {
        let (teller, tail, begun) = (self.clone(), Tail::default(), Mutex::new(Vec::new()));
        move |bytes: &[u8]| {
            let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
            begun.extend_from_slice(bytes);
            let Some(end) = begun.iter().rposition(|byte| *byte == b'\n') else {
                // A line without an end is not kept for ever.
                let over = begun.len().saturating_sub(MAX_LINE_BYTES);
                begun.drain(..over);
                return;
            };
            let lines: Vec<u8> = begun.drain(..=end).collect();
            let text = teller.secrets.hidden_in(String::from_utf8_lossy(&lines).into_owned());
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            for line in &lines[lines.len().saturating_sub(MAX_PRINTED)..] {
                if tail.push(printed(line)) {
                    // If nobody looks any more, the turn is about to be dropped.
                    let _ = teller.happenings.send(Happening::Printed(tail.clone()));
                }
            }
        }
    }

    /// Passes on that a request is sent again.
    pub(super) fn retried(&self) -> impl Fn(ClientRetry) + Send + Sync + 'static {
        let happenings = self.happenings.clone();
        move |retry: ClientRetry| {
            let (reason, seconds) = (one_line(&short_addresses(&retry.reason), 200), retry.wait.as_secs_f64().ceil());
            let line = format!("{reason}; retry {} in {seconds} s", retry.attempt);
            let _ = happenings.send(Happening::Retried(line));
        }
    }
}

impl<T: Tool> Tool for ReportingTool<T> {
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
        let call = AgentCall::new(ctx.call_id, self.tool.name(), &arguments);
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
    gate: ToolGate,
}

impl Guarded {
    pub(super) fn new(tool: McpTool, gate: &ToolGate) -> Self {
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
