//! Rules that tool calls are held against: a pattern over commands, a predicate, and the ledger of what they said.
//!
//! `cargo run -p contexture --example steering`

use contexture::layers::Steering;
use contexture::layers::steering::Pattern;
use contexture::prelude::*;
use contexture::testing::ScriptedModel;
use serde_json::{Value, json};

/// A tool that would run a command.
struct Bash;

impl Tool for Bash {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "Runs a command."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "command": { "type": "string" } } })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        Ok(format!("ran {}", arguments["command"]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let rules = Steering::new()
        .pattern(Pattern::deny("push", "Ask the user before anything is pushed.").command("git push*"))
        .pattern(Pattern::guide("slow", "Run one test by its name.").command("cargo test"))
        .call_rule("quiet", |_, call| match call.arguments.contains("sudo") {
            true => SteeringDecision::deny("nothing runs as root here"),
            false => SteeringDecision::Allow,
        });
    // Stands in for a model that tries things.
    let commands = ["git status", "cd site && git push", "cargo test", "sudo ls"];
    let call = |command: &&str| json!({ "command": command }).to_string();
    let model = commands.iter().fold(ScriptedModel::new(), |model, command| model.calls("Bash", call(command)));
    let engine = contexture::in_memory(memory((rules,))).model(model).tool(Bash).build()?;
    let mut execution = engine.execution("thread").start().await?;
    execution.turn("Go.").await?;
    let outputs = execution.log().iter().filter_map(|item| item.as_output());
    for (command, output) in commands.iter().zip(outputs) {
        println!("{command}: {}", output.output);
    }
    for entry in execution.memory().read(Steering::LEDGER).unwrap_or_default() {
        println!("ledger: {} by `{}`: {}", entry.what, entry.rule, json!(entry.verdict));
    }
    execution.complete().await
}
