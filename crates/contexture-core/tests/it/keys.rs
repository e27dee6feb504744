//! Ids of any shape: keys of scopes and layers never collide, and a layer finds its own keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_core::engine::Engine;
use contexture_core::layer::*;
use contexture_core::store::{Key, MemoryStore, ScopedStorage, StorageAdapter, escape_segment, layer_prefix};
use contexture_core::testing::{ScriptedModel, engine};
use contexture_core::{LayerSpec, MemoryScope, Slot, memory};
use proptest::collection::vec;
use proptest::prelude::*;

/// Ids that could collide in careless keys.
fn odd_names() -> Vec<String> {
    let short =
        ["", "%", "%25", "/", "//", "a", "A", "a/b", "a%2Fb", "a%2fb", "..", ".", "x", "x/thread", "x/thread/y"];
    let odd =
        ["thread", "resource", "global", "all", "state", "head", "log", "\0", "a\0", "\u{1F600}", "é", "e\u{301}"];
    let long = ["/".repeat(10_000), "\u{1F600}".repeat(2_500), "n".repeat(10_000), format!("{}!", "n".repeat(10_000))];
    short.iter().chain(&odd).map(|name| (*name).to_owned()).chain(long).collect()
}

fn any_name() -> impl Strategy<Value = String> {
    let piece =
        proptest::sample::select(vec!["", "/", "%", "%2F", "a", "b", "thread", "\0", "é", "\u{1F600}", ".", " "]);
    let pieces = vec(piece, 0..4).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces, ".*"]
}

fn any_place() -> impl Strategy<Value = [String; 4]> {
    [any_name(), any_name(), any_name(), any_name()]
}

fn full_key([layer, kind, id, key]: &[String; 4]) -> String {
    format!("{}{}", layer_prefix(layer, kind, id), escape_segment(key))
}

proptest! {
    #[test]
    fn different_places_have_different_keys(one in any_place(), other in any_place()) {
        prop_assert_eq!(one == other, full_key(&one) == full_key(&other));
        let nested = full_key(&one).starts_with(&layer_prefix(&other[0], &other[1], &other[2]));
        prop_assert_eq!(nested, one[..3] == other[..3]);
    }

    #[test]
    fn keys_are_made_of_as_many_segments_as_names(place in any_place()) {
        let key = full_key(&place);
        prop_assert_eq!(key.split('/').count(), 5);
        prop_assert!(key.split('/').all(|segment| !segment.is_empty()));
        let thread = Key::new("threads").then(&place[0]).then("head").into_string();
        prop_assert!(!thread.starts_with("layers/"));
    }

    #[test]
    fn a_layer_lists_its_own_keys(keys in proptest::collection::btree_set(any_name(), 0..6), others in any_place()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
            let own = ScopedStorage::new(store.clone(), layer_prefix("own", "thread", "t"));
            let other = ScopedStorage::new(store.clone(), layer_prefix(&others[0], &others[1], &others[2]));
            if others[..3] != ["own", "thread", "t"] {
                other.set(&others[3], &0).await.expect("a store in memory");
            }
            for key in &keys {
                own.set(key, key).await.expect("a store in memory");
            }
            let listed = own.list("").await.expect("a store in memory");
            prop_assert_eq!(&listed.iter().cloned().collect::<BTreeSet<_>>(), &keys);
            prop_assert_eq!(listed.len(), keys.len());
            for key in &listed {
                prop_assert_eq!(own.get::<String>(key).await.expect("what was set"), Some(key.clone()));
            }
            Ok(())
        })?;
    }
}

/// A layer that stores user messages.
fn listener(id: &str, scope: MemoryScope) -> ClosureLayer<Vec<String>> {
    layer::<Vec<String>>(LayerSpec::new(id, Slot::ENTITY, scope))
        .store(|params: StoreParams<Vec<String>>| async move {
            let mut heard = (*params.state).clone();
            let user = params.log.newest_user().and_then(|position| params.log.get(position));
            heard.extend(user.and_then(|entry| Some(entry.item.as_message()?.text())));
            Ok(StoreResult::set(heard))
        })
        .build()
}

type Two = (ClosureLayer<Vec<String>>, ClosureLayer<Vec<String>>);

fn two_layers(first: &str, second: &str, scope: MemoryScope, store: &Arc<MemoryStore>) -> Engine<Two> {
    let layers = memory((listener(first, scope), listener(second, scope)));
    engine(layers).model(ScriptedModel::new()).store(store.clone()).build().expect("a good engine")
}

/// The states in a store, each as the messages it has.
async fn heard(store: &MemoryStore) -> Vec<String> {
    let mut heard = Vec::new();
    for key in store.list("layers/").await.unwrap() {
        let record = store.get(&key).await.unwrap().unwrap();
        heard.push(String::from_utf8(record.value).unwrap());
    }
    heard.sort();
    heard
}

#[tokio::test]
async fn threads_of_any_name_keep_their_own_states_and_logs() {
    let store = Arc::new(MemoryStore::new());
    let names = odd_names();
    for (number, name) in names.iter().enumerate() {
        let engine = two_layers("x", "x/thread", MemoryScope::Thread, &store);
        let mut execution = engine.execution(name).start().await.unwrap();
        execution.turn(format!("hello {number}")).await.unwrap();
        execution.complete().await.unwrap();
    }
    let mut expected: Vec<String> =
        (0..names.len()).flat_map(|n| vec![format!(r#"{{"format":1,"state":["hello {n}"]}}"#); 2]).collect();
    expected.sort();
    assert_eq!(heard(&store).await, expected);
    for (number, name) in names.iter().enumerate() {
        let execution = two_layers("x", "x/thread", MemoryScope::Thread, &store).execution(name).start().await.unwrap();
        let first = execution.log().iter().next().and_then(|item| Some(item.as_message()?.text()));
        assert_eq!((execution.log().len(), first), (2, Some(format!("hello {number}"))));
    }
}

#[tokio::test]
async fn layers_of_any_name_keep_their_own_states() {
    let names: Vec<String> = odd_names().into_iter().filter(|name| !name.is_empty()).collect();
    let store = Arc::new(MemoryStore::new());
    for pair in names.chunks_exact(2) {
        let engine = two_layers(&pair[0], &pair[1], MemoryScope::Thread, &store);
        let mut execution = engine.execution("thread").start().await.unwrap();
        execution.turn("hello").await.unwrap();
        execution.complete().await.unwrap();
    }
    assert_eq!(heard(&store).await.len(), names.len() / 2 * 2);
}

#[tokio::test]
async fn a_thread_and_a_resource_of_one_name_do_not_collide() {
    let store = Arc::new(MemoryStore::new());
    let engine = two_layers("a", "b", MemoryScope::Resource, &store);
    let mut of_resource = engine.execution("t").resource("same").start().await.unwrap();
    of_resource.turn("to the resource").await.unwrap();
    of_resource.complete().await.unwrap();
    let mut of_thread = engine.execution("same").start().await.unwrap();
    of_thread.turn("to the thread").await.unwrap();
    of_thread.complete().await.unwrap();
    let (resource, thread) =
        (r#"{"format":1,"state":["to the resource"]}"#, r#"{"format":1,"state":["to the thread"]}"#);
    assert_eq!(heard(&store).await, [resource, resource, thread, thread]);
}

#[tokio::test]
async fn a_child_does_not_start_over_what_belongs_to_everyone() {
    let store = Arc::new(MemoryStore::new());
    let engine = two_layers("a", "b", MemoryScope::Global, &store);
    let mut parent = engine.execution("parent").start().await.unwrap();
    parent.turn("one").await.unwrap();
    let mut child = parent.spawn().await.unwrap();
    child.turn("two").await.unwrap();
    parent.join(child, serde_json::Value::Null).await.unwrap();
    assert_eq!(heard(&store).await, [r#"{"format":1,"state":["one","two"]}"#; 2]);
}
