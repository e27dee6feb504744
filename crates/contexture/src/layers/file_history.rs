//! `file-history`: replaces the past of a coding agent by what it knows about files.
//!
//! | | |
//! | --- | --- |
//! | slot | 260 |
//! | scope | thread |
//! | budget | what history may use |
//! | hooks | `project_history` |
//! | functions | `output` |
//!
//! The past is shown unchanged until it must shrink, or until that pays. Then one decision replaces everything before the
//! newest steps by what the user said, what was done, and a current view of the files in use (see [`crate::fold`]).
//! Decisions are durable: after a restart the window is the same, byte for byte.
//!
//! If the engine has access to files, what a fold is about to show is compared with the disk first (see
//! [`crate::fold::Asking`]): it is confirmed, or the current text is shown, only within what the agent has read or
//! written.
//!
//! Only this layer decides which part of the past is shown. Building an engine with another such layer, or with a
//! sliding window, fails, since those would remove what it kept.
//!
//! Shortened outputs name a hash; with it the tool `output` shows the full text from the log, a piece at a time.

mod held;
mod output;
mod shelf;

use std::sync::Arc;
use std::time::Duration;

use contexture_core::decision::{Action, Decision, Price};
use contexture_core::history::{History, Part};
use contexture_core::layer::{
    CacheState, HookResult, HookTrace, LayerFunction, LayerProvides, LayerSpec, MemoryLayer, MemoryScope, NewDecision,
    ProjectHistoryParams, ProjectHistoryResult,
};
use contexture_core::log::ItemLog;
use contexture_core::tokens::{Estimate, TokenCounter};
use contexture_core::{LayerId, Slot, ThreadId};
use serde_json::Value;

use self::held::ThreadFolder;
pub use self::output::OutputQuery;
use self::shelf::FolderCache;
use crate::files::dialect::Dialects;
use crate::files::tracker::FileTracker;
use crate::fold::{FoldDecision, FoldWhen, Folder, Meter, Pins, Policy, Prices, ShownItem};

/// How long the files of one request may be compared with the disk; the others are shown as not compared.
const COMPARING: Duration = Duration::from_millis(500);

/// The layer `file-history`.
#[derive(Default)]
pub struct FileHistory {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    counter: Option<Arc<dyn TokenCounter>>,
    prices: Prices,
    when: FoldWhen,
    pins: Pins,
    dialects: Option<Dialects>,
    is_verbatim: bool,
    has_no_tool: bool,
    has_no_disk: bool,
    threads: FolderCache,
}

/// The inputs of a window.
struct Projecting<'a> {
    thread: &'a ThreadId,
    history: &'a History,
    decisions: &'a [Decision],
    budget: u64,
    cache: CacheState,
    counter: Arc<dyn TokenCounter>,
}

impl FileHistory {
    /// The layer's id.
    pub const ID: &'static str = "file-history";

    /// The tool that shows the full text of a shortened output, one part at a time.
    pub const OUTPUT: LayerFunction<FileHistory, OutputQuery, String> = LayerFunction::new("output");

    /// A layer with its own counter instead of the engine's.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter: Some(counter), ..Self::default() }
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| Self::ID.into())
    }

    /// Sets the provider's prices. Default: those of Anthropic.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets when to fold. Default: when that pays.
    pub fn when(mut self, when: FoldWhen) -> Self {
        self.when = when;
        self
    }

    /// Sets the pins: what is never folded.
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// Sets the descriptions of the agent's tools. Default: the built-in table.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.dialects = Some(dialects);
        self
    }

    /// Removes the tool `output`: shortened outputs cannot be shown in full.
    pub fn without_output_tool(mut self) -> Self {
        self.has_no_tool = true;
        self
    }

    /// Turns off reading the disk, for an agent whose files are not those of the engine's `FsAdapter`.
    pub fn without_disk(mut self) -> Self {
        self.has_no_disk = true;
        self
    }

    /// Keeps outputs as the tools returned them until they have to shrink, for an agent whose tools are told line by
    /// line what to change.
    pub fn verbatim(mut self) -> Self {
        self.is_verbatim = true;
        self
    }

    /// Which files a conversation is about, as this layer knows them: when each was last used, and whether this agent
    /// wrote to it or a person named it.
    ///
    /// It is made from the log, so a program can ask at any time: `layer.files(execution.log())`.
    pub fn files(&self, log: &ItemLog) -> FileTracker {
        let builtin = Dialects::builtin();
        FileTracker::of_items(log.iter(), self.dialects.as_ref().unwrap_or(&builtin))
    }

    /// Returns the history that is shown within a budget, and the new decisions about it.
    ///
    /// `decisions` are the earlier decisions of this layer in this thread.
    pub fn project(
        &self,
        thread: &ThreadId,
        history: &History,
        decisions: &[Decision],
        budget: u64,
        cache: CacheState,
    ) -> ProjectHistoryResult {
        let counter = self.counter.clone().unwrap_or_else(|| Arc::new(Estimate));
        let mut held = self.take(&Projecting { thread, history, decisions, budget, cache, counter });
        let parts = parts_of(held.folder_mut().request());
        self.put_back(held, thread, history, decisions, parts).0
    }

    /// Takes the folder of a thread out of the cache and brings it up to date. Other threads do not wait meanwhile.
    fn take(&self, projecting: &Projecting<'_>) -> ThreadFolder {
        let Projecting { thread, history, decisions, budget, cache, counter } = projecting;
        let new_folder = || self.new_folder(*budget, counter.clone());
        let held = self.threads.take(thread).and_then(|found| found.wake(new_folder, history, decisions));
        let mut held = held.unwrap_or_else(|| ThreadFolder::rebuild(new_folder(), history, decisions));
        let folder = held.catch_up(history);
        folder.set_policy(self.policy(*budget));
        if *cache == CacheState::Cold {
            folder.cache_is_cold();
        }
        held
    }

    /// Puts a folder back into the cache. Returns its decisions, and how many of them cannot be read.
    fn put_back(
        &self,
        mut held: ThreadFolder,
        thread: &ThreadId,
        history: &History,
        decisions: &[Decision],
        parts: Vec<Part>,
    ) -> (ProjectHistoryResult, usize) {
        let made = held.new_decisions(decisions.len());
        let unreadable = held.unreadable();
        self.threads.put(thread.clone(), held);
        (ProjectHistoryResult { history: history.with_parts(parts), decisions: made }, unreadable)
    }

    fn policy(&self, budget: u64) -> Policy {
        let policy = Policy::new(budget.max(1)).with_prices(self.prices).with_pins(self.pins.clone()).when(self.when);
        if self.is_verbatim { policy.verbatim() } else { policy }
    }

    fn new_folder(&self, budget: u64, counter: Arc<dyn TokenCounter>) -> Folder {
        let folder = Folder::new(self.policy(budget), Meter::new(counter));
        let folder = match &self.dialects {
            Some(dialects) => folder.with_dialects(dialects.clone()),
            None => folder,
        };
        if self.has_no_tool {
            return folder;
        }
        folder.with_output_tool(format!("{}/{}", self.id(), Self::OUTPUT.name()))
    }
}

/// Converts the items of a window to parts of a history; consecutive log items become one part.
fn parts_of(items: &[ShownItem]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for item in items {
        match (parts.last_mut(), item.position.filter(|_| item.is_logged)) {
            (Some(Part::Log(before)), Some(at)) if before.end == at => before.end += 1,
            (_, Some(at)) => parts.push(Part::Log(at..at + 1)),
            (_, None) => parts.push(Part::Item(item.item.clone())),
        }
    }
    parts
}

impl MemoryLayer for FileHistory {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), Slot(260), MemoryScope::Thread).owning_history()
    }

    fn provides(&self) -> LayerProvides<()> {
        match self.has_no_tool {
            true => LayerProvides::new(),
            false => LayerProvides::new().function(Self::OUTPUT.name(), output::function()),
        }
    }

    async fn project_history(&self, params: ProjectHistoryParams<()>) -> HookResult<ProjectHistoryResult> {
        let ProjectHistoryParams { ctx, history, decisions, budget, cache, .. } = &params;
        let counter = self.counter.clone().unwrap_or_else(|| ctx.shared_counter());
        let (thread, budget, cache) = (&ctx.thread_id, *budget, *cache);
        let mut held = self.take(&Projecting { thread, history, decisions, budget, cache, counter });
        let disk = Some(&ctx.fs).filter(|_| !self.has_no_disk);
        let parts = parts_of(held.request(disk, ctx.clock.limit(COMPARING)).await);
        let (result, unreadable) = self.put_back(held, thread, history, decisions, parts);
        if unreadable > 0 {
            ctx.trace.add_event("unreadable_decisions", &[("count", (unreadable as f64).into())]);
        }
        for decision in &result.decisions {
            tell_left_out(&ctx.trace, decision);
            tell_cut_said(&ctx.trace, decision);
        }
        Ok(result)
    }
}

/// Adds to the trace that a fold had no room for texts written by the agent.
fn tell_left_out(trace: &HookTrace, decision: &NewDecision) {
    let paths = decision.what["left_out"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let paths = paths.collect::<Vec<_>>().join(", ");
    if !paths.is_empty() {
        trace.add_event("own_changes_left_out", &[("files", paths.as_str().into())]);
    }
}

/// Adds to the trace that something of the dialogue had to be cut.
fn tell_cut_said(trace: &HookTrace, decision: &NewDecision) {
    for (field, event) in [("cut_said", "said_cut"), ("cut_told", "told_cut"), ("cut_records", "records_cut")] {
        let cut = decision.what[field].as_array().map_or(0, Vec::len);
        if cut > 0 {
            trace.add_event(event, &[("messages", (cut as f64).into())]);
        }
    }
}

/// Parses a decision, if it is a readable one of this layer.
fn read_decision(decision: &Decision) -> Option<FoldDecision> {
    match &decision.action {
        Action::Layer(what) => FoldDecision::from_stored(what).ok(),
        _ => None,
    }
}

fn new_decision(decision: &FoldDecision) -> NewDecision {
    let what = decision.to_stored();
    match decision {
        FoldDecision::Fold(fold) => NewDecision {
            what,
            reason: fold.reason.clone(),
            price: Some(Price { cost: fold.cost, saves_per_request: fold.saves_per_request }),
        },
        FoldDecision::Cold { .. } => NewDecision { what, reason: "the provider's cache is cold".into(), price: None },
        FoldDecision::BringBack(_) => {
            NewDecision { what, reason: "a file was touched or named again".into(), price: None }
        }
        FoldDecision::Disk(checked) => NewDecision { what, reason: checked.reason(), price: None },
        FoldDecision::Shorten { reason, .. } => NewDecision { what, reason: reason.clone(), price: None },
    }
}
