//! Stored decisions, damaged in any way: each is read or refused, and what was read is stored the same.

#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use contexture::Item;
use contexture::fold::{FoldDecision, Folder, Meter, Policy, Replay};
use contexture::item::{FunctionCall, Role};
use contexture::tokens::Estimate;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// A change of a stored decision.
#[derive(Arbitrary, Debug)]
enum Damage {
    /// The value at a place becomes another.
    Set(Vec<u8>, Leaf),
    /// The value at a place is gone.
    Remove(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
enum Leaf {
    Null,
    Flag(bool),
    Number(i64),
    Text(String),
    List,
    Map,
}

impl Leaf {
    fn value(&self) -> Value {
        match self {
            Leaf::Null => Value::Null,
            Leaf::Flag(flag) => json!(flag),
            Leaf::Number(number) => json!(number),
            Leaf::Text(text) => json!(text),
            Leaf::List => json!([]),
            Leaf::Map => json!({}),
        }
    }
}

/// The value that a path of choices leads to.
fn place<'a>(mut value: &'a mut Value, path: &[u8]) -> &'a mut Value {
    for step in path.iter().take(8) {
        let is_leaf = match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => true,
        };
        if is_leaf {
            break;
        }
        value = match value {
            Value::Array(list) => {
                let at = usize::from(*step) % list.len();
                &mut list[at]
            }
            Value::Object(map) => {
                let at = usize::from(*step) % map.len();
                map.values_mut().nth(at).expect("it is within")
            }
            _ => unreachable!("leaves are left before"),
        };
    }
    value
}

fn damage(stored: &mut Value, damage: &Damage) {
    match damage {
        Damage::Set(path, leaf) => *place(stored, path) = leaf.value(),
        Damage::Remove(path) => {
            let Some((last, above)) = path.split_last() else { return };
            match place(stored, above) {
                Value::Array(list) if !list.is_empty() => drop(list.remove(usize::from(*last) % list.len())),
                Value::Object(map) if !map.is_empty() => {
                    let at = usize::from(*last) % map.len();
                    let name = map.keys().nth(at).expect("it is within").clone();
                    map.remove(&name);
                }
                _ => {}
            }
        }
    }
}

fn log() -> Vec<(Arc<Item>, u64)> {
    let mut items = vec![Item::message(Role::User, "Please go on.")];
    for n in 0..12 {
        let id = format!("c{n}");
        let path = json!({ "file_path": format!("/p/{}.rs", n % 3) });
        let lines: String = (1..60).map(|line| format!("{line:6}→let line_{line} = {n};\n")).collect();
        items.push(Item::FunctionCall(FunctionCall::new(&id, "Read", path.to_string())));
        items.push(Item::output(&id, lines));
    }
    items.into_iter().map(|item| (Arc::new(item), 300)).collect()
}

fn folder() -> Folder {
    Folder::new(Policy::new(2_000), Meter::of_texts(Arc::new(Estimate)))
}

/// A log, and what is decided about it, as it is stored.
static DECIDED: LazyLock<(Vec<(Arc<Item>, u64)>, Vec<Value>)> = LazyLock::new(|| {
    let log = log();
    let mut live = folder();
    for item in &log {
        live.push([item.clone()]);
        live.request();
    }
    let stored: Vec<Value> = live.decisions().iter().map(FoldDecision::to_stored).collect();
    assert!(!stored.is_empty(), "something was decided");
    (log, stored)
});

fuzz_target!(|input: (String, Vec<(u8, Damage)>)| {
    let (log, stored) = &*DECIDED;
    let mut stored = stored.clone();
    for (which, change) in input.1.iter().take(8) {
        let at = usize::from(*which) % stored.len();
        damage(&mut stored[at], change);
    }
    stored.extend(serde_json::from_str::<Value>(&input.0));
    let read: Vec<FoldDecision> = stored.iter().filter_map(|stored| FoldDecision::from_stored(stored).ok()).collect();
    for decision in &read {
        let again = FoldDecision::from_stored(&decision.to_stored()).expect("what was read can be stored");
        assert_eq!(&again, decision);
    }
    let mut replay = Replay::new(folder(), read);
    for item in log {
        replay.push([item.clone()]);
        replay.request();
    }
});
