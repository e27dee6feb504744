//! The state of a thread in one execution: the log, the unfinished turn, the window, and how much of it is durable.
//!
//! Nothing here awaits, except for reading. `commit` executes what is decided here.

mod records;
mod decisions;
mod claims;
mod journal;
mod read;

use std::collections::HashSet;
use std::sync::Arc;

use super::provider::Provider;
use super::shared::SharedExecution;
use crate::decision::{Action, Decision, EpochReason, Price};
use crate::error::Error;
use crate::history::History;
use crate::id::{ExecutionId, LayerId, ThreadId};
use crate::item::{FunctionCall, FunctionCallOutput, Item, Outcome};
use crate::log::{Entry, ItemLog};
use crate::model::LlmResponse;
use crate::state::DirtyState;
use crate::store::{Batch, Record, StoreError, Version};
use crate::tokens::{TokenCounter, count_item};
use crate::turn::Turn;
use crate::window::{Assembly, Block, Projection, WindowInput};

use claims::{Claims, open_calls};
use journal::Journal;
pub(crate) use read::{HeadNow, StoredThread, ThreadChanges};
pub(crate) use records::{ChildRecord, CommittedBatch, child_record};
use records::{LogRecord, ThreadHead, encode_turn};

/// The output of a call whose outcome is unknown.
pub(crate) const INTERRUPTED: &str =
    "This call was interrupted. It may or may not have had an effect, and it was not run again.";

/// The output of a call beyond the limit of calls of one response.
const TOO_MANY_CALLS: &str = "This call did not run: the response had more calls than may be run at once.";

/// The state of a thread in one execution.
pub(crate) struct Thread {
    id: ThreadId,
    log: ItemLog,
    /// The unfinished turn.
    turn: Option<Turn>,
    claims: Claims,
    /// The ids of all calls of the log, and how many of its items were looked at for it.
    call_ids: (HashSet<Box<str>>, usize),
    projection: Projection,
    provider: Provider,
    journal: Journal,
    /// For the thread of a child: whose it is.
    child: Option<ChildRecord>,
    /// Whether everything up to the last commit is durable.
    durable: bool,
}

impl Thread {
    pub(crate) fn new(id: ThreadId, execution: &ExecutionId) -> Self {
        Self {
            journal: Journal::new(&id, execution),
            id,
            log: ItemLog::new(),
            turn: None,
            claims: Claims::default(),
            call_ids: Default::default(),
            projection: Projection::default(),
            provider: Provider::default(),
            child: None,
            durable: true,
        }
    }

    pub(crate) fn id(&self) -> &ThreadId {
        &self.id
    }

    /// Notes whose thread this is.
    pub(crate) fn set_child(&mut self, child: ChildRecord) {
        self.child = Some(child);
    }

    pub(crate) fn log(&self) -> &ItemLog {
        &self.log
    }

    /// The ids of all calls so far.
    pub(crate) fn call_ids(&mut self) -> &HashSet<Box<str>> {
        let (ids, seen) = &mut self.call_ids;
        let calls = self.log.range(*seen..self.log.len()).filter_map(|(_, entry)| entry.item.as_call());
        ids.extend(calls.map(|call| call.call_id.clone()));
        *seen = self.log.len();
        ids
    }

    pub(crate) fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    pub(crate) fn turn_mut(&mut self) -> Option<&mut Turn> {
        self.turn.as_mut()
    }

    pub(crate) fn provider(&self) -> &Provider {
        &self.provider
    }

    pub(crate) fn provider_mut(&mut self) -> &mut Provider {
        &mut self.provider
    }

    /// Whether everything up to the last commit is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable
    }

    pub(crate) fn set_durable(&mut self, durable: bool) {
        self.durable = durable;
    }

    /// Starts a new thread with the items of another. Calls that have no output there get one here.
    pub(crate) fn fork(&mut self, shared: &SharedExecution, log: &ItemLog) {
        self.log = log.clone();
        shared.log().set(self.log.clone());
        let calls = log.open_calls().filter_map(|position| log.get(position)?.item.as_call());
        let open: Vec<Box<str>> = calls.map(|call| call.call_id.clone()).collect();
        self.answer_interrupted(shared, &open);
        shared.core().states.set_log_pending(shared.id(), self.is_behind());
    }

    /// Whether the log has items that are not durable.
    pub(crate) fn is_behind(&self) -> bool {
        self.log.len() > self.journal.size().items
    }

    /// Whether the next batch would take over turns of others.
    pub(crate) fn has_claims(&self) -> bool {
        !self.claims.abandoned_turns().is_empty()
    }

    /// Whether another execution has taken over our turn. Returns `true` only once.
    pub(crate) fn take_loss(&mut self) -> bool {
        self.claims.take_loss()
    }

    /// Adds items to the log, counting each once.
    pub(crate) fn append(&mut self, shared: &SharedExecution, items: impl IntoIterator<Item = Arc<Item>>) {
        let core = shared.core();
        let counted: Vec<(Arc<Item>, u64)> =
            items.into_iter().map(|item| (item.clone(), count_item(&*core.counter, &item))).collect();
        shared.log().grow(&mut self.log, |log| {
            counted.into_iter().for_each(|(item, tokens)| {
                log.append(item, tokens);
            });
        });
        core.states.set_log_pending(shared.id(), self.is_behind());
    }

    /// Begins a turn whose user message is logged.
    pub(crate) fn begin_turn(&mut self, turn: Turn) {
        self.turn = Some(turn);
    }

    /// Logs a response with these calls, which these layers have to store. Calls beyond the limit get their output at once.
    ///
    /// Log and turn change together, without an `await` in between: otherwise an interruption could leave the calls in the
    /// log while the turn calls the model again instead of the tools.
    pub(crate) fn respond(
        &mut self,
        shared: &SharedExecution,
        response: Arc<LlmResponse>,
        owed: Vec<LayerId>,
        calls: Vec<FunctionCall>,
        too_many: &[FunctionCall],
    ) {
        let refused = |call: &FunctionCall| FunctionCallOutput::new(&call.call_id, TOO_MANY_CALLS, Outcome::Denied);
        let answers = too_many.iter().map(|call| Arc::new(refused(call).into()));
        self.append(shared, response.items.iter().cloned().map(Arc::new).chain(answers));
        if let Some(turn) = &mut self.turn {
            turn.responded(calls);
            turn.owe(response, owed);
        }
    }

    /// Logs the output of the current call.
    pub(crate) fn answer_call(&mut self, shared: &SharedExecution, items: Vec<Item>) {
        self.append(shared, items.into_iter().map(Arc::new));
        if let Some(turn) = &mut self.turn {
            turn.answered();
        }
    }

    /// The turn is over, and that is durable.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }

    /// Logs outputs for the open calls of abandoned turns. Their records are deleted with the next batch.
    pub(crate) fn close_stray_turns(&mut self, shared: &SharedExecution) {
        let open = self.claims.close_strays();
        self.answer_interrupted(shared, &open);
    }

    /// Logs outputs for the calls that an interrupted turn left open, so that the log has no call without an output.
    pub(crate) fn close_unfinished_turn(&mut self, shared: &SharedExecution) {
        self.close_stray_turns(shared);
        // A turn that another execution continues no longer matters here.
        self.claims.take_loss();
        let Some(mut turn) = self.turn.take() else { return };
        self.answer_interrupted(shared, &open_calls(&mut turn));
        self.claims.close_own();
    }

    fn answer_interrupted(&mut self, shared: &SharedExecution, calls: &[Box<str>]) {
        if calls.is_empty() {
            return;
        }
        let interrupted = |call_id| FunctionCallOutput::new(call_id, INTERRUPTED, Outcome::Interrupted);
        self.append(shared, calls.iter().map(|call_id| Arc::new(interrupted(call_id).into())));
    }

    /// The past according to the log and earlier decisions, before any `project_history`.
    pub(crate) fn history(&self) -> History {
        self.projection.history(&self.log)
    }

    /// Records, once a turn, whether each layer's output changed since the previous turn.
    pub(crate) fn observe_turn(&mut self, blocks: &[Block]) {
        self.projection.observe_turn(blocks);
    }

    /// Builds a window. The caller records its decisions with [`decide`](Self::decide).
    pub(crate) fn assemble(&mut self, input: &WindowInput<'_>) -> Result<Assembly, Error> {
        self.projection.assemble(input)
    }

    /// A layer's decisions in this thread.
    pub(crate) fn decisions_of(&self, layer: &LayerId) -> Arc<Vec<Decision>> {
        self.journal.decisions_of(layer)
    }

    /// Records a decision about the window.
    pub(crate) fn decide(
        &mut self,
        layer: Option<LayerId>,
        action: Action,
        reason: String,
        price: Option<Price>,
    ) -> &Decision {
        // NaN and infinity cannot be represented in JSON.
        let price = price.filter(|price| price.cost.is_finite() && price.saves_per_request.is_finite());
        self.journal.decide(Decision { number: 0, at: self.log.len(), layer, action, reason, price })
    }

    /// Everything that is not durable yet, as one batch, and the size of the thread after it.
    pub(crate) fn pending(&self, counter: &str, states: &[DirtyState]) -> (CommittedBatch, Batch) {
        let unfinished = self.turn.as_ref().filter(|turn| !turn.is_done());
        let committed_batch = self.journal.committed_batch(self.log.len(), unfinished.is_some());
        let (others, churn) = (self.journal.others().to_vec(), self.projection.churn().clone());
        let head = ThreadHead::new(committed_batch.clone(), others, churn, &self.provider, self.child.clone());
        let batch = self.journal.batch(&head, &self.log, counter, self.projection.epoch());
        let batch = self.claims.add_to(batch);
        let key = self.journal.keys().turn.clone();
        let batch = match unfinished {
            Some(turn) => batch.set(key, encode_turn(turn, &self.log)),
            None => batch.delete(key),
        };
        (committed_batch, states.iter().fold(batch, |batch, state| state.add_to(batch)))
    }

    /// The pending batch is durable.
    pub(crate) fn committed(&mut self, committed_batch: &CommittedBatch, version: Version) {
        self.claims.committed(committed_batch);
        self.journal.committed(committed_batch, version);
    }

    /// Reads the thread from the store, with the records under `more` keys from the same moment.
    pub(crate) async fn read(&self, shared: &SharedExecution, more: Vec<String>) -> Result<StoredThread, StoreError> {
        let core = shared.core();
        let live = |execution: &ExecutionId| core.states.is_live(execution);
        read::read_thread(&*core.store, self.journal.keys(), more, &live).await
    }

    /// Reads what others wrote since.
    pub(crate) async fn read_changes(&self, shared: &SharedExecution) -> Result<HeadNow, StoreError> {
        read::read_changes(&*shared.core().store, &self.journal, &self.claims).await
    }

    /// Reads the records of turns that others left.
    pub(crate) async fn read_turns(&self, shared: &SharedExecution) -> Result<Vec<(String, Record)>, StoreError> {
        let core = shared.core();
        let live = |execution: &ExecutionId| core.states.is_live(execution);
        read::read_turns(&*core.store, self.journal.keys(), &live).await
    }

    /// Adopts turns that others left since; the newest becomes ours if we have none. Only for the holder of the lease.
    ///
    /// `lost_turn`: another execution took over the turn that we had begun. A turn of others that is not as it was when
    /// it was first read is not lost: its owner continued or ended it, or a batch was applied after the execution that
    /// made it was dropped.
    pub(crate) fn adopt(&mut self, turns: &[(String, Record)], lost_turn: bool) -> Result<(), StoreError> {
        let abandoned_turns = read::decode_turns(turns, |from, count| {
            let items = self.log.range(from.min(self.log.len())..self.log.len());
            items.filter_map(|(_, entry)| entry.item.as_call()).take(count).cloned().collect()
        })?;
        let found = self.claims.adopt_new(abandoned_turns, self.turn.is_none());
        if found.is_some() || !lost_turn {
            self.claims.take_loss();
        }
        self.turn = self.turn.take().or(found);
        Ok(())
    }

    /// Discards the turn, and everything that is not durable.
    pub(crate) fn forget_turn(&mut self, shared: &SharedExecution) {
        let durable = self.journal.size().items;
        self.turn = None;
        self.claims = Claims::default();
        self.journal.forget_pending();
        self.call_ids.1 = self.call_ids.1.min(durable);
        if self.log.len() > durable {
            self.log = self.log.prefix(durable);
            self.projection.forget_behind(durable);
            self.provider.lose_cache(EpochReason::LogMerged);
        }
        shared.log().set(self.log.clone());
        shared.core().states.set_log_pending(shared.id(), false);
        self.durable = true;
    }

    /// Applies what was read when the thread was opened; returns the records under the additional keys.
    pub(crate) fn restore(&mut self, shared: &SharedExecution, stored: StoredThread) -> Vec<Option<Record>> {
        if let Some((head, version)) = stored.head {
            stored.records.into_iter().for_each(|record| self.append_record(&*shared.core().counter, record));
            self.journal.restore(&head, version, &stored.decisions);
            self.turn = self.claims.adopt(stored.abandoned_turns);
            self.provider = head.provider();
            self.child = head.child();
            self.projection = Projection::restore(stored.epoch, head.into_churn());
        }
        shared.log().set(self.log.clone());
        stored.more
    }

    /// The thread was deleted: everything that is known about it must be written again.
    pub(crate) fn start_over(&mut self) {
        self.claims = Claims::default();
        self.journal.start_over();
    }

    /// Puts what others wrote before what is pending; returns the number of their items.
    pub(crate) fn take_in(&mut self, shared: &SharedExecution, changes: ThreadChanges) -> usize {
        if let Some(committed_batch) = &changes.committed_batch {
            self.claims.batch_committed(committed_batch);
            self.journal.batch_committed(committed_batch);
        }
        let from = self.journal.size().items;
        let review = self.claims.review(changes.abandoned_turns, changes.lost_turn);
        if review.lost_turn {
            // The pending part of our turn must never become durable: the execution that took it over decides how it ends.
            let taken_over = std::mem::take(&mut self.claims);
            self.forget_turn(shared);
            self.claims = taken_over;
        }
        let count = self.put_before(&*shared.core().counter, changes.records, &review.owned_calls);
        shared.log().set(self.log.clone());
        self.journal.take_in(&changes.head, changes.version, &changes.decisions, from, count);
        if count > 0 {
            self.projection.forget_behind(from);
            self.provider.lose_cache(EpochReason::LogMerged);
        }
        count
    }

    /// Puts items of others after what is durable, and ours after them; returns the number of their items.
    ///
    /// One of our outputs is dropped if another execution already logged an output for its call, or if its call is in
    /// `owned_calls`. Outputs that close a turn of others may belong to calls that were added to our log just now.
    fn put_before(
        &mut self,
        counter: &dyn TokenCounter,
        theirs: Vec<LogRecord<'static>>,
        owned_calls: &[Box<str>],
    ) -> usize {
        let durable = self.journal.size().items;
        let pending: Vec<Entry> = self.log.range(durable..self.log.len()).map(|(_, entry)| entry.clone()).collect();
        self.call_ids.1 = self.call_ids.1.min(durable);
        if !pending.is_empty() {
            self.log = self.log.prefix(durable);
        }
        theirs.into_iter().for_each(|record| self.append_record(counter, record));
        let count = self.log.len() - durable;
        for entry in pending {
            let unwanted = entry.item.as_output().is_some_and(|output| {
                let answers = entry.call.is_some() || output.output == INTERRUPTED;
                answers && (owned_calls.contains(&output.call_id) || !self.log.is_open(&output.call_id))
            });
            if !unwanted {
                self.log.append(entry.item, entry.tokens);
            }
        }
        count
    }

    /// Appends items with their stored counts, unless another counter made them.
    fn append_record(&mut self, counter: &dyn TokenCounter, record: LogRecord<'_>) {
        for (item, tokens) in record.into_items(counter.name()) {
            let tokens = tokens.unwrap_or_else(|| count_item(counter, &item));
            self.log.append(item, tokens);
        }
    }
}
