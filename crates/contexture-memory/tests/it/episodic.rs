//! The layer `episodic`.

use std::sync::Arc;

use contexture_core::engine::Engine;
use contexture_core::error::BoxError;
use contexture_core::memory::memory;
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::tool::{Tool, ToolContext};
use contexture_core::{MemoryStore, StorageAdapter};
use contexture_memory::layers::Episodic;
use contexture_memory::layers::episodic::{Episode, EpisodeOutcome, ForgetEpisodes, MAX_EPISODES};
use serde_json::{Value, json};

use crate::wait;

/// A tool that writes files, except one.
struct Write;

impl Tool for Write {
    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        "Writes a file."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, input: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        match input["path"].as_str() {
            Some("locked.rs") => Err("permission denied\nby the system".into()),
            _ => Ok("written".to_owned()),
        }
    }
}

fn rig(store: &Arc<dyn StorageAdapter>, model: &ScriptedModel) -> (Engine<(Episodic,)>, Recorder) {
    let recorder = Recorder::new();
    let builder = engine(memory((Episodic::new(),))).store(store.clone()).model(model.clone()).tool(Write);
    (builder.observer(recorder.clone()).build().unwrap(), recorder)
}

fn store() -> Arc<dyn StorageAdapter> {
    Arc::new(MemoryStore::new())
}

fn write(path: &str) -> String {
    json!({ "path": path, "content": "x" }).to_string()
}

/// Runs one turn on a thread of its own and returns all records.
async fn run(store: &Arc<dyn StorageAdapter>, model: ScriptedModel, thread: &str, text: &str) -> Vec<Episode> {
    let (engine, recorder) = rig(store, &model);
    let mut execution = engine.execution(thread).resource("ann").start().await.unwrap();
    execution.turn(text).await.unwrap();
    execution.complete().await.unwrap();
    assert!(recorder.faults().is_empty(), "{:?}", recorder.faults());
    let execution = engine.execution("look").resource("ann").start().await.unwrap();
    execution.memory().read(Episodic::EPISODES).unwrap()
}

#[test]
fn every_run_leaves_one_record_of_goal_outcome_files_and_failures() {
    wait(async {
        let store = store();
        let model = ScriptedModel::new().calls("write_file", write("src/parser.rs")).says("Done.");
        let episodes = run(&store, model, "one", "Fix the parser\nof headers.").await;
        assert_eq!(episodes.len(), 1);
        let Episode { goal, outcome, files, failed, .. } = &episodes[0];
        assert_eq!((goal.as_str(), *outcome), ("Fix the parser of headers.", EpisodeOutcome::Success));
        assert_eq!((files.as_slice(), failed.len()), (&["src/parser.rs".to_owned()][..], 0));
        let model = ScriptedModel::new().calls("write_file", write("locked.rs")).says("It did not work.");
        let episodes = run(&store, model, "two", "Unlock it.").await;
        assert_eq!((episodes.len(), episodes[1].outcome), (2, EpisodeOutcome::Partial));
        assert_eq!(episodes[1].failed.len(), 1);
        assert!(episodes[1].failed[0].starts_with("write_file (") && !episodes[1].failed[0].contains('\n'));
        assert!(episodes[1].files.is_empty());
    });
}

#[test]
fn failed_and_aborted_runs_say_so_and_silent_ones_leave_nothing() {
    wait(async {
        let store = store();
        let (engine, _) = rig(&store, &ScriptedModel::new().fails("the provider is down"));
        let mut execution = engine.execution("one").resource("ann").start().await.unwrap();
        execution.turn("Fix it.").await.unwrap_err();
        drop(execution);
        let (engine, _) = rig(&store, &ScriptedModel::new());
        engine.execution("two").resource("ann").start().await.unwrap().complete().await.unwrap();
        let execution = engine.execution("look").resource("ann").start().await.unwrap();
        let episodes = execution.memory().read(Episodic::EPISODES).unwrap();
        assert!(episodes.iter().all(|episode| episode.outcome != EpisodeOutcome::Success), "{episodes:?}");
    });
}

#[test]
fn records_are_shown_by_words_in_common_and_count_their_use() {
    wait(async {
        let store = store();
        for (thread, goal) in
            [("one", "Fix the parser of headers."), ("two", "Paint the door."), ("three", "Buy milk.")]
        {
            run(&store, ScriptedModel::new(), thread, goal).await;
        }
        let model = ScriptedModel::new();
        let (engine, _) = rig(&store, &model);
        let mut execution = engine.execution("four").resource("ann").start().await.unwrap();
        execution.turn("The parser is broken again.").await.unwrap();
        let block = model.last_texts().into_iter().find(|text| text.starts_with("<memory")).unwrap();
        assert!(block.contains("success: Fix the parser of headers."), "{block}");
        assert!(block.contains("Buy milk.") && !block.contains("door"), "the newest is always there: {block}");
        let uses: Vec<u32> =
            execution.memory().read(Episodic::EPISODES).unwrap().iter().map(|episode| episode.uses).collect();
        assert_eq!(uses, [1, 0, 0]);
        let removed =
            execution.memory().call(Episodic::FORGET, ForgetEpisodes { text: "PARSER".into() }).await.unwrap();
        assert_eq!(removed.result, "1 records removed");
        execution.turn("The parser?").await.unwrap();
        // The block of this epoch is as it was; the newest word about it counts.
        let newest = model.last_texts().into_iter().rfind(|text| text.contains("layer=\"episodic\"")).unwrap();
        assert!(newest.starts_with("<updates>") && !newest.contains("of headers"), "{newest}");
        execution.memory().call(Episodic::FORGET, ForgetEpisodes { text: " ".into() }).await.unwrap_err();
    });
}

#[test]
fn children_have_no_record_and_their_parent_keeps_its_own() {
    wait(async {
        let store = store();
        let model = ScriptedModel::new();
        let (engine, recorder) = rig(&store, &model);
        let mut parent = engine.execution("one").resource("ann").start().await.unwrap();
        parent.turn("Plan the work.").await.unwrap();
        let mut child = parent.spawn().await.unwrap();
        child.turn("Do a part of it.").await.unwrap();
        parent.join(child, Value::Null).await.unwrap();
        parent.complete().await.unwrap();
        assert!(recorder.faults().is_empty());
        let execution = engine.execution("look").resource("ann").start().await.unwrap();
        let goals: Vec<String> =
            execution.memory().read(Episodic::EPISODES).unwrap().into_iter().map(|episode| episode.goal).collect();
        assert_eq!(goals, ["Plan the work."]);
    });
}

#[test]
fn there_are_never_too_many_and_what_is_used_stays() {
    wait(async {
        let store = store();
        run(&store, ScriptedModel::new(), "first", "Calibrate the telescope.").await;
        let model = ScriptedModel::new();
        let (engine, _) = rig(&store, &model);
        for n in 0..MAX_EPISODES + 20 {
            let mut execution = engine.execution(format!("t{n}").as_str()).resource("ann").start().await.unwrap();
            let text = if n % 20 == 0 { "The telescope again.".to_owned() } else { format!("Chore number {n}.") };
            execution.turn(text.as_str()).await.unwrap();
            execution.complete().await.unwrap();
        }
        let execution = engine.execution("look").resource("ann").start().await.unwrap();
        let episodes = execution.memory().read(Episodic::EPISODES).unwrap();
        assert_eq!(episodes.len(), MAX_EPISODES);
        assert!(episodes.iter().any(|episode| episode.goal == "Calibrate the telescope."));
    });
}
