//! Observing spans: every run of every hook is seen, also of one that fails while the turn goes on.
//!
//! The same spans go to `tracing`, under the name `memory_hook`.
//!
//! `cargo run -p contexture --example spans`

use contexture::event::Event;
use contexture::prelude::*;

/// Answers.
struct Quiet;

impl Model for Quiet {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
        Ok(LlmResponse::text("Yes."))
    }
}

/// Prints what happens. Durations are left out, so that the output is the same every time.
fn watch(event: Event<'_>) {
    match event {
        Event::Span(span) => {
            println!("span     {:<10} {:<12} {:?}", span.layer_id.as_str(), span.hook.as_str(), span.status);
            for note in &span.notes {
                println!("         {note:?}");
            }
        }
        Event::Fault(fault) => println!("fault    {}: {}", fault.place, fault.message),
        Event::Decision(decision) => println!("decision {}", decision.reason),
        Event::Usage(usage) => println!("usage    {} layers", usage.layers.len()),
        // More kinds of events may come.
        _ => {}
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let good = layer::<u32>(LayerSpec::new("good", Slot::WORKING_MEMORY, MemoryScope::Thread))
        .recall(|params| async move {
            params.ctx.trace.set_attribute("looked_up", 3.0);
            Ok("All is well.".into())
        })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build();
    let broken = layer::<()>(LayerSpec::new("broken", Slot::RAG, MemoryScope::Thread))
        .recall(|_| async { Err("the index is gone".into()) })
        .build();

    let engine = contexture::in_memory(memory((good, broken))).model(Quiet).observer(watch).build()?;
    let mut execution = engine.execution("thread").start().await?;
    println!("answer   {}", execution.turn("Is all well?").await?.text());
    execution.complete().await
}
