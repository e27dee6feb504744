//! The life of a layer: which hook is called when, how often and in what order, and what its failure means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contexture_core::event::SpanStatus;
use contexture_core::layer::*;
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::{Error, memory};
use futures_util::FutureExt as _;
use futures_util::future::pending;
use serde_json::json;

use crate::kit::{Diary, counting_tool, pass, settle, spec, timed};

/// A layer with all eleven hooks; each writes its name to the diary.
fn noting(id: &str, slot: i32, diary: &Diary) -> ClosureLayer<u32> {
    noting_with(spec(id, slot), diary)
}

fn noting_with(spec: LayerSpec, diary: &Diary) -> ClosureLayer<u32> {
    let id = spec.id.to_string();
    let note = |hook: Hook| {
        let (diary, line) = (diary.clone(), format!("{id}.{hook}"));
        move || diary.note(line.clone())
    };
    let [init, append, recall, project, gate, judge] = [
        Hook::Init,
        Hook::OnItemAppend,
        Hook::Recall,
        Hook::ProjectHistory,
        Hook::BeforeToolCall,
        Hook::AfterModelCall,
    ]
    .map(note);
    let [store, spawn, back, complete, dispose] =
        [Hook::Store, Hook::OnSpawn, Hook::OnReturn, Hook::OnComplete, Hook::Dispose].map(note);
    layer(spec)
        .init(move |params| {
            init();
            async move { Ok(InitResult { state: params.stored.unwrap_or(0) }) }
        })
        .on_item_append(move |params| {
            append();
            async { Ok(OnItemAppendResult::items(params.items)) }
        })
        .recall(move |_| {
            recall();
            async { Ok("here".into()) }
        })
        .project_history(move |params| {
            project();
            async { Ok(params.history.into()) }
        })
        .before_tool_call(move |_| {
            gate();
            async { Ok(SteeringDecision::Allow.into()) }
        })
        .after_model_call(move |_| {
            judge();
            async { Ok(SteeringDecision::Allow.into()) }
        })
        .store(move |params| {
            store();
            async move { Ok(StoreResult::set(*params.state + 1)) }
        })
        .on_spawn(move |params| {
            spawn();
            async move { Ok(SpawnResult { child_state: Some(*params.parent_state), items: vec![] }) }
        })
        .on_return(move |_| {
            back();
            async { Ok(ReturnResult { parent_state: None, result: None }) }
        })
        .on_complete(move |_| {
            complete();
            async { Ok(CompleteResult::keep()) }
        })
        .dispose(move |_| {
            dispose();
            async { Ok(()) }
        })
        .build()
}

/// Whether the lines are exactly these, written as one text.
#[track_caller]
fn check(diary: &Diary, expected: &str) {
    assert_eq!(diary.take().join(" "), expected);
}

#[tokio::test]
async fn every_hook_runs_in_its_order() {
    let diary = Diary::new();
    // Registered as b, a; a is in the lower slot.
    let layers = memory((noting("b", 2, &diary), noting("a", 1, &diary)));
    let model = ScriptedModel::new().calls("look", "{}").says("done");
    let engine = engine(layers).model(model).tool(counting_tool("look", &diary)).build().unwrap();

    let mut execution = engine.execution("thread").start().await.unwrap();
    check(&diary, "b.init a.init");
    execution.turn("hello").await.unwrap();
    let first_step = "a.on_item_append b.on_item_append a.recall b.recall a.project_history b.project_history \
                      a.after_model_call b.after_model_call a.store b.store a.before_tool_call b.before_tool_call look";
    let second_step = "a.on_item_append b.on_item_append a.project_history b.project_history \
                       a.after_model_call b.after_model_call a.store b.store";
    check(&diary, &format!("{first_step} {second_step}"));

    let child = execution.spawn().await.unwrap();
    check(&diary, "a.on_spawn b.on_spawn");
    execution.join(child, json!(null)).await.unwrap();
    check(&diary, "b.on_complete a.on_complete a.on_return b.on_return a.dispose b.dispose");
    execution.complete().await.unwrap();
    check(&diary, "b.on_complete a.on_complete a.dispose b.dispose");
}

#[tokio::test]
async fn every_hook_run_makes_one_span() {
    let (diary, recorder) = (Diary::new(), Recorder::new());
    let model = ScriptedModel::new().calls("look", "{}").says("done");
    let builder = engine(memory((noting("a", 1, &diary),))).model(model).observer(recorder.clone());
    let engine = builder.tool(counting_tool("look", &Diary::new())).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let child = execution.spawn().await.unwrap();
    execution.join(child, json!(null)).await.unwrap();
    execution.complete().await.unwrap();
    let spans = recorder.spans();
    let spans: Vec<String> = spans.iter().map(|span| format!("{}.{}", span.layer_id, span.hook)).collect();
    assert_eq!(spans, diary.take());
    assert!(recorder.spans().iter().all(|span| span.status == SpanStatus::Ok));
}

/// Implements only `store`.
struct Single(Arc<AtomicUsize>);

impl MemoryLayer for Single {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        spec("single", 1)
    }

    async fn store(&self, params: StoreParams<u32>) -> HookResult<StoreResult<u32>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(StoreResult::set(*params.state + 1))
    }
}

#[tokio::test]
async fn absent_hooks_make_no_span_and_no_timer_also_the_first_time() {
    let (ran, recorder) = (Arc::new(AtomicUsize::new(0)), Recorder::new());
    let (builder, clock) = timed(memory((Single(ran.clone()),)));
    let model = ScriptedModel::new().calls("look", "{}").says("done");
    let builder = builder.model(model).tool(counting_tool("look", &Diary::new()));
    let engine = builder.observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let child = execution.spawn().await.unwrap();
    execution.join(child, json!(null)).await.unwrap();
    assert_eq!(execution.memory().state::<Single, _>(), 2);
    execution.complete().await.unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 2);
    let hooks: Vec<Hook> = recorder.spans().iter().map(|span| span.hook).collect();
    assert_eq!(hooks, [Hook::Store, Hook::Store]);
    assert_eq!(clock.sleepers(), 0);
}

/// Forwards its hooks to another layer, so that its types do not show which of them exist.
struct Wrapped(Single, Arc<AtomicUsize>);

impl MemoryLayer for Wrapped {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        self.0.spec()
    }

    async fn recall(&self, params: RecallParams<u32>) -> HookResult<RecallResult<u32>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.recall(params).await
    }

    async fn store(&self, params: StoreParams<u32>) -> HookResult<StoreResult<u32>> {
        self.0.store(params).await
    }
}

#[tokio::test]
async fn a_forwarded_hook_that_does_not_exist_is_called_once() {
    let (ran, asked, recorder) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Recorder::new());
    let layers = memory((Wrapped(Single(ran.clone()), asked.clone()),));
    let engine = engine(layers).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    for _ in 0..3 {
        execution.turn("hello").await.unwrap();
    }
    assert_eq!((asked.load(Ordering::Relaxed), ran.load(Ordering::Relaxed)), (1, 3));
    assert_eq!(recorder.layers_of(Hook::Recall), [""; 0]);
}

#[tokio::test]
async fn a_failed_init_ends_the_execution_and_completes_only_what_was_initialised() {
    let (diary, recorder) = (Diary::new(), Recorder::new());
    let failing = layer::<()>(spec("failing", 0))
        .init(|_| async { Err("no disk".into()) })
        .on_complete(|_| async { panic!("it was never initialised") })
        .dispose(|_| async { panic!("it was never initialised") })
        .build();
    let layers = memory((noting("first", 1, &diary), failing, noting("last", 1, &diary)));
    let engine = engine(layers).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let Err(Error::Init { layer, source }) = engine.execution("thread").start().await else { panic!("it must fail") };
    assert_eq!((layer.as_str(), source.to_string().as_str()), ("failing", "no disk"));
    check(&diary, "first.init first.on_complete first.dispose");
    assert_eq!(recorder.faults().len(), 1);
}

#[tokio::test]
async fn an_init_that_exceeds_its_timeout_has_failed() {
    let late = layer::<()>(spec("late", 0)).init(|_| pending()).build();
    let (builder, clock) = timed(memory((late,)));
    let engine = builder.model(ScriptedModel::new()).build().unwrap();
    let (started, ()) = tokio::join!(engine.execution("thread").start(), pass(&clock, Duration::from_secs(10)));
    let Err(Error::Init { layer, source }) = started else { panic!("it must fail") };
    let said = source.to_string();
    assert_eq!((layer.as_str(), said.as_str()), ("late", "took longer than 10000 ms and was cancelled"));
}

#[tokio::test]
async fn a_layer_that_may_be_left_out_is_skipped_for_the_execution() {
    let (diary, recorder) = (Diary::new(), Recorder::new());
    let inits = Arc::new(AtomicUsize::new(0));
    let counted = inits.clone();
    let note = diary.clone();
    let provides = LayerProvides::new().function(
        "poke",
        layer_fn("Pokes.", |_: serde_json::Value, _: Arc<u32>, _| async { Ok(FnResult::new("poked")) }),
    );
    let fragile = layer::<u32>(spec("fragile", 1).with_on_init_error(OnInitError::Disable))
        .init(move |_| {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            async move { if first { Err("not today".into()) } else { Ok(InitResult { state: 1 }) } }
        })
        .recall(move |_| {
            note.note("recalled");
            async { Ok("here".into()) }
        })
        .on_complete(|_| async { Ok(CompleteResult::keep()) })
        .dispose(|_| async { Ok(()) })
        .provides(provides)
        .build();
    let model = ScriptedModel::new().calls("fragile/poke", "{}").says("done").says("done");
    let engine = engine(memory((fragile,))).model(model).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let output = execution.log().iter().find_map(|item| Some(item.as_output()?.output.clone()));
    assert_eq!(output.as_deref(), Some("layer `fragile` is not running"));
    execution.complete().await.unwrap();
    check(&diary, "");
    let spans = recorder.spans();
    let spans: Vec<_> = spans.iter().map(|span| (span.hook, span.status)).collect();
    let skipped = [Hook::Recall, Hook::OnComplete, Hook::Dispose].map(|hook| (hook, SpanStatus::Skipped));
    assert_eq!(spans, [[(Hook::Init, SpanStatus::Error)].as_slice(), &skipped].concat());

    // Another execution tries again.
    engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    check(&diary, "recalled");
}

#[tokio::test]
async fn a_cleared_layer_keeps_running_and_its_record_is_gone() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    // Counts up to two, then forgets.
    let forgetful = || {
        layer::<u32>(spec("forgetful", 1))
            .init(|params| async move { Ok(InitResult { state: params.stored.unwrap_or(0) }) })
            .recall(|params| async move { Ok(format!("{}", params.state).into()) })
            .store(|params| async move {
                Ok(if *params.state == 2 { StoreResult::clear() } else { StoreResult::set(*params.state + 1) })
            })
            .build()
    };
    let model = ScriptedModel::new();
    let engine = engine(memory((forgetful(),))).store(store.clone()).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let mut stored = Vec::new();
    for _ in 0..4 {
        execution.turn("hello").await.unwrap();
        stored.push(store.list("layers/").await.unwrap().len());
    }
    assert_eq!(stored, [1, 1, 0, 1], "one, two, cleared, one");
    assert_eq!(model.last_texts().last().map(String::as_str), Some("hello"));
    assert_eq!(execution.memory().state::<ClosureLayer<u32>, _>(), 1);
}

#[tokio::test]
async fn on_complete_may_clear_and_the_record_is_deleted() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let fleeting = layer::<u32>(spec("fleeting", 1))
        .store(|_| async { Ok(StoreResult::set(7)) })
        .on_complete(|_| async { Ok(CompleteResult::clear()) })
        .build();
    let engine = engine(memory((fleeting,))).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    assert_eq!(store.list("layers/").await.unwrap(), ["layers/fleeting/thread/thread/state"]);
    execution.complete().await.unwrap();
    assert_eq!(store.list("layers/").await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_layer_added_late_is_initialised_and_called() {
    let diary = Diary::new();
    let model = ScriptedModel::new();
    let engine = engine(memory((noting("early", 5, &diary),))).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    diary.take();
    execution.add_layer(noting("late", 1, &diary)).await.unwrap();
    check(&diary, "late.init");
    execution.turn("hello").await.unwrap();
    let lines = diary.take();
    assert_eq!(lines[..2], ["late.on_item_append", "early.on_item_append"]);
    let twice = execution.add_layer(noting("late", 1, &diary)).await.unwrap_err();
    assert_eq!(twice.to_string(), "layer `late`: `id` is used by another layer too");
    execution.complete().await.unwrap();
    check(&diary, "early.on_complete late.on_complete late.dispose early.dispose");

    // It belonged only to that execution.
    engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    assert!(!diary.take().iter().any(|line| line.starts_with("late")));
}

#[tokio::test]
async fn a_layer_that_cannot_be_added_leaves_no_trace() {
    let recorder = Recorder::new();
    let engine = engine(memory(())).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let failing = || {
        let inner = layer::<()>(spec("late", 1)).init(|_| async { Err("no".into()) });
        inner.recall(|_| async { Ok("here".into()) }).build()
    };
    assert!(matches!(execution.add_layer(failing()).await, Err(Error::Init { .. })));
    execution.turn("hello").await.unwrap();
    assert_eq!(recorder.layers_of(Hook::Recall), [""; 0]);
    let whole = layer::<()>(spec("late", 1)).recall(|_| async { Ok("here".into()) }).build();
    execution.add_layer(whole).await.unwrap();
    execution.turn("hello").await.unwrap();
    assert_eq!(recorder.layers_of(Hook::Recall), ["late"]);
}

#[tokio::test]
async fn each_end_completes_and_disposes_once_with_its_outcome() {
    for end in ["complete", "fail", "abort", "drop"] {
        let diary = Diary::new();
        let (completed, disposed) = (diary.clone(), diary.clone());
        let telling = layer::<()>(spec("telling", 1))
            .on_complete(move |params| {
                completed.note(format!("{:?}", params.outcome));
                async { Ok(CompleteResult::keep()) }
            })
            .dispose(move |_| {
                disposed.note("disposed");
                async { Ok(()) }
            });
        let engine = engine(memory((telling.build(),))).model(ScriptedModel::new()).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        execution.turn("hello").await.unwrap();
        let outcome = match end {
            "complete" => execution.complete().await.map(|()| "Success"),
            "fail" => execution.fail().await.map(|()| "Failure"),
            "abort" => execution.abort().await.map(|()| "Aborted"),
            _ => {
                drop(execution);
                Ok("Aborted")
            }
        };
        settle().await;
        check(&diary, &format!("{} disposed", outcome.unwrap()));
    }
}

/// If the future that ends an execution is dropped, the last hooks still run, each once.
#[tokio::test]
async fn an_interrupted_end_continues_in_the_background() {
    let diary = Diary::new();
    let lingering = |id: &'static str| {
        let (completed, disposed) = (diary.clone(), diary.clone());
        layer::<()>(spec(id, 1))
            .on_complete(move |params| {
                completed.note(format!("{id} {:?}", params.outcome));
                async {
                    settle().await;
                    Ok(CompleteResult::keep())
                }
            })
            .dispose(move |_| {
                disposed.note(format!("{id} disposed"));
                async { Ok(()) }
            })
            .build()
    };
    let (builder, _) = timed(memory((lingering("a"), lingering("b"), lingering("c"))));
    let engine = builder.model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    let mut ending = Box::pin(execution.complete());
    while diary.len() < 2 {
        assert!(ending.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(ending);
    for _ in 0..10 {
        settle().await;
    }
    check(&diary, "a Success b Success c Success c disposed b disposed a disposed");
}

#[tokio::test]
async fn failures_at_the_end_do_not_stop_the_others() {
    let (diary, recorder) = (Diary::new(), Recorder::new());
    let bad = layer::<u32>(spec("bad", 1))
        .store(|_| async { Ok(StoreResult::set(1)) })
        .on_complete(|_| async { Err("no end".into()) })
        .dispose(|_| async { panic!("not even that") })
        .build();
    let hanging = layer::<u32>(spec("hanging", 1)).on_complete(|_| pending()).dispose(|_| pending()).build();
    let layers = memory((bad, hanging, noting("good", 1, &diary)));
    let engine = engine(layers).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    diary.take();
    execution.complete().await.unwrap();
    check(&diary, "good.on_complete good.dispose");
    let faults = recorder.faults();
    let faults: Vec<_> = faults.iter().map(|fault| format!("{}: {}", fault.place, fault.message)).collect();
    assert_eq!(
        faults,
        [
            "on_complete: no end",
            "on_complete: took longer than 30000 ms and was cancelled",
            "dispose: took longer than 5000 ms and was cancelled",
            "dispose: panicked: not even that",
        ]
    );
}

/// Each of the two waits for the other to have started.
#[tokio::test]
async fn layers_store_all_at_once_and_a_failed_one_keeps_its_old_state() {
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let waiting = |id: &str, answer: fn(u32) -> HookResult<StoreResult<u32>>| {
        let barrier = barrier.clone();
        layer::<u32>(spec(id, 1))
            .store(move |params| {
                let barrier = barrier.clone();
                async move {
                    barrier.wait().await;
                    answer(*params.state)
                }
            })
            .provides(LayerProvides::new().data("state", layer_data(|state: &u32| *state)))
            .build()
    };
    let layers = (
        waiting("good", |state| Ok(StoreResult::set(state + 1))),
        waiting("failing", |_| Err("no".into())),
        waiting("panicking", |_| panic!("no")),
    );
    let (builder, _) = timed(memory(layers));
    let mut execution = builder.model(ScriptedModel::new()).build().unwrap().execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    execution.turn("hello").await.unwrap();
    let states = execution.memory().context_memory();
    assert_eq!((&states["good"]["state"], &states["failing"]["state"]), (&json!(2), &json!(0)));
    assert_eq!(states["panicking"]["state"], json!(0));
}

/// A cancelled hook has no effect, even if it was about to return.
#[tokio::test]
async fn every_hook_is_cancelled_at_its_default_time() {
    let expected = [
        (Hook::OnItemAppend, 5),
        (Hook::Recall, 5),
        (Hook::ProjectHistory, 5),
        (Hook::AfterModelCall, 10),
        (Hook::Store, 30),
        (Hook::BeforeToolCall, 5),
        (Hook::OnSpawn, 10),
        (Hook::OnReturn, 10),
        (Hook::OnComplete, 30),
        (Hook::Dispose, 5),
    ];
    let hanging = layer::<u32>(spec("hanging", 1))
        .on_item_append(|_| pending())
        .recall(|_| pending())
        .project_history(|_| pending())
        .after_model_call(|_| pending())
        .store(|_| pending())
        .before_tool_call(|_| pending())
        .on_spawn(|_| pending())
        .on_return(|_| pending())
        .on_complete(|_| pending())
        .dispose(|_| pending())
        .build();
    let (recorder, diary) = (Recorder::new(), Diary::new());
    let model = ScriptedModel::new().calls("look", "{}").says("done");
    let (builder, clock) = timed(memory((hanging,)));
    let builder = builder.model(model.clone()).observer(recorder.clone());
    let engine = builder.tool(counting_tool("look", &diary)).build().unwrap();
    let run = async {
        let mut execution = engine.execution("thread").start().await.unwrap();
        assert_eq!(execution.turn("hello").await.unwrap().text(), "done");
        let child = execution.spawn().await.unwrap();
        execution.join(child, json!(null)).await.unwrap();
        execution.complete().await.unwrap();
    };
    let seconds = async {
        loop {
            pass(&clock, Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = run => {}
        () = seconds => {}
    }
    let spans = recorder.spans();
    assert!(spans.iter().all(|span| span.status == SpanStatus::Timeout));
    for (hook, seconds) in expected {
        let span = spans.iter().find(|span| span.hook == hook).unwrap_or_else(|| panic!("{hook} did not run"));
        assert_eq!(span.duration, Duration::from_secs(seconds), "{hook}");
    }
    check(&diary, "");
    assert_eq!(model.last_texts()[0], "hello", "items and history pass unchanged");
}
