//! `file-history`: shows the past of a coding agent by what it knows about files.
//!
//! | | |
//! | --- | --- |
//! | slot | 260 |
//! | scope | thread |
//! | budget | what history may use |
//! | hooks | `project_history` |
//!
//! The past passes through as it is until it must shrink, or until that pays. Then one decision folds everything
//! before the newest steps into what the user said, what was done, and a current view of the files in use (see
//! [`crate::fold`]). Decisions are durable: after a restart the same window comes out, byte for byte.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_core::decision::{Action, Decision, Price};
use contexture_core::history::{History, Part};
use contexture_core::item::{Item, Role as ItemRole};
use contexture_core::layer::{
    HookResult, LayerSpec, MemoryLayer, MemoryScope, NewDecision, ProjectHistoryParams, ProjectHistoryResult,
};
use contexture_core::tokens::{Estimate, ITEM_OVERHEAD_TOKENS, TokenCounter};
use contexture_core::{Slot as LayerSlot, ThreadId};
use serde_json::Value;

use crate::fold::{FoldDecision, Folder, Policy, Prices, Slot};
use crate::transcript::{Message, Role, ToolCall};

/// Threads whose folders are kept in memory; others are rebuilt from their log.
const MAX_THREADS: usize = 64;

/// The layer `file-history`.
pub struct FileHistory {
    counter: Arc<dyn TokenCounter>,
    prices: Prices,
    threads: Mutex<HashMap<ThreadId, Folder>>,
}

impl Default for FileHistory {
    fn default() -> Self {
        Self::new(Arc::new(Estimate))
    }
}

impl FileHistory {
    /// The layer's id.
    pub const ID: &'static str = "file-history";

    /// A layer that counts with a counter and reckons with Anthropic's prices.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, prices: Prices::ANTHROPIC, threads: Mutex::default() }
    }

    /// The same with another provider's prices.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    fn policy(&self, budget: u64) -> Policy {
        Policy::new(budget.max(1)).with_prices(self.prices).with_message_tokens(ITEM_OVERHEAD_TOKENS)
    }

    /// What of the past is shown within a budget, and what was decided anew about it.
    ///
    /// `decisions` is what this layer decided before, in this thread.
    pub fn project(
        &self,
        thread: &ThreadId,
        history: &History,
        decisions: &[Decision],
        budget: u64,
    ) -> ProjectHistoryResult {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let held = threads.remove(thread).filter(|folder| folder.decisions().len() == decisions.len());
        let mut folder = held.unwrap_or_else(|| self.rebuild(history, decisions, budget));
        folder.set_policy(self.policy(budget));
        for (_, entry) in history.log().range(folder.messages().len()..history.log().len()) {
            folder.push(Arc::new(message_of(&entry.item)));
        }
        let slots = folder.request().to_vec();
        let new = folder.decisions()[decisions.len()..].iter().map(new_decision).collect();
        let parts = slots.iter().map(|slot| part_of(slot, history)).collect();
        if threads.len() >= MAX_THREADS {
            threads.clear();
        }
        threads.insert(thread.clone(), folder);
        ProjectHistoryResult { history: history.with_parts(join_parts(parts)), decisions: new }
    }

    /// The folder as it was after the last request that was decided about.
    fn rebuild(&self, history: &History, decisions: &[Decision], budget: u64) -> Folder {
        let kept = decisions.iter().filter_map(|decision| match &decision.action {
            Action::Layer(what) => serde_json::from_value(what.clone()).ok(),
            _ => None,
        });
        let mut folder = Folder::new(self.policy(budget), self.counter.clone()).replaying(kept.collect());
        let mut responds = false;
        let covered = last_response(history).unwrap_or(0);
        for (_, entry) in history.log().range(0..covered) {
            let message = message_of(&entry.item);
            let is_response = message.role == Role::Assistant;
            if is_response && !responds {
                folder.request();
            }
            responds = is_response;
            folder.push(Arc::new(message));
        }
        folder.go_on();
        folder
    }
}

/// The position behind the newest thing that the model said: everything before it was sent.
fn last_response(history: &History) -> Option<usize> {
    let log = history.log();
    let newest = log.range(0..log.len()).rev().find(|(_, entry)| message_of(&entry.item).role == Role::Assistant);
    newest.map(|(position, _)| position + 1)
}

impl MemoryLayer for FileHistory {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(Self::ID, LayerSlot(260), MemoryScope::Thread)
    }

    async fn project_history(&self, params: ProjectHistoryParams<()>) -> HookResult<ProjectHistoryResult> {
        Ok(self.project(&params.ctx.thread_id, &params.history, &params.decisions, params.budget))
    }
}

fn new_decision(decision: &FoldDecision) -> NewDecision {
    let what = serde_json::to_value(decision).unwrap_or(Value::Null);
    match decision {
        FoldDecision::Fold(fold) => NewDecision {
            what,
            reason: fold.reason.clone(),
            price: Some(Price { cost: fold.cost, saves_per_request: fold.saves_per_request }),
        },
        FoldDecision::Recall(_) => NewDecision { what, reason: "a file was touched again".into(), price: None },
        FoldDecision::Shorten { reason, .. } => NewDecision { what, reason: reason.clone(), price: None },
    }
}

/// An item as the folder sees it; every item is one message, so that positions agree.
fn message_of(item: &Item) -> Message {
    let said =
        |role: Role, text: String| Message { role, text, tool_calls: Vec::new(), tool_call_id: None, name: None };
    match item {
        Item::Message(message) => {
            let role = match message.role {
                ItemRole::System | ItemRole::Developer => Role::System,
                ItemRole::User => Role::User,
                ItemRole::Assistant => Role::Assistant,
            };
            said(role, message.text())
        }
        Item::FunctionCall(call) => Message {
            tool_calls: vec![ToolCall {
                id: call.call_id.to_string(),
                name: call.name.to_string(),
                arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into()),
            }],
            ..said(Role::Assistant, String::new())
        },
        Item::FunctionCallOutput(output) => {
            Message { tool_call_id: Some(output.call_id.to_string()), ..said(Role::Tool, output.output.clone()) }
        }
        Item::Reasoning(reasoning) => said(Role::Assistant, reasoning.text.clone()),
        Item::Opaque(value) => said(Role::Assistant, value.to_string()),
    }
}

fn part_of(slot: &Slot, history: &History) -> Part {
    match slot {
        Slot::Logged(at) => Part::Log(*at..*at + 1),
        Slot::Made(text) => Part::Item(Arc::new(Item::developer(text.to_string()))),
        Slot::Shortened(at, text) => match history.log().get(*at) {
            Some(entry) => Part::Item(Arc::new(with_text(&entry.item, text))),
            None => Part::Log(*at..*at),
        },
    }
}

/// The same item with another text.
fn with_text(item: &Item, text: &str) -> Item {
    match item {
        Item::FunctionCallOutput(output) => {
            let mut output = output.clone();
            output.output = text.to_owned();
            Item::FunctionCallOutput(output)
        }
        Item::Message(message) => Item::message(message.role, text),
        other => other.clone(),
    }
}

/// Runs of the log as one part each.
fn join_parts(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), &part) {
            (Some(Part::Log(before)), Part::Log(range)) if before.end == range.start => before.end = range.end,
            _ => joined.push(part),
        }
    }
    joined
}
