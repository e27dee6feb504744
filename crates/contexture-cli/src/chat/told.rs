//! Tools that say when they are called.

use contexture::error::BoxError;
use contexture::tool::{Tool, ToolContext};
use contexture::tools::{Approval, McpTool};
use serde_json::Value;

use super::gate::Gate;
use super::happening::{Happening, Happenings, Intent, one_line};

/// The most characters of a line about a call.
const MAX_CHARS: usize = 100;

/// The arguments that say best what a call is for, the best first.
const TELLING: [&str; 6] = ["command", "path", "pattern", "glob", "directory", "query"];

/// A tool that says when it is called and when it failed.
pub(super) struct Told<T> {
    tool: T,
    happenings: Happenings,
}

impl<T> Told<T> {
    pub(super) fn new(tool: T, happenings: &Happenings) -> Self {
        Self { tool, happenings: happenings.clone() }
    }

    fn tell(&self, happening: Happening) {
        // If nobody looks any more, the turn is about to be dropped.
        let _ = self.happenings.send(happening);
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
        self.tell(Happening::Called(summary(self.tool.name(), &arguments)));
        let result = self.tool.call(arguments, ctx).await;
        if let Err(error) = &result {
            self.tell(Happening::Failed(last_line(&error.to_string())));
        }
        result
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

/// A call on one line.
fn summary(name: &str, arguments: &Value) -> String {
    let telling = TELLING.iter().find_map(|argument| arguments[*argument].as_str());
    one_line(&format!("{name} {}", telling.map(|text| one_line(text, MAX_CHARS)).unwrap_or_default()), MAX_CHARS)
}

/// The last line of an error that says something: commands print what matters at their end.
fn last_line(text: &str) -> String {
    one_line(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default(), MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_one_line() {
        assert_eq!(summary("execute_bash", &json!({"command": "make\nmake test"})), "execute_bash make");
        assert_eq!(summary("read_file", &json!({"path": "a\x1b[1m.rs", "offset": 3})), "read_file a[1m.rs");
        assert_eq!(summary("list_files", &json!({})), "list_files");
        assert_eq!(
            last_line("one\n[The command completed with exit code 1.]\n"),
            "[The command completed with exit code 1.]"
        );
    }
}
