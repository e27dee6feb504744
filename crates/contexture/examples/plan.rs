//! An agent that plans first: until the user says yes, only tools that read run.
//!
//! `cargo run -p contexture --example plan`

use contexture::layers::Plan;
use contexture::layers::plan::ApprovePlan;
use contexture::prelude::*;
use contexture::testing::ScriptedModel;
use serde_json::{Value, json};

/// A tool that changes something.
struct Write;

impl Tool for Write {
    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        "Writes a file."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        println!("-- a file is written");
        Ok("written".to_owned())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let steps = json!([{ "text": "Write the page" }, { "text": "Link it", "after": ["1"] }]);
    // Stands in for a model: it proposes a plan, tries to write too early, and goes on once it may.
    let model = ScriptedModel::new()
        .calls("plan/propose", json!({ "goal": "A page about tides", "steps": steps }).to_string())
        .calls("write_file", "{}")
        .says("Shall I?")
        .calls("write_file", "{}")
        .calls("plan/update", r#"{"step":"1","status":"done"}"#)
        .says("The page is written.");
    let engine = contexture::in_memory(memory((Plan::new().asking(),))).model(model.clone()).tool(Write).build()?;
    let mut execution = engine.execution("thread").start().await?;

    println!("{}", execution.turn("We need a page about tides.").await?.text());
    let refused = execution.log().iter().filter_map(|item| item.as_output()).nth(1);
    println!("too early: {}", refused.map_or("", |output| output.output.as_str()));

    // The user says yes, and the program says so to the layer.
    execution.memory().call(Plan::APPROVE, ApprovePlan {}).await?;
    println!("{}", execution.turn("Yes, please.").await?.text());
    execution.turn("And now?").await?;
    println!("{}", model.last_texts().join("\n"));
    execution.complete().await
}
