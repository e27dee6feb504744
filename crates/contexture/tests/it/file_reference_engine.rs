//! The File Reference layer as part of an agent: turns, tools, restarts, children.

use std::sync::Arc;

use contexture::layers::FileReference;
use contexture::layers::file_reference::{FileReferenceOptions, Untrack};
use contexture::prelude::*;
use contexture::store::{MemoryStore, StorageAdapter};
use contexture::testing::{
    CountingIds, FaultyStore, ManualClock, MemoryFs, Recorder, ScriptedModel, engine, layer_conformance,
};
use serde_json::{Value, json};

/// A tool that writes a file of the agent's.
struct Write(Arc<MemoryFs>);

impl Tool for Write {
    fn name(&self) -> &str {
        "write"
    }

    fn description(&self) -> &str {
        "Writes a file."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["path", "text"] })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        self.0.set(&text("path"), text("text"));
        Ok("written".to_owned())
    }
}

struct Agent {
    files: Arc<MemoryFs>,
    model: ScriptedModel,
    recorder: Recorder,
    engine: Engine<(FileReference,)>,
}

fn agent(files: &Arc<MemoryFs>, store: &Arc<dyn StorageAdapter>, model: ScriptedModel) -> Agent {
    let recorder = Recorder::new();
    let layer = FileReference::new(FileReferenceOptions::default()).unwrap();
    let built = engine(memory((layer,)))
        .fs(files.clone())
        .store(store.clone())
        .model(model.clone())
        .tool(Write(files.clone()))
        .observer(recorder.clone())
        .build();
    Agent { files: files.clone(), model, recorder, engine: built.unwrap() }
}

fn files(texts: &[(&str, &str)]) -> Arc<MemoryFs> {
    let files = Arc::new(MemoryFs::new());
    for (path, text) in texts {
        files.set(path, *text);
    }
    files
}

fn forgetful() -> Arc<dyn StorageAdapter> {
    Arc::new(MemoryStore::new())
}

/// Everything in the newest request, as one text.
fn shown(model: &ScriptedModel) -> String {
    model.last_texts().join("\n")
}

#[tokio::test]
async fn a_named_file_is_in_the_very_next_request() {
    let files = files(&[("a.rs", "fn first() {}")]);
    let agent = agent(&files, &forgetful(), ScriptedModel::new());
    let mut execution = agent.engine.execution("t").start().await.unwrap();
    execution.turn("Look at #a.rs").await.unwrap();
    let texts = agent.model.last_texts();
    assert!(texts[0].starts_with("# Referenced Files\n") && texts[0].contains("fn first() {}"), "{texts:?}");
    assert_eq!(texts[1], "Look at [#a.rs](#a-rs)");
    assert_eq!(agent.recorder.faults(), []);
}

#[tokio::test]
async fn a_file_that_a_tool_changed_is_current_before_the_next_model_call() {
    let files = files(&[("a.rs", "fn first() {}")]);
    let model = ScriptedModel::new().calls("write", r#"{"path":"a.rs","text":"fn second() {}"}"#).says("done");
    let agent = agent(&files, &forgetful(), model);
    let mut execution = agent.engine.execution("t").start().await.unwrap();
    assert_eq!(execution.turn("Rename it in #a.rs").await.unwrap().text(), "done");
    assert!(shown(&agent.model).contains("fn second() {}"), "{}", shown(&agent.model));
    assert_eq!(agent.recorder.faults(), []);
}

#[tokio::test]
async fn a_file_that_someone_changed_is_current_in_the_next_turn() {
    let files = files(&[("a.rs", "fn first() {}"), ("b.rs", "fn other() {}")]);
    let agent = agent(&files, &forgetful(), ScriptedModel::new());
    let mut execution = agent.engine.execution("t").start().await.unwrap();
    execution.turn("Look at #a.rs and #b.rs").await.unwrap();
    agent.files.set("a.rs", "fn changed() {}");
    execution.turn("Go on.").await.unwrap();
    assert!(shown(&agent.model).contains("fn changed() {}"));
    agent.files.remove("a.rs");
    execution.turn("Go on.").await.unwrap();
    let texts = shown(&agent.model);
    assert!(texts.contains("a.rs") && texts.contains("fn other() {}"), "{texts}");
}

#[tokio::test]
async fn tracked_files_survive_a_restart_and_reach_children() {
    let (files, store) = (files(&[("a.rs", "fn first() {}")]), forgetful());
    let first = agent(&files, &store, ScriptedModel::new());
    let mut execution = first.engine.execution("t").start().await.unwrap();
    execution.turn("Look at #a.rs").await.unwrap();
    execution.complete().await.unwrap();

    files.set("a.rs", "fn after_restart() {}");
    let second = agent(&files, &store, ScriptedModel::new());
    let mut execution = second.engine.execution("t").start().await.unwrap();
    execution.turn("Go on.").await.unwrap();
    assert!(shown(&second.model).contains("fn after_restart() {}"));
    let mut child = execution.spawn().await.unwrap();
    child.turn("Do your part.").await.unwrap();
    assert!(shown(&second.model).contains("fn after_restart() {}"));
}

#[tokio::test]
async fn an_untracked_file_is_no_longer_shown() {
    let files = files(&[("a.rs", "fn first() {}"), ("b.rs", "fn other() {}")]);
    let agent = agent(&files, &forgetful(), ScriptedModel::new());
    let mut execution = agent.engine.execution("t").start().await.unwrap();
    execution.turn("Look at #a.rs and #b.rs").await.unwrap();
    execution.memory().call(FileReference::UNTRACK, Untrack { path: "a.rs".to_owned() }).await.unwrap();
    let tracked = execution.memory().read(FileReference::FILES).unwrap();
    assert_eq!(tracked.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["b.rs"]);
}

/// As the page says: the model is told at once, and the text goes with the next rewrite of the prefix.
#[tokio::test]
async fn the_text_of_an_untracked_file_goes_when_the_prefix_is_written_anew() {
    let files = files(&[("a.rs", "fn first() {}"), ("b.rs", "fn other() {}")]);
    let (model, clock) = (ScriptedModel::new(), ManualClock::new());
    let layer = FileReference::new(FileReferenceOptions::default()).unwrap();
    let builder = Engine::builder(memory((layer,)), Arc::new(clock.clone()), Arc::new(CountingIds::new()));
    let engine = builder.fs(files).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("Look at #a.rs and #b.rs").await.unwrap();
    assert!(shown(&model).contains("fn first() {}"));
    execution.memory().call(FileReference::UNTRACK, Untrack { path: "a.rs".to_owned() }).await.unwrap();
    execution.turn("Go on.").await.unwrap();
    let told = shown(&model);
    assert!(told.contains("fn other() {}"), "{told}");
    let (before, updates) = told.split_once("Go on.").unwrap();
    assert!(before.contains("fn first() {}"), "the prefix stays as the provider has cached it");
    assert!(updates.contains("a.rs") && !updates.contains("fn first() {}"), "the model is told at once: {updates}");
    clock.advance(std::time::Duration::from_secs(3600));
    execution.turn("And now?").await.unwrap();
    let text = shown(&model);
    assert!(!text.contains("fn first() {}") && text.contains("fn other() {}"), "{text}");
}

#[tokio::test]
async fn an_unrelated_message_reads_no_file_and_writes_no_state() {
    let files = files(&[("a.rs", "fn first() {}"), ("b.rs", "fn other() {}")]);
    let store = Arc::new(FaultyStore::new(forgetful()));
    let durable: Arc<dyn StorageAdapter> = store.clone();
    let agent = agent(&files, &durable, ScriptedModel::new());
    let mut execution = agent.engine.execution("t").start().await.unwrap();
    execution.turn("Look at #a.rs and #b.rs").await.unwrap();
    execution.turn("Go on.").await.unwrap();
    let state = || async { store.get("layers/file-reference/thread/t/state").await.unwrap().unwrap().version };
    let (reads, before) = (files.reads(), state().await);
    execution.turn("What is the capital of France?").await.unwrap();
    assert_eq!((files.reads(), state().await), (reads, before));
}

#[tokio::test]
async fn the_layer_bears_what_every_layer_must() {
    layer_conformance(|| FileReference::new(FileReferenceOptions::default()).unwrap()).await;
}

#[tokio::test]
async fn an_engine_without_files_says_which_call_is_missing() {
    let model = ScriptedModel::new();
    let files = FileReference::new(FileReferenceOptions::default()).unwrap();
    let engine = engine(memory((files,))).model(model.clone()).build().unwrap();
    engine.execution("thread").start().await.unwrap().turn("See #src/a.rs").await.unwrap();
    let shown = model.last_texts().join("\n");
    assert!(shown.contains("- `src/a.rs`: NO_FILES, ") && shown.contains(".fs(…)"), "{shown}");
}
