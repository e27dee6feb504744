//! What children share with their parents (scopes, usage, aborts), and what is separate.

use std::sync::Arc;

use contexture_core::id::ResourceKind;
use contexture_core::item::Outcome;
use contexture_core::layer::*;
use contexture_core::model::{LlmResponse, Usage};
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{FaultyStore, Recorder, ScriptedModel, engine};
use contexture_core::{Error, Execution, Slot, memory};
use serde_json::json;

use crate::kit::{Diary, FnTool, settle, spec};

/// Computes a child's initial state from the parent's.
type Start = fn(&[String]) -> Option<Vec<String>>;

/// A set of words of a user. A child starts with the result of `start` (`None`: like any execution).
struct Words {
    start: Option<Start>,
    merges: bool,
    returns: bool,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

fn united(ours: &[String], theirs: &[String]) -> Vec<String> {
    let mut all = theirs.to_vec();
    all.extend(ours.iter().filter(|word| !theirs.contains(word)).cloned());
    all
}

impl MemoryLayer for Words {
    type State = Vec<String>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("words", Slot(1), MemoryScope::Resource)
    }

    fn hooks(&self) -> HookSet {
        let mut hooks = HookSet::NONE;
        if self.start.is_some() {
            hooks = hooks.with(Hook::OnSpawn);
        }
        if self.returns { hooks.with(Hook::OnReturn) } else { hooks }
    }

    fn provides(&self) -> LayerProvides<Vec<String>> {
        let add = layer_fn("Adds a word.", |word: Word, words: Arc<Vec<String>>, _| async move {
            Ok(FnResult::new(()).with_state([(*words).clone(), vec![word.word]].concat()))
        });
        LayerProvides::new().function("add", add)
    }

    async fn on_spawn(&self, params: SpawnParams<Vec<String>>) -> HookResult<SpawnResult<Vec<String>>> {
        let child_state = self.start.and_then(|start| start(&params.parent_state));
        Ok(SpawnResult { child_state, items: vec![] })
    }

    async fn on_return(&self, params: ReturnParams<Vec<String>>) -> HookResult<ReturnResult<Vec<String>>> {
        let words = united(&params.child_state, &params.parent_state);
        Ok(ReturnResult { parent_state: Some(words), result: None })
    }

    fn merge(&self, ours: &Vec<String>, theirs: &Vec<String>) -> Option<Vec<String>> {
        self.merges.then(|| united(ours, theirs))
    }
}

const KEY: &str = "layers/words/resource/ann/state";

async fn add(execution: &Execution<(Words,)>, word: &str) {
    execution.memory().call_json("words/add", json!({ "word": word })).await.unwrap();
}

fn known(execution: &Execution<(Words,)>) -> Vec<String> {
    execution.memory().state::<Words, _>()
}

/// The words in the user's record.
async fn stored(store: &dyn StorageAdapter) -> Vec<String> {
    let record = store.get(KEY).await.unwrap().expect("there is a record");
    let record: serde_json::Value = serde_json::from_slice(&record.value).unwrap();
    serde_json::from_value(record["state"].clone()).unwrap()
}

/// A parent whose stored state is `red`; its store and its faults.
async fn parent(words: Words) -> (Execution<(Words,)>, Arc<MemoryStore>, Recorder) {
    let (store, recorder) = (Arc::new(MemoryStore::new()), Recorder::new());
    let engine = engine(memory((words,))).store(store.clone()).model(ScriptedModel::new()).observer(recorder.clone());
    let execution = engine.build().unwrap().execution("thread").resource("ann").start().await.unwrap();
    add(&execution, "red").await;
    assert!(execution.flush().await.is_empty());
    (execution, store, recorder)
}

/// A child that starts empty, in every possible way, never clears the user's memory.
#[tokio::test]
async fn what_a_child_starts_with_is_not_written_over_the_shared_record() {
    let starts: [Start; 2] = [|_| Some(vec![]), |_| None];
    for (start, merges) in starts.into_iter().flat_map(|start| [(start, true), (start, false)]) {
        let (mut execution, store, _) = parent(Words { start: Some(start), merges, returns: false }).await;
        let child = execution.spawn().await.unwrap();
        assert_eq!(known(&child), [""; 0]);
        assert!(child.flush().await.is_empty());
        assert_eq!(stored(&*store).await, ["red"], "the child has only begun");
        add(&child, "blue").await;
        assert!(child.flush().await.is_empty());
        let expected: &[&str] = if merges { &["red", "blue"] } else { &["red"] };
        assert_eq!(stored(&*store).await, expected, "merges: {merges}");
        execution.join(child, json!(null)).await.unwrap();
        assert_eq!(known(&execution), expected);
        assert_eq!(stored(&*store).await, expected);
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_merged_stays_with_the_child_and_on_return_decides() {
    let (mut execution, store, recorder) =
        parent(Words { start: Some(|_| Some(vec![])), merges: false, returns: true }).await;
    let child = execution.spawn().await.unwrap();
    add(&child, "blue").await;
    settle().await;
    assert_eq!((known(&child), stored(&*store).await), (vec!["blue".to_owned()], vec!["red".to_owned()]));
    assert!(recorder.faults()[0].message.contains("started separate"), "{:?}", recorder.faults());
    execution.join(child, json!(null)).await.unwrap();
    assert_eq!(known(&execution), ["red", "blue"]);
    assert!(execution.flush().await.is_empty());
    assert_eq!(stored(&*store).await, ["red", "blue"]);
}

#[tokio::test]
async fn a_child_that_clears_what_it_started_with_clears_nothing_of_others() {
    let cleared = layer::<Vec<String>>(LayerSpec::new("words", Slot(1), MemoryScope::Resource))
        .on_spawn(|_| async { Ok(SpawnResult { child_state: Some(vec!["own".into()]), items: vec![] }) })
        .store(|params| async move {
            Ok(if params.ctx.depth == 1 { StoreResult::clear() } else { StoreResult::set(vec!["red".into()]) })
        })
        .build();
    let store = Arc::new(MemoryStore::new());
    let engine = engine(memory((cleared,))).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").resource("ann").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let mut child = execution.spawn().await.unwrap();
    child.turn("hello").await.unwrap();
    child.complete().await.unwrap();
    assert_eq!(stored(&*store).await, ["red"]);
}

#[tokio::test]
async fn a_child_sees_what_its_parent_has_just_set() {
    for start in [None, Some((|words: &[String]| Some(words.to_vec())) as Start)] {
        let (mut execution, store, recorder) = parent(Words { start, merges: true, returns: false }).await;
        add(&execution, "green").await;
        let child = execution.spawn().await.unwrap();
        assert_eq!(known(&child), ["red", "green"]);
        add(&child, "blue").await;
        add(&execution, "yellow").await;
        execution.join(child, json!(null)).await.unwrap();
        assert!(execution.flush().await.is_empty());
        let mut all = known(&execution);
        all.sort();
        assert_eq!(all, ["blue", "green", "red", "yellow"]);
        assert_eq!(stored(&*store).await, known(&execution));
        assert!(recorder.faults().is_empty(), "{:?}", recorder.faults());
    }
}

#[tokio::test]
async fn a_child_sees_its_parents_state_also_while_the_store_fails() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let words = Words { start: None, merges: true, returns: false };
    let engine = engine(memory((words,))).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").resource("ann").start().await.unwrap();
    add(&execution, "red").await;
    assert!(execution.flush().await.is_empty());
    // The write in the background and the one before the child begins are each tried five times.
    (1..=10).for_each(|next| store.fail_at(store.operations() + next));
    let _ = execution.memory().call_json("words/add", json!({ "word": "green" })).await;
    let child = execution.spawn().await.unwrap();
    assert_eq!(known(&child), ["red", "green"]);
    child.complete().await.unwrap();
}

#[tokio::test]
async fn changes_of_both_are_merged_by_on_return_without_a_fault() {
    let copy: Start = |words| Some(words.to_vec());
    let (mut execution, store, recorder) = parent(Words { start: Some(copy), merges: false, returns: true }).await;
    let child = execution.spawn().await.unwrap();
    add(&child, "blue").await;
    execution.join(child, json!(null)).await.unwrap();
    assert_eq!(known(&execution), ["red", "blue"]);
    add(&execution, "green").await;
    assert!(execution.flush().await.is_empty());
    assert_eq!(stored(&*store).await, ["red", "blue", "green"]);
    assert!(recorder.faults().is_empty(), "{:?}", recorder.faults());
}

#[tokio::test]
async fn a_child_may_have_layers_of_its_own() {
    let diary = Diary::new();
    let noting = |id: &'static str| {
        let diary = diary.clone();
        layer::<u32>(spec(id, 1))
            .init(|params| async move { Ok(InitResult { state: params.stored.unwrap_or(1) }) })
            .on_spawn(|params| async move {
                Ok(SpawnResult { child_state: Some(*params.parent_state + 10), items: vec![] })
            })
            .on_return(|params| async move {
                Ok(ReturnResult { parent_state: Some(*params.child_state + 100), result: None })
            })
            .recall(move |params| {
                diary.note(format!("{id} {} {}", params.ctx.depth, params.state));
                async { Ok(RecallResult::nothing()) }
            })
            .build()
    };
    struct Own;
    impl MemoryLayer for Own {
        type State = String;

        fn spec(&self) -> LayerSpec {
            // The name of a layer of the parent, and another type.
            spec("other", 2)
        }

        async fn recall(&self, params: RecallParams<String>) -> HookResult<RecallResult<String>> {
            Ok(format!("own {}", params.state).into())
        }
    }
    let model = ScriptedModel::new();
    let engine = engine(memory((noting("both"), noting("other")))).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let mut child = execution.child().layers(memory((noting("both"), Own))).start().await.unwrap();
    child.turn("go").await.unwrap();
    assert_eq!(diary.take(), ["both 1 11"]);
    assert!(model.last_texts()[0].contains("own"), "{:?}", model.last_texts());
    assert_eq!(child.memory().state::<Own, _>(), "");
    execution.join(child, json!(null)).await.unwrap();
    execution.turn("go on").await.unwrap();
    assert_eq!(diary.take(), ["both 0 111", "other 0 1"]);
    let clash = execution.child().layers(memory((noting("both"), noting("both")))).start().await;
    assert!(matches!(clash, Err(Error::Spec(_))));
}

#[tokio::test]
async fn a_fork_continues_the_parents_log() {
    let model = ScriptedModel::new().says("one").calls("stuck", "{}").says("child").says("parent");
    let stuck = FnTool("stuck", |_| std::future::pending());
    let engine = engine(memory(())).model(model.clone()).tool(stuck).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("first").await.unwrap();
    let mut child = {
        let handle = execution.abort_handle();
        let aborting = async {
            settle().await;
            handle.abort();
        };
        let (turn, ()) = futures_util::future::join(execution.turn("second"), aborting).await;
        assert!(matches!(turn, Err(Error::Aborted)));
        execution.child().fork().start().await.unwrap()
    };
    assert_eq!(child.log().len(), 5, "four items, and the output of the call that was open");
    assert_eq!(child.log().iter().last().unwrap().as_output().unwrap().outcome, Outcome::Interrupted);
    child.turn("third").await.unwrap();
    assert_eq!(model.last_texts()[..3], ["first", "one", "second"]);
    assert_eq!((execution.log().len(), child.log().len()), (4, 7), "each goes on alone");
    let thread = child.thread_id().clone();
    child.complete().await.unwrap();
    assert_eq!(engine.execution(thread).start().await.unwrap().log().len(), 7, "and is durable");
}

#[tokio::test]
async fn what_a_child_uses_counts_for_its_parents_too() {
    let spending = |input_tokens| {
        move |_: &_| {
            let usage = Usage { input_tokens, output_tokens: 1, ..Usage::default() };
            Ok(LlmResponse { usage, cost: Some(0.5), ..LlmResponse::text("ok") })
        }
    };
    let model = ScriptedModel::new().responds(spending(1)).responds(spending(10)).responds(spending(100));
    let engine = engine(memory(())).model(model).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("go").await.unwrap();
    let mut child = execution.spawn().await.unwrap();
    child.turn("go").await.unwrap();
    let mut grandchild = child.spawn().await.unwrap();
    grandchild.turn("go").await.unwrap();
    let used = |input, output| TokenUsage { input, output, ..TokenUsage::default() };
    assert_eq!(grandchild.token_usage(), used(100, 1));
    assert_eq!(child.token_usage(), used(110, 2));
    assert_eq!((execution.token_usage(), execution.cost()), (used(111, 3), 1.5));
}

#[tokio::test]
async fn aborting_a_parent_aborts_its_children() {
    let waiting = || FnTool("wait", |_| std::future::pending());
    let model = || ScriptedModel::new().calls("wait", "{}").calls("wait", "{}");
    for end in ["told", "ended", "dropped"] {
        let engine = engine(memory(())).model(model()).tool(waiting()).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        let mut child = execution.spawn().await.unwrap();
        let mut grandchild = child.spawn().await.unwrap();
        let abort = async move {
            settle().await;
            match end {
                "told" => execution.abort_handle().abort(),
                "ended" => execution.abort().await.unwrap(),
                _ => drop(execution),
            }
        };
        let (first, second, ()) = futures_util::future::join3(child.turn("go"), grandchild.turn("go"), abort).await;
        assert!(matches!((first, second), (Err(Error::Aborted), Err(Error::Aborted))));
    }
}

/// A layer that notes which of its last hooks run, and in which execution.
fn last_words(diary: &Diary) -> ClosureLayer<u32> {
    let (completed, disposed) = (diary.clone(), diary.clone());
    layer::<u32>(spec("noting", 1))
        .init(|_| async { Ok(InitResult { state: 7 }) })
        .on_spawn(
            |params| async move { Ok(SpawnResult { child_state: Some(*params.parent_state + 1), items: vec![] }) },
        )
        .on_complete(move |params| {
            completed.note(format!("complete {} {:?}", *params.state, params.outcome));
            async { Ok(CompleteResult::keep()) }
        })
        .dispose(move |params| {
            disposed.note(format!("dispose {}", *params.state));
            async { Ok(()) }
        })
        .build()
}

#[tokio::test]
async fn children_that_are_still_held_end_with_their_aborted_parent() {
    for is_dropped in [false, true] {
        let diary = Diary::new();
        let engine = engine(memory((last_words(&diary),))).model(ScriptedModel::new()).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        let mut child = execution.spawn().await.unwrap();
        child.turn("hello").await.unwrap();
        let grandchild = child.spawn().await.unwrap();
        let gone = execution.spawn().await.unwrap();
        gone.complete().await.unwrap();
        assert_eq!(diary.take(), ["complete 8 Success", "dispose 8"]);
        if is_dropped {
            drop(execution);
            settle().await;
        } else {
            execution.abort().await.unwrap();
        }
        let expected =
            ["complete 9 Aborted", "dispose 9", "complete 8 Aborted", "dispose 8", "complete 7 Aborted", "dispose 7"];
        assert_eq!(diary.take(), expected, "dropped: {is_dropped}");
        assert!(matches!(child.turn("more").await, Err(Error::Aborted)));
        assert!(matches!(child.spawn().await, Err(Error::Aborted)));
        assert!(matches!(child.complete().await, Err(Error::Aborted)));
        assert!(grandchild.abort().await.is_ok());
        settle().await;
        assert_eq!(diary.take(), [""; 0], "no hook runs twice");
    }
}

/// The child's own turn waits for a tool, and nobody polls it while the parent is aborted.
#[tokio::test]
async fn a_child_in_the_middle_of_a_turn_ends_with_its_aborted_parent() {
    let diary = Diary::new();
    let model = ScriptedModel::new().calls("wait", "{}");
    let builder = engine(memory((last_words(&diary),))).model(model).tool(FnTool("wait", |_| std::future::pending()));
    let engine = builder.build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let mut child = execution.spawn().await.unwrap();
    {
        let mut turn = std::pin::pin!(child.turn("go"));
        for _ in 0..100 {
            assert!(futures_util::FutureExt::now_or_never(turn.as_mut()).is_none());
        }
        execution.abort().await.unwrap();
        assert_eq!(diary.take(), ["complete 8 Aborted", "dispose 8", "complete 7 Aborted", "dispose 7"]);
        assert!(matches!(turn.await, Err(Error::Aborted)));
    }
    drop(child);
    settle().await;
    assert_eq!(diary.take(), [""; 0]);
}

#[tokio::test]
async fn children_outlive_a_parent_that_ends_otherwise() {
    let diary = Diary::new();
    let engine = engine(memory((last_words(&diary),))).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let mut child = execution.spawn().await.unwrap();
    execution.complete().await.unwrap();
    child.turn("hello").await.unwrap();
    child.complete().await.unwrap();
    assert_eq!(diary.take(), ["complete 7 Success", "dispose 7", "complete 8 Success", "dispose 8"]);
}

#[tokio::test]
async fn a_joined_child_leaves_nothing_of_its_own_in_the_store() {
    let store = Arc::new(MemoryStore::new());
    let noting = layer::<u32>(spec("notes", 1)).store(|params| async move { Ok(StoreResult::set(*params.state + 1)) });
    let builder = engine(memory((noting.build(),))).store(store.clone()).model(ScriptedModel::new());
    let engine = builder.build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let before = store.list("").await.unwrap();
    let mut child = execution.spawn().await.unwrap();
    child.turn("go").await.unwrap();
    assert!(store.list("").await.unwrap().len() > before.len());
    execution.join(child, json!(null)).await.unwrap();
    assert_eq!(store.list("").await.unwrap(), before);
}

#[tokio::test]
async fn a_thread_can_be_deleted_and_others_stay() {
    let store = Arc::new(MemoryStore::new());
    let noting = |id: &str, scope| {
        layer::<u32>(LayerSpec::new(id, Slot(1), scope))
            .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
    };
    let layers = (noting("thread", MemoryScope::Thread).build(), noting("user", MemoryScope::Resource).build());
    let engine = engine(memory(layers)).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    for thread in ["a", "a/b", "ab"] {
        let mut execution = engine.execution(thread).resource("ann").start().await.unwrap();
        execution.turn("hello").await.unwrap();
        execution.complete().await.unwrap();
    }
    assert!(engine.delete_thread("a").await.unwrap());
    assert!(!engine.delete_thread("a").await.unwrap());
    let left = store.list("").await.unwrap();
    assert!(!left.iter().any(|key| key.contains("/a/")), "{left:?}");
    assert!(left.contains(&"layers/user/resource/ann/state".to_owned()));
    for (thread, items) in [("a", 0), ("a/b", 2), ("ab", 2)] {
        assert_eq!(engine.execution(thread).start().await.unwrap().log().len(), items, "{thread}");
    }
}

/// One layer of the user, one of the project, one of a project that the execution does not have.
#[tokio::test]
async fn layers_belong_to_resources_of_several_kinds() {
    let counting = |id: &str, kind: ResourceKind| {
        let spec = LayerSpec::new(id, Slot(1), MemoryScope::Resource).with_resource(kind);
        let diary = Diary::new();
        let noted = diary.clone();
        let layer = layer::<u32>(spec)
            .init(move |params| {
                noted.note(params.scope_key.clone());
                async move { Ok(InitResult { state: params.stored.unwrap_or_default() }) }
            })
            .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) });
        (layer.build(), diary)
    };
    let (user, of_user) = counting("of-user", ResourceKind::user());
    let (project, of_project) = counting("of-project", ResourceKind::project());
    let (team, of_team) = counting("of-team", "team".into());
    let store = Arc::new(MemoryStore::new());
    let engine =
        engine(memory((user, project, team))).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    for (thread, user, project) in [("one", "ann", "site"), ("two", "bob", "site")] {
        let builder = engine.execution(thread).resource(user).resource_of(ResourceKind::project(), project);
        let mut execution = builder.start().await.unwrap();
        execution.turn("hello").await.unwrap();
        let mut child = execution.spawn().await.unwrap();
        child.turn("hello").await.unwrap();
        execution.join(child, json!(null)).await.unwrap();
        execution.complete().await.unwrap();
    }
    assert_eq!(of_user.take(), ["resource:ann", "resource:ann", "resource:bob", "resource:bob"]);
    assert_eq!(of_project.take(), ["resource.project:site"; 4], "one project for both users");
    assert_eq!(of_team.take()[..3], ["thread:one", "thread:one/id-1", "thread:two"], "none: the thread");
    let layers = store.list("layers/").await.unwrap();
    assert_eq!(
        layers,
        [
            "layers/of-project/resource.project/site/state",
            "layers/of-team/thread/one/state",
            "layers/of-team/thread/two/state",
            "layers/of-user/resource/ann/state",
            "layers/of-user/resource/bob/state"
        ]
    );
}

/// No combination of kind and id makes two scopes collide.
#[tokio::test]
async fn scopes_of_odd_names_do_not_collide() {
    let mut seen = std::collections::BTreeSet::new();
    for (kind, id) in
        [("user", "project:x"), ("project", "x"), ("a:b", "c"), ("a", "b:c"), ("a.b", "c"), ("a%3Ab", "c")]
    {
        let store = Arc::new(MemoryStore::new());
        let diary = Diary::new();
        let noted = diary.clone();
        let odd = layer::<u32>(LayerSpec::new("odd", Slot(1), MemoryScope::Resource).with_resource(kind))
            .init(move |params| {
                noted.note(params.scope_key.clone());
                async { Ok(InitResult { state: 1 }) }
            })
            .build();
        let engine = engine(memory((odd,))).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
        let execution = engine.execution("thread").resource_of(kind, id).start().await.unwrap();
        execution.complete().await.unwrap();
        assert!(seen.insert(diary.take().remove(0)), "{kind} {id}");
        assert!(seen.insert(store.list("layers/").await.unwrap().remove(0)), "{kind} {id}");
    }
}
