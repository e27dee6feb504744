//! Turns that are interrupted: by a failing model, by an abort, by the end of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contexture_core::engine::{Engine, EngineBuilder};
use contexture_core::layer::*;
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{CountingIds, FaultyStore, ManualClock, ScriptedModel, engine};
use contexture_core::tool::Tool;
use contexture_core::{Error, Execution, Item, ItemLog, memory};
use futures_util::FutureExt as _;
use tokio::sync::Notify;

use crate::kit::{Diary, FnTool, counting_tool, spec};

/// Counts responses, so that a test can check which steps were stored.
fn counter() -> ClosureLayer<u32> {
    layer(spec("counter", 1)).store(|params| async move { Ok(StoreResult::set(*params.state + 1)) }).build()
}

type Counted = (ClosureLayer<u32>,);

/// An engine over a store that outlives it, as after a restart of the process.
fn over(store: &Arc<dyn StorageAdapter>, first_id: u64) -> EngineBuilder<Counted> {
    let ids = Arc::new(CountingIds::starting_at(first_id));
    Engine::builder(memory((counter(),)), Arc::new(ManualClock::new()), ids).store(store.clone())
}

fn store() -> Arc<dyn StorageAdapter> {
    Arc::new(MemoryStore::new())
}

fn outputs(log: &ItemLog) -> Vec<String> {
    log.iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect()
}

/// A model that signals its call to the test and never returns.
fn hanging_tool(diary: &Diary, started: &Arc<Notify>) -> impl Tool + use<> {
    let (diary, started) = (diary.clone(), started.clone());
    FnTool("hang", move |_| {
        diary.note("hang");
        started.notify_one();
        std::future::pending()
    })
}

const INTERRUPTED: &str = "This call was interrupted. It may or may not have had an effect, and it was not run again.";

#[tokio::test]
async fn a_failed_model_call_can_be_retried() {
    let model = ScriptedModel::new().fails("overloaded").says("here I am");
    let engine = engine(memory((counter(),))).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let Err(Error::Model(source)) = execution.turn("hello").await else { panic!("it must fail") };
    assert_eq!(source.to_string(), "overloaded");
    assert!(execution.has_unfinished_turn());
    let answer = execution.resume().await.unwrap().unwrap();
    assert_eq!((answer.text().as_str(), answer.steps), ("here I am", 1));
    assert_eq!(execution.log().iter().filter(|item| **item == Item::user("hello")).count(), 1);
    assert!(!execution.has_unfinished_turn());
    assert_eq!(execution.resume().await.unwrap(), None);
}

#[tokio::test]
async fn a_turn_that_was_left_unfinished_is_closed_by_the_next() {
    let model = ScriptedModel::new().calls_all(&[("look", "{}"), ("hang", "{}"), ("look", "{}")]).says("fine");
    let (diary, started) = (Diary::new(), Arc::new(Notify::new()));
    let builder = engine(memory(())).model(model).tool(counting_tool("look", &diary));
    let engine = builder.tool(hanging_tool(&diary, &started)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let abort = execution.abort_handle();
    let aborting = async {
        started.notified().await;
        abort.abort();
    };
    let (turned, ()) = tokio::join!(execution.turn("hello"), aborting);
    assert!(matches!(turned, Err(Error::Aborted)));
    assert_eq!(execution.turn("never mind").await.unwrap().text(), "fine");
    assert_eq!(outputs(execution.log()), ["done", INTERRUPTED, INTERRUPTED]);
    assert_eq!(diary.take(), ["look", "hang"]);
}

#[tokio::test]
async fn a_tool_that_may_have_run_is_not_run_again_after_a_restart() {
    let (store, diary, started) = (store(), Diary::new(), Arc::new(Notify::new()));
    let model = ScriptedModel::new().calls_all(&[("look", "{}"), ("hang", "{}"), ("look", "{}")]);
    let builder = over(&store, 0).model(model).tool(counting_tool("look", &diary));
    let first = builder.tool(hanging_tool(&diary, &started)).build().unwrap();
    let mut execution = first.execution("thread").start().await.unwrap();
    {
        let mut turn = Box::pin(execution.turn("hello"));
        while started.notified().now_or_never().is_none() {
            assert!(turn.as_mut().now_or_never().is_none());
        }
    }
    // The process ends here without completing anything.
    std::mem::forget(execution);
    assert_eq!(diary.take(), ["look", "hang"]);

    let model = ScriptedModel::new().says("all done");
    let builder = over(&store, 10).model(model).tool(counting_tool("look", &diary));
    let second = builder.tool(counting_tool("hang", &diary)).build().unwrap();
    let mut execution = second.execution("thread").start().await.unwrap();
    assert!(execution.has_unfinished_turn());
    let answer = execution.resume().await.unwrap().unwrap();
    assert_eq!((answer.text().as_str(), answer.steps), ("all done", 2));
    assert_eq!(diary.take(), ["look"], "the last of the three, which had not begun");
    assert_eq!(outputs(execution.log()), ["done", INTERRUPTED, "done"]);
    assert_eq!(execution.memory().state::<ClosureLayer<u32>, _>(), 2);
    drop(execution);
    assert!(!second.execution("thread").start().await.unwrap().has_unfinished_turn());
}

/// A layer whose first `store` signals that it runs and never returns; later ones keep what the response says.
fn hanging_once(started: &Arc<Notify>) -> ClosureLayer<Vec<String>> {
    let (started, begun) = (started.clone(), Arc::new(AtomicBool::new(false)));
    let hanging = layer::<Vec<String>>(spec("hanging", 1)).store(move |params| {
        let (started, hangs) = (started.clone(), !begun.swap(true, Ordering::Relaxed));
        async move {
            if hangs {
                started.notify_one();
                std::future::pending::<()>().await;
            }
            let said = format!("{} {}", params.response.output_text(), params.new_items.len());
            Ok(StoreResult::set([(*params.state).clone(), vec![said]].concat()))
        }
    });
    hanging.build()
}

/// The response is logged and its calls are in the turn before any hook can be interrupted.
#[tokio::test]
async fn an_abort_during_store_loses_no_call_and_does_not_call_the_model_again() {
    let started = Arc::new(Notify::new());
    let (diary, model) = (Diary::new(), ScriptedModel::new().calls("look", "{}").says("done"));
    let (builder, _) = crate::kit::timed(memory((hanging_once(&started), counter())));
    let engine = builder.model(model.clone()).tool(counting_tool("look", &diary)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let abort = execution.abort_handle();
    let aborting = async {
        started.notified().await;
        abort.abort();
    };
    let (turned, ()) = tokio::join!(execution.turn("hello"), aborting);
    assert!(matches!(turned, Err(Error::Aborted)));
    assert_eq!(execution.resume().await.unwrap().unwrap().text(), "done");
    assert_eq!((model.requests().len(), diary.len(), outputs(execution.log())), (2, 1, vec!["done".to_owned()]));
    let memory = execution.memory();
    assert_eq!(memory.state::<ClosureLayer<Vec<String>>, _>(), [" 1", "done 1"], "the aborted `store` ran again");
    assert_eq!(memory.state::<ClosureLayer<u32>, _>(), 2, "and that of the other layer did not");
}

type Owing = (ClosureLayer<Vec<String>>, ClosureLayer<u32>);

/// An execution whose turn was aborted in the `store` of its only response, and then ended.
async fn left_in_store(store: &Arc<dyn StorageAdapter>) {
    let started = Arc::new(Notify::new());
    let (clock, ids) = (Arc::new(ManualClock::new()), Arc::new(CountingIds::new()));
    let builder = Engine::builder(memory((hanging_once(&started), counter())), clock, ids).store(store.clone());
    let engine = builder.model(ScriptedModel::new().says("the answer")).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let abort = execution.abort_handle();
    let aborting = async {
        started.notified().await;
        abort.abort();
    };
    let (turned, ()) = tokio::join!(execution.turn("hello"), aborting);
    assert!(matches!(turned, Err(Error::Aborted)));
    execution.abort().await.unwrap();
}

/// Another process over the same store, whose layers have no state but the stored one.
async fn other_process(store: &Arc<dyn StorageAdapter>, first_id: u64) -> (Execution<Owing>, ScriptedModel) {
    let (ids, model) = (Arc::new(CountingIds::starting_at(first_id)), ScriptedModel::new());
    let hanging = layer::<Vec<String>>(spec("hanging", 1)).store(|params| async move {
        let said = format!("{} {}", params.response.output_text(), params.new_items.len());
        Ok(StoreResult::set([(*params.state).clone(), vec![said]].concat()))
    });
    let layers = memory((hanging.build(), counter()));
    let builder = Engine::builder(layers, Arc::new(ManualClock::new()), ids).store(store.clone());
    let engine = builder.model(model.clone()).build().unwrap();
    (engine.execution("thread").start().await.unwrap(), model)
}

#[tokio::test]
async fn a_store_that_is_owed_runs_in_another_process_and_once() {
    let store = store();
    left_in_store(&store).await;
    let (mut execution, model) = other_process(&store, 10).await;
    assert_eq!(execution.memory().state::<ClosureLayer<u32>, _>(), 1, "this layer had stored the response");
    let answer = execution.resume().await.unwrap().unwrap();
    assert_eq!((answer.text().as_str(), model.requests().len()), ("the answer", 0));
    let states = |execution: &Execution<Owing>| {
        (execution.memory().state::<ClosureLayer<Vec<String>>, _>(), execution.memory().state::<ClosureLayer<u32>, _>())
    };
    assert_eq!(states(&execution), (vec!["the answer 1".to_owned()], 1));
    execution.complete().await.unwrap();
    let (mut execution, _) = other_process(&store, 20).await;
    assert_eq!(execution.resume().await.unwrap(), None);
    assert_eq!(states(&execution), (vec!["the answer 1".to_owned()], 1));
}

#[tokio::test]
async fn a_turn_that_begins_instead_of_the_interrupted_one_stores_its_response_first() {
    let store = store();
    left_in_store(&store).await;
    let (mut execution, _) = other_process(&store, 10).await;
    execution.turn("go on").await.unwrap();
    let words = execution.memory().state::<ClosureLayer<Vec<String>>, _>();
    assert_eq!(words, ["the answer 1", "ok 1"]);
}

#[tokio::test]
async fn a_resumed_turn_returns_its_own_answer() {
    let started = Arc::new(Notify::new());
    let (noted, begun) = (started.clone(), Arc::new(AtomicBool::new(false)));
    let hanging = layer::<()>(spec("hanging", 1)).store(move |params| {
        let hangs = params.response.output_text() == "the answer" && !begun.swap(true, Ordering::Relaxed);
        let noted = noted.clone();
        async move {
            if hangs {
                noted.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(StoreResult::keep())
        }
    });
    let model = ScriptedModel::new().calls("look", "{}").says("the answer");
    let (builder, _) = crate::kit::timed(memory((hanging.build(),)));
    let builder = builder.model(model).tool(counting_tool("look", &Diary::new()));
    let mut execution = builder.build().unwrap().execution("thread").start().await.unwrap();
    let abort = execution.abort_handle();
    let aborting = async {
        started.notified().await;
        abort.abort();
    };
    let (turned, ()) = tokio::join!(execution.turn("hello"), aborting);
    assert!(matches!(turned, Err(Error::Aborted)));
    let answer = execution.resume().await.unwrap().unwrap();
    assert_eq!((answer.text().as_str(), answer.steps), ("the answer", 2));
}

#[tokio::test]
async fn an_abort_stops_only_the_current_or_next_turn() {
    let model = ScriptedModel::new();
    let engine = engine(memory(())).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.abort_handle().abort();
    assert!(matches!(execution.turn("hello").await, Err(Error::Aborted)));
    assert_eq!((model.requests().len(), execution.log().len()), (0, 0), "nothing was done");
    assert_eq!(execution.turn("hello").await.unwrap().text(), "ok");
}

/// An aborted execution leaves items and states of the same moment.
#[tokio::test]
async fn an_execution_dropped_in_the_middle_leaves_items_and_states_together() {
    let (store, started) = (store(), Arc::new(Notify::new()));
    let model = ScriptedModel::new().calls("hang", "{}");
    let builder = over(&store, 0).model(model).tool(hanging_tool(&Diary::new(), &started));
    let mut execution = builder.build().unwrap().execution("thread").start().await.unwrap();
    {
        let mut turn = Box::pin(execution.turn("hello"));
        assert!(turn.as_mut().now_or_never().is_none());
    }
    drop(execution);
    crate::kit::settle().await;
    let second = over(&store, 10).model(ScriptedModel::new()).build().unwrap();
    let mut execution = second.execution("thread").start().await.unwrap();
    assert_eq!((execution.log().len(), execution.memory().state::<ClosureLayer<u32>, _>()), (2, 1));
    assert_eq!(execution.resume().await.unwrap().unwrap().text(), "ok");
}

#[tokio::test]
async fn a_turn_ends_at_its_limit_of_steps() {
    let model = (0..5).fold(ScriptedModel::new(), |model, _| model.calls("look", "{}"));
    let diary = Diary::new();
    let builder = engine(memory(())).model(model.clone()).max_steps(3);
    let engine = builder.tool(counting_tool("look", &diary)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let error = execution.turn("hello").await.unwrap_err();
    assert_eq!(error.to_string(), "the turn reached its limit of 3 steps");
    assert_eq!((model.requests().len(), diary.len()), (3, 3));
    assert!(!execution.has_unfinished_turn());
    assert_eq!(execution.log().open_calls().count(), 0);
    assert_eq!(execution.turn("again").await.unwrap().steps, 3, "the next turn has its own three");
}

#[tokio::test]
async fn an_answer_has_the_result_of_the_turn() {
    let model = ScriptedModel::new().calls("look", "{}").says("done");
    let engine = engine(memory((counter(),))).model(model).tool(counting_tool("look", &Diary::new())).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let answer = execution.turn("hello").await.unwrap();
    assert_eq!(answer.response.as_ref().unwrap().items, [Item::assistant("done")]);
    assert_eq!((answer.text().as_str(), answer.steps, answer.durable), ("done", 2, true));
    assert_eq!(answer.usage.as_ref(), execution.usage());
    assert!(answer.usage.unwrap().history > 0);
}

#[tokio::test]
async fn a_turn_whose_end_was_not_written_is_finished_by_resume() {
    let faulty = Arc::new(FaultyStore::new(store()));
    let (failing, store) = (faulty.clone(), faulty.clone() as Arc<dyn StorageAdapter>);
    let model = ScriptedModel::new().responds(move |_| {
        failing.fail_from(1);
        Ok(contexture_core::LlmResponse::text("unheard"))
    });
    let engine = engine(memory((counter(),))).store(store).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert!(matches!(execution.turn("hello").await, Err(Error::Journal { .. })));
    assert!(matches!(execution.resume().await, Err(Error::Journal { .. })), "the store still fails");
    faulty.heal();
    let answer = execution.resume().await.unwrap().unwrap();
    assert_eq!((answer.text().as_str(), answer.steps, answer.durable), ("unheard", 1, true));
    assert_eq!(model.requests().len(), 1);
    assert_eq!(engine.execution("thread").start().await.unwrap().log().len(), 2);
}

#[tokio::test]
async fn a_window_can_be_inspected_before_it_is_sent() {
    let model = ScriptedModel::new();
    let engine = engine(memory((counter(),))).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let window = execution.window("hello").await.unwrap();
    assert_eq!((window.items.len(), model.requests().len()), (1, 0));
    execution.resume().await.unwrap().unwrap();
    assert_eq!(model.requests()[0].items, window.items);
}

#[tokio::test]
async fn without_a_model_a_turn_fails_and_windows_still_work() {
    let engine = engine(memory(())).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let Err(Error::Model(source)) = execution.turn("hello").await else { panic!("there is no model") };
    assert_eq!(source.to_string(), "the engine was built without a model");
    assert_eq!(execution.window("hello").await.unwrap().items.len(), 2);
}
