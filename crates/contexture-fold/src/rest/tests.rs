//! Damaged bytes whose checksum is right: anyone who can write the store can also write the checksum.

use serde_json::json;

use super::*;
use crate::{Meter, Policy};
use contexture_core::tokens::Estimate;

fn new_folder() -> Folder {
    Folder::new(Policy::new(900), Meter::of_texts(Arc::new(Estimate)))
}

/// A folder that knows, shows and shortened a bit of everything, and its log.
fn played() -> (Folder, Vec<(Arc<Item>, u64)>) {
    let mut folder = new_folder().with_output_tool("show");
    let mut log = Vec::new();
    let mut tell = |items: Vec<Item>| {
        let message: Vec<(Arc<Item>, u64)> = items.into_iter().map(|item| (Arc::new(item), 40)).collect();
        if message[0].0.is_of_model() {
            folder.request();
        }
        log.extend(message.clone());
        folder.push(message);
    };
    tell(vec![Item::user("look at src/b.rs:3 and at c.rs")]);
    for round in 0..12 {
        let (id, path) = (format!("{round}"), ["/app/a.rs", "/app/src/b.rs"][round % 2]);
        let text: String = (1..60).map(|n| format!("{n}\tlet value_{n} = {n};\n")).collect();
        let (name, arguments, text) = match round % 4 {
            0 | 1 => ("Read", json!({"file_path": path}), text),
            2 => ("Edit", json!({"file_path": path, "old_string": "value_7", "new_string": "x"}), "done".into()),
            _ => ("Bash", json!({"command": "cd /app && cargo test"}), "error: /app/a.rs:7: no\n".repeat(300)),
        };
        tell(vec![Item::call(&id, name, arguments.to_string())]);
        tell(vec![Item::output(&id, text)]);
    }
    (folder, log)
}

#[test]
fn bytes_that_pass_for_whole_are_read_or_refused() {
    let (folder, log) = played();
    let whole = folder.rest(&log).unwrap();
    assert!(folder.state.shown.is_folded() && whole.bytes.len() > 1_000);
    let mut read = 0;
    for at in HEAD_BYTES..whole.bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = whole.bytes.clone();
            bytes[at] ^= flip;
            let check = check(&bytes[HEAD_BYTES..]);
            bytes[MAGIC.len() + 1..HEAD_BYTES].copy_from_slice(&check);
            let woken = Rest::from_bytes(bytes).and_then(|rest| new_folder().wake(&rest, &log));
            read += usize::from(woken.is_ok());
        }
    }
    // Numbers that nothing else depends on are accepted as they are.
    assert!(read > 100, "only {read} were read");
}

#[test]
fn what_is_written_does_not_change_within_a_version() {
    let mut folder = new_folder();
    let call = Item::call("1", "Write", json!({"file_path": "/a", "content": "one line of text\nx\n"}).to_string());
    let log = [Item::user("write it"), call, Item::output("1", "done")].map(|item| (Arc::new(item), 7));
    for message in &log {
        folder.push([message.clone()]);
    }
    folder.request();
    let rest = folder.rest(&log).unwrap();
    let hash = blake3::hash(rest.as_bytes()).to_hex();
    assert_eq!(&hash[..16], "d17d4d8a9b8bbc46", "if this is meant, it is another version");
}

#[test]
fn bytes_that_pass_for_whole_and_end_early_are_refused() {
    let (folder, log) = played();
    let whole = folder.rest(&log).unwrap();
    for end in HEAD_BYTES..whole.bytes.len() {
        let mut bytes = whole.bytes[..end].to_vec();
        let check = check(&bytes[HEAD_BYTES..]);
        bytes[MAGIC.len() + 1..HEAD_BYTES].copy_from_slice(&check);
        let woken = Rest::from_bytes(bytes).and_then(|rest| new_folder().wake(&rest, &log));
        assert_eq!(woken.err(), Some(RestError::Damaged), "cut at {end}");
    }
}
