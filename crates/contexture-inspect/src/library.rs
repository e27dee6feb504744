//! Shows the threads of a library's store as conversations: the log, and the result of the decisions.

use std::collections::BTreeMap;

use contexture::decision::{Action, Decision};
use contexture::item::Item;
use contexture::store::{Key, StorageAdapter, StoreError};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::wire::Format;
use contexture_core::percent::decoded_lossy;
use contexture_gateway::account::record::{DecidedNote, RequestRecord};
use serde::Deserialize;
use serde_json::Value;

use super::archive::ArchivedRequest;
use super::block::{BlockDraft, BlockKind, BlockSource, item_draft};
use super::server::Inspector;

/// The key prefix of all threads.
const THREADS: &str = "threads/";

/// What a store of the library does not hold, for [`About::note`](super::view::About::note).
pub const NOT_KEPT: &str = "A store has the log, the decisions with their reasons, and the texts of layers that the newest \
     epoch holds. Texts that layers write anew for each request, their budgets, spans and faults are not kept in it: a \
     running engine tells them to its observer.";

#[derive(Deserialize)]
struct LibraryLogRecord {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct LibraryDecision {
    decision: Decision,
}

/// A stored thread.
#[derive(Default)]
struct LibraryThread {
    items: Vec<Item>,
    decisions: Vec<Decision>,
    epoch: Value,
}

/// Reads all threads of a store into an inspector. Returns how many there were; unreadable records are skipped.
///
/// # Errors
/// The store cannot be read.
pub async fn read(store: &dyn StorageAdapter, inspector: &Inspector) -> Result<usize, StoreError> {
    read_beneath(store, inspector, THREADS).await
}

/// Reads one thread of a store into an inspector.
///
/// # Errors
/// The store cannot be read.
pub async fn read_thread(store: &dyn StorageAdapter, inspector: &Inspector, thread: &str) -> Result<(), StoreError> {
    let prefix = Key::new("threads").then(thread).into_prefix();
    read_beneath(store, inspector, &prefix).await.map(drop)
}

async fn read_beneath(store: &dyn StorageAdapter, inspector: &Inspector, prefix: &str) -> Result<usize, StoreError> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for key in store.list(prefix).await? {
        if let Some((thread, _)) = key[THREADS.len()..].split_once('/') {
            keys.entry(thread.to_owned()).or_default().push(key.clone());
        }
    }
    let count = keys.len();
    for (name, mut keys) in keys {
        keys.sort();
        let mut thread = LibraryThread::default();
        for key in keys {
            let Some(record) = store.get(&key).await? else { continue };
            thread.take(&key[THREADS.len() + name.len() + 1..], &record.value);
        }
        thread.note(inspector, &decoded_lossy(&name));
    }
    Ok(count)
}

impl LibraryThread {
    fn take(&mut self, part: &str, bytes: &[u8]) {
        match part.split('/').next() {
            Some("log") => {
                if let Ok(record) = serde_json::from_slice::<LibraryLogRecord>(bytes) {
                    self.items.extend(record.items);
                }
            }
            Some("decisions") => {
                if let Ok(record) = serde_json::from_slice::<LibraryDecision>(bytes) {
                    self.decisions.push(record.decision);
                }
            }
            Some("epoch") => self.epoch = serde_json::from_slice(bytes).unwrap_or_default(),
            _ => {}
        }
    }

    /// Positions at which the model was called: before each run of items that it produced.
    fn requests(&self) -> Vec<usize> {
        let is_first = |at: &usize| self.items[*at].is_of_model() && (*at == 0 || !self.items[at - 1].is_of_model());
        (0..self.items.len()).filter(is_first).collect()
    }

    fn note(&self, inspector: &Inspector, name: &str) {
        let requests = self.requests();
        let newest_epoch = self.decisions.iter().rev().find(|made| matches!(made.action, Action::Epoch { .. }));
        let anchored_from = newest_epoch.map_or(0, |epoch| epoch.at);
        let mut before = 0;
        for (number, at) in requests.iter().copied().enumerate() {
            let time_ms = self.items[at].meta().and_then(|meta| meta.time_ms).unwrap_or(0);
            let made = self.decisions.iter().filter(|made| made.at <= at && (made.at > before || number == 0));
            let record = RequestRecord {
                session: "stored".to_owned(),
                conversation: Some(name.to_owned()),
                time_ms,
                status: 200,
                decided: made.map(note_of).collect(),
                ..RequestRecord::default()
            };
            let came: Vec<BlockDraft> = self.items[..at].iter().map(|item| item_draft(item, &Estimate)).collect();
            let mut sent = if at >= anchored_from { self.layers() } else { Vec::new() };
            sent.extend(self.shown(at));
            let seen = ArchivedRequest {
                conversation: name,
                parent: None,
                format: Format::Chat,
                came: "",
                sent: None,
                record,
            };
            if let Ok(ticket) = inspector.archive().note_drafts(&seen, came, sent) {
                // A request that cannot be written is not shown.
                let _ = inspector.archive().note_over(&ticket, &seen.record);
            }
            before = at;
        }
    }

    /// The window that the decisions produce from the log before a position.
    fn shown(&self, until: usize) -> Vec<BlockDraft> {
        let (mut start, mut summary) = (0, None);
        let mut cuts: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for made in self.decisions.iter().filter(|made| made.at <= until) {
            match &made.action {
                Action::Evict { start: first } => start = *first,
                Action::Summarize { text, .. } => summary = Some(text),
                Action::Shorten { position, head_bytes, tail_bytes } => {
                    cuts.insert(*position, (*head_bytes, *tail_bytes));
                }
                _ => {}
            }
        }
        let mut shown: Vec<BlockDraft> =
            summary.map(|text| made("summary", "summary of the past", text)).into_iter().collect();
        let newest_user =
            self.items[..start.min(until)].iter().rposition(|item| item.is_message_of(contexture::item::Role::User));
        let kept = newest_user.filter(|_| start > 0).map(|at| item_draft(&self.items[at], &Estimate));
        shown.extend(kept);
        for at in start..until {
            let mut draft = item_draft(&self.items[at], &Estimate);
            if let Some((head, tail)) = cuts.get(&at) {
                draft.text = cut(&draft.text, *head, *tail);
                draft.tokens = Estimate.count(&draft.text);
            }
            shown.push(draft);
        }
        shown
    }

    /// The texts of the layers in the newest epoch.
    fn layers(&self) -> Vec<BlockDraft> {
        let layers = self.epoch["epoch"]["layers"].as_array();
        let mut drafts = Vec::new();
        for placed in layers.into_iter().flatten() {
            let name = placed["layer"].as_str().unwrap_or("a layer");
            if placed["place"] == "live" {
                let text = "[This layer writes its text anew for each request; the store does not have it.]";
                drafts.push(BlockDraft { tokens: 0, ..made("layer", name, text) });
            }
            let items = placed["place"]["anchor"]["items"].as_array();
            for item in items.into_iter().flatten() {
                if let Ok(item) = Item::deserialize(item) {
                    let draft = item_draft(&item, &Estimate);
                    let (source, made) = (BlockSource::Made, "layer");
                    drafts.push(BlockDraft { source, made, name: name.to_owned(), ..draft });
                }
            }
        }
        drafts
    }
}

fn made(made: &'static str, name: &str, text: &str) -> BlockDraft {
    BlockDraft {
        source: BlockSource::Made,
        kind: BlockKind::Text,
        role: "",
        name: name.to_owned(),
        call: String::new(),
        made,
        is_error: false,
        tokens: Estimate.count(text),
        text: text.to_owned(),
    }
}

fn cut(text: &str, head: usize, tail: usize) -> String {
    let (head, tail) = (super::text::floor(text, head), text.len().saturating_sub(tail));
    let tail = super::text::floor(text, tail.max(head));
    format!("{}\n[… {} bytes are not shown]\n{}", &text[..head], tail - head, &text[tail..])
}

fn note_of(made: &Decision) -> DecidedNote {
    let what = match &made.action {
        Action::Epoch { .. } => "epoch",
        Action::Shorten { .. } => "shorten",
        Action::Evict { .. } => "evict",
        Action::Summarize { .. } => "summarize",
        Action::Layer(_) => "layer",
    };
    let layer = made.layer.as_ref().map(|layer| format!("{layer}: ")).unwrap_or_default();
    let (cost, saves_per_request) =
        made.price.as_ref().map_or((0.0, 0.0), |price| (price.cost, price.saves_per_request));
    let reason = format!("{layer}{}", made.reason);
    DecidedNote { cost, saves_per_request, ..DecidedNote::new(what.to_owned().into(), reason) }
}
