//! Resume after a kill: a process dies in the middle of a turn, and another goes on with it.
//!
//! The program starts itself as a child, which asks for a tool that never returns, and kills the child there. Then it
//! opens the same store. The call may have had its effect, so it is not run again: the model is told so.
//!
//! `cargo run -p contexture --example resume_after_kill`

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use contexture::item::Item;
use contexture::prelude::*;
use serde_json::{Value, json};

/// Sends one payment, then says what became of it.
struct Cashier;

impl Model for Cashier {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        if let Some(output) = request.items.iter().find_map(|item| item.as_output()) {
            return Ok(LlmResponse::text(format!("The tool said: {}", output.output)));
        }
        let call = Item::call("call-1", "pay", r#"{"amount":5}"#);
        Ok(LlmResponse { items: vec![call], ..LlmResponse::default() })
    }
}

/// A tool with an effect, which hangs.
struct Pay;

impl Tool for Pay {
    fn name(&self) -> &str {
        "pay"
    }

    fn description(&self) -> &str {
        "Sends a payment."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "amount": { "type": "integer" } }, "required": ["amount"] })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        println!("paying {}", arguments["amount"]);
        std::future::pending().await
    }
}

fn engine(store: &Path) -> Result<Engine<()>, BoxError> {
    Ok(contexture::open(store, memory(()))?.model(Cashier).tool(Pay).build()?)
}

/// The child: it never gets behind this turn.
async fn pay(store: &Path) -> Result<(), BoxError> {
    let mut execution = engine(store)?.execution("thread").start().await?;
    execution.turn("Pay five.").await?;
    Ok(())
}

/// Starts the child and kills it while its tool runs.
fn kill_a_child(store: &Path) -> Result<(), BoxError> {
    let mut child = Command::new(std::env::current_exe()?).arg("child").arg(store).stdout(Stdio::piped()).spawn()?;
    let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
    let line = output.lines().next().ok_or("the child said nothing")??;
    child.kill()?;
    child.wait()?;
    println!("the child said \"{line}\" and was killed");
    Ok(())
}

/// Opens the store again and goes on with the turn.
async fn resume(store: &Path) -> Result<(), BoxError> {
    let mut execution = engine(store)?.execution("thread").start().await?;
    println!("there is an unfinished turn: {}", execution.has_unfinished_turn());
    if let Some(answer) = execution.resume().await? {
        println!("{}", answer.text());
    }
    println!("{} items are in the log", execution.log().len());
    execution.complete().await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, _, store] = arguments.as_slice() {
        return pay(Path::new(store)).await;
    }
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("agent.db");
    kill_a_child(&store)?;
    resume(&store).await
}
