//! Eventual recall: it delays nothing, follows every change of state, and never shows an outdated empty result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contexture_core::engine::{Engine, EngineBuilder};
use contexture_core::event::SpanStatus;
use contexture_core::layer::*;
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::usage::Served;
use contexture_core::{Execution, MemoryConfig, Slot, memory};
use futures_util::future::pending;
use serde_json::json;

use crate::kit::{Diary, FnTool, settle, timed};

fn spec(scope: MemoryScope) -> LayerSpec {
    LayerSpec::new("facts", Slot::ENTITY, scope).with_recall_mode(RecallMode::Eventual).with_placement(Placement::Live)
}

/// Shows its state, which a function sets; the state `hidden` is not shown.
fn facts(scope: MemoryScope) -> ClosureLayer<String> {
    let tell = layer_fn_with_schema(
        "Takes a fact.",
        json!({ "type": "string" }),
        json!(true),
        |fact: serde_json::Value, _: Arc<String>, _| async move {
            let state = fact.as_str().unwrap_or_default().to_owned();
            Ok(FnResult::new(json!("taken")).with_state(state))
        },
    );
    layer::<String>(spec(scope))
        .recall(|params| async move {
            let shown = (*params.state != "hidden" && !params.state.is_empty()).then(|| (*params.state).clone());
            Ok(shown.into())
        })
        .store(|params| async move {
            let said = params.response.output_text();
            Ok(said.strip_prefix("learn ").map_or(StoreResult::keep(), |fact| StoreResult::set(fact.to_owned())))
        })
        .provides(LayerProvides::new().function("tell", tell))
        .build()
}

fn built<Ls>(builder: EngineBuilder<Ls>, model: &ScriptedModel) -> Engine<Ls> {
    builder.model(model.clone()).build().unwrap()
}

fn standing<Ls>(memory: MemoryConfig<Ls>) -> EngineBuilder<Ls> {
    timed(memory).0
}

/// Runs a turn and returns what the model was shown.
async fn shown<Ls>(execution: &mut Execution<Ls>, model: &ScriptedModel) -> String {
    execution.turn("hello").await.unwrap();
    model.last_texts().into_iter().find(|text| text.starts_with("<memory")).unwrap_or_default()
}

fn block(text: &str) -> String {
    format!("<memory layer=\"facts\">\n{text}\n</memory>")
}

#[tokio::test]
async fn a_recall_that_never_finishes_delays_nothing() {
    let hanging = layer::<u32>(spec(MemoryScope::Thread))
        .recall(|_| pending())
        .on_item_append(|params| async { Ok(OnItemAppendResult::items(params.items).with_rerender(all_at_once())) })
        .before_tool_call(|_| async { Ok(SteeringDecision::Allow.into()) })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build();
    let model = ScriptedModel::new().calls("no_such_tool", "{}").says("done");
    let engine = built(standing(memory((hanging,))), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    settle().await;
    for expected in ["done", "ok"] {
        // The clock does not advance: a turn that waited for the recall would wait for ever.
        tokio::select! {
            biased;
            answer = execution.turn("hello") => assert_eq!(answer.unwrap().text(), expected),
            () = settle() => panic!("the turn waits for the recall"),
        }
        settle().await;
    }
    assert_eq!(execution.memory().state::<ClosureLayer<u32>, _>(), 3);
}

fn all_at_once() -> Rerender {
    Rerender { timing: Some(RerenderTiming::Immediate), scope: RerenderScope::All }
}

#[tokio::test]
async fn the_cached_result_is_used_and_follows_every_change() {
    let model = ScriptedModel::new().says("learn one").says("learn two");
    let engine = built(standing(memory((facts(MemoryScope::Thread),))), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(shown(&mut execution, &model).await, "", "nothing is known yet");
    settle().await;
    assert_eq!(shown(&mut execution, &model).await, block("one"), "learned by `store`");
    settle().await;
    execution.memory().call_json("facts/tell", json!("three")).await.unwrap();
    settle().await;
    assert_eq!(shown(&mut execution, &model).await, block("three"), "told by a function");
    assert_eq!(execution.usage().unwrap().layers[0].served, Served::Cached);
}

#[tokio::test]
async fn an_empty_result_clears_the_cache() {
    let model = ScriptedModel::new().says("learn one").says("learn hidden");
    let engine = built(standing(memory((facts(MemoryScope::Thread),))), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    for expected in ["".to_owned(), block("one"), "".to_owned(), "".to_owned()] {
        assert_eq!(shown(&mut execution, &model).await, expected);
        settle().await;
    }
}

#[tokio::test]
async fn a_failed_recall_keeps_the_last_result_and_its_span_says_how_old_that_is() {
    let broken = Arc::new(AtomicBool::new(false));
    let breaks = broken.clone();
    let fragile = layer::<u32>(spec(MemoryScope::Thread))
        .recall(move |_| {
            let broken = breaks.load(Ordering::Relaxed);
            async move { if broken { Err("gone".into()) } else { Ok("here".into()) } }
        })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build();
    let model = ScriptedModel::new();
    let ((builder, clock), recorder) = (timed(memory((fragile,))), Recorder::new());
    let engine = built(builder.observer(recorder.clone()), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    settle().await;
    assert_eq!(shown(&mut execution, &model).await, block("here"));
    broken.store(true, Ordering::Relaxed);
    settle().await;
    assert_eq!(recorder.faults().len(), 1);
    clock.advance(Duration::from_secs(60));
    assert_eq!(shown(&mut execution, &model).await, block("here"));
    let ages = recorder.spans().into_iter().filter(|span| span.status == SpanStatus::Cached).map(|span| span.age);
    assert_eq!(ages.collect::<Vec<_>>(), [0, 60].map(|seconds| Some(Duration::from_secs(seconds))));
    broken.store(false, Ordering::Relaxed);
    settle().await;
    execution.turn("hello").await.unwrap();
    settle().await;
    assert_eq!(shown(&mut execution, &model).await, block("here"));
    let newest = recorder.spans().into_iter().rfind(|span| span.status == SpanStatus::Cached).unwrap();
    assert_eq!(newest.age, Some(Duration::ZERO), "a recall that succeeds replaces it");
}

#[tokio::test]
async fn executions_of_one_scope_see_the_newest_change_of_any_of_them() {
    let model = ScriptedModel::new();
    let engine = built(standing(memory((facts(MemoryScope::Resource),))), &model);
    let mut one = engine.execution("one").resource("ann").start().await.unwrap();
    let mut two = engine.execution("two").resource("ann").start().await.unwrap();
    let mut other = engine.execution("three").resource("bob").start().await.unwrap();
    settle().await;
    one.memory().call_json("facts/tell", json!("by one")).await.unwrap();
    two.memory().call_json("facts/tell", json!("by two")).await.unwrap();
    settle().await;
    assert_eq!(shown(&mut one, &model).await, block("by two"));
    assert_eq!(shown(&mut two, &model).await, block("by two"));
    assert_eq!(shown(&mut other, &model).await, "");
}

#[tokio::test]
async fn the_last_change_is_visible_to_the_next_execution() {
    let (model, recorder) = (ScriptedModel::new().says("learn one"), Recorder::new());
    let builder = standing(memory((facts(MemoryScope::Thread),))).observer(recorder.clone());
    let engine = built(builder, &model);
    let mut first = engine.execution("thread").start().await.unwrap();
    first.turn("hello").await.unwrap();
    first.complete().await.unwrap();
    let recalls = recorder.layers_of(Hook::Recall).len();
    settle().await;
    assert_eq!(recorder.layers_of(Hook::Recall).len(), recalls, "nothing runs behind the end");
    let mut second = engine.execution("thread").start().await.unwrap();
    assert_eq!(shown(&mut second, &model).await, block("one"));
}

#[tokio::test]
async fn a_layer_without_state_follows_the_conversation() {
    let echo = layer::<()>(spec(MemoryScope::Thread))
        .recall(|params| async move { Ok(format!("{} after {}", params.query, params.log.len()).into()) })
        .build();
    let model = ScriptedModel::new();
    let engine = built(standing(memory((echo,))), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("first").await.unwrap();
    settle().await;
    assert_eq!(shown(&mut execution, &model).await, block("first after 2"));
}

#[tokio::test]
async fn a_layer_is_recalled_again_only_when_something_changed() {
    let diary = Diary::new();
    let noted = diary.clone();
    let tell =
        layer_fn("Takes a fact.", |fact: String, _: Arc<String>, _| async { Ok(FnResult::new(()).with_state(fact)) });
    let noting = layer::<String>(spec(MemoryScope::Thread))
        .recall(move |params| {
            noted.note((*params.state).clone());
            async { Ok("here".into()) }
        })
        .provides(LayerProvides::new().function("tell", tell))
        .build();
    let engine = built(standing(memory((noting,))), &ScriptedModel::new());
    let asked = async || {
        settle().await;
        diary.take().len()
    };
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(asked().await, 1);
    execution.turn("hello").await.unwrap();
    assert_eq!(asked().await, 1, "the query is another one");
    execution.turn("hello").await.unwrap();
    assert_eq!(asked().await, 0, "neither the query nor the state has changed");
    execution.memory().call_json("facts/tell", json!("one")).await.unwrap();
    assert_eq!(asked().await, 1, "the state is another one");
    execution.memory().call_json("facts/tell", json!("one")).await.unwrap();
    assert_eq!(asked().await, 0, "the state is equal");
    execution.complete().await.unwrap();
    let mut next = engine.execution("thread").start().await.unwrap();
    assert_eq!(asked().await, 0, "what is known of the thread is still true");
    next.window("again").await.unwrap();
    assert_eq!(asked().await, 0, "the answer is served");
    next.resume().await.unwrap();
    assert_eq!(asked().await, 1);
}

/// A turn of several steps has several responses, and after each of them the layers could be recalled.
#[tokio::test]
async fn a_response_alone_leads_to_no_recall_of_a_layer_with_a_state() {
    let diary = Diary::new();
    let (noted, followed) = (diary.clone(), diary.clone());
    let steady = layer::<u32>(spec(MemoryScope::Thread))
        .init(|_| async { Ok(InitResult { state: 1 }) })
        .recall(move |_| {
            noted.note("steady");
            async { Ok("here".into()) }
        })
        .build();
    let counting = layer::<u32>(LayerSpec { id: "counting".into(), ..spec(MemoryScope::Thread) })
        .recall(move |params| {
            followed.note(format!("counting {}", *params.state));
            async { Ok("here".into()) }
        })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build();
    let model = ScriptedModel::new().calls("look", "{}").calls("look", "{}").says("done");
    let look = FnTool("look", |_| async {
        settle().await;
        Ok("nothing".to_owned())
    });
    let engine = built(standing(memory((steady, counting))).tool(look), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    settle().await;
    execution.turn("hello").await.unwrap();
    settle().await;
    let mut noted = diary.take();
    noted.sort();
    let counted = ["counting 0", "counting 1", "counting 2", "counting 3"];
    assert_eq!(noted, [&counted[..], &["steady", "steady"]].concat(), "once when it began, once for the new query");
    execution.turn("hello").await.unwrap();
    settle().await;
    assert_eq!(diary.take(), ["counting 4"]);
}

#[tokio::test]
async fn changes_made_while_a_recall_runs_lead_to_one_more() {
    let (diary, gate) = (Diary::new(), Arc::new(tokio::sync::Semaphore::new(0)));
    let (noted, opened) = (diary.clone(), gate.clone());
    let slow = layer::<String>(spec(MemoryScope::Thread)).recall(move |params| {
        let (diary, gate) = (noted.clone(), opened.clone());
        async move {
            gate.acquire().await?.forget();
            diary.note((*params.state).clone());
            Ok((*params.state).clone().into())
        }
    });
    let tell = layer_fn_with_schema(
        "Takes a fact.",
        json!(true),
        json!(true),
        |fact: serde_json::Value, _: Arc<String>, _| async move {
            Ok(FnResult::new(json!(null)).with_state(fact.as_str().unwrap_or_default().to_owned()))
        },
    );
    let slow = slow.provides(LayerProvides::new().function("tell", tell)).build();
    let model = ScriptedModel::new();
    let engine = built(standing(memory((slow,))), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    settle().await;
    for fact in ["one", "two", "three"] {
        execution.memory().call_json("facts/tell", json!(fact)).await.unwrap();
    }
    gate.add_permits(10);
    settle().await;
    assert_eq!(diary.take(), ["", "three"]);
    assert_eq!(shown(&mut execution, &model).await, block("three"));
}

/// The recall reads a state, the state changes, and then the recall returns a state based on the old one.
#[tokio::test]
async fn a_recall_in_the_background_loses_no_update() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let slow = layer::<u32>(spec(MemoryScope::Thread))
        .recall(move |params| {
            let gate = opened.clone();
            async move {
                gate.acquire().await?.forget();
                Ok(RecallResult::from("counted").with_state(*params.state + 100))
            }
        })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build();
    let engine = built(standing(memory((slow,))), &ScriptedModel::new());
    let mut execution = engine.execution("thread").start().await.unwrap();
    settle().await;
    execution.turn("hello").await.unwrap();
    let state = |execution: &Execution<(ClosureLayer<u32>,)>| execution.memory().state::<ClosureLayer<u32>, _>();
    assert_eq!(state(&execution), 1);
    gate.add_permits(1);
    settle().await;
    assert_eq!(state(&execution), 1, "made of a state that is no more");
    gate.add_permits(1);
    settle().await;
    assert_eq!(state(&execution), 101, "made of the newest");
}

#[tokio::test]
async fn force_atomic_recall_makes_every_layer_wait() {
    let model = ScriptedModel::new().says("learn one");
    let engine = built(engine(memory((facts(MemoryScope::Thread),))).force_atomic_recall(true), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(shown(&mut execution, &model).await, "");
    assert_eq!(shown(&mut execution, &model).await, block("one"));
    assert_eq!(execution.usage().unwrap().layers[0].served, Served::Fresh);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_of_one_scope_run_side_by_side_to_their_end() {
    let engine = built(standing(memory((facts(MemoryScope::Resource),))), &ScriptedModel::new());
    let runs = (0..8).map(|number| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut execution = engine.execution(format!("thread-{number}")).resource("ann").start().await.unwrap();
            for turn in 0..10 {
                let fact = json!(format!("{number} {turn}"));
                execution.memory().call_json("facts/tell", fact).await.unwrap();
                assert_eq!(execution.turn("hello").await.unwrap().text(), "ok");
            }
            execution.complete().await.unwrap();
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
}
