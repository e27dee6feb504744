//! Models: streaming, a separate model for layers, and what else hooks get.

use std::sync::Arc;
use std::time::Duration;

use contexture_core::error::BoxError;
use contexture_core::layer::*;
use contexture_core::model::{Delta, Deltas, MemoryCallModelRequest, Usage};
use contexture_core::testing::{CountingIds, ManualClock, Recorder, ScriptedModel, engine, layer_conformance};
use contexture_core::{Engine, Item, LlmResponse, Model, ModelRequest, memory};

use crate::kit::{Diary, spec};

#[tokio::test]
async fn pieces_of_a_response_are_observed_as_they_arrive() {
    let recorder = Recorder::new();
    let model = ScriptedModel::new().streams(&["Hel", "lo."]).calls("no_such_tool", "{}").streams(&["Bye"]);
    let engine = engine(memory(())).model(model).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "Hello.");
    assert_eq!(execution.turn("more").await.unwrap().text(), "Bye");
    let seen: Vec<_> = recorder.deltas().into_iter().map(|delta| (delta.step_number, delta.delta)).collect();
    assert_eq!(seen, [(0, Delta::text("Hel")), (0, Delta::text("lo.")), (2, Delta::text("Bye"))]);
    let said: Vec<_> = execution.log().iter().cloned().collect();
    assert_eq!(said[1], Item::assistant("Hello."), "what is logged is the answer");
}

#[tokio::test]
async fn a_model_that_cannot_stream_is_called() {
    struct Plain;
    impl Model for Plain {
        async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
            Ok(LlmResponse::text("plain"))
        }
    }
    let recorder = Recorder::new();
    let engine = engine(memory(())).model(Plain).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "plain");
    assert!(recorder.deltas().is_empty());
}

#[tokio::test]
async fn a_model_knows_whether_there_is_an_observer() {
    struct Curious(Diary);
    impl Model for Curious {
        async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
            unreachable!("the engine streams")
        }

        async fn stream(&self, _: ModelRequest, deltas: Deltas) -> Result<LlmResponse, BoxError> {
            self.0.note(format!("{}", deltas.are_watched()));
            Ok(LlmResponse::text("ok"))
        }
    }
    let diary = Diary::new();
    for watched in [false, true] {
        let mut builder = engine(memory(())).model(Curious(diary.clone()));
        if watched {
            builder = builder.observer(Recorder::new());
        }
        builder.build().unwrap().execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    }
    assert_eq!(diary.take(), ["false", "true"]);
}

/// A layer that calls the model.
fn asking() -> ClosureLayer<String> {
    layer::<String>(spec("asking", 1))
        .store(|params| async move {
            let Some(model) = &params.ctx.call_model else { return Ok(StoreResult::keep()) };
            let request = MemoryCallModelRequest { items: vec![Item::user("What?")], ..Default::default() };
            Ok(StoreResult::set(model.call(request).await?.output_text()))
        })
        .build()
}

#[tokio::test]
async fn layers_may_have_a_model_of_their_own() {
    let (main, own) = (ScriptedModel::new().says("hi"), ScriptedModel::new().says("remember the milk"));
    let engine = engine(memory((asking(),))).model(main.clone()).layer_model(own.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "hi");
    assert_eq!(execution.memory().state::<ClosureLayer<String>, _>(), "remember the milk");
    assert_eq!((main.requests().len(), own.requests().len()), (1, 1));
}

#[tokio::test]
async fn what_layers_ask_a_model_is_on_the_account_of_the_execution() {
    let usage = Usage { input_tokens: 100, output_tokens: 7, ..Usage::default() };
    let own = ScriptedModel::new()
        .responds(move |_| Ok(LlmResponse { usage, cost: Some(0.5), ..LlmResponse::text("remember the milk") }));
    let engine = engine(memory((asking(),))).model(ScriptedModel::new()).layer_model(own).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    assert_eq!(execution.token_usage(), TokenUsage { input: 100, output: 7, ..TokenUsage::default() });
    assert_eq!(execution.cost(), 0.5);
}

#[tokio::test]
async fn hooks_have_the_clock() {
    let clock = ManualClock::new();
    let timed = layer::<()>(spec("timed", 1))
        .recall(|params| async move { Ok(format!("{}", params.ctx.clock.now().as_secs()).into()) })
        .build();
    let model = ScriptedModel::new();
    let ids = Arc::new(CountingIds::new());
    let engine = Engine::builder(memory((timed,)), Arc::new(clock.clone()), ids).model(model.clone()).build().unwrap();
    clock.advance(Duration::from_secs(7));
    engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    assert!(model.last_texts()[0].contains("1767225607"), "{:?}", model.last_texts());
}

/// Waits for another thread in every hook, like a layer that reads files.
#[tokio::test]
async fn layers_that_really_wait_pass_the_conformance_suite() {
    async fn wait() {
        let waited = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(2)));
        waited.await.unwrap();
    }
    let asked = Diary::new();
    let make = || {
        let noted = asked.clone();
        layer::<u32>(spec("slow", 1))
            .init(|params| async move {
                wait().await;
                Ok(params.stored.unwrap_or_default().into())
            })
            .on_item_append(|params| async move {
                wait().await;
                Ok(OnItemAppendResult::items(params.items))
            })
            .recall(move |params| {
                let noted = noted.clone();
                async move {
                    wait().await;
                    noted.note("recalled");
                    Ok(format!("{}", params.state).into())
                }
            })
            .store(|params| async move {
                wait().await;
                Ok(StoreResult::set(*params.state + 1))
            })
            .build()
    };
    layer_conformance(make).await;
    assert!(asked.len() >= 30, "every turn waited: {}", asked.len());
}

#[test]
fn results_have_constructors() {
    assert_eq!(InitResult::from(1), InitResult::new(1));
    assert_eq!(SpawnResult::state(1), SpawnResult { child_state: Some(1), items: vec![] });
    let greeted = SpawnResult::<u32>::nothing().with_items(vec![Item::developer("hi")]);
    assert_eq!(greeted, SpawnResult { child_state: None, items: vec![Item::developer("hi")] });
    assert_eq!(ReturnResult::<u32>::keep(), ReturnResult { parent_state: None, result: None });
    let returned = ReturnResult::state(1).with_result(serde_json::json!("done"));
    assert_eq!(returned, ReturnResult { parent_state: Some(1), result: Some("done".into()) });
    let denied = BeforeToolCallResult::deny("no").with_state(2);
    assert_eq!((denied.decision, denied.state), (SteeringDecision::deny("no"), Some(2)));
    assert_eq!(BeforeToolCallResult::<()>::allow().decision, SteeringDecision::allow());
    let guided = AfterModelCallResult::guide("shorter").with_state(3);
    assert_eq!((guided.decision, guided.state), (SteeringDecision::guide("shorter"), Some(3)));
    assert_eq!(AfterModelCallResult::<()>::deny("no").decision, SteeringDecision::Deny { reason: "no".into() });
    assert_eq!(AfterModelCallResult::<()>::allow().decision, SteeringDecision::Allow);
    assert_eq!(BeforeToolCallResult::<()>::guide("x").decision, SteeringDecision::Guide { guidance: "x".into() });
}

#[test]
fn the_spec_of_a_builder_can_be_changed() {
    let built = layer::<()>(spec("a", 1)).map_spec(|spec| spec.with_placement(Placement::Live).with_budget(7)).build();
    assert_eq!((built.spec().placement, built.spec().budget), (Placement::Live, BudgetConfig::Cap(7)));
}
