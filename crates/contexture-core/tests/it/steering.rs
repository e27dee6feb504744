//! `before_tool_call` and `after_model_call`: which layer wins, what the model gets, and what a failing hook means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_core::item::Outcome;
use contexture_core::layer::*;
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::{Error, memory};
use futures_util::future::pending;

use crate::kit::{Diary, counting_tool, spec};

fn allow() -> SteeringDecision {
    SteeringDecision::Allow
}

fn deny(reason: &str) -> SteeringDecision {
    SteeringDecision::Deny { reason: reason.into() }
}

fn guide(guidance: &str) -> SteeringDecision {
    SteeringDecision::Guide { guidance: guidance.into() }
}

/// A layer whose `before_tool_call` always returns the same.
fn gate(slot: i32, decision: SteeringDecision) -> ClosureLayer<()> {
    let id = format!("gate-{slot}");
    layer(spec(&id, slot)).before_tool_call(move |_| std::future::ready(Ok(decision.clone().into()))).build()
}

/// The result of a turn in which the model called `shell/rm`.
struct Judged {
    ran: bool,
    /// The output of the call.
    output: String,
    outcome: Outcome,
    /// The last item of the next request.
    tail: String,
}

async fn judge(layers: impl IntoIterator<Item = ClosureLayer<()>>) -> Judged {
    let (diary, model) = (Diary::new(), ScriptedModel::new().calls("shell/rm", "{}").says("done"));
    let config = layers.into_iter().fold(memory(()), |config, layer| config.with_layer(layer));
    let engine = engine(config).model(model.clone()).tool(counting_tool("shell/rm", &diary)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let output = execution.log().iter().find_map(|item| item.as_output()).unwrap().clone();
    let tail = model.last_texts().pop().unwrap();
    Judged { ran: diary.len() > 0, output: output.output, outcome: output.outcome, tail }
}

#[tokio::test]
async fn the_first_deny_wins_and_the_tool_never_runs() {
    let judged = judge([gate(1, guide("careful")), gate(3, deny("third")), gate(2, deny("second"))]).await;
    assert!(!judged.ran && judged.outcome == Outcome::Denied);
    assert_eq!(judged.output, "This call was denied and did not run: second");
    assert_eq!(judged.tail, judged.output, "advice on a call that did not run is dropped");
}

#[tokio::test]
async fn no_gate_runs_after_a_denial() {
    let unasked = layer::<()>(spec("unasked", 9)).before_tool_call(|_| async { panic!("asked") }).build();
    assert_eq!(judge([gate(1, deny("no")), unasked]).await.output, "This call was denied and did not run: no");
}

#[tokio::test]
async fn a_guided_call_does_not_run_and_the_guidance_of_all_gates_is_its_output() {
    let judged = judge([gate(2, guide("two")), gate(1, guide("one")), gate(3, allow()), gate(4, guide("  "))]).await;
    assert_eq!((judged.ran, &*judged.output), (false, "one\ntwo"));
}

#[tokio::test]
async fn empty_guidance_allows_a_call() {
    let judged = judge([gate(1, guide("")), gate(2, guide(" \n"))]).await;
    assert_eq!((judged.ran, &*judged.output), (true, "done"));
}

#[tokio::test]
async fn a_gate_sees_the_public_name_and_the_call() {
    let curious = layer::<()>(spec("curious", 1))
        .before_tool_call(|params| async move {
            Ok(deny(&format!("{} {} {}", params.tool_name, params.call.arguments, params.log.len())).into())
        })
        .build();
    assert_eq!(judge([curious]).await.output, "This call was denied and did not run: shell/rm {} 2");
}

#[tokio::test]
async fn a_broken_gate_denies_unless_it_abstains() {
    type Break = fn(LayerBuilder<()>) -> LayerBuilder<()>;
    let cases: [(Break, &str); 3] = [
        (|layer| layer.before_tool_call(|_| async { Err("no rules".into()) }), "no rules"),
        (|layer| layer.before_tool_call(|_| async { panic!("no nerves") }), "panicked: no nerves"),
        (|layer| layer.before_tool_call(|_| pending()), "took longer than 5000 ms and was cancelled"),
    ];
    for (broken, problem) in cases {
        let denying = judge([broken(layer(spec("gate", 1))).build()]).await;
        let expected =
            format!("This call was denied and did not run: `before_tool_call` of layer `gate` failed: {problem}");
        assert_eq!((denying.ran, denying.output), (false, expected));
        let abstaining = broken(layer(spec("gate", 1).with_on_gate_error(OnGateError::Abstain))).build();
        assert!(judge([abstaining]).await.ran, "{problem}");
    }
}

#[tokio::test]
async fn a_disabled_gate_does_not_affect_calls() {
    let disabled = layer::<()>(spec("gate", 1).with_on_init_error(OnInitError::Disable))
        .init(|_| async { Err("broken".into()) })
        .before_tool_call(|_| async { Ok(deny("never").into()) })
        .build();
    assert!(judge([disabled]).await.ran);
}

/// A layer whose `after_model_call` always returns the same.
fn judge_of_responses(slot: i32, decision: SteeringDecision) -> ClosureLayer<()> {
    let id = format!("judge-{slot}");
    layer(spec(&id, slot)).after_model_call(move |_| std::future::ready(Ok(decision.clone().into()))).build()
}

#[tokio::test]
async fn a_denied_response_ends_the_turn_and_is_not_logged_and_the_thread_continues() {
    let strict = layer::<u32>(spec("strict", 2))
        .after_model_call(|params| async move {
            let said = params.response.output_text();
            let decision = if said.contains("rude") { deny("mind your tongue") } else { allow() };
            Ok(AfterModelCallResult { decision, state: Some(*params.state + 1) })
        })
        .store(|_| async { Ok(StoreResult::keep()) })
        .build();
    let model = ScriptedModel::new().says("rude").says("kind");
    let engine = engine(memory((strict, judge_of_responses(3, deny("too late"))))).model(model).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let Err(Error::SteeringDenied { layer, reason }) = execution.turn("hello").await else { panic!("it is denied") };
    assert_eq!((layer.as_str(), reason.as_str()), ("strict", "mind your tongue"));
    assert_eq!(execution.log().len(), 1, "the user's message alone");
    assert!(!execution.has_unfinished_turn());
    let denied = execution.turn("again").await.unwrap_err();
    assert_eq!(denied.to_string(), "layer `judge-3` denied the response: too late");
}

#[tokio::test]
async fn a_guided_response_is_retried_before_its_tools_run() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let guiding = layer::<()>(spec("guiding", 1)).after_model_call(move |_| {
        let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move { Ok(if first { guide("softer") } else { allow() }.into()) }
    });
    let (diary, model) = (Diary::new(), ScriptedModel::new().calls("rm", "{}").says("fine"));
    let layers = memory((guiding.build(), judge_of_responses(2, allow())));
    let engine = engine(layers).model(model.clone()).tool(counting_tool("rm", &diary)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let answer = execution.turn("hello").await.unwrap();
    assert_eq!((answer.text(), answer.steps, diary.len()), ("fine".to_owned(), 1, 0));
    assert_eq!(model.last_texts(), ["hello", "Guidance for your next response:\nsofter"]);
    assert_eq!(execution.log().len(), 2, "the response that was sent back is not logged");
}

#[tokio::test]
async fn a_response_is_rejected_at_most_three_times() {
    let (model, recorder) = (ScriptedModel::new(), Recorder::new());
    let layers = memory((judge_of_responses(1, guide("one")), judge_of_responses(2, guide("two"))));
    let engine = engine(layers).model(model.clone()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let answer = execution.turn("hello").await.unwrap();
    assert_eq!((answer.text().as_str(), answer.steps, model.requests().len()), ("ok", 1, 4));
    assert_eq!(recorder.faults()[0].message, "the response was rejected too often; it is accepted unchanged");
    // The next turn has its own three.
    execution.turn("again").await.unwrap();
    assert_eq!(model.requests().len(), 8);
}

#[tokio::test]
async fn a_failing_after_model_call_abstains() {
    let failing = layer::<()>(spec("failing", 1)).after_model_call(|_| async { Err("no".into()) }).build();
    let hanging = layer::<()>(spec("hanging", 2)).after_model_call(|_| pending()).build();
    let panicking = layer::<()>(spec("panicking", 3)).after_model_call(|_| async { panic!("no") }).build();
    let engine = engine(memory((failing, hanging, panicking))).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "ok");
}
