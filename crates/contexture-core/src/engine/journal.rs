//! Makes steps durable: items, states, decisions and the turn in one atomic batch.
//!
//! The head record of a thread counts what belongs to it and is the only record that two writers fight for: a batch
//! expects the head it read. Whoever is late reads what the other wrote, puts its own items behind it, and tries
//! again. What a batch did is known even if its answer was lost: the head names the newest batch of each writer.

mod records;
mod turns;

use std::collections::HashMap;
use std::sync::Arc;

use super::JournalPolicy;
use super::execution::{INTERRUPTED, Run};
use crate::decision::{Action, Decision, EpochReason, Price};
use crate::error::Error;
use crate::event::Event;
use crate::id::{ExecutionId, LayerId, ThreadId};
use crate::log::Entry;
use crate::state::{DirtyState, MAX_CONFLICTS, WRITE_ATTEMPTS, describe};
use crate::store::{Batch, StorageAdapter, StoreError, Version};
use crate::tokens::count_item;

pub(crate) use records::Stored;
use records::{Head, Keys, Landing, LogRecord, Reach};
use turns::{Claims, Stray};

/// What is durable about a thread, and what is about to be.
pub(crate) struct Journal {
    keys: Keys,
    execution: ExecutionId,
    /// The head that the next batch expects.
    version: Option<Version>,
    /// How much of the thread is durable, as far as this execution has taken it in.
    reach: Reach,
    /// The newest batch of each other writer, as the head told it.
    others: Vec<Landing>,
    /// Counts our batches, so that one whose answer was lost is recognised.
    commits: u64,
    pending_decisions: Vec<Decision>,
    epoch_changed: bool,
    claims: Claims,
    by_layer: HashMap<LayerId, Arc<Vec<Decision>>>,
}

/// What others added to a thread.
struct News {
    records: Vec<LogRecord<'static>>,
    decisions: Vec<Decision>,
    strays: Vec<Stray>,
    /// Whether our own turn's record is gone.
    lost_turn: bool,
}

impl Journal {
    pub(crate) fn new(thread: &ThreadId, execution: &ExecutionId) -> Self {
        Self {
            keys: Keys::new(thread, execution),
            execution: execution.clone(),
            version: None,
            reach: Reach::default(),
            others: Vec::new(),
            commits: 0,
            pending_decisions: Vec::new(),
            epoch_changed: false,
            claims: Claims::default(),
            by_layer: HashMap::new(),
        }
    }

    /// What a layer decided in this thread.
    pub(crate) fn decisions_of(&self, layer: &LayerId) -> Arc<Vec<Decision>> {
        self.by_layer.get(layer).cloned().unwrap_or_default()
    }

    /// Numbers a decision and keeps it for the next batch.
    fn decide(&mut self, mut decision: Decision) -> &Decision {
        decision.number = self.reach.decisions + self.pending_decisions.len() as u64;
        self.epoch_changed |= decision.layer.is_none();
        self.remember(&decision);
        self.pending_decisions.push(decision);
        self.pending_decisions.last().expect("just pushed")
    }

    fn remember(&mut self, decision: &Decision) {
        if let Some(layer) = &decision.layer {
            Arc::make_mut(self.by_layer.entry(layer.clone()).or_default()).push(decision.clone());
        }
    }

    /// What the next batch leaves behind.
    fn landing(&self, log_len: usize, turn: bool) -> Landing {
        let reach = Reach {
            items: log_len,
            records: self.reach.records + u64::from(log_len > self.reach.items),
            decisions: self.reach.decisions + self.pending_decisions.len() as u64,
        };
        Landing { execution: self.execution.clone(), commit: self.commits, reach, turn }
    }

    /// A batch of ours is durable.
    fn landed(&mut self, landing: &Landing) {
        let written = landing.reach.decisions.saturating_sub(self.reach.decisions) as usize;
        self.pending_decisions.drain(..written.min(self.pending_decisions.len()));
        self.reach = landing.reach;
        self.claims.recorded = landing.turn && !self.claims.closed;
        self.claims.strays.clear();
        self.commits += 1;
    }

    /// Takes in decisions of others: ours that are pending are numbered behind them.
    ///
    /// `from` is where the items of others were put, `count` how many. What the engine decided about positions from
    /// there on went with the positions.
    fn take_in_decisions(&mut self, theirs: &[Decision], from: usize, count: usize) {
        let durable = self.reach.decisions;
        for decisions in self.by_layer.values_mut() {
            Arc::make_mut(decisions).retain(|decision| decision.number < durable);
        }
        theirs.iter().for_each(|decision| self.remember(decision));
        self.reach.decisions += theirs.len() as u64;
        let pending = std::mem::take(&mut self.pending_decisions);
        for mut decision in pending.into_iter().filter(|decision| count == 0 || !decision.action.reaches_behind(from)) {
            if decision.at > from {
                decision.at += count;
            }
            self.decide(decision);
        }
    }

    /// The thread was deleted: everything that is known about it is to be written anew.
    fn start_over(&mut self) {
        let mut decisions: Vec<Decision> =
            self.by_layer.drain().flat_map(|(_, decisions)| (*decisions).clone()).collect();
        decisions.sort_by_key(|decision| decision.number);
        (self.version, self.reach) = (None, Reach::default());
        self.pending_decisions.clear();
        self.others.clear();
        self.claims = Claims::default();
        self.epoch_changed = true;
        for decision in decisions {
            self.decide(decision);
        }
    }
}

impl Run {
    /// Whether the log has items that are not durable.
    pub(crate) fn is_behind(&self) -> bool {
        self.log.len() > self.journal.reach.items
    }

    /// Makes everything so far durable in one batch.
    ///
    /// A failing store is tried again with growing pauses; what stays undone goes with the next commit.
    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        let committed = self.commit_all().await;
        self.durable = committed.is_ok();
        match committed {
            Err(error) if self.core().journal == JournalPolicy::Require => Err(Error::Journal(error)),
            _ if std::mem::take(&mut self.journal.claims.taken_over) => Err(Error::TakenOver),
            _ => Ok(()),
        }
    }

    /// As [`commit`](Run::commit), whatever the policy says about failures.
    pub(crate) async fn commit_all(&mut self) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let writer = shared.core.states.writer(&shared.id);
        let _writing = match &writer {
            Some(writer) => Some(writer.lock().await),
            None => None,
        };
        let (mut failures, mut conflicts) = (0, 0);
        loop {
            let error = match self.try_commit().await {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict { .. }) if conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    match self.rebase().await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if !self.worth_another_try(&error, &mut failures).await {
                return Err(error);
            }
        }
    }

    /// Reports a failure of the store and waits; `false` if it has failed often enough.
    pub(crate) async fn worth_another_try(&self, error: &StoreError, failures: &mut u32) -> bool {
        self.shared.fault(None, "persist", describe(error));
        *failures += 1;
        if *failures >= WRITE_ATTEMPTS {
            return false;
        }
        self.core().states.pause(*failures - 1).await;
        true
    }

    /// Tries once. Dropped in the middle, it leaves nothing but a batch in doubt, which the next try recognises.
    async fn try_commit(&mut self) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let states = shared.core.states.dirty(&shared.id);
        let unfinished = self.turn.as_ref().is_some_and(|turn| !turn.is_done());
        let landing = self.journal.landing(self.log.len(), unfinished);
        let batch = self.batch(&landing, &states);
        shared.core.states.begin_write(&shared.id, &states);
        let version = shared.core.store.apply(batch).await?;
        shared.core.states.mark_written(&shared.id, &states, version);
        shared.core.states.set_behind(&shared.id, false);
        let journal = &mut self.journal;
        journal.claims.closed = false;
        journal.landed(&landing);
        journal.version = Some(version);
        journal.epoch_changed = false;
        Ok(())
    }

    /// Everything that is not durable yet.
    fn batch(&self, landing: &Landing, states: &[DirtyState]) -> Batch {
        let (journal, keys) = (&self.journal, &self.journal.keys);
        let head = Head::new(landing.clone(), journal.others.clone(), self);
        let mut batch = Batch::new().expect(keys.head.clone(), journal.version).set(keys.head.clone(), head.encode());
        if self.is_behind() {
            batch = batch.set(keys.log_record(journal.reach.records), self.log_record().encode());
        }
        for decision in &journal.pending_decisions {
            batch = batch.set(keys.decision(decision.number), records::encode_decision(decision));
        }
        if let Some(epoch) = self.projection.epoch().filter(|_| journal.epoch_changed) {
            batch = batch.set(keys.epoch.clone(), records::encode_epoch(epoch));
        }
        for stray in &journal.claims.strays {
            batch = batch.delete(stray.key.clone());
        }
        batch = match self.turn.as_ref().filter(|_| landing.turn) {
            Some(turn) => batch.set(keys.turn.clone(), records::encode_turn(turn)),
            None => batch.delete(keys.turn.clone()),
        };
        states.iter().fold(batch, |batch, state| state.add_to(batch))
    }

    /// The items that are not durable yet, as one record.
    fn log_record(&self) -> LogRecord<'_> {
        let items = self.journal.reach.items..self.log.len();
        let entries: Vec<_> = self.log.range(items).map(|(_, entry)| entry).collect();
        LogRecord::new(self.core().counter.name(), &entries)
    }

    /// Takes in what is in the store now: our own batch whose answer was lost, and what others wrote.
    ///
    /// Everything is read before anything changes, so that it can fail or be dropped at any point.
    async fn rebase(&mut self) -> Result<(), StoreError> {
        let store = self.core().store.clone();
        match store.get(&self.journal.keys.head).await? {
            None if self.journal.version.is_some() => self.journal.start_over(),
            Some(record) if Some(record.version) != self.journal.version => {
                let head = Head::decode(&self.journal.keys.head, &record)?;
                let landing = head.landing_of(&self.journal.execution, self.journal.commits).cloned();
                let news = self.read_news(&*store, &head, landing.as_ref()).await?;
                if let Some(landing) = &landing {
                    self.journal.landed(landing);
                    self.shared.core.states.mark_landed(&self.shared.id);
                }
                self.take_in(news, &head);
                self.journal.version = Some(record.version);
            }
            None | Some(_) => {}
        }
        self.reconcile_states().await
    }

    /// Reads what others added to the thread, since `landing` if that batch of ours is durable after all.
    async fn read_news(
        &self,
        store: &dyn StorageAdapter,
        head: &Head,
        landing: Option<&Landing>,
    ) -> Result<News, StoreError> {
        let (keys, claims) = (&self.journal.keys, &self.journal.claims);
        let known = landing.map_or(self.journal.reach, |landing| landing.reach);
        let records = records::read_log(store, keys, known.records..head.last.reach.records).await?;
        let decisions = records::read_decisions(store, keys, known.decisions..head.last.reach.decisions).await?;
        let recorded = landing.map_or(claims.recorded, |landing| landing.turn && !claims.closed);
        let lost_turn = recorded && store.get(&keys.turn).await?.is_none();
        // A batch of ours that is durable has taken the strays over already.
        let strays = if landing.is_some() { &[] } else { claims.strays.as_slice() };
        let strays = turns::read_again(store, strays).await?;
        Ok(News { records, decisions, strays, lost_turn })
    }

    /// Puts what others wrote before what is pending.
    fn take_in(&mut self, news: News, head: &Head) {
        let from = self.journal.reach.items;
        let abandoned = self.review_claims(news.strays, news.lost_turn);
        let count = self.put_before(news.records, &abandoned);
        self.shared.log().set(self.log.clone());
        self.journal.take_in_decisions(&news.decisions, from, count);
        self.journal.reach = head.last.reach;
        self.journal.others = head.others_than(&self.journal.execution);
        if count == 0 {
            return;
        }
        self.projection.forget_behind(from);
        self.cache.lost = Some(EpochReason::LogMerged);
        let message = "someone else wrote to this thread; their items were put before ours";
        self.shared.fault(None, "merge", message.to_owned());
    }

    /// Puts items of others behind what is durable, and ours behind them; answers how many they are.
    ///
    /// Of ours, an output goes if its call was answered by someone else, or is one of those in `abandoned`. What
    /// closes a turn of others may answer calls that came into our log only now.
    fn put_before(&mut self, theirs: Vec<LogRecord<'static>>, abandoned: &[Box<str>]) -> usize {
        let durable = self.journal.reach.items;
        let pending: Vec<Entry> = self.log.range(durable..self.log.len()).map(|(_, entry)| entry.clone()).collect();
        if !pending.is_empty() {
            self.log = self.log.prefix(durable);
        }
        theirs.into_iter().for_each(|record| self.append_record(record));
        let count = self.log.len() - durable;
        for entry in pending {
            let unwanted = entry.item.as_output().is_some_and(|output| {
                let answers = entry.answers.is_some() || output.output == INTERRUPTED;
                answers && (abandoned.contains(&output.call_id) || !self.log.is_open(&output.call_id))
            });
            if !unwanted {
                self.log.append(entry.item, entry.tokens);
            }
        }
        count
    }

    /// Appends items with their stored counts, unless those were made by another counter.
    fn append_record(&mut self, record: LogRecord<'_>) {
        let counter = self.core().counter.clone();
        for (item, tokens) in record.into_items(counter.name()) {
            let tokens = tokens.unwrap_or_else(|| count_item(&*counter, &item));
            self.log.append(item, tokens);
        }
    }

    /// Takes in what others made of the layers' states.
    async fn reconcile_states(&self) -> Result<(), StoreError> {
        let (states, roster) = (&self.shared.core.states, self.shared.roster());
        for id in states.durable_layers(&self.shared.id) {
            let changed = states.reconcile(&self.shared.id, &id).await?;
            if let Some(layer) = roster.get(id.as_str()).filter(|_| changed) {
                self.shared.refresh_later(layer);
            }
        }
        Ok(())
    }

    /// Takes over what was read when the thread was opened.
    pub(crate) fn restore_journal(&mut self, stored: &mut Stored) {
        let Some((head, version)) = &stored.head else { return };
        self.journal.version = Some(*version);
        self.journal.others = head.others_than(&self.journal.execution);
        stored.records.drain(..).for_each(|record| self.append_record(record));
        stored.decisions.iter().for_each(|decision| self.journal.remember(decision));
        self.journal.reach = head.last.reach;
        self.adopt(std::mem::take(&mut stored.strays));
    }

    /// Reads what the thread holds, together with records of the same moment under `more` keys.
    pub(crate) async fn read_thread(&self, more: Vec<String>) -> Result<Stored, StoreError> {
        let (store, keys) = (self.core().store.clone(), &self.journal.keys);
        let live = |execution: &ExecutionId| self.core().states.is_live(execution);
        records::read_thread(&*store, keys, more, &live).await
    }

    /// Notes what was decided about the window, and tells the observer.
    pub(crate) fn decide(&mut self, layer: Option<LayerId>, action: Action, reason: String, price: Option<Price>) {
        // A price that is no number has no JSON form that could be read again.
        let price = price.filter(|price| price.cost.is_finite() && price.saves_per_request.is_finite());
        let decision = Decision { number: 0, at: self.log.len(), layer, action, reason, price };
        let decision = self.journal.decide(decision).clone();
        self.core().emit(Event::Decision(&decision));
    }
}
