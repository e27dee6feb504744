//! Any conversation: windows keep to their budget, and an answer stands behind its call.

#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use arbitrary::Arbitrary;
use contexture::Item;
use contexture::fold::{FoldDecision, Folder, Meter, Policy, Replay, ShownItem};
use contexture::item::{FunctionCall, Role};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::Record;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

#[derive(Arbitrary, Debug)]
enum Event {
    Say {
        is_system: bool,
        text: String,
        times: u8,
    },
    Call {
        id: u8,
        tool: u8,
        file: u8,
        text: String,
    },
    Several {
        first: u8,
        count: u8,
        tool: u8,
    },
    Answer {
        id: u8,
        text: String,
        times: u8,
    },
    /// The lines of a file, numbered.
    Lines {
        id: u8,
        file: u8,
        first: u8,
        count: u8,
    },
    Talk(String),
}

const TOOLS: [&str; 8] = ["Read", "Edit", "Write", "Bash", "apply_patch", "Grep", "str_replace_editor", "unknown"];

fn call(id: u8, tool: u8, file: u8, text: &str) -> FunctionCall {
    let path = format!("src/{}.rs", file % 4);
    let arguments = match tool % 3 {
        0 => json!({ "file_path": path, "old_string": text, "new_string": "new", "content": text }).to_string(),
        1 => json!({ "command": format!("cat {path} # {text}") }).to_string(),
        _ => text.to_owned(),
    };
    FunctionCall::new(&format!("c{}", id % 8), TOOLS[usize::from(tool) % TOOLS.len()], arguments)
}

fn record(event: &Event) -> Record {
    match event {
        Event::Say { is_system, text, times } => {
            let role = if *is_system { Role::System } else { Role::User };
            Item::message(role, text.repeat(usize::from(*times))).into()
        }
        Event::Call { id, tool, file, text } => Record::response("", [call(*id, *tool, *file, text)]),
        Event::Several { first, count, tool } => {
            Record::response("", (0..count % 8).map(|n| call(first.wrapping_add(n), *tool, n, "x")))
        }
        Event::Answer { id, text, times } => answer(*id, text.repeat(usize::from(*times) * 4)),
        Event::Lines { id, file, first, count } => {
            let lines = (*first..first.saturating_add(*count)).map(|n| format!("{n}\tlet line_{file}_{n} = {n};\n"));
            answer(*id, lines.collect())
        }
        Event::Talk(text) => Item::assistant(text.clone()).into(),
    }
}

fn answer(id: u8, text: String) -> Record {
    Item::output(&format!("c{}", id % 8), text).into()
}

/// What was said, or what the tool returned.
fn text(item: &Item) -> &str {
    match item {
        Item::Message(message) => message.content[0].as_text().unwrap_or_default(),
        Item::FunctionCallOutput(output) => &output.output,
        Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => "",
    }
}

/// The items of a record with their tokens, as recordings are counted.
fn counted(record: &Record) -> Vec<(Arc<Item>, u64)> {
    let tokens = |item: &Item| match item.as_call() {
        Some(call) if matches!(call.parsed_arguments(), Value::String(_)) => 1 + Estimate.count(&call.arguments),
        Some(call) => 5 + Estimate.count(&call.arguments),
        None => Estimate.count(text(item)),
    };
    record.items().iter().map(|item| (Arc::new(item.clone()), tokens(item))).collect()
}

/// Calls whose answer stood behind them in the log, so that it must in every window.
fn check_pairs(log: &[&Item], window: &[ShownItem]) {
    let mut called = HashSet::new();
    for shown in window {
        called.extend(shown.item.as_call().map(|call| &call.call_id));
        let (Some(at), Some(output)) = (shown.position, shown.item.as_output()) else { continue };
        let id = &output.call_id;
        let is_recorded = log[..at].iter().filter_map(|item| item.as_call()).any(|call| call.call_id == *id);
        assert!(!is_recorded || called.contains(id), "{id} is answered and its call is gone");
    }
}

/// What can be compared of a window.
fn sent(window: &[ShownItem]) -> Vec<(Option<usize>, bool, Arc<Item>)> {
    window.iter().map(|shown| (shown.position, shown.is_logged, shown.item.clone())).collect()
}

fn folder(budget: u64) -> Folder {
    Folder::new(Policy::new(budget), Meter::of_texts(Arc::new(Estimate)))
}

fuzz_target!(|input: (u16, Vec<Event>)| {
    let budget = 1_000 + u64::from(input.0);
    let mut live = folder(budget);
    let mut windows = Vec::new();
    let records: Vec<Record> = input.1.iter().take(200).map(record).collect();
    let log: Vec<&Item> = records.iter().flat_map(Record::items).collect();
    for record in &records {
        if record.is_response() {
            let window = live.request().to_vec();
            let texts: u64 = window.iter().map(|shown| Estimate.count(text(&shown.item))).sum();
            assert!(live.tokens() <= budget && texts <= budget, "{} of {budget} tokens", live.tokens());
            check_pairs(&log, &window);
            windows.push(sent(&window));
        }
        live.push(counted(record));
    }
    let stored = live.decisions().iter().map(FoldDecision::to_stored);
    let saved = serde_json::to_string(&stored.collect::<Vec<_>>()).expect("decisions are JSON");
    let saved: Vec<Value> = serde_json::from_str(&saved).expect("and are read again");
    let decisions = saved.iter().map(|saved| FoldDecision::from_stored(saved).expect("as they were stored"));
    let mut again = Replay::new(folder(budget), decisions.collect());
    let mut replayed = windows.iter();
    for record in &records {
        if record.is_response() {
            let window = replayed.next().expect("as many requests");
            assert_eq!(&sent(again.request()), window, "a restart gives another window");
        }
        again.push(counted(record));
    }
});
