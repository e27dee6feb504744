//! A layer from a closure: it tells the model something that fits the question.
//!
//! `cargo run -p contexture --example closure_layer`

use contexture::prelude::*;

/// Shows what the model would have been sent.
struct Shown;

impl Model for Shown {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        for message in request.items.iter().filter_map(|item| item.as_message()) {
            println!("[{}] {}", message.role.as_str(), message.text());
        }
        Ok(LlmResponse::text("I see."))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // The layer has no state, so its type is `()`. Its text differs from turn to turn, so it is placed after the history.
    let spec = LayerSpec::new("glossary", Slot::RAG, MemoryScope::Thread).with_placement(Placement::Live);
    let glossary = layer::<()>(spec)
        .recall(|params| async move {
            let known = params.query.contains("epoch");
            Ok(known.then(|| "epoch: a run of requests that share a cacheable prefix".to_owned()).into())
        })
        .build();

    let engine = contexture::in_memory(memory((glossary,))).model(Shown).build()?;
    let mut execution = engine.execution("thread").start().await?;
    for question in ["What is an epoch?", "And what is the weather?"] {
        println!("--- a turn");
        execution.turn(question).await?;
    }
    execution.complete().await
}
