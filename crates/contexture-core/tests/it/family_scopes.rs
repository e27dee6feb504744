//! Children that run at the same time, in every scope: what each of them learns is where it belongs, and nothing is
//! lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_core::engine::Engine;
use contexture_core::layer::*;
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{CountingIds, ManualClock, Recorder, ScriptedModel};
use contexture_core::{Execution, Slot, memory};
use futures_util::future::join_all;
use serde_json::{Value, json};

type Words = BTreeSet<String>;

/// How a child's layer begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    /// As in any execution.
    Init,
    /// With nothing.
    Empty,
    /// With what the parent knows.
    Copy,
    /// `on_spawn` fails.
    Broken,
}

/// A set of words; sets unite.
struct Lexicon {
    scope: MemoryScope,
    start: Start,
    returns: bool,
}

impl MemoryLayer for Lexicon {
    type State = Words;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("lexicon", Slot(1), self.scope)
    }

    fn hooks(&self) -> HookSet {
        let mut hooks = HookSet::NONE;
        if self.start != Start::Init {
            hooks = hooks.with(Hook::OnSpawn);
        }
        if self.returns { hooks.with(Hook::OnReturn) } else { hooks }
    }

    fn provides(&self) -> LayerProvides<Words> {
        let add = layer_fn("Adds a word.", |word: String, words: Arc<Words>, _| async move {
            tokio::task::yield_now().await;
            let mut words = (*words).clone();
            words.insert(word);
            Ok(FnResult::new(()).with_state(words))
        });
        LayerProvides::new().function("add", add)
    }

    async fn on_spawn(&self, params: SpawnParams<Words>) -> HookResult<SpawnResult<Words>> {
        match self.start {
            Start::Init | Start::Empty => Ok(SpawnResult::state(Words::new())),
            Start::Copy => Ok(SpawnResult::state((*params.parent_state).clone())),
            Start::Broken => Err("no idea".into()),
        }
    }

    async fn on_return(&self, params: ReturnParams<Words>) -> HookResult<ReturnResult<Words>> {
        Ok(ReturnResult::state(&*params.parent_state | &*params.child_state))
    }

    fn merge(&self, ours: &Words, theirs: &Words) -> Option<Words> {
        Some(ours | theirs)
    }
}

async fn add(execution: &Execution<(Lexicon,)>, word: impl Into<String>) {
    execution.memory().call_json("lexicon/add", json!(word.into())).await.unwrap();
}

fn known(execution: &Execution<(Lexicon,)>) -> Words {
    execution.memory().state::<Lexicon, _>()
}

/// A child that takes turns, has a child of its own, and takes it back.
async fn work(mut child: Execution<(Lexicon,)>, number: usize) -> Execution<(Lexicon,)> {
    add(&child, format!("child {number}")).await;
    child.turn("go").await.unwrap();
    let mut grandchild = child.spawn().await.unwrap();
    grandchild.turn("go").await.unwrap();
    add(&grandchild, format!("grandchild {number}")).await;
    child.join(grandchild, json!(null)).await.unwrap();
    add(&child, format!("child {number} again")).await;
    child.turn("go on").await.unwrap();
    child
}

/// The words of the only record of a layer that the store has.
async fn stored(store: &MemoryStore) -> Option<Words> {
    let keys = store.list("layers/").await.unwrap();
    assert!(keys.len() <= 1, "{keys:?}");
    let record = store.get(keys.first()?).await.unwrap().unwrap();
    let record: Value = serde_json::from_slice(&record.value).unwrap();
    Some(serde_json::from_value(record["state"].clone()).unwrap())
}

async fn check(scope: MemoryScope, start: Start, returns: bool) {
    let what = format!("{scope:?}, {start:?}, returns: {returns}");
    let (store, recorder) = (Arc::new(MemoryStore::new()), Recorder::new());
    let lexicon = memory((Lexicon { scope, start, returns },));
    let builder = Engine::builder(lexicon, Arc::new(ManualClock::hurried()), Arc::new(CountingIds::new()));
    let engine = builder.model(ScriptedModel::new()).store(store.clone()).observer(recorder.clone()).build().unwrap();
    let mut parent = engine.execution("thread").resource("ann").start().await.unwrap();
    parent.turn("hello").await.unwrap();
    // Not flushed: the children see it all the same.
    add(&parent, "red").await;
    let mut children = Vec::new();
    for _ in 0..4 {
        let child = parent.spawn().await.unwrap();
        let shared = matches!(scope, MemoryScope::Resource | MemoryScope::Global);
        let sees_red = start == Start::Copy || (start == Start::Init && shared);
        assert_eq!(known(&child).contains("red"), sees_red, "{what}");
        children.push(child);
    }
    let running = join_all(children.into_iter().enumerate().map(|(number, child)| work(child, number)));
    let (children, ()) = tokio::join!(running, add(&parent, "green"));
    let threads = store.list("threads/").await.unwrap();
    for (number, child) in children.into_iter().enumerate() {
        let result = parent.join(child, json!(number)).await.unwrap();
        assert_eq!(result, json!(number));
    }
    assert!(parent.flush().await.is_empty());
    let shared = matches!(scope, MemoryScope::Resource | MemoryScope::Global);
    let mut expected: Words = ["red", "green"].map(str::to_owned).into();
    if returns || shared {
        for number in 0..4 {
            expected.extend([format!("child {number}"), format!("child {number} again")]);
            expected.insert(format!("grandchild {number}"));
        }
    }
    assert_eq!(known(&parent), expected, "{what}");
    let durable = (scope != MemoryScope::Execution).then_some(expected.clone());
    assert_eq!(stored(&store).await, durable, "{what}");
    let left = store.list("threads/").await.unwrap();
    assert!(left.len() < threads.len() && left.iter().all(|key| !key.contains("id-")), "{what}: {left:?}");
    parent.complete().await.unwrap();
    let reopened = engine.execution("thread").resource("ann").start().await.unwrap();
    assert_eq!(known(&reopened), durable.unwrap_or_default(), "{what}");
    let broken = recorder.faults().into_iter().filter(|fault| fault.place != "on_spawn").collect::<Vec<_>>();
    assert_eq!(broken, [], "{what}");
}

#[tokio::test]
async fn children_that_run_at_the_same_time_lose_nothing_in_any_scope() {
    for scope in [MemoryScope::Thread, MemoryScope::Resource, MemoryScope::Global, MemoryScope::Execution] {
        for start in [Start::Init, Start::Empty, Start::Copy, Start::Broken] {
            for returns in [false, true] {
                check(scope, start, returns).await;
            }
        }
    }
}
