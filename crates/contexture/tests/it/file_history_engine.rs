//! The layer `file-history` as part of an agent: folds are decisions, windows fit, a restart changes nothing.

use std::sync::Arc;

use contexture::decision::{Action, Decision};
use contexture::error::FunctionError;
use contexture::event::{TraceNote, TraceValue};
use contexture::layers::FileHistory;
use contexture::layers::file_history::OutputQuery;
use contexture::prelude::*;
use contexture::store::{MemoryStore, StorageAdapter};
use contexture::testing::{ManualClock, Recorder, ScriptedModel, engine, layer_conformance};
use contexture::tokens::{Estimate, TokenCounter, count_item};
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
async fn converse(budget: u64, restart_before: Option<usize>) -> (Vec<Vec<Arc<Item>>>, Recorder) {
    converse_with(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(budget) }, restart_before).await
}

async fn converse_with(policy: ProjectionPolicy, restart_before: Option<usize>) -> (Vec<Vec<Arc<Item>>>, Recorder) {
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
            .policy(policy.clone())
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
    let (windows, recorder) = converse(BUDGET, None).await;
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
async fn a_large_reserve_folds_no_more_often_than_a_smaller_budget() {
    let (windows, recorder) = converse(BUDGET, None).await;
    for reserve in [BUDGET / 4, BUDGET / 2, BUDGET, BUDGET * 3] {
        let policy = ProjectionPolicy { response_reserve: reserve, ..ProjectionPolicy::new(BUDGET + reserve) };
        let (same, with_reserve) = converse_with(policy, None).await;
        assert_eq!(with_reserve.decisions().len(), recorder.decisions().len(), "a reserve of {reserve}");
        assert!(same == windows, "a reserve of {reserve}");
    }
}

#[tokio::test]
async fn between_folds_a_window_only_grows_at_its_end() {
    let (windows, recorder) = converse(BUDGET, None).await;
    let is_fold = |decision: &Decision| matches!(&decision.action, Action::Layer(what) if what["decision"] == "fold");
    let folds: Vec<usize> = recorder.decisions().iter().filter(|it| is_fold(it)).map(|it| it.at).collect();
    assert!(folds.len() > 2, "{folds:?}");
    let moved = windows.windows(2).filter(|pair| !pair[1].starts_with(&pair[0])).count();
    assert_eq!(moved, folds.len(), "what was sent was changed without a fold");
}

#[tokio::test]
async fn a_folded_file_can_still_be_seen() {
    let (windows, _) = converse(BUDGET, None).await;
    let said = windows.iter().flatten().filter_map(|item| item.as_message()).map(|message| message.text());
    let mut made = said.filter(|text| text.contains("## `src/file_"));
    assert!(made.any(|text| text.contains("= compute(\"src/file_")), "no window shows what is known of a folded file");
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
    let whole = texts(converse(BUDGET, None).await.0);
    assert_eq!(texts(converse(BUDGET, Some(14)).await.0), whole);
}

#[tokio::test]
async fn the_layer_bears_what_every_layer_must() {
    layer_conformance(FileHistory::default).await;
}

/// Prints a long log with one line of interest in its middle.
struct Build;

const BUILD_LINES: usize = 3_000;

fn build_output() -> String {
    let line = |line: usize| match line {
        1_700 => "note: the needle is here\n".to_owned(),
        _ => format!("{line:05} compiled one more of the many units\n"),
    };
    (1..=BUILD_LINES).map(line).collect()
}

impl Tool for Build {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "Runs a command."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["command"] })
    }

    async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        Ok(build_output())
    }
}

type OneLayer = (FileHistory,);

async fn agent(store: &Arc<dyn StorageAdapter>, model: &ScriptedModel) -> Execution<OneLayer> {
    let built = engine(memory((FileHistory::default(),)))
        .store(store.clone())
        .model(model.clone())
        .tool(Build)
        .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(BUDGET) })
        .build();
    built.unwrap().execution("t").start().await.unwrap()
}

/// What the tools answered, as the last request shows it.
fn answers(model: &ScriptedModel) -> Vec<String> {
    let last = model.requests().pop().unwrap();
    last.items.iter().filter_map(|item| item.as_output()).map(|output| output.output.clone()).collect()
}

/// The hash in the first text that is shown shortened.
fn hash_in(texts: &[String]) -> String {
    let text = texts.iter().find_map(|text| text.split_once("file-history/output {\"hash\":\"")).unwrap();
    text.1[..12].to_owned()
}

fn query(hash: &str) -> OutputQuery {
    OutputQuery { hash: hash.to_owned(), ..OutputQuery::default() }
}

#[tokio::test]
async fn the_model_can_ask_for_the_whole_of_a_capped_output() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new().calls("Bash", r#"{"command":"make"}"#).says("Let me look.");
    let mut execution = agent(&store, &model).await;
    execution.turn("Build it.").await.unwrap();
    let hash = hash_in(&answers(&model));

    let search = json!({ "hash": hash, "search": "NEEDLE" }).to_string();
    let piece = json!({ "hash": hash, "from_line": 1_699, "lines": 3 }).to_string();
    let model = ScriptedModel::new()
        .calls("file-history__output", search)
        .calls("file-history/output", piece)
        .calls("file-history/output", json!({ "hash": hash }).to_string())
        .says("There.");
    // Another process: all it has is the store.
    drop(execution);
    let mut execution = agent(&store, &model).await;
    execution.turn("Where is the needle?").await.unwrap();
    let requests = model.requests();
    let shown = |request: usize| requests[request].items.iter().rev().find_map(|item| item.as_output()).unwrap();
    assert_eq!(shown(1).output, "[1 of 3000 lines contain it]\n1700: note: the needle is here\n");
    let piece = "01699 compiled one more of the many units\nnote: the needle is here\n01701 compiled one more";
    assert!(shown(2).output.starts_with(&format!("[lines 1699-1701 of 3000]\n{piece}")), "{}", shown(2).output);
    let whole = &shown(3).output;
    assert!(whole.ends_with(" …]") && whole.contains("[… go on with \"from_line\":"), "{whole}");
    assert!(Estimate.count(whole) <= 1_500);
}

#[tokio::test]
async fn pieces_of_an_output_put_together_are_the_output() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new().calls("Bash", r#"{"command":"make"}"#).says("Built.");
    let mut execution = agent(&store, &model).await;
    execution.turn("Build it.").await.unwrap();
    let hash = hash_in(&answers(&model));
    let (mut whole, mut from_line) = (String::new(), Some(1));
    while let Some(line) = from_line {
        let asked = OutputQuery { from_line: Some(line), ..query(&hash) };
        let answer = execution.memory().call(FileHistory::OUTPUT, asked).await.unwrap();
        let (_, piece) = answer.split_once('\n').unwrap();
        let (piece, next) = match piece.split_once("[… go on with \"from_line\":") {
            Some((piece, next)) => (piece, next.trim_end_matches(" …]").parse().ok()),
            None => (piece, None),
        };
        whole.push_str(piece);
        assert!(next.is_none_or(|next: usize| next > line), "it goes in circles");
        from_line = next;
    }
    assert_eq!(whole, build_output());
}

#[tokio::test]
async fn a_child_sees_its_own_outputs_and_no_others() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new().calls("Bash", r#"{"command":"make"}"#).says("Built.");
    let mut parent = agent(&store, &model).await;
    let mut child = parent.spawn().await.unwrap();
    child.turn("Build it.").await.unwrap();
    let hash = hash_in(&answers(&model));
    let of_child = child.memory().call(FileHistory::OUTPUT, query(&hash)).await.unwrap();
    assert!(of_child.starts_with("[lines 1-"), "{of_child}");
    let refused = parent.memory().call(FileHistory::OUTPUT, query(&hash)).await.unwrap_err();
    let Error::Function(FunctionError::Failed { source, .. }) = refused else { panic!("another error: {refused}") };
    assert!(source.to_string().contains(&format!("has the hash `{hash}`")), "{source}");
}

#[tokio::test]
async fn without_the_tool_nothing_is_promised() {
    let model = ScriptedModel::new().calls("Bash", r#"{"command":"make"}"#).says("Built.");
    let built = engine(memory((FileHistory::default().without_output_tool(),)))
        .model(model.clone())
        .tool(Build)
        .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(BUDGET) })
        .build()
        .unwrap();
    assert_eq!(built.tool_schemas().len(), 1, "only the author's own tool");
    built.execution("t").start().await.unwrap().turn("Build it.").await.unwrap();
    let shown = answers(&model);
    assert!(shown[0].contains(" bytes) left out …]") && !shown[0].contains("shows them"), "{shown:?}");
}

#[tokio::test]
async fn a_pause_longer_than_the_cache_lives_makes_a_fold_free() {
    let clock = ManualClock::new();
    let recorder = Recorder::new();
    let mut model = ScriptedModel::new();
    let built = engine(memory((FileHistory::default(),)))
        .model(model.clone())
        .tool(Read)
        .clock(Arc::new(clock.clone()))
        .observer(recorder.clone())
        .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(64_000) })
        .build();
    let mut execution = built.unwrap().execution("t").start().await.unwrap();
    for turn in 0..60 {
        model = model.calls("Read", format!(r#"{{"file_path":"src/file_{turn}.rs"}}"#)).says("Read.");
        execution.turn(format!("Look at file {turn}.")).await.unwrap();
    }
    let reasons = || -> Vec<String> {
        let ours = |decision: &Decision| decision.layer.as_ref().is_some_and(|id| id.as_str() == FileHistory::ID);
        let reasons = recorder.decisions().into_iter().filter(ours).map(|decision| decision.reason);
        reasons.filter(|reason| reason != "the same in fewer words").collect()
    };
    assert_eq!(reasons(), [""; 0], "nothing was folded before the pause");
    clock.advance(std::time::Duration::from_secs(3_600));
    model.says("Good.");
    execution.turn("I am back.").await.unwrap();
    assert_eq!(reasons(), ["the provider's cache is cold", "the cache is cold, so rewriting is free"]);
}

#[tokio::test]
async fn own_changes_that_do_not_fit_are_told_in_the_trace_and_in_the_decision() {
    let recorder = Recorder::new();
    let mut model = ScriptedModel::new();
    for file in 0..30 {
        let content: String = (0..60).map(|line| format!("let own_{file}_{line} = compute({line});\n")).collect();
        let arguments = json!({ "file_path": format!("src/own_{file}.rs"), "content": content });
        model = model.calls("Write", arguments.to_string());
    }
    model = model.says("Written.");
    let built = engine(memory((FileHistory::default(),)))
        .model(model.clone())
        .tool(Write)
        .observer(recorder.clone())
        .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(BUDGET) })
        .max_steps(40)
        .build();
    built.unwrap().execution("t").start().await.unwrap().turn("Write it all.").await.unwrap();
    let told = |decision: &Decision| decision.reason.contains("the agent's own changes in ");
    assert!(recorder.decisions().iter().any(told), "no decision says so");
    let is_told = |note: &TraceNote| matches!(note, TraceNote::Event { name, .. } if name == "own_changes_left_out");
    assert!(recorder.spans().iter().any(|span| span.notes.iter().any(is_told)), "no span says so");
}

/// Makes the first decision of the layer that is stored one of a newer version of the program.
async fn spoil_first_decision(store: &dyn StorageAdapter) {
    for key in store.list("threads/t/decisions/").await.unwrap() {
        let record = store.get(&key).await.unwrap().unwrap();
        let mut stored: Value = serde_json::from_slice(&record.value).unwrap();
        if stored["decision"]["layer"] == FileHistory::ID {
            stored["decision"]["action"]["what"]["version"] = 99.into();
            store.set(&key, serde_json::to_vec(&stored).unwrap()).await.unwrap();
            return;
        }
    }
    panic!("the layer decided nothing");
}

#[tokio::test]
async fn a_decision_that_cannot_be_read_is_told_in_the_trace_and_costs_no_new_one() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let read = |file: usize| {
        ScriptedModel::new().calls("Read", format!(r#"{{"file_path":"src/file_{file}.rs"}}"#)).says("Read.")
    };
    let turn = async |model: ScriptedModel| {
        let recorder = Recorder::new();
        let built = engine(memory((FileHistory::default(),)))
            .store(store.clone())
            .model(model)
            .tool(Read)
            .observer(recorder.clone())
            .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(BUDGET) })
            .build();
        built.unwrap().execution("t").start().await.unwrap().turn("Look.").await.unwrap();
        recorder
    };
    let told = |recorder: &Recorder| -> Vec<TraceValue> {
        let notes = recorder.spans().into_iter().flat_map(|span| span.notes);
        let counts = notes.filter_map(|note| match note {
            TraceNote::Event { name, attributes } if name == "unreadable_decisions" => Some(attributes),
            _ => None,
        });
        counts.flatten().map(|(name, value)| (name == "count").then_some(value).unwrap()).collect()
    };
    let shortened = |recorder: &Recorder| {
        let ours = recorder.decisions().into_iter().filter(|decision| decision.layer == Some(FileHistory::ID.into()));
        ours.filter(|decision| decision.reason == "the same in fewer words").count()
    };
    let before = turn(read(0)).await;
    assert_eq!((told(&before), shortened(&before)), (vec![], 1));
    spoil_first_decision(&*store).await;
    let after = turn(read(1)).await;
    assert_eq!(told(&after), [TraceValue::Number(1.0), TraceValue::Number(1.0)], "once for each request");
    assert_eq!(shortened(&after), 1, "what was decided about the second file is stored");
    assert_eq!((before.faults(), after.faults()), (vec![], vec![]));
}

#[test]
fn what_would_cut_a_fold_again_is_refused() {
    let refused = |policy: ProjectionPolicy| {
        let built = engine(memory((FileHistory::default(),))).model(ScriptedModel::new()).policy(policy).build();
        built.err().map(|error| error.to_string())
    };
    let sliding = ProjectionPolicy { overflow: Overflow::SlidingWindow, ..ProjectionPolicy::new(BUDGET) };
    let expected = "projection policy: `overflow` is `sliding_window`, which would cut what layer `file-history` keeps \
                    of the past, and what people said in it\nhint: use `truncate`; the layer keeps the past within the \
                    window by itself";
    assert_eq!(refused(sliding).as_deref(), Some(expected));
    for overflow in [Overflow::Truncate, Overflow::Summarize] {
        assert_eq!(refused(ProjectionPolicy { overflow, ..ProjectionPolicy::new(BUDGET) }), None);
    }
    let newest = LayerSpec::new("newest", Slot(275), MemoryScope::Execution).owning_history();
    let built = engine(memory((FileHistory::default(),)).with_layer(layer::<()>(newest).build()))
        .model(ScriptedModel::new())
        .build();
    let expected = "layer `newest`: `owns_history` is said by layer `file-history` too, and each would undo what the \
                    other shows\nhint: use one of them";
    assert_eq!(built.err().unwrap().to_string(), expected);
}

#[tokio::test]
async fn what_was_said_is_never_cut_behind_a_fold() {
    let recorder = Recorder::new();
    let mut model = ScriptedModel::new();
    // Guidance stands in every other window, and takes room that history had before.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let spec = LayerSpec::new("guide", Slot::STEERING, MemoryScope::Execution);
    let guide = layer::<()>(spec).after_model_call(move |_| {
        let guides = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4 == 1;
        let guidance = "Mind the tests. ".repeat(60);
        async move { Ok(if guides { SteeringDecision::Guide { guidance } } else { SteeringDecision::Allow }.into()) }
    });
    let guide = guide.build();
    let built = engine(memory((FileHistory::default(),)).with_layer(guide))
        .model(model.clone())
        .tool(Read)
        .observer(recorder.clone())
        .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(BUDGET) })
        .build();
    let mut execution = built.unwrap().execution("t").start().await.unwrap();
    for turn in 0..TURNS {
        model = model.calls("Read", format!(r#"{{"file_path":"src/file_{}.rs"}}"#, turn % 9)).says("One.").says("Two.");
        execution.turn(format!("Look at file {turn}.")).await.unwrap();
    }
    let is_engine_s = |decision: &&Decision| !matches!(decision.action, Action::Layer(_) | Action::Epoch { .. });
    let decisions = recorder.decisions();
    assert_eq!(decisions.iter().filter(is_engine_s).collect::<Vec<_>>(), Vec::<&Decision>::new());
    assert!(decisions.iter().any(|decision| decision.layer.is_some()), "nothing was folded");
}

/// Writes nothing, and says that it did.
struct Write;

impl Tool for Write {
    fn name(&self) -> &str {
        "Write"
    }

    fn description(&self) -> &str {
        "Writes a file."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["file_path", "content"] })
    }

    async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        Ok("File created successfully.".to_owned())
    }
}
