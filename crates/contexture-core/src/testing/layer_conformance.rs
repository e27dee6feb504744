//! The conformance suite for layers.

use std::sync::Arc;

use super::{Recorder, ScriptedModel, engine};
use crate::engine::Engine;
use crate::event::SpanStatus;
use crate::item::Item;
use crate::layer::MemoryLayer;
use crate::memory::memory;
use crate::store::{MemoryStore, StorageAdapter};
use crate::tokens::{Estimate, TokenCounter};
use crate::window::ProjectionPolicy;

/// Checks what every layer must do.
///
/// `make` returns a new layer each time, as a program does at every start. The checks: the spec is valid; no hook fails
/// in an ordinary conversation with tool calls, odd text and a restart in the middle; `recall` stays within its budget
/// at every size; state survives a restart; the layer works without a model.
///
/// # Panics
/// At the first failed check, with a message that names it.
pub async fn layer_conformance<L: MemoryLayer>(make: impl Fn() -> L) {
    if let Err(problem) = make().spec().validate() {
        panic!("the spec is invalid: {problem}");
    }
    let tools = tool_tokens(&make);
    for token_budget in [400, 2_000, 20_000] {
        converse(&make, token_budget + tools).await;
    }
}

/// What the model is told about the functions of the layer takes, by a generous estimate.
fn tool_tokens<L: MemoryLayer>(make: &impl Fn() -> L) -> u64 {
    let built = engine(memory((make(),))).build();
    let engine: Engine<(L,)> = built.unwrap_or_else(|problem| panic!("the layer is refused: {problem}"));
    let json = serde_json::to_string(engine.tool_schemas()).expect("schemas are JSON already");
    Estimate.count(&json) + 16 * engine.tool_schemas().len() as u64
}

/// Messages of users.
const MESSAGES: [&str; 5] = [
    "Remember that I like short answers.",
    "",
    "</memory> <memory layer=\"x\"> ``` # \u{202e} 日本語 🦀",
    "What did I say first?",
    "line\nline\nline",
];

async fn converse<L: MemoryLayer>(make: &impl Fn() -> L, token_budget: u64) {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    for _ in 0..2 {
        let recorder = Recorder::new();
        let model = ScriptedModel::new().says("Noted.").calls("no_such_tool", "{ not json").says("Done.");
        let built = engine(memory((make(),)))
            .store(store.clone())
            .model(model)
            .observer(recorder.clone())
            .policy(ProjectionPolicy::new(token_budget))
            .build();
        let engine: Engine<(L,)> = built.unwrap_or_else(|problem| panic!("the layer is refused: {problem}"));
        let start = engine.execution("thread").resource("resource").start().await;
        let mut execution = start.unwrap_or_else(|problem| panic!("`init` failed: {problem}"));
        for message in MESSAGES {
            let turn = execution.turn(message).await;
            turn.unwrap_or_else(|problem| panic!("a turn with {message:?} failed at {token_budget} tokens: {problem}"));
        }
        assert!(execution.log().iter().any(|item| *item != Item::user("")), "the layer dropped every message");
        execution.complete().await.unwrap_or_else(|problem| panic!("completing failed: {problem}"));
        check_spans(&recorder, token_budget);
    }
}

fn check_spans(recorder: &Recorder, token_budget: u64) {
    for span in recorder.spans() {
        let bad = matches!(span.status, SpanStatus::Error | SpanStatus::Timeout);
        assert!(!bad, "`{}` failed at {token_budget} tokens: {:?}", span.hook, span.error);
    }
    // That the smallest windows are less than its minimum is no fault of the layer.
    if let Some(fault) = recorder.faults().iter().find(|fault| fault.place != "budget") {
        panic!("a fault in `{}` at {token_budget} tokens: {}", fault.place, fault.message);
    }
}
