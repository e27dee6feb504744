//! Makes steps durable: items, states, decisions and the turn in one atomic batch.
//!
//! The head record of a thread counts what belongs to it and is the only record that two writers fight for: a batch
//! expects the head it read. Whoever is late reads what the other wrote, puts its own items behind it, and tries
//! again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::JournalPolicy;
use super::execution::Run;
use crate::decision::{Action, Decision, EpochReason};
use crate::error::Error;
use crate::event::Event;
use crate::id::{ExecutionId, LayerId, ThreadId};
use crate::item::Item;
use crate::log::ItemLog;
use crate::state::{DirtyState, WRITE_ATTEMPTS, describe};
use crate::store::{Batch, Key, Record, StorageAdapter, StoreError, Version};
use crate::tokens::count_item;
use crate::turn::Turn;
use crate::window::{Churn, Epoch};

/// The format of all records of a thread, so that a later one can be told from it.
const FORMAT: u32 = 1;
/// How often a batch is put behind what others wrote before the commit is given up.
const MAX_REBASES: u32 = 100;
/// How many records are read at once when a thread is opened.
const READ_AHEAD: u64 = 512;

/// What is durable about a thread, and what is about to be.
pub(crate) struct Journal {
    keys: Keys,
    execution: ExecutionId,
    /// The head that the next batch expects.
    version: Option<Version>,
    records: u64,
    /// How many items of the log are durable.
    items: usize,
    decisions: u64,
    /// Counts our batches, so that one whose answer was lost is recognised.
    commits: u64,
    pending_decisions: Vec<Decision>,
    epoch_changed: bool,
    /// Turn records to be removed with the next batch.
    ended_turns: Vec<String>,
    by_layer: HashMap<LayerId, Arc<Vec<Decision>>>,
}

struct Keys {
    head: String,
    epoch: String,
    log: String,
    decisions: String,
    turns: String,
}

/// The one record of a thread that changes with every batch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    format: u32,
    items: usize,
    records: u64,
    decisions: u64,
    /// The execution that wrote it, and the number of its batch.
    commit: (ExecutionId, u64),
    pub(crate) churn: BTreeMap<LayerId, Churn>,
    pub(crate) calibration: f64,
    pub(crate) last_sent: Option<Duration>,
    pub(crate) ever_hit: bool,
}

#[derive(Serialize, Deserialize)]
struct LogRecord<'a> {
    format: u32,
    counter: std::borrow::Cow<'a, str>,
    tokens: Vec<u64>,
    items: Vec<Arc<Item>>,
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    format: u32,
    #[serde(flatten)]
    value: T,
}

#[derive(Serialize, Deserialize)]
struct TurnRecord<T> {
    turn: T,
}

/// What a thread holds, as it is read when it is opened.
#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) head: Option<Head>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) turn: Option<Turn>,
}

impl Journal {
    pub(crate) fn new(thread: &ThreadId, execution: &ExecutionId) -> Self {
        let key = |name| Key::new("threads").then(thread.as_str()).then(name);
        let keys = Keys {
            head: key("head").into_string(),
            epoch: key("epoch").into_string(),
            log: key("log").into_prefix(),
            decisions: key("decisions").into_prefix(),
            turns: key("turns").into_prefix(),
        };
        Self {
            keys,
            execution: execution.clone(),
            version: None,
            records: 0,
            items: 0,
            decisions: 0,
            commits: 0,
            pending_decisions: Vec::new(),
            epoch_changed: false,
            ended_turns: Vec::new(),
            by_layer: HashMap::new(),
        }
    }

    /// The turn is over, or was given up: its record goes with the next batch.
    pub(crate) fn turn_ended(&mut self) {
        self.ended_turns.push(self.turn_key());
    }

    /// Whether there are items or decisions that are not durable.
    pub(crate) fn is_behind(&self, log: &ItemLog) -> bool {
        self.items < log.len() || !self.pending_decisions.is_empty()
    }

    fn turn_key(&self) -> String {
        format!("{}{}", self.keys.turns, crate::store::escape_segment(self.execution.as_str()))
    }

    /// What a layer decided in this thread.
    pub(crate) fn decisions_of(&self, layer: &LayerId) -> Arc<Vec<Decision>> {
        self.by_layer.get(layer).cloned().unwrap_or_default()
    }

    /// Numbers a decision and keeps it for the next batch.
    pub(crate) fn decide(
        &mut self,
        at: usize,
        layer: Option<LayerId>,
        action: Action,
        reason: String,
        price: Option<crate::decision::Price>,
    ) -> &Decision {
        let number = self.decisions + self.pending_decisions.len() as u64;
        self.epoch_changed |= layer.is_none();
        let decision = Decision { number, at, layer, action, reason, price };
        self.remember(&decision);
        self.pending_decisions.push(decision);
        self.pending_decisions.last().expect("just pushed")
    }

    fn remember(&mut self, decision: &Decision) {
        if let Some(layer) = &decision.layer {
            Arc::make_mut(self.by_layer.entry(layer.clone()).or_default()).push(decision.clone());
        }
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have text keys and no foreign types, so they have a JSON form")
}

fn decode<T: for<'a> Deserialize<'a>>(key: &str, record: &Record) -> Result<T, StoreError> {
    serde_json::from_slice(&record.value)
        .map_err(|error| StoreError::Corrupt { key: key.to_owned(), reason: error.to_string() })
}

fn numbered(prefix: &str, number: u64) -> String {
    format!("{prefix}{number:020}")
}

impl Run {
    /// Reads what the thread holds.
    pub(crate) async fn read_thread(&mut self) -> Result<Stored, StoreError> {
        let store = self.core().store.clone();
        let fixed = [self.journal.keys.head.clone(), self.journal.keys.epoch.clone()];
        let records = store.get_many(&fixed).await?;
        let [head, epoch] = records.as_slice() else { unreachable!("two keys give two records") };
        let Some(head) = head else { return Ok(Stored::default()) };
        let version = head.version;
        let head = self.decode_head(head)?;
        self.take_in_log(&*store, head.records).await?;
        self.take_in_decisions(&*store, head.decisions).await?;
        let epoch = epoch.as_ref().map(|record| decode::<Versioned<Epoch>>(&fixed[1], record)).transpose()?;
        let turn = self.read_turn(&*store).await?;
        (self.journal.version, self.journal.items) = (Some(version), head.items);
        Ok(Stored { head: Some(head), epoch: epoch.map(|epoch| epoch.value), turn })
    }

    fn decode_head(&self, record: &Record) -> Result<Head, StoreError> {
        let key = &self.journal.keys.head;
        let head: Head = decode(key, record)?;
        if head.format != FORMAT {
            let reason = format!("it has format {}, and this program knows {FORMAT}", head.format);
            return Err(StoreError::Corrupt { key: key.clone(), reason });
        }
        Ok(head)
    }

    /// Appends the log records up to the number `end`.
    async fn take_in_log(&mut self, store: &dyn StorageAdapter, end: u64) -> Result<(), StoreError> {
        while self.journal.records < end {
            let until = end.min(self.journal.records + READ_AHEAD);
            let keys: Vec<String> =
                (self.journal.records..until).map(|number| numbered(&self.journal.keys.log, number)).collect();
            for (key, record) in keys.iter().zip(store.get_many(&keys).await?) {
                let missing = || StoreError::Corrupt { key: key.clone(), reason: "the record is missing".to_owned() };
                let log: LogRecord<'_> = decode(key, &record.ok_or_else(missing)?)?;
                self.take_in_items(log);
            }
            self.journal.records = until;
        }
        Ok(())
    }

    /// Appends items with their stored counts, unless those were made by another counter.
    fn take_in_items(&mut self, record: LogRecord<'_>) {
        let counter = self.core().counter.clone();
        let counted = record.counter == counter.name() && record.tokens.len() == record.items.len();
        for (index, item) in record.items.into_iter().enumerate() {
            let tokens = if counted { record.tokens[index] } else { count_item(&*counter, &item) };
            self.log.append(item, tokens);
        }
    }

    async fn take_in_decisions(&mut self, store: &dyn StorageAdapter, end: u64) -> Result<(), StoreError> {
        let keys: Vec<String> =
            (self.journal.decisions..end).map(|number| numbered(&self.journal.keys.decisions, number)).collect();
        for (key, record) in keys.iter().zip(store.get_many(&keys).await?) {
            let Some(record) = record else { continue };
            let decision: Versioned<Decision> = decode(key, &record)?;
            self.journal.remember(&decision.value);
        }
        self.journal.decisions = end;
        Ok(())
    }

    /// The newest unfinished turn. Its record is removed when it ends here.
    async fn read_turn(&mut self, store: &dyn StorageAdapter) -> Result<Option<Turn>, StoreError> {
        let keys = store.list(&self.journal.keys.turns).await?;
        let Some(newest) = keys.last() else { return Ok(None) };
        let Some(record) = store.get(newest).await? else { return Ok(None) };
        let turn: Versioned<TurnRecord<Turn>> = decode(newest, &record)?;
        self.journal.ended_turns = keys;
        Ok(Some(turn.value.turn))
    }

    /// Makes everything so far durable in one batch.
    ///
    /// A failing store is tried again with growing pauses; what stays undone goes with the next commit.
    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        let shared = self.shared.clone();
        let writer = shared.core.states.writer(&shared.id);
        let _writing = match &writer {
            Some(writer) => Some(writer.lock().await),
            None => None,
        };
        match self.try_commit().await {
            Ok(()) => {
                self.durable = true;
                Ok(())
            }
            Err(error) => {
                self.durable = false;
                match shared.core.journal {
                    JournalPolicy::BestEffort => Ok(()),
                    JournalPolicy::Require => Err(Error::Journal(error)),
                }
            }
        }
    }

    async fn try_commit(&mut self) -> Result<(), StoreError> {
        let (mut failures, mut rebases) = (0, 0);
        loop {
            let states = self.shared.core.states.dirty(&self.shared.id);
            let error = match self.core().store.apply(self.batch(&states)).await {
                Ok(version) => {
                    self.settle(version, &states);
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) if rebases < MAX_REBASES => {
                    rebases += 1;
                    match self.rebase().await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.shared.fault(None, "persist", describe(&error));
            failures += 1;
            if failures >= WRITE_ATTEMPTS {
                return Err(error);
            }
            self.core().states.clone().pause(failures - 1).await;
        }
    }

    /// Everything that is not durable yet.
    fn batch(&self, states: &[DirtyState]) -> Batch {
        let journal = &self.journal;
        let mut batch = Batch::new().expect(journal.keys.head.clone(), journal.version);
        let items = journal.items..self.log.len();
        let records = journal.records + u64::from(!items.is_empty());
        let head = Head {
            format: FORMAT,
            items: items.end,
            records,
            decisions: journal.decisions + journal.pending_decisions.len() as u64,
            commit: (journal.execution.clone(), journal.commits),
            churn: self.projection.churn().clone(),
            calibration: self.calibration.0,
            last_sent: self.cache.last_sent,
            ever_hit: self.cache.ever_hit,
        };
        batch = batch.set(journal.keys.head.clone(), encode(&head));
        if !items.is_empty() {
            let entries: Vec<_> = self.log.range(items).map(|(_, entry)| entry).collect();
            let record = LogRecord {
                format: FORMAT,
                counter: self.core().counter.name().into(),
                tokens: entries.iter().map(|entry| entry.tokens).collect(),
                items: entries.iter().map(|entry| entry.item.clone()).collect(),
            };
            batch = batch.set(numbered(&journal.keys.log, journal.records), encode(&record));
        }
        for decision in &journal.pending_decisions {
            let key = numbered(&journal.keys.decisions, decision.number);
            batch = batch.set(key, encode(&Versioned { format: FORMAT, value: decision }));
        }
        if let Some(epoch) = self.projection.epoch().filter(|_| journal.epoch_changed) {
            batch = batch.set(journal.keys.epoch.clone(), encode(&Versioned { format: FORMAT, value: epoch }));
        }
        for key in &journal.ended_turns {
            batch = batch.delete(key.clone());
        }
        if let Some(turn) = self.turn.as_ref().filter(|turn| !turn.is_done()) {
            let record = Versioned { format: FORMAT, value: TurnRecord { turn } };
            batch = batch.set(journal.turn_key(), encode(&record));
        } else {
            batch = batch.delete(journal.turn_key());
        }
        states.iter().fold(batch, |batch, state| state.add_to(batch))
    }

    /// The batch is durable.
    fn settle(&mut self, version: Version, states: &[DirtyState]) {
        let journal = &mut self.journal;
        journal.version = Some(version);
        journal.records += u64::from(self.log.len() > journal.items);
        journal.items = self.log.len();
        journal.decisions += journal.pending_decisions.len() as u64;
        journal.pending_decisions.clear();
        journal.epoch_changed = false;
        journal.ended_turns.clear();
        journal.commits += 1;
        for state in states {
            self.shared.core.states.mark_written(&self.shared.id, state, version);
        }
    }

    /// Takes in what is in the store now: our own batch whose answer was lost, or what others wrote.
    async fn rebase(&mut self) -> Result<(), StoreError> {
        let store = self.core().store.clone();
        let record = store.get(&self.journal.keys.head).await?;
        let Some(record) = record else {
            if self.journal.version.take().is_some() {
                // The thread was deleted under us: it is written anew, whole.
                (self.journal.records, self.journal.items, self.journal.epoch_changed) = (0, 0, true);
            }
            return self.reconcile_states(None).await;
        };
        let head = self.decode_head(&record)?;
        let ours = head.commit == (self.journal.execution.clone(), self.journal.commits);
        if Some(record.version) != self.journal.version {
            if ours {
                self.recognise(&head);
            } else {
                self.put_behind(&*store, &head).await?;
            }
            self.journal.version = Some(record.version);
        }
        self.reconcile_states(ours.then_some(record.version)).await
    }

    /// The head is ours: as much as it says of what was pending is durable.
    fn recognise(&mut self, head: &Head) {
        let journal = &mut self.journal;
        let written = (head.decisions - journal.decisions) as usize;
        journal.pending_decisions.drain(..written.min(journal.pending_decisions.len()));
        (journal.records, journal.items, journal.decisions) = (head.records, head.items, head.decisions);
        journal.commits += 1;
    }

    /// The head is someone else's: their items come first, ours behind.
    async fn put_behind(&mut self, store: &dyn StorageAdapter, head: &Head) -> Result<(), StoreError> {
        let durable = self.journal.items;
        let pending: Vec<_> = self.log.range(durable..self.log.len()).map(|(_, entry)| entry.clone()).collect();
        let prefix = self.log.prefix(durable);
        let ours = std::mem::replace(&mut self.log, prefix);
        if let Err(error) = self.take_in_log(store, head.records).await {
            self.log = ours;
            return Err(error);
        }
        for entry in pending {
            self.log.append(entry.item, entry.tokens);
        }
        self.take_in_decisions(store, head.decisions).await?;
        for (index, decision) in self.journal.pending_decisions.iter_mut().enumerate() {
            decision.number = head.decisions + index as u64;
        }
        self.journal.items = head.items;
        self.projection.forget_behind(durable);
        self.cache.lost = Some(EpochReason::LogMerged);
        let message = "someone else wrote to this thread; their items were put before ours";
        self.shared.fault(None, "merge", message.to_owned());
        Ok(())
    }

    async fn reconcile_states(&self, own: Option<Version>) -> Result<(), StoreError> {
        let states = &self.shared.core.states;
        for layer in states.durable_layers(&self.shared.id) {
            states.reconcile(&self.shared.id, &layer, own).await?;
        }
        Ok(())
    }

    /// Notes what was decided about the window, and tells the observer.
    pub(crate) fn decide(
        &mut self,
        layer: Option<LayerId>,
        action: Action,
        reason: String,
        price: Option<crate::decision::Price>,
    ) {
        let at = self.log.len();
        let decision = self.journal.decide(at, layer, action, reason, price).clone();
        self.core().emit(Event::Decision(&decision));
    }
}
