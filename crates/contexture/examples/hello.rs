//! The program of the README, to be run: `cargo run -p contexture --example hello`
use contexture::prelude::*;

/// Takes the place of a provider's client: it prints what it is shown.
struct Printer;

impl Model for Printer {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        for message in request.items.iter().filter_map(|item| item.as_message()) {
            println!("{:>9}: {}", message.role.as_str(), message.text());
        }
        Ok(LlmResponse::text("Hello."))
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    // A layer of your own. Its state is a number that the model is told before every turn and that grows with every response.
    let replies = layer::<u32>(LayerSpec::new("replies", Slot::WORKING_MEMORY, MemoryScope::Thread))
        .recall(|params| async move { Ok(format!("You have answered {} times.", params.state).into()) })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build();
    let engine = contexture::in_memory(memory((replies,))).model(Printer).build()?;
    let mut execution = engine.execution("thread-1").start().await?;
    execution.turn("Hello!").await?;
    execution.turn("Hello again!").await?;
    execution.complete().await
}
