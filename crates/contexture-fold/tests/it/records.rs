//! Records of conversations, and what a folder shows of them: what all tests of folding share.

use std::sync::Arc;

use contexture_core::Item;
use contexture_core::item::{FunctionCall, Role};
use contexture_core::tokens::{Estimate, TokenCounter};
use contexture_fold::{FoldDecision, Folder, Meter, Policy, Replay, ShownItem};
use contexture_wire::transcript::Record;
use serde_json::Value;

/// The items of one message, each with its tokens.
pub(crate) type Counted = Vec<(Arc<Item>, u64)>;

/// One item of a window without its tokens: its position, whether it is the logged one, and the item itself.
pub(crate) type Sent = (Option<usize>, bool, Arc<Item>);

pub(crate) fn said(role: Role, text: impl Into<String>) -> Record {
    Item::message(role, text).into()
}

/// A call; arguments that are a text are written as they are.
pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> FunctionCall {
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    FunctionCall::new(id, name, arguments)
}

/// A response of two items: a text, then a call.
pub(crate) fn asks(id: &str, name: &str, arguments: Value) -> Record {
    Record::response("Let me see.", [call(id, name, &arguments)])
}

pub(crate) fn answers(id: &str, text: impl Into<String>) -> Record {
    Item::output(id, text).into()
}

/// A folder that counts texts alone, as recordings are counted.
pub(crate) fn folder(budget: u64) -> Folder {
    folder_of(Policy::new(budget))
}

pub(crate) fn folder_of(policy: Policy) -> Folder {
    Folder::new(policy, Meter::of_texts(Arc::new(Estimate)))
}

/// The items of a record with their tokens, without what providers add around them.
pub(crate) fn counted(counter: &dyn TokenCounter, record: &Record) -> Counted {
    let tokens = |item: &Item| match item {
        // A name, and the blanks between arguments on the wire.
        Item::FunctionCall(call) => match call.parsed_arguments() {
            Value::String(_) => 1 + counter.count(&call.arguments),
            _ => 5 + counter.count(&call.arguments),
        },
        item => counter.count(&text(item)),
    };
    record.items().iter().map(|item| (Arc::new(item.clone()), tokens(item))).collect()
}

pub(crate) fn push(folder: &mut Folder, record: &Record) {
    folder.push(counted(&Estimate, record));
}

/// The windows of a conversation, one before every response, and the folder after its end.
pub(crate) fn windows(folder: Folder, records: &[Record]) -> (Vec<Vec<ShownItem>>, Folder) {
    windows_by(&Estimate, folder, records)
}

/// The same with another counter.
pub(crate) fn windows_by(
    counter: &dyn TokenCounter,
    mut folder: Folder,
    records: &[Record],
) -> (Vec<Vec<ShownItem>>, Folder) {
    let mut windows = Vec::new();
    for record in records {
        if record.is_response() {
            windows.push(folder.request().to_vec());
        }
        folder.push(counted(counter, record));
    }
    (windows, folder)
}

/// The folder that goes on after a conversation that was gone through again.
pub(crate) fn resume(folder: Folder, messages: &[Counted], decisions: Vec<FoldDecision>) -> Folder {
    let mut replay = Replay::new(folder, decisions);
    for message in messages {
        if message[0].0.is_of_model() {
            replay.request();
        }
        replay.push(message.iter().cloned());
    }
    replay.go_on()
}

/// How many folds there are among decisions.
pub(crate) fn folds(decisions: &[FoldDecision]) -> usize {
    decisions.iter().filter(|decision| matches!(decision, FoldDecision::Fold(_))).count()
}

/// Decisions as they are read again after they were stored.
pub(crate) fn stored<'a>(decisions: impl IntoIterator<Item = &'a FoldDecision>) -> Vec<FoldDecision> {
    let stored: Vec<Value> = decisions.into_iter().map(FoldDecision::to_stored).collect();
    let stored = serde_json::to_string(&stored).unwrap();
    let read: Vec<Value> = serde_json::from_str(&stored).unwrap();
    read.iter().map(|decision| FoldDecision::from_stored(decision).unwrap()).collect()
}

/// What can be compared of a window.
pub(crate) fn sent(window: &[ShownItem]) -> Vec<Sent> {
    window.iter().map(|shown| (shown.position, shown.is_logged, shown.item.clone())).collect()
}

/// The items of a conversation, in order: what positions count.
pub(crate) fn items(records: &[Record]) -> Vec<&Item> {
    records.iter().flat_map(Record::items).collect()
}

/// What was said, or what the tool returned.
pub(crate) fn text(item: &Item) -> String {
    match item {
        Item::Message(message) => message.text(),
        Item::FunctionCallOutput(output) => output.output.clone(),
        Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => String::new(),
    }
}

/// The text of an item that is shown with another one than it has in the log.
pub(crate) fn shortened(shown: &ShownItem) -> Option<(usize, String)> {
    shown.position.filter(|_| !shown.is_logged).map(|at| (at, text(&shown.item)))
}

/// The text of an item that stands for others.
pub(crate) fn made(shown: &ShownItem) -> Option<String> {
    shown.position.is_none().then(|| text(&shown.item))
}

/// Whether a text is said in a window.
pub(crate) fn says(window: &[ShownItem], part: &str) -> bool {
    window.iter().any(|shown| text(&shown.item).contains(part))
}

/// The tokens of what a window says and calls.
pub(crate) fn tokens_by(counter: &dyn TokenCounter, window: &[ShownItem]) -> u64 {
    let arguments = |item: &Item| item.as_call().map_or(0, |call| counter.count(&call.arguments));
    window.iter().map(|shown| counter.count(&text(&shown.item)) + arguments(&shown.item)).sum()
}

pub(crate) fn tokens(window: &[ShownItem]) -> u64 {
    tokens_by(&Estimate, window)
}

/// All texts in a call's arguments.
pub(crate) fn texts(arguments: &Value) -> Vec<&str> {
    match arguments {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Everything that a window says, calls and all.
pub(crate) fn all_text(window: &[ShownItem]) -> String {
    let said = |shown: &ShownItem| {
        let arguments = shown.item.as_call().map(|call| call.parsed_arguments());
        let calls = arguments.iter().flat_map(texts).collect::<Vec<_>>().join("\n");
        format!("{}\n{calls}\n", text(&shown.item))
    };
    window.iter().map(said).collect()
}

/// Whether a line stands for lines that were left out.
pub(crate) fn is_marker(line: &str) -> bool {
    line.starts_with("[… line") && line.ends_with(" …]")
}
