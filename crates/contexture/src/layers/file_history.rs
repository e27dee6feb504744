//! `file-history`: shows the past of a coding agent by what it knows about files.
//!
//! | | |
//! | --- | --- |
//! | slot | 260 |
//! | scope | thread |
//! | budget | what history may use |
//! | hooks | `project_history` |
//! | functions | `output` |
//!
//! The past passes through as it is until it must shrink, or until that pays. Then one decision folds everything
//! before the newest steps into what the user said, what was done, and a current view of the files in use (see
//! [`crate::fold`]). Decisions are durable: after a restart the same window comes out, byte for byte.
//!
//! What is shown shortened names a hash, and `output` shows the whole of it from the log, a piece at a time.

mod items;
mod output;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_core::decision::{Action, Decision, Price};
use contexture_core::history::History;
use contexture_core::item::Item;
use contexture_core::layer::{
    CacheState, HookResult, HookTrace, LayerFunction, LayerProvides, LayerSpec, MemoryLayer, MemoryScope, NewDecision,
    ProjectHistoryParams, ProjectHistoryResult,
};
use contexture_core::tokens::{Estimate, ITEM_OVERHEAD_TOKENS, TokenCounter};
use contexture_core::{Slot as LayerSlot, ThreadId};
use serde_json::Value;

use self::items::{MadeItems, message_of};
pub use self::output::OutputQuery;
use crate::fold::{FoldDecision, Folder, Policy, Prices};
use crate::transcript::Role;

/// Threads whose folders are kept in memory; others are rebuilt from their log.
const MAX_THREADS: usize = 64;

/// The layer `file-history`.
pub struct FileHistory {
    counter: Arc<dyn TokenCounter>,
    prices: Prices,
    has_tool: bool,
    is_terse: bool,
    threads: Mutex<HashMap<ThreadId, Held>>,
}

/// The folder of a thread, as it was after the last request.
struct Held {
    folder: Folder,
    /// The last item that it took in.
    newest: Option<Arc<Item>>,
    /// How many decisions led to it.
    decided: usize,
    made: MadeItems,
}

impl Held {
    fn new(mut folder: Folder, history: &History) -> Self {
        let newest = newest_of(&folder, history).cloned();
        let decided = folder.take_decisions().len();
        Self { folder, newest, decided, made: MadeItems::default() }
    }

    /// Whether it is about this log: another process may have put items before those it knows.
    fn is_of(&self, history: &History, decisions: &[Decision]) -> bool {
        self.decided == decisions.len() && newest_of(&self.folder, history) == self.newest.as_ref()
    }

    /// What the last request decided beyond what is known.
    fn new_decisions(&mut self, known: usize) -> Vec<NewDecision> {
        let (before, made) = (self.decided, self.folder.take_decisions());
        self.decided += made.len();
        made.iter().skip(known.saturating_sub(before)).map(new_decision).collect()
    }
}

/// The last item of a log that a folder took in.
fn newest_of<'a>(folder: &Folder, history: &'a History) -> Option<&'a Arc<Item>> {
    Some(&history.log().get(folder.len().checked_sub(1)?)?.item)
}

impl Default for FileHistory {
    fn default() -> Self {
        Self::new(Arc::new(Estimate))
    }
}

impl FileHistory {
    /// The layer's id.
    pub const ID: &'static str = "file-history";

    /// The whole of an output that the window shows shortened, a piece at a time.
    pub const OUTPUT: LayerFunction<FileHistory, OutputQuery, String> = LayerFunction::new("output");

    /// A layer that counts with a counter and reckons with Anthropic's prices.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, prices: Prices::ANTHROPIC, has_tool: true, is_terse: true, threads: Mutex::default() }
    }

    /// The same with another provider's prices.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// The same without the tool `output`: what is shown shortened stays so.
    pub fn without_output_tool(mut self) -> Self {
        self.has_tool = false;
        self
    }

    /// The same with outputs as the tools gave them, for as long as they need not shrink: for an agent whose tools
    /// are told line by line what to change.
    pub fn verbatim(mut self) -> Self {
        self.is_terse = false;
        self
    }

    fn policy(&self, budget: u64) -> Policy {
        let policy = Policy::new(budget.max(1)).with_prices(self.prices).with_message_tokens(ITEM_OVERHEAD_TOKENS);
        if self.is_terse { policy } else { policy.verbatim() }
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
        cache: CacheState,
    ) -> ProjectHistoryResult {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let held = threads.remove(thread).filter(|held| held.is_of(history, decisions));
        let mut held = held.unwrap_or_else(|| Held::new(self.rebuild(history, decisions, budget), history));
        let (folder, log) = (&mut held.folder, history.log());
        folder.set_policy(self.policy(budget));
        for (_, entry) in log.range(folder.len()..log.len()) {
            folder.push(Arc::new(message_of(&entry.item)));
            held.newest = Some(entry.item.clone());
        }
        if cache == CacheState::Cold {
            folder.cache_is_cold();
        }
        let parts = held.made.parts(folder.request(), history);
        let new = held.new_decisions(decisions.len());
        if threads.len() >= MAX_THREADS {
            threads.clear();
        }
        threads.insert(thread.clone(), held);
        ProjectHistoryResult { history: history.with_parts(parts), decisions: new }
    }

    fn new_folder(&self, budget: u64) -> Folder {
        let folder = Folder::new(self.policy(budget), self.counter.clone());
        if !self.has_tool {
            return folder;
        }
        folder.with_output_tool(format!("{}/{}", Self::ID, Self::OUTPUT.name()))
    }

    /// The folder as it was after the last request that was decided about.
    fn rebuild(&self, history: &History, decisions: &[Decision], budget: u64) -> Folder {
        let kept = decisions.iter().filter_map(|decision| match &decision.action {
            Action::Layer(what) => serde_json::from_value(what.clone()).ok(),
            _ => None,
        });
        let mut folder = self.new_folder(budget).replaying(kept.collect());
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

    fn provides(&self) -> LayerProvides<()> {
        match self.has_tool {
            true => LayerProvides::new().function(Self::OUTPUT.name(), output::function()),
            false => LayerProvides::new(),
        }
    }

    async fn project_history(&self, params: ProjectHistoryParams<()>) -> HookResult<ProjectHistoryResult> {
        let result =
            self.project(&params.ctx.thread_id, &params.history, &params.decisions, params.budget, params.cache);
        for decision in &result.decisions {
            tell_left_out(&params.ctx.trace, decision);
        }
        Ok(result)
    }
}

/// Notes in the trace that a fold had no room for what the agent itself wrote.
fn tell_left_out(trace: &HookTrace, decision: &NewDecision) {
    let paths = decision.what["left_out"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let paths = paths.collect::<Vec<_>>().join(", ");
    if !paths.is_empty() {
        trace.add_event("own_changes_left_out", &[("files", paths.as_str().into())]);
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
        FoldDecision::Cold { .. } => NewDecision { what, reason: "the provider's cache is cold".into(), price: None },
        FoldDecision::Recall(_) => {
            NewDecision { what, reason: "a file was touched or named again".into(), price: None }
        }
        FoldDecision::Shorten { reason, .. } => NewDecision { what, reason: reason.clone(), price: None },
    }
}
