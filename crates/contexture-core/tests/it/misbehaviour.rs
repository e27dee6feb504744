//! Misbehaving layers: the turn ends normally, with a fault.

use std::sync::{Arc, OnceLock};

use contexture_core::engine::{Engine, MemoryAccess};
use contexture_core::error::Error;
use contexture_core::event::SpanStatus;
use contexture_core::history::Part;
use contexture_core::layer::*;
use contexture_core::testing::{ManualClock, Recorder, ScriptedModel, engine};
use contexture_core::window::ProjectionPolicy;
use contexture_core::{History, Item, ItemLog, memory};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::kit::{Diary, settle, spec, timed};

/// A value that is set later, to be captured in a closure now.
type Later<T> = Arc<OnceLock<T>>;

fn messages(recorder: &Recorder) -> Vec<String> {
    let faults = recorder.faults().into_iter();
    faults.map(|fault| format!("{}: {}", fault.place, fault.message)).collect()
}

/// The recall starts an execution of its own engine and runs a turn in it, whose recall does the same.
#[tokio::test]
async fn a_recall_that_runs_turns_of_its_own_engine_comes_to_an_end() {
    let (engine_cell, recorder, diary): (Later<Engine<()>>, _, _) = (Later::default(), Recorder::new(), Diary::new());
    let (captured, noted) = (engine_cell.clone(), diary.clone());
    let recursive = layer::<()>(spec("recursive", 1)).recall(move |_| {
        let (engine, diary) = (captured.get().cloned(), noted.clone());
        async move {
            let engine = engine.expect("the engine is built by now");
            diary.note("recall");
            let mut inner = engine.execution(format!("inner {}", diary.len())).start().await?;
            let answer = inner.turn("deeper").await?;
            Ok(answer.text().into())
        }
    });
    let config = memory(()).with_layer(recursive.build());
    let engine = engine(config).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    assert!(engine_cell.set(engine.clone()).is_ok());
    let mut execution = engine.execution("outer").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "ok");
    assert_eq!(diary.len(), 3);
    assert_eq!(messages(&recorder), ["recall: hooks run turns inside turns, more than 3 deep"]);
}

#[tokio::test]
async fn an_init_that_starts_executions_of_its_own_engine_comes_to_an_end() {
    let engine_cell: Later<Engine<()>> = Later::default();
    let captured = engine_cell.clone();
    let recursive = layer::<()>(spec("recursive", 1)).init(move |_| {
        let engine = captured.get().cloned().expect("the engine is built by now");
        async move {
            engine.execution("inner").start().await?;
            Ok(InitResult { state: () })
        }
    });
    let config = memory(()).with_layer(recursive.build());
    let engine = engine(config).model(ScriptedModel::new()).build().unwrap();
    assert!(engine_cell.set(engine.clone()).is_ok());
    let Err(mut error) = engine.execution("outer").start().await else { panic!("it cannot succeed") };
    while let Error::Init { source, .. } = error {
        error = *source.downcast::<Error>().expect("what the inner start answered");
    }
    assert!(matches!(error, Error::TooDeep { limit: 3 }));
}

/// A layer whose recall and whose function call a function of the same layer.
#[tokio::test]
async fn a_layer_that_calls_itself_gets_an_error() {
    let (access, recorder): (Later<MemoryAccess<()>>, _) = (Later::default(), Recorder::new());
    let (from_recall, from_function) = (access.clone(), access.clone());
    let again = layer_fn("Calls itself.", move |_: serde_json::Value, count: Arc<u32>, _| {
        let access = from_function.get().cloned().expect("set before any call");
        async move {
            let said = access.call_json("narcissus/again", json!({})).await.unwrap_err().to_string();
            Ok(FnResult::new(said).with_state(*count + 1))
        }
    });
    let narcissus = layer::<u32>(spec("narcissus", 1))
        .recall(move |_| {
            let access = from_recall.get().cloned().expect("set before any call");
            async move { Ok(access.call_json("narcissus/again", json!({})).await?.to_string().into()) }
        })
        .provides(LayerProvides::new().function("again", again))
        .build();
    let (builder, _) = timed(memory(()).with_layer(narcissus));
    let model = ScriptedModel::new().calls("narcissus/again", "{}");
    let engine = builder.model(model).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert!(access.set(execution.memory()).is_ok());
    execution.turn("hello").await.unwrap();
    let output = execution.log().iter().find_map(|item| item.as_output()).unwrap();
    assert_eq!(output.output, "layer `narcissus` called itself from `function`");
    assert_eq!(
        messages(&recorder),
        [
            "function: the layer called itself from `recall`",
            "recall: layer `narcissus` called itself from `recall`",
            "function: the layer called itself from `function`",
        ]
    );
}

/// Each waits for the other until its timeout; when one is cancelled, the other continues.
#[tokio::test]
async fn layers_that_wait_for_each_other_do_not_wait_for_ever() {
    let (access, recorder): (Later<MemoryAccess<()>>, _) = (Later::default(), Recorder::new());
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let calling = |id: &str, other: &'static str| {
        let (access, both) = (access.clone(), both.clone());
        let idle = layer_fn("Idles.", |_: serde_json::Value, _: Arc<()>, _| async { Ok(FnResult::new(())) });
        layer::<()>(spec(id, 1))
            .recall(move |_| {
                let (access, both) = (access.get().cloned().expect("set before any turn"), both.clone());
                async move {
                    both.wait().await;
                    access.call_json(other, json!({})).await?;
                    Ok("never".into())
                }
            })
            .provides(LayerProvides::new().function("f", idle))
            .build()
    };
    let config = memory(()).with_layer(calling("a", "b/f")).with_layer(calling("b", "a/f"));
    let (builder, clock) = timed(config);
    let engine = builder.model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert!(access.set(execution.memory()).is_ok());
    let time = async {
        settle().await;
        clock.advance(std::time::Duration::from_secs(5));
    };
    let (turned, ()) = tokio::join!(execution.turn("hello"), time);
    assert_eq!(turned.unwrap().text(), "ok");
    assert_eq!(messages(&recorder), ["recall: took longer than 5000 ms and was cancelled"]);
}

#[tokio::test]
async fn a_hook_waits_for_a_function_of_its_layer_no_longer_than_its_time() {
    let recorder = Recorder::new();
    let hang = layer_fn("Hangs.", |_: serde_json::Value, _: Arc<()>, _| {
        std::future::pending::<HookResult<FnResult<(), ()>>>()
    });
    let busy = layer::<()>(spec("busy", 1))
        .recall(|_| async { Ok("here".into()) })
        .provides(LayerProvides::new().function("hang", hang))
        .build();
    let (builder, clock) = timed(memory((busy,)));
    let engine = builder.model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let access = execution.memory();
    let calling = tokio::spawn(async move { access.call_json("busy/hang", json!({})).await });
    settle().await;
    let time = async {
        settle().await;
        clock.advance(std::time::Duration::from_secs(5));
    };
    let (turned, ()) = tokio::join!(execution.turn("hello"), time);
    assert_eq!(turned.unwrap().text(), "ok");
    clock.advance(std::time::Duration::from_secs(115));
    let error = calling.await.unwrap().unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "took longer than 120 s and was cancelled");
}

/// A timer cannot stop a hook that does not yield; what it returns after its time is dropped all the same.
#[tokio::test]
async fn a_hook_that_blocks_past_its_time_leaves_a_trace_and_no_effect() {
    let (recorder, model) = (Recorder::new(), ScriptedModel::new());
    let clock: Later<ManualClock> = Later::default();
    let passing = clock.clone();
    let blocking = layer::<()>(spec("blocking", 1).with_name("Blocks")).recall(move |_| {
        passing.get().expect("set before any call").advance(std::time::Duration::from_secs(6));
        async { Ok("too late".into()) }
    });
    let (builder, manual) = timed(memory((blocking.build(),)));
    assert!(clock.set(manual).is_ok());
    let engine = builder.model(model.clone()).observer(recorder.clone()).build().unwrap();
    engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    assert_eq!(messages(&recorder), ["recall: took longer than 5000 ms and was cancelled"]);
    assert_eq!(model.last_texts(), ["hello"]);
    let spans = recorder.spans();
    let span = (spans[0].layer_name.as_deref(), spans[0].status, spans[0].duration.as_secs());
    assert_eq!(span, (Some("Blocks"), SpanStatus::Timeout, 6));
}

/// An invalid history.
fn odd_history(kind: &str, given: &History) -> History {
    match kind {
        "empty" => given.with_parts(vec![]),
        "beyond the end" => given.with_parts(vec![Part::Log(3..1_000_000), Part::Log(usize::MAX - 1..usize::MAX)]),
        "everything twice" => given.with_parts([given.parts(), given.parts()].concat()),
        "calls alone" => given.with_parts(vec![Part::Item(Arc::new(Item::call("x", "y", "{}")))]),
        "outputs alone" => given.with_parts(vec![Part::Item(Arc::new(Item::output("x", "y")))]),
        "huge" => given.clone().with_preface(vec![Item::developer("word ".repeat(100_000))]),
        "another log" => {
            let mut log = ItemLog::new();
            log.append(Item::user("forged"), 5);
            History::of(&log)
        }
        other => panic!("no such kind: {other}"),
    }
}

#[tokio::test]
async fn whatever_a_layer_makes_of_history_the_window_is_sound() {
    let kinds = ["empty", "beyond the end", "everything twice", "calls alone", "outputs alone", "huge", "another log"];
    for kind in kinds {
        let odd = layer::<()>(spec("odd", 1))
            .project_history(move |params| async move { Ok(odd_history(kind, &params.history).into()) })
            .build();
        let model = ScriptedModel::new().says("first").calls("no_such_tool", "{}");
        let builder = engine(memory((odd,))).model(model.clone()).policy(ProjectionPolicy::new(2000));
        let engine = builder.build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        for text in ["hello", "again", "and again"] {
            let usage = execution.turn(text).await.unwrap_or_else(|error| panic!("{kind}: {error}")).usage.unwrap();
            assert!(usage.total() + usage.response_reserve <= usage.budget, "{kind}: {usage:?}");
            assert!(model.last_texts().iter().any(|shown| shown == text), "{kind}: the newest user message is shown");
        }
        for request in model.requests() {
            let calls: Vec<_> = request.items.iter().filter_map(|item| Some(&item.as_call()?.call_id)).collect();
            let outputs: Vec<_> = request.items.iter().filter_map(|item| Some(&item.as_output()?.call_id)).collect();
            assert_eq!(calls, outputs, "{kind}: calls and outputs go in pairs");
        }
    }
}

#[tokio::test]
async fn a_history_of_another_log_is_refused_with_a_fault() {
    let recorder = Recorder::new();
    let odd = layer::<()>(spec("odd", 1))
        .project_history(|params| async move { Ok(odd_history("another log", &params.history).into()) })
        .build();
    let engine = engine(memory((odd,))).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    let message = "project_history: returned a history of another log; the previous history was kept";
    assert_eq!(messages(&recorder), [message]);
}

/// A state that panics when it is written.
#[derive(Clone, Default)]
struct Mine;

impl Serialize for Mine {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("stepped on")
    }
}

impl<'de> Deserialize<'de> for Mine {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("stepped on")
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_serialised_is_reported_and_nothing_else_fails() {
    let recorder = Recorder::new();
    let mined = layer::<Mine>(spec("mined", 1)).store(|_| async { Ok(StoreResult::set(Mine)) }).build();
    let sound = layer::<u32>(spec("sound", 1)).store(|_| async { Ok(StoreResult::set(7)) }).build();
    let engine = engine(memory((mined, sound))).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert!(execution.turn("hello").await.unwrap().durable);
    assert!(messages(&recorder).contains(&"persist: write the state as JSON: panicked: stepped on".to_owned()));
    let not_durable: Vec<_> = execution.flush().await.into_iter().map(|state| state.layer_id.to_string()).collect();
    assert_eq!(not_durable, ["mined"]);
    let states = engine.store().list("layers/").await.unwrap();
    assert_eq!(states, ["layers/sound/thread/thread/state"]);
}

#[tokio::test]
async fn a_stored_state_that_panics_when_it_is_read_is_kept_aside() {
    let recorder = Recorder::new();
    let mined = layer::<Mine>(spec("mined", 1)).recall(|_| async { Ok("here".into()) }).build();
    let engine = engine(memory((mined,))).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let key = "layers/mined/thread/thread/state";
    engine.store().set(key, br#"{"format":1,"state":1}"#.to_vec()).await.unwrap();
    engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    assert!(messages(&recorder)[0].starts_with("restore: the stored state does not parse (panicked: stepped on);"));
    assert_eq!(engine.store().list("layers/").await.unwrap().len(), 2, "the record and its copy");
}

/// A layer whose `render_delta` panics.
struct Indifferent;

impl MemoryLayer for Indifferent {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        spec("indifferent", 1).with_placement(Placement::Anchor)
    }

    async fn recall(&self, params: RecallParams<u32>) -> HookResult<RecallResult<u32>> {
        Ok(format!("count {}", params.state).into())
    }

    async fn store(&self, params: StoreParams<u32>) -> HookResult<StoreResult<u32>> {
        Ok(StoreResult::set(*params.state + 1))
    }

    fn render_delta(&self, _: &[Arc<Item>], _: &[Arc<Item>]) -> Option<String> {
        panic!("no difference")
    }
}

#[tokio::test]
async fn a_delta_that_panics_is_replaced_by_the_whole() {
    let (model, recorder) = (ScriptedModel::new(), Recorder::new());
    let engine = engine(memory((Indifferent,))).model(model.clone()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    execution.turn("again").await.unwrap();
    assert!(model.last_texts().iter().any(|text| text.contains("<replace") && text.contains("count 1")));
    assert_eq!(messages(&recorder), ["render_delta: panicked: no difference"]);
}

#[tokio::test]
async fn a_model_that_panics_is_a_model_that_failed() {
    let model = ScriptedModel::new().responds(|_| panic!("out of words"));
    let engine = engine(memory(())).model(model).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let Err(Error::Model(source)) = execution.turn("hello").await else { panic!("it must fail") };
    assert_eq!(source.to_string(), "panicked: out of words");
    assert_eq!(execution.resume().await.unwrap().unwrap().text(), "ok");
}
