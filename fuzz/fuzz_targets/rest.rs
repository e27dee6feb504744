//! A folder at rest, damaged in any way behind a check that fits: it wakes or is refused, and one that woke goes on.

#![no_main]

use std::sync::{Arc, LazyLock};

use arbitrary::Arbitrary;
use contexture::Item;
use contexture::fold::{Folder, Meter, Policy, Rest};
use contexture::item::{FunctionCall, Role};
use contexture::tokens::Estimate;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

/// Where the check is, and where what it is of begins.
const CHECK: std::ops::Range<usize> = 5..21;

#[derive(Arbitrary, Debug)]
enum Damage {
    Set { at: u16, byte: u8 },
    Add { at: u16, bytes: Vec<u8> },
    Remove { at: u16, count: u8 },
    End { at: u16 },
}

fn folder() -> Folder {
    Folder::new(Policy::new(2_000), Meter::of_texts(Arc::new(Estimate)))
}

fn log() -> Vec<(Arc<Item>, u64)> {
    let mut items = vec![Item::message(Role::User, "Please go on.")];
    for n in 0..10 {
        let id = format!("c{n}");
        let (tool, arguments, text) = match n % 3 {
            0 => ("Bash", json!({ "command": "cd /p && cat 1.rs" }), "let x = 1;\n".repeat(30)),
            1 => ("Write", json!({ "file_path": "/p/1.rs", "content": "a\nb\n" }), "Done.".to_owned()),
            _ => ("Read", json!({ "file_path": "/p/2.rs" }), (1..40).map(|n| format!("{n:6}→line {n}\n")).collect()),
        };
        items.push(Item::FunctionCall(FunctionCall::new(&id, tool, arguments.to_string())));
        items.push(Item::output(&id, text));
    }
    items.into_iter().map(|item| (Arc::new(item), 250)).collect()
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages.iter().take(16) {
        let len = bytes.len();
        let place = |at: &u16| (CHECK.end + usize::from(*at)).min(len);
        match damage {
            Damage::Set { at, byte } => {
                if let Some(old) = bytes.get_mut(CHECK.end + usize::from(*at)) {
                    *old = *byte;
                }
            }
            Damage::Add { at, bytes: more } => drop(bytes.splice(place(at)..place(at), more.iter().copied())),
            Damage::Remove { at, count } => {
                drop(bytes.drain(place(at)..(place(at) + usize::from(*count)).min(len)));
            }
            Damage::End { at } => bytes.truncate(place(at)),
        }
    }
    let check = blake3::hash(&bytes[CHECK.end..]);
    bytes[CHECK].copy_from_slice(&check.as_bytes()[..CHECK.len()]);
    bytes
}

/// A log, and a folder that took it in, at rest.
static RESTING: LazyLock<(Vec<(Arc<Item>, u64)>, Rest)> = LazyLock::new(|| {
    let log = log();
    let mut live = folder();
    for item in &log {
        live.push([item.clone()]);
        live.request();
    }
    let rest = live.rest(&log).expect("its own items");
    (log, rest)
});

fuzz_target!(|damages: Vec<Damage>| {
    let (log, rest) = &*RESTING;
    let bytes = damaged(rest.as_bytes().to_vec(), &damages);
    let Ok(rest) = Rest::from_bytes(bytes) else { return };
    let Ok(mut woken) = folder().wake(&rest, log) else { return };
    woken.request();
    woken.push([(Arc::new(Item::message(Role::User, "more")), 10)]);
    woken.request();
});
