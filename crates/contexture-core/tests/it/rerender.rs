//! Re-renders: when layers are recalled again, which of them, and how often.

use contexture_core::layer::*;
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::{Execution, memory};

use crate::kit::{Diary, counting_tool, spec};

/// A layer that records every recall.
fn recalled(id: &'static str, slot: i32, diary: &Diary) -> LayerBuilder<()> {
    let diary = diary.clone();
    layer(spec(id, slot)).recall(move |_| {
        diary.note(id);
        async { Ok("here".into()) }
    })
}

/// A layer that requests a re-render with every tool output.
fn asking(id: &'static str, slot: i32, diary: &Diary, rerender: Rerender) -> ClosureLayer<()> {
    let append = move |params: OnItemAppendParams<()>| async move {
        let is_output = params.items.iter().any(|item| item.as_output().is_some());
        let answer = OnItemAppendResult::items(params.items);
        Ok(if is_output { answer.with_rerender(rerender) } else { answer })
    };
    recalled(id, slot, diary).on_item_append(append).build()
}

/// Three layers, of which the middle one requests; the model calls a tool and then responds.
async fn execution(rerender: Rerender, diary: &Diary) -> Execution<()> {
    let noted = diary.clone();
    let model = ScriptedModel::new().calls("look", "{}").responds(move |_| {
        noted.note("model");
        Ok(contexture_core::LlmResponse::text("done"))
    });
    let config = memory(())
        .with_layer(recalled("low", 1, diary).build())
        .with_layer(asking("middle", 2, diary, rerender))
        .with_layer(recalled("high", 3, diary).build());
    let engine = engine(config).model(model).tool(counting_tool("look", diary)).build().unwrap();
    engine.execution("thread").start().await.unwrap()
}

#[tokio::test]
async fn an_immediate_re_render_runs_before_the_next_model_call() {
    let cases = [
        (RerenderScope::OwnLayer, "middle"),
        (RerenderScope::SlotAndAfter, "middle high"),
        (RerenderScope::All, "low middle high"),
    ];
    for (scope, again) in cases {
        let diary = Diary::new();
        let mut execution = execution(Rerender { timing: Some(RerenderTiming::Immediate), scope }, &diary).await;
        execution.turn("hello").await.unwrap();
        assert_eq!(diary.take().join(" "), format!("low middle high look {again} model"), "{scope:?}");
    }
}

#[tokio::test]
async fn a_batched_re_render_waits_for_the_next_turn_which_recalls_everyone_once() {
    for timing in [Some(RerenderTiming::Batched), None] {
        let diary = Diary::new();
        let mut execution = execution(Rerender { timing, scope: RerenderScope::All }, &diary).await;
        execution.turn("hello").await.unwrap();
        assert_eq!(diary.take().join(" "), "low middle high look model");
        execution.turn("again").await.unwrap();
        assert_eq!(diary.take().join(" "), "low middle high");
    }
}

#[tokio::test]
async fn the_layers_own_timing_is_the_default() {
    let diary = Diary::new();
    let noted = diary.clone();
    let eager = layer::<()>(spec("eager", 1).with_rerender_timing(RerenderTiming::Immediate))
        .recall(move |_| {
            noted.note("eager");
            async { Ok("here".into()) }
        })
        .on_item_append(|params| async {
            Ok(OnItemAppendResult::items(params.items).with_rerender(Rerender::default()))
        })
        .build();
    let model = ScriptedModel::new().calls_all(&[("look", "{}"), ("look", "{}")]);
    let engine = engine(memory((eager,))).model(model).tool(counting_tool("look", &diary)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    // The turn's own recall satisfies the request made with the user's message; two outputs cause one re-render.
    assert_eq!(diary.take(), ["eager", "look", "look", "eager"]);
}

#[tokio::test]
async fn the_model_sees_the_result_of_a_re_render() {
    let counting = layer::<u32>(spec("counting", 1).with_rerender_timing(RerenderTiming::Immediate))
        .recall(|params| async move { Ok(format!("seen {}", params.state).into()) })
        .on_item_append(|params| async move {
            let state = *params.state + 1;
            Ok(OnItemAppendResult::items(params.items).with_state(state).with_rerender(Rerender::default()))
        })
        .build();
    let model = ScriptedModel::new().calls("look", "{}");
    let engine = engine(memory((counting,))).model(model.clone());
    let engine = engine.tool(counting_tool("look", &Diary::new())).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let requests = model.requests();
    let shows = |request: usize, text: &str| {
        let items = &requests[request].items;
        items.iter().filter_map(|item| item.as_message()).any(|message| message.text().contains(text))
    };
    assert!(shows(0, "seen 1") && !shows(0, "seen 2"));
    assert!(shows(1, "seen 2"));
}

#[tokio::test]
async fn re_renders_that_lead_to_re_renders_end_after_three_rounds() {
    let (diary, recorder) = (Diary::new(), Recorder::new());
    let noted = diary.clone();
    let insatiable =
        layer::<()>(spec("insatiable", 1).with_rerender_timing(RerenderTiming::Immediate)).recall(move |_| {
            noted.note("recalled");
            async { Ok(RecallResult::from("more").with_rerender(Rerender::default())) }
        });
    let layers = memory((insatiable.build(),));
    let engine = engine(layers).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "ok");
    assert_eq!(diary.take().len(), 1 + 3);
    let message = "re-renders requested re-renders more than 3 times; the rest waits for the next turn";
    assert_eq!(recorder.faults()[0].message, message);
    execution.turn("again").await.unwrap();
    assert_eq!(diary.take().len(), 1 + 3);
}
