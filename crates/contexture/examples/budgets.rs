//! Budgets as a table: what each layer could use of a window, what it used, and what history got.
//!
//! `cargo run -p contexture --example budgets`

use contexture::prelude::*;
use contexture::usage::StepUsage;

/// Answers, so that there is a window to look at.
struct Quiet;

impl Model for Quiet {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
        Ok(LlmResponse::text("Yes."))
    }
}

/// A layer that says `words` words.
fn talker(id: &str, slot: Slot, budget: impl Into<BudgetConfig>, words: usize) -> ClosureLayer<()> {
    layer::<()>(LayerSpec::new(id, slot, MemoryScope::Thread).with_budget(budget))
        .recall(move |_| async move { Ok("word ".repeat(words).into()) })
        .build()
}

fn print_table(usage: &StepUsage) {
    println!("{:<14}{:>10}{:>10}{:>10}  band", "", "allocated", "used", "yielded");
    for layer in &usage.layers {
        let (allocated, used, yielded) = (layer.allocated, layer.used, layer.yielded);
        println!("{:<14}{allocated:>10}{used:>10}{yielded:>10}  {:?}", layer.layer_id.as_str(), layer.band);
    }
    println!("{:<14}{:>10}{:>10}", "system", "", usage.system);
    println!("{:<14}{:>10}{:>10}", "history", usage.history_allocated, usage.history);
    println!("{:<14}{:>10}{:>10}", "reserve", "", usage.response_reserve);
    println!("{:<14}{:>10}{:>10}", "all", usage.budget, usage.total() + usage.response_reserve);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let layers = (
        // Guaranteed 200, at most 1 500, and it has little to say.
        talker("notes", Slot::WORKING_MEMORY, BudgetConfig::range(200, 1_500), 50),
        // At most 300, and it says too much: what it says is cut.
        talker("gossip", Slot::ENTITY, 300, 2_000),
        // Whatever the others leave.
        talker("documents", Slot::RAG, BudgetConfig::Auto, 1_000),
    );
    let engine = contexture::in_memory(memory(layers))
        .model(Quiet)
        .instructions("Answer yes or no.")
        .policy(ProjectionPolicy::new(10_000))
        .build()?;
    let mut execution = engine.execution("thread").start().await?;
    let answer = execution.turn("Is this a table?").await?;
    if let Some(usage) = &answer.usage {
        print_table(usage);
    }
    execution.complete().await
}
