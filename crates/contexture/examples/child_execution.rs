//! A child execution: it gets a task and a part of its parent's memory, works in a log of its own, and reports.
//!
//! `cargo run -p contexture --example child_execution`

use contexture::prelude::*;
use serde_json::json;

/// Findings of the agent and of all its children.
struct Findings;

impl Findings {
    const ALL: LayerData<Findings, Vec<String>> = LayerData::new("all");
}

impl MemoryLayer for Findings {
    type State = Vec<String>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("findings", Slot::OBSERVATIONS, MemoryScope::Thread)
    }

    fn provides(&self) -> LayerProvides<Vec<String>> {
        LayerProvides::new().data(Self::ALL.name(), layer_data(Vec::clone))
    }

    async fn store(&self, params: StoreParams<Vec<String>>) -> HookResult<StoreResult<Vec<String>>> {
        let mut findings = (*params.state).clone();
        findings.push(format!("{} (depth {})", params.response.output_text(), params.ctx.depth));
        Ok(StoreResult::set(findings))
    }

    /// The child begins without findings, and with a message that says who sent it.
    async fn on_spawn(&self, params: SpawnParams<Vec<String>>) -> HookResult<SpawnResult<Vec<String>>> {
        let message = format!("You were sent by an agent with {} findings.", params.parent_state.len());
        Ok(SpawnResult { child_state: Some(Vec::new()), items: vec![Item::developer(message)] })
    }

    /// The parent takes over what the child found.
    async fn on_return(&self, params: ReturnParams<Vec<String>>) -> HookResult<ReturnResult<Vec<String>>> {
        let mut findings = (*params.parent_state).clone();
        findings.extend(params.child_state.iter().cloned());
        Ok(ReturnResult { parent_state: Some(findings), result: None })
    }
}

/// Finds something in every question.
struct Finder;

impl Model for Finder {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        let messages: Vec<_> = request.items.iter().filter_map(|item| item.as_message()).collect();
        println!("the model sees {} messages, the last is \"{}\"", messages.len(), messages[messages.len() - 1].text());
        Ok(LlmResponse::text(format!("a finding from {} messages", messages.len())))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let engine = contexture::in_memory(memory((Findings,))).model(Finder).build()?;
    let mut parent = engine.execution("thread").start().await?;
    parent.turn("Look at the whole.").await?;

    let mut child = parent.spawn().await?;
    let answer = child.turn("Look at the details.").await?;
    let report = parent.join(child, json!(answer.text())).await?;

    println!("the child reports {report}");
    println!("the parent's log has {} items", parent.log().len());
    println!("{:#?}", parent.memory().read(Findings::ALL).unwrap_or_default());
    parent.complete().await
}
