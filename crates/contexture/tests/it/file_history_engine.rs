//! The layer `file-history` as part of an agent: folds are decisions, windows fit, a restart changes nothing.

use std::sync::Arc;

use contexture::layers::FileHistory;
use contexture::prelude::*;
use contexture::store::{MemoryStore, StorageAdapter};
use contexture::testing::{Recorder, ScriptedModel, engine, layer_conformance};
use contexture::tokens::{Estimate, count_item};
use serde_json::{Value, json};

const BUDGET: u64 = 6_000;
const TURNS: usize = 24;

/// Reads an invented file of about 2 kB.
struct Read;

impl Tool for Read {
    fn name(&self) -> &str {
        "Read"
    }

    fn description(&self) -> &str {
        "Reads a file."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["file_path"] })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let path = arguments["file_path"].as_str().unwrap_or_default();
        let lines = (1..=60).map(|line| format!("{line}\tlet value_{line} = compute(\"{path}\", {line});"));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Runs the whole conversation, with a new engine over the same store before the given turn.
async fn converse(restart_before: Option<usize>) -> (Vec<Vec<Arc<Item>>>, Recorder) {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let recorder = Recorder::new();
    let script = |model: ScriptedModel, turn: usize| {
        model
            .calls("Read", format!(r#"{{"file_path":"src/file_{}.rs"}}"#, turn % 9))
            .says(format!("read number {turn}"))
    };
    let start = async |model: &ScriptedModel| {
        let built = engine(memory((FileHistory::default(),)))
            .store(store.clone())
            .model(model.clone())
            .tool(Read)
            .observer(recorder.clone())
            .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(BUDGET) })
            .build();
        built.unwrap().execution("t").start().await.unwrap()
    };
    let (mut model, mut requests) = (ScriptedModel::new(), Vec::new());
    let mut execution = start(&model).await;
    for turn in 0..TURNS {
        if restart_before == Some(turn) {
            execution.complete().await.unwrap();
            requests.extend(model.requests());
            model = ScriptedModel::new();
            execution = start(&model).await;
        }
        // Call ids are the model's own; they must not depend on which process it talks to.
        model = script(model, turn);
        execution.turn(format!("Look at file {turn}.")).await.unwrap();
    }
    requests.extend(model.requests());
    (requests.into_iter().map(|request| request.items).collect(), recorder)
}

#[tokio::test]
async fn the_past_is_folded_by_decision_and_every_window_fits() {
    let (windows, recorder) = converse(None).await;
    for items in &windows {
        let tokens: u64 = items.iter().map(|item| count_item(&Estimate, item)).sum();
        assert!(tokens <= BUDGET, "{tokens} of {BUDGET}");
    }
    let folds = recorder
        .decisions()
        .into_iter()
        .filter(|decision| decision.layer.as_ref().is_some_and(|layer| layer.as_str() == FileHistory::ID));
    assert!(folds.count() > 0, "nothing was folded");
    assert_eq!(recorder.faults(), []);
}

#[tokio::test]
async fn a_folded_file_can_still_be_seen() {
    let (windows, _) = converse(None).await;
    let last = windows.last().unwrap().iter().filter_map(|item| item.as_message()).map(|message| message.text());
    let texts: Vec<String> = last.collect();
    assert!(texts.iter().any(|text| text.contains("src/file_") && text.contains("compute(")), "{texts:?}");
}

#[tokio::test]
async fn a_restart_in_the_middle_changes_no_window() {
    let texts = |windows: Vec<Vec<Arc<Item>>>| -> Vec<String> {
        // Calls are numbered anew by the second model, so only what is said is compared.
        let said = |items: Vec<Arc<Item>>| {
            items
                .iter()
                .filter_map(|item| item.as_message())
                .map(|message| message.text())
                .collect::<Vec<_>>()
                .join("\n")
        };
        windows.into_iter().map(said).collect()
    };
    let whole = texts(converse(None).await.0);
    assert_eq!(texts(converse(Some(14)).await.0), whole);
}

#[tokio::test]
async fn the_layer_bears_what_every_layer_must() {
    layer_conformance(FileHistory::default).await;
}
