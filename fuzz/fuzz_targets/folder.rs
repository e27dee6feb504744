//! Any conversation: windows keep to their budget, and an answer stands behind its call.

#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use arbitrary::Arbitrary;
use contexture::fold::{FoldDecision, Folder, Policy, Slot};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::{Message, Role, ToolCall};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

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

fn said(role: Role, text: String) -> Message {
    Message::said(role, text)
}

fn call(id: u8, tool: u8, file: u8, text: &str) -> ToolCall {
    let path = format!("src/{}.rs", file % 4);
    let arguments = match tool % 3 {
        0 => json!({ "file_path": path, "old_string": text, "new_string": "new", "content": text }),
        1 => json!({ "command": format!("cat {path} # {text}") }),
        _ => json!(text),
    };
    ToolCall { id: format!("c{}", id % 8), name: TOOLS[usize::from(tool) % TOOLS.len()].into(), arguments }
}

fn message(event: &Event) -> Message {
    match event {
        Event::Say { is_system, text, times } => {
            said(if *is_system { Role::System } else { Role::User }, text.repeat(usize::from(*times)))
        }
        Event::Call { id, tool, file, text } => {
            Message { tool_calls: vec![call(*id, *tool, *file, text)], ..said(Role::Assistant, String::new()) }
        }
        Event::Several { first, count, tool } => {
            let calls = (0..count % 8).map(|n| call(first.wrapping_add(n), *tool, n, "x"));
            Message { tool_calls: calls.collect(), ..said(Role::Assistant, String::new()) }
        }
        Event::Answer { id, text, times } => answer(*id, text.repeat(usize::from(*times) * 4)),
        Event::Lines { id, file, first, count } => {
            let lines = (*first..first.saturating_add(*count)).map(|n| format!("{n}\tlet line_{file}_{n} = {n};\n"));
            answer(*id, lines.collect())
        }
        Event::Talk(text) => said(Role::Assistant, text.clone()),
    }
}

fn answer(id: u8, text: String) -> Message {
    Message { tool_call_id: Some(format!("c{}", id % 8)), ..said(Role::Tool, text) }
}

/// Calls whose answer stood behind them in the log, so that it must in every window.
fn check_pairs(folder: &Folder, messages: &[Arc<Message>], window: &[Slot]) {
    let mut called = HashSet::new();
    let mut recorded = HashSet::new();
    for slot in window {
        let shown = folder.render_slot(slot);
        called.extend(shown.tool_calls.iter().map(|call| call.id.clone()));
        let Some(at) = slot.position() else { continue };
        let Some(id) = shown.tool_call_id else { continue };
        recorded.clear();
        recorded.extend(messages[..at].iter().flat_map(|message| &message.tool_calls).map(|call| &call.id));
        assert!(!recorded.contains(&id) || called.contains(&id), "{id} is answered and its call is gone");
    }
}

fuzz_target!(|input: (u16, Vec<Event>)| {
    let budget = 1_000 + u64::from(input.0);
    let mut folder = Folder::new(Policy::new(budget), Arc::new(Estimate));
    let mut windows: Vec<Vec<Slot>> = Vec::new();
    let messages: Vec<Arc<Message>> = input.1.iter().take(200).map(|event| Arc::new(message(event))).collect();
    for message in &messages {
        if message.role == Role::Assistant {
            let window = folder.request().to_vec();
            let texts: u64 = folder.render(&window).map(|message| Estimate.count(&message.text)).sum();
            assert!(folder.tokens() <= budget && texts <= budget, "{} of {budget} tokens", folder.tokens());
            check_pairs(&folder, &messages, &window);
            windows.push(window);
        }
        folder.push(message.clone());
    }
    let saved = serde_json::to_string(folder.decisions()).expect("decisions are JSON");
    let decisions: Vec<FoldDecision> = serde_json::from_str(&saved).expect("and are read again");
    let mut again = Folder::new(Policy::new(budget), Arc::new(Estimate)).replaying(decisions);
    let mut replayed = windows.iter();
    for message in &messages {
        if message.role == Role::Assistant {
            assert_eq!(again.request(), replayed.next().expect("as many requests"), "a restart gives another window");
        }
        again.push(message.clone());
    }
});
