//! Tests of `Projection::assemble`: properties of any window, and tables of particular ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

mod epochs;
mod overflow;
mod properties;
mod text;

use std::sync::Arc;

use contexture_core::decision::{Action, EpochReason};
use contexture_core::layer::Placement;
use contexture_core::tokens::{Estimate, TokenCounter, count_item};
use contexture_core::usage::{LayerUsage, Served};
use contexture_core::window::{
    Assembly, Block, Overflow, Projection, ProjectionPolicy, Summary, SummaryRequest, Window, WindowInput, ledger,
};
use contexture_core::{Error, History, Item, ItemLog};

/// One token per byte: the counter with the highest counts.
pub(crate) struct Bytes;

impl TokenCounter for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

/// Roughly like a vocabulary: up to four letters or digits per token, any other character is one.
pub(crate) struct Pieces;

impl TokenCounter for Pieces {
    fn name(&self) -> &str {
        "pieces"
    }

    fn count(&self, text: &str) -> u64 {
        let (mut tokens, mut run) = (0, 0);
        for character in text.chars() {
            run = if character.is_ascii_alphanumeric() { run % 4 + 1 } else { 0 };
            tokens += u64::from(run <= 1);
        }
        tokens
    }
}

/// Renders the change between two versions of a layer's block.
pub(crate) type Delta = fn(&[Arc<Item>], &[Arc<Item>]) -> Option<String>;

/// A thread outside any engine: what `assemble` needs, with small defaults.
pub(crate) struct Thread {
    pub(crate) log: ItemLog,
    pub(crate) projection: Projection,
    pub(crate) counter: &'static dyn TokenCounter,
    pub(crate) policy: ProjectionPolicy,
    pub(crate) system_tokens: u64,
    pub(crate) tools_tokens: u64,
    pub(crate) system_fingerprint: u64,
    pub(crate) blocks: Vec<Block>,
    pub(crate) guidance: Vec<String>,
    pub(crate) cache_lost: Option<EpochReason>,
    pub(crate) delta: Delta,
}

impl Thread {
    /// A thread whose windows and responses have this many tokens, none of them reserved.
    pub(crate) fn new(token_budget: u64) -> Self {
        Self {
            log: ItemLog::new(),
            projection: Projection::default(),
            counter: &Estimate,
            policy: ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(token_budget) },
            system_tokens: 0,
            tools_tokens: 0,
            system_fingerprint: 0,
            blocks: Vec::new(),
            guidance: Vec::new(),
            cache_lost: None,
            delta: |_, _| None,
        }
    }

    pub(crate) fn overflow(mut self, overflow: Overflow) -> Self {
        self.policy.overflow = overflow;
        self
    }

    pub(crate) fn append(&mut self, item: Item) -> &mut Self {
        let tokens = count_item(self.counter, &item);
        self.log.append(item, tokens);
        self
    }

    /// Sets the block of a layer; its budget is a tenth of the whole.
    pub(crate) fn layer(&mut self, layer: &str, placement: Placement, text: &str) -> &mut Self {
        let items = match text {
            "" => Vec::new(),
            text => vec![Item::developer(format!("<memory layer=\"{layer}\">\n{text}\n</memory>"))],
        };
        let tokens = items.iter().map(|item| count_item(self.counter, item)).sum();
        let block = Block {
            layer: layer.into(),
            items: items.into_iter().map(Arc::new).collect(),
            tokens,
            allocated: self.policy.token_budget / 10,
            placement,
            served: Served::Fresh,
        };
        match self.blocks.iter_mut().find(|old| old.layer.as_str() == layer) {
            Some(old) => *old = block,
            None => self.blocks.push(block),
        }
        self
    }

    pub(crate) fn try_assemble(&mut self, history: &History, summary: Option<Summary>) -> Result<Assembly, Error> {
        let delta = self.delta;
        let input = WindowInput {
            policy: &self.policy,
            counter: self.counter,
            system_tokens: self.system_tokens,
            tools_tokens: self.tools_tokens,
            system_fingerprint: self.system_fingerprint,
            blocks: &self.blocks,
            history,
            guidance: &self.guidance,
            delta: &|_, pinned, current| delta(pinned, current),
            cache_lost: self.cache_lost,
            summary,
        };
        self.projection.assemble(&input)
    }

    /// The window over this history; if a summary is requested, it is the ledger.
    pub(crate) fn assemble_over(&mut self, history: &History) -> Window {
        match self.try_assemble(history, None).unwrap() {
            Assembly::Ready(window) => *window,
            Assembly::NeedsSummary(request) => {
                let summary = Summary { text: self.ledger(&request), by_model: false };
                match self.try_assemble(history, Some(summary)).unwrap() {
                    Assembly::Ready(window) => *window,
                    Assembly::NeedsSummary(_) => panic!("a summary was given"),
                }
            }
        }
    }

    pub(crate) fn ledger(&self, request: &SummaryRequest) -> String {
        let range = request.start..request.end;
        ledger(self.counter, &self.log, range, request.previous.as_deref(), request.max_tokens)
    }

    pub(crate) fn assemble(&mut self) -> Window {
        let history = self.projection.history(&self.log);
        self.assemble_over(&history)
    }

    /// Like [`assemble`](Self::assemble), with this text as the summary.
    pub(crate) fn assemble_with_summary(&mut self, text: &str) -> (SummaryRequest, Window) {
        let history = self.projection.history(&self.log);
        let Assembly::NeedsSummary(request) = self.try_assemble(&history, None).unwrap() else {
            panic!("no summary was asked for")
        };
        let summary = Summary { text: text.to_owned(), by_model: true };
        let Assembly::Ready(window) = self.try_assemble(&history, Some(summary)).unwrap() else {
            panic!("a summary was given")
        };
        (request, *window)
    }

    /// Begins a turn: layers are observed, then the window is built.
    pub(crate) fn turn(&mut self, text: &str) -> Window {
        self.append(Item::user(text));
        self.projection.observe_turn(&self.blocks);
        self.assemble()
    }

    /// The projection as it would be after a restart.
    pub(crate) fn restart(&mut self) {
        let epoch = serde_json::to_string(&self.projection.epoch()).unwrap();
        let churn = serde_json::to_string(self.projection.churn()).unwrap();
        self.projection =
            Projection::restore(serde_json::from_str(&epoch).unwrap(), serde_json::from_str(&churn).unwrap());
    }
}

/// The text of each item, in one line.
pub(crate) fn texts(window: &Window) -> Vec<String> {
    window.items.iter().map(|item| text_of(item)).collect()
}

pub(crate) fn text_of(item: &Item) -> String {
    match item {
        Item::Message(message) => message.text(),
        Item::FunctionCall(call) => format!("{}({})", call.name, call.arguments),
        Item::FunctionCallOutput(output) => output.output.clone(),
        Item::Reasoning(reasoning) => reasoning.text.clone(),
        Item::Opaque(value) => value.to_string(),
    }
}

/// Why an epoch began with this window.
pub(crate) fn epoch_reason(window: &Window) -> Option<EpochReason> {
    window.decisions.iter().find_map(|(action, _)| match action {
        Action::Epoch { reason } => Some(*reason),
        _ => None,
    })
}

/// The new start of history, if that was decided.
pub(crate) fn evicted_before(window: &Window) -> Option<usize> {
    window.decisions.iter().find_map(|(action, _)| match action {
        Action::Evict { start } => Some(*start),
        _ => None,
    })
}

/// How many leading items are anchors and history.
pub(crate) fn history_end(window: &Window) -> usize {
    *window.breakpoints.last().expect("a window has a breakpoint where history ends")
}

pub(crate) fn layer_usage<'a>(window: &'a Window, layer: &str) -> &'a LayerUsage {
    window.usage.layers.iter().find(|usage| usage.layer_id.as_str() == layer).expect("every block has its usage")
}
