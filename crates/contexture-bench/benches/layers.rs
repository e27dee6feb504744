//! The cost of recall in the layers that steer the work, after a long history.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture::event::{Event, Observer};
use contexture::fs::LocalFs;
use contexture::layer::Hook;
use contexture::layers::steering::Pattern;
use contexture::layers::*;
use contexture::prelude::*;
use contexture_bench::synthetic;
use serde_json::json;

/// How many turns are timed.
const TURNS: usize = 51;
/// The number of items in the history.
const ITEMS: usize = 100_000;

/// A model that always returns the same text.
struct Stub;

impl Model for Stub {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
        Ok(LlmResponse::text("Understood, going on."))
    }
}

/// How long each recall took, by layer.
#[derive(Clone, Default)]
struct Recalls(Arc<Mutex<Vec<(String, Duration)>>>);

impl Observer for Recalls {
    fn event(&self, event: Event<'_>) {
        if let Event::Span(span) = event
            && span.hook == Hook::Recall
        {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((span.layer_id.to_string(), span.duration));
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A project with typical instructions and skills.
fn project() -> tempfile::TempDir {
    let project = tempfile::tempdir().expect("a temporary directory");
    let write = |path: &str, text: String| {
        let path = project.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it is beneath the project")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    write("AGENTS.md", "- Run the tests before you commit.\n".repeat(200));
    write("CLAUDE.md", "See @docs/style.md.\n".to_owned());
    write("docs/style.md", "Short functions, plain words.\n".repeat(50));
    for n in 0..20 {
        let text = format!(
            "---\nname: skill-{n}\ndescription: {}\n---\n{}",
            "It does this and that. ".repeat(8),
            "Step.\n".repeat(200)
        );
        write(&format!(".claude/skills/skill-{n}/SKILL.md"), text);
    }
    project
}

async fn fill(execution: &Execution<()>) {
    let access = execution.memory();
    let call = |name: &'static str, input| {
        let access = access.clone();
        async move { access.call_json(name, input).await.map(drop).expect("a good call") }
    };
    call("working-memory/update", json!({ "text": "The user likes short answers. ".repeat(30) })).await;
    for n in 0..20 {
        call("task-state/checkpoint", json!({ "name": format!("point {n}"), "note": "what is next" })).await;
        call("task-state/record_artifact", json!({ "name": format!("file {n}"), "location": format!("out/{n}.md") }))
            .await;
        let path = format!("/memories/{n}.md");
        call("tool-memory/memory", json!({ "command": "create", "path": path, "file_text": "a note\n".repeat(40) }))
            .await;
    }
    let steps: Vec<_> = (0..40).map(|n| json!({ "text": format!("Do the thing number {n} with care") })).collect();
    for n in 0..200 {
        let text = format!("Person {n} works on part {n} of the parser and likes tea of sort {}.", n % 17);
        let value = format!("part {n}");
        call(
            "entity/remember",
            json!({ "text": text, "entity": format!("person {n}"), "attribute": "works on", "value": value }),
        )
        .await;
        let text = format!("Step {n} of the migration failed with error {} and was repeated.", n * 31);
        call("observations/remember", json!({ "text": text, "entity": "project" })).await;
    }
    call("plan/propose", json!({ "goal": "Everything works", "steps": steps })).await;
    call("plan/approve", json!({})).await;
    call("procedural/open", json!({ "name": "skill-3" })).await;
}

fn main() {
    let project = project();
    let recalls = Recalls::default();
    let steering = (0..20).fold(Steering::new(), |layer, n| {
        layer.pattern(Pattern::deny(format!("rule {n}"), "Ask first.").command(format!("command{n} *")))
    });
    let memory = memory(())
        .with_layer(Reminder::new().every_turns("tests", 5, "Run the tests."))
        .with_layer(steering)
        .with_layer(WorkingMemory::new())
        .with_layer(Instructions::new())
        .with_layer(TaskState::new())
        .with_layer(ToolMemory::new())
        .with_layer(Entity::new())
        .with_layer(Observations::new())
        .with_layer(Plan::new())
        .with_layer(Procedural::new())
        .with_layer(HistoryWindow::new(200));
    let files = LocalFs::open(project.path()).expect("the project is there");
    let builder = contexture::in_memory(memory).model(Stub).fs(Arc::new(files)).observer(recalls.clone());
    let engine = builder.policy(ProjectionPolicy::new(128_000)).build().expect("the layers go together");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Stamps of files that were just written are not trusted yet.
    std::thread::sleep(Duration::from_millis(100));
    runtime.block_on(async {
        let mut execution = engine.execution("bench").start().await.expect("a new thread opens");
        execution.import(synthetic::items(ITEMS, 42)).await.expect("a store in memory does not fail");
        fill(&execution).await;
        for turn in 0..TURNS + 5 {
            if turn == 5 {
                recalls.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            execution.turn("What is next on the list?").await.expect("the model does not fail");
        }
    });
    report(&recalls.0.lock().unwrap_or_else(PoisonError::into_inner));
}

fn report(recalls: &[(String, Duration)]) {
    let mut names: Vec<&str> = recalls.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut turns = vec![Duration::ZERO; TURNS];
    for name in &names {
        let own: Vec<Duration> = recalls.iter().filter(|(other, _)| other == name).map(|(_, time)| *time).collect();
        for (turn, time) in turns.iter_mut().zip(&own) {
            *turn += *time;
        }
        println!("recall of {name:<16} {:>8.1} µs at the median", median(own).as_secs_f64() * 1e6);
    }
    println!(
        "recall of all, summed     {:>8.1} µs at the median, after {ITEMS} items",
        median(turns).as_secs_f64() * 1e6
    );
}
