//! A layer with state and a function: the model calls the function as a tool, the program calls it by its typed name.
//!
//! `cargo run -p contexture --example function_tool`

use std::sync::Arc;

use contexture::item::Item;
use contexture::prelude::*;

/// Facts that the model wants to keep.
struct Facts;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Remember {
    /// One fact, as a sentence.
    fact: String,
}

impl Facts {
    const ALL: LayerData<Facts, Vec<String>> = LayerData::new("all");
    const REMEMBER: LayerFunction<Facts, Remember, usize> = LayerFunction::new("remember");
}

impl MemoryLayer for Facts {
    type State = Vec<String>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("facts", Slot::ENTITY, MemoryScope::Resource).with_budget(BudgetConfig::range(100, 1_000))
    }

    fn provides(&self) -> LayerProvides<Vec<String>> {
        let remember = layer_fn(
            "Remembers a fact for later conversations. Answers how many there are.",
            |input: Remember, facts: Arc<Vec<String>>, _ctx| async move {
                let mut facts = Arc::unwrap_or_clone(facts);
                facts.push(input.fact);
                Ok(FnResult::new(facts.len()).with_state(facts))
            },
        );
        LayerProvides::new().data(Self::ALL.name(), layer_data(Vec::clone)).function(Self::REMEMBER.name(), remember)
    }

    async fn recall(&self, params: RecallParams<Vec<String>>) -> HookResult<RecallResult<Vec<String>>> {
        Ok(params.state.join("\n").into())
    }
}

/// Asks for the tool once, with whatever name the engine gave it, and then says what came of it.
struct Rememberer;

impl Model for Rememberer {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        if let Some(output) = request.items.iter().find_map(|item| item.as_output()) {
            return Ok(LlmResponse::text(format!("Noted; that makes {}.", output.output)));
        }
        let tool = request.tools.first().ok_or("no tool to call")?;
        println!("the model calls `{}`, known here as `{}`", tool.name, tool.public_name);
        let call = Item::call("call-1", &tool.name, r#"{"fact":"Ada likes tea."}"#);
        Ok(LlmResponse { items: vec![call], ..LlmResponse::default() })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let engine = contexture::in_memory(memory((Facts,))).model(Rememberer).build()?;
    let mut execution = engine.execution("thread").resource("ada").start().await?;
    println!("{}", execution.turn("I like tea.").await?.text());

    let access = execution.memory();
    let count = access.call(Facts::REMEMBER, Remember { fact: "Ada lives in London.".into() }).await?;
    println!("the program added one: {}", count.result);
    println!("{:#?}", access.read(Facts::ALL).unwrap_or_default());

    // What does not meet the schema is refused before the function runs.
    if let Err(error) = access.call_json("facts/remember", serde_json::json!({ "fact": 7 })).await {
        println!("refused: {error}");
    }
    execution.complete().await
}
