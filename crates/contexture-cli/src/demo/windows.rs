//! The requests of the demo as they were sent: what a fold took away, and what the model still knew.

use std::collections::HashSet;
use std::sync::Arc;

use contexture::fold::Prices;
use contexture::item::{FunctionCallOutput, Item, Role};
use contexture::transcript::{Record, Transcript};
use contexture::wire::{Format, read};
use contexture_measure::judge::{Measures, WindowJudge};
use contexture_measure::policies::{MadeMessage, WindowChange, WindowEntry};
use contexture_measure::recorded::RecordedSession;
use contexture_text::numbers::counted;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Bytes that count as one token.
const TOKEN_BYTES: usize = 4;

/// A request of the demo, as it came and as it was sent.
#[derive(Clone, Copy)]
pub struct DemoRequest<'a> {
    pub came: &'a str,
    pub sent: &'a str,
}

/// Measures requests with the text that was really sent.
pub struct SentWindows<'a> {
    recorded: &'a RecordedSession<'a>,
    judge: WindowJudge<'a>,
    count: usize,
    /// The messages of the last request as they were written, each with the parts that it has.
    last: Vec<(String, usize)>,
    entries: Vec<WindowEntry>,
}

impl<'a> SentWindows<'a> {
    /// Begins before the first request.
    pub fn new(recorded: &'a RecordedSession<'a>, prices: Prices) -> Self {
        let judge = WindowJudge::new(recorded, prices);
        Self { recorded, judge, count: 0, last: Vec::new(), entries: Vec::new() }
    }

    /// Takes the next request.
    pub fn take(&mut self, sent: &str) {
        let Some(before) = self.recorded.steps.get(self.count).copied() else { return };
        self.count += 1;
        let messages = messages(sent);
        let same = self.last.iter().zip(&messages).take_while(|((last, _), message)| last == message.get()).count();
        let same_parts: usize = self.last[..same].iter().map(|(_, parts)| parts).sum();
        let (kept, mut written) = (self.entries[..same_parts].to_vec(), self.last[..same].to_vec());
        let mut entries = kept;
        for message in &messages[same..] {
            let items = items_of(message);
            written.push((message.get().to_owned(), items.len()));
            entries.extend(items.into_iter().map(|item| WindowEntry::Made(made(item))));
        }
        let keep = self.entries.iter().zip(&entries).take_while(|(one, other)| one == other).count();
        self.judge.take(WindowChange { before, keep, added: entries[keep..].to_vec() });
        (self.last, self.entries) = (written, entries);
    }

    /// What was measured.
    pub fn measures(self, budget: u64) -> Measures {
        self.judge.finish(budget as f64)
    }
}

fn made(item: Item) -> Arc<MadeMessage> {
    MadeMessage::new(Record::from_items(vec![item]))
}

#[derive(Deserialize)]
struct RequestBody<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// The messages of a request.
fn messages(body: &str) -> Vec<&RawValue> {
    serde_json::from_str::<RequestBody<'_>>(body).map(|body| body.messages).unwrap_or_default()
}

/// The parts of a message.
fn items_of(message: &RawValue) -> Vec<Item> {
    let units = read(Format::Messages, message, None).unwrap_or_default();
    units.into_iter().map(|unit| unit.item).collect()
}

/// What kind of text a part is, for the table of a fold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Said,
    Told,
    Call,
    Output,
}

/// One line of the table of a fold.
pub struct FoldedLine {
    /// What it counts.
    pub name: &'static str,
    /// How many parts, and their tokens, in the request as it came.
    pub came: (usize, usize),
    /// The same in the request as it was sent.
    pub sent: (usize, usize),
}

/// The parts of a request before and after a fold, by kind. What people and the agent said counts as sent if every line of
/// it was: as a message, or as a quote in the account.
pub fn folded_lines(request: DemoRequest<'_>) -> Vec<FoldedLine> {
    let (came, sent) = (parts_of(request.came), parts_of(request.sent));
    let all: String = sent.iter().filter_map(|item| Some(item.as_message()?.text() + "\n")).collect();
    let sent_lines: HashSet<&str> = all.lines().collect();
    let of_kind = |items: &[Item], kind: PartKind| -> Vec<Item> {
        items.iter().filter(|item| kind_of(item) == kind).cloned().collect()
    };
    let sum = |items: &[Item]| (items.len(), items.iter().map(text_len).sum::<usize>() / TOKEN_BYTES);
    let mut lines = Vec::new();
    for (name, kind) in [("what people said", PartKind::Said), ("what the agent said", PartKind::Told)] {
        let said = of_kind(&came, kind);
        let has_all =
            |item: &Item| text_of(item).is_some_and(|text| text.lines().all(|line| sent_lines.contains(line)));
        let still: Vec<Item> = said.iter().filter(|&item| has_all(item)).cloned().collect();
        lines.push(FoldedLine { name, came: sum(&said), sent: sum(&still) });
    }
    for (name, kind) in [("its calls", PartKind::Call), ("their outputs", PartKind::Output)] {
        lines.push(FoldedLine { name, came: sum(&of_kind(&came, kind)), sent: sum(&of_kind(&sent, kind)) });
    }
    let counted: usize = lines.iter().map(|line| line.sent.1).sum();
    let (count, tokens) = sum(&sent);
    let name = "files, and the rest of the account";
    let written =
        sent.iter().filter_map(text_of).filter(|text| !came.iter().any(|item| text_of(item).as_ref() == Some(text)));
    lines.push(FoldedLine { name, came: (0, 0), sent: (written.count(), tokens.saturating_sub(counted)) });
    lines.push(FoldedLine { name: "all", came: sum(&came), sent: (count, tokens) });
    lines
}

/// One output that a fold has shortened, as it came and as it was sent: the longest of a file that was read.
pub fn shortened_output(request: DemoRequest<'_>) -> Option<[String; 2]> {
    let (came, sent) = (parts_of(request.came), parts_of(request.sent));
    let is_read = |output: &FunctionCallOutput| {
        came.iter().filter_map(Item::as_call).any(|call| call.call_id == output.call_id && &*call.name == "Read")
    };
    let pairs = came.iter().filter_map(Item::as_output).filter(|&output| is_read(output)).filter_map(|came| {
        let now = sent.iter().filter_map(Item::as_output).find(|output| output.call_id == came.call_id)?;
        (now.output.len() < came.output.len()).then(|| [came.output.to_string(), now.output.to_string()])
    });
    pairs.max_by_key(|[came, _]| came.len())
}

/// All parts of a request.
fn parts_of(body: &str) -> Vec<Item> {
    messages(body).into_iter().flat_map(items_of).collect()
}

fn kind_of(item: &Item) -> PartKind {
    match item {
        Item::FunctionCall(_) => PartKind::Call,
        Item::FunctionCallOutput(_) => PartKind::Output,
        item if item.is_of_model() => PartKind::Told,
        _ => PartKind::Said,
    }
}

fn text_of(item: &Item) -> Option<String> {
    item.as_message().map(|message| message.text())
}

fn text_len(item: &Item) -> usize {
    match item {
        Item::FunctionCall(call) => call.arguments.len(),
        Item::FunctionCallOutput(output) => output.output.len(),
        item => item.as_message().map_or(0, |message| message.text().len()),
    }
}

/// What the model still knew, in sentences.
pub fn still_known(measures: &Measures, transcript: &Transcript) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let people = transcript.records.iter().filter(|record| record.role() == Some(Role::User)).count();
    vec![
        format!(
            "what people said, in {}: {} at each request, on average",
            counted(people, "message"),
            percent(measures.said_share())
        ),
        format!("what the agent had said: {}", percent(measures.told_share())),
        format!(
            "text that the agent replaced next: in the window before {} of {} (everything has all of it, by definition)",
            measures.hits,
            counted(measures.targets as usize, "edit")
        ),
        format!("file text that was out of date without showing it: {}", percent(measures.stale())),
    ]
}
