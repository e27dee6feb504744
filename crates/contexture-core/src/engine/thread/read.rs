//! Reads a thread from the store: all of it when it is opened, and later what others added.

use std::ops::Range;

use super::claims::{AbandonedTurn, Claims};
use super::journal::Journal;
use super::records::{
    CommittedBatch, Keys, LogRecord, ThreadHead, corrupt, decode_decision, decode_epoch, decode_turn,
};
use crate::decision::Decision;
use crate::id::ExecutionId;
use crate::item::FunctionCall;
use crate::store::{Record, StorageAdapter, StoreError, Version, unescape_segment};
use crate::window::Epoch;

/// How many records are read at once.
const READ_AHEAD: u64 = 512;

/// The contents of a thread when it is opened.
#[derive(Default)]
pub(crate) struct StoredThread {
    pub(super) head: Option<(ThreadHead, Version)>,
    pub(super) records: Vec<LogRecord<'static>>,
    pub(super) decisions: Vec<Decision>,
    pub(super) epoch: Option<Epoch>,
    /// Turns of executions that do not run in this process, oldest first.
    pub(super) abandoned_turns: Vec<AbandonedTurn>,
    /// The records under the additional keys.
    pub(crate) more: Vec<Option<Record>>,
}

/// Reads a thread. The head, the epoch and `more` are from one moment; the records that the head counts never change.
pub(super) async fn read_thread(
    store: &dyn StorageAdapter,
    keys: &Keys,
    more: Vec<String>,
    is_live: &(dyn Fn(&ExecutionId) -> bool + Sync),
) -> Result<StoredThread, StoreError> {
    let mut wanted = vec![keys.head.clone(), keys.epoch.clone()];
    wanted.extend(more);
    let mut looks = 0;
    let (head, epoch, more) = loop {
        let mut found = store.get_many(&wanted).await?.into_iter();
        let (head, epoch) = (found.next().flatten(), found.next().flatten());
        if head.is_some() {
            break (head, epoch, found.collect());
        }
        let left = store.list(&keys.all).await?.len();
        if left == 0 {
            return Ok(StoredThread { more: found.collect(), ..StoredThread::default() });
        }
        // Another writer may have created the thread between the two reads.
        looks += 1;
        if looks > 1 {
            return Err(corrupt(&keys.head, format!("it is missing, and {left} records of the thread are there")));
        }
    };
    let mut stored = StoredThread { more, ..StoredThread::default() };
    let Some(head) = head else { return Ok(stored) };
    let (head, version) = (ThreadHead::decode(&keys.head, &head)?, head.version);
    let size = head.last.size;
    stored.records = read_log(store, keys, 0..size.records).await?;
    let items: usize = stored.records.iter().map(|record| record.len()).sum();
    if items != size.items {
        return Err(corrupt(&keys.head, format!("it counts {} items, and the log has {items}", size.items)));
    }
    stored.decisions = read_decisions(store, keys, 0..size.decisions).await?;
    stored.epoch = epoch.map(|record| decode_epoch(&keys.epoch, &record)).transpose()?;
    let turns = read_turns(store, keys, is_live).await?;
    stored.abandoned_turns = decode_turns(&turns, |from, count| {
        let items = stored.records.iter().flat_map(|record| record.items()).skip(from);
        items.filter_map(|item| item.as_call()).take(count).cloned().collect()
    })?;
    stored.head = Some((head, version));
    Ok(stored)
}

/// The log records of these numbers.
async fn read_log(
    store: &dyn StorageAdapter,
    keys: &Keys,
    numbers: Range<u64>,
) -> Result<Vec<LogRecord<'static>>, StoreError> {
    read_numbered(store, numbers, |number| keys.log_record(number), LogRecord::decode).await
}

/// The decisions of these numbers.
async fn read_decisions(
    store: &dyn StorageAdapter,
    keys: &Keys,
    numbers: Range<u64>,
) -> Result<Vec<Decision>, StoreError> {
    read_numbered(store, numbers, |number| keys.decision(number), decode_decision).await
}

async fn read_numbered<T>(
    store: &dyn StorageAdapter,
    numbers: Range<u64>,
    key: impl Fn(u64) -> String,
    decode: impl Fn(&str, &Record) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut values = Vec::new();
    let mut next = numbers.start;
    while next < numbers.end {
        let until = numbers.end.min(next + READ_AHEAD);
        let keys: Vec<String> = (next..until).map(&key).collect();
        for (key, record) in keys.iter().zip(store.get_many(&keys).await?) {
            let record = record.ok_or_else(|| corrupt(key, "the record is missing"))?;
            values.push(decode(key, &record)?);
        }
        next = until;
    }
    Ok(values)
}

/// How the head changed since it was last read or written.
pub(crate) enum HeadNow {
    /// It has not changed.
    Same,
    /// The thread was deleted.
    Gone,
    /// There was a write: of others, or of this execution with a batch whose result was lost.
    Moved(Box<ThreadChanges>),
}

/// What others added to a thread.
pub(crate) struct ThreadChanges {
    pub(super) head: ThreadHead,
    pub(super) version: Version,
    /// Our own batch whose result was lost and that is durable.
    pub(super) committed_batch: Option<CommittedBatch>,
    pub(super) records: Vec<LogRecord<'static>>,
    pub(super) decisions: Vec<Decision>,
    pub(super) abandoned_turns: Vec<AbandonedTurn>,
    /// Whether the record of our own turn is missing.
    pub(super) lost_turn: bool,
}

impl ThreadChanges {
    /// Whether a batch of ours whose result was lost is durable.
    pub(crate) fn has_our_batch(&self) -> bool {
        self.committed_batch.is_some()
    }

    /// Whether someone else took our own turn over.
    pub(crate) fn has_lost_turn(&self) -> bool {
        self.lost_turn
    }
}

/// Reads what others added to the thread. It changes nothing, so it can fail or be dropped at any point.
pub(super) async fn read_changes(
    store: &dyn StorageAdapter,
    journal: &Journal,
    claims: &Claims,
) -> Result<HeadNow, StoreError> {
    let keys = journal.keys();
    let (head, version) = match store.get(&keys.head).await? {
        None if journal.version().is_some() => return Ok(HeadNow::Gone),
        Some(record) if Some(record.version) != journal.version() => {
            (ThreadHead::decode(&keys.head, &record)?, record.version)
        }
        None | Some(_) => return Ok(HeadNow::Same),
    };
    let committed_batch = journal.our_batch_in(&head).cloned();
    let (known, size) =
        (committed_batch.as_ref().map_or(journal.size(), |committed_batch| committed_batch.size), head.last.size);
    let records = read_log(store, keys, known.records..size.records).await?;
    let decisions = read_decisions(store, keys, known.decisions..size.decisions).await?;
    let lost_turn = claims.is_recorded(committed_batch.as_ref()) && store.get(&keys.turn).await?.is_none();
    // If our batch is durable, it has already taken over the abandoned turns.
    let abandoned_turns = if committed_batch.is_some() { &[] } else { claims.abandoned_turns() };
    let abandoned_turns = read_again(store, abandoned_turns).await?;
    Ok(HeadNow::Moved(Box::new(ThreadChanges {
        head,
        version,
        committed_batch,
        records,
        decisions,
        abandoned_turns,
        lost_turn,
    })))
}

/// The records of turns whose executions do not run in this process.
pub(super) async fn read_turns(
    store: &dyn StorageAdapter,
    keys: &Keys,
    is_live: &(dyn Fn(&ExecutionId) -> bool + Sync),
) -> Result<Vec<(String, Record)>, StoreError> {
    let abandoned = |key: &String| {
        let execution = key.strip_prefix(&keys.turns).and_then(unescape_segment);
        execution.is_none_or(|execution| !is_live(&ExecutionId::from(execution)))
    };
    let turns: Vec<String> = store.list(&keys.turns).await?.into_iter().filter(abandoned).collect();
    let records = store.get_many(&turns).await?;
    Ok(turns.into_iter().zip(records).filter_map(|(key, record)| Some((key, record?))).collect())
}

/// The turns of these records, oldest first; `calls` returns a number of calls of the log from a position on.
pub(super) fn decode_turns(
    turns: &[(String, Record)],
    calls: impl Fn(usize, usize) -> Vec<FunctionCall>,
) -> Result<Vec<AbandonedTurn>, StoreError> {
    let mut abandoned_turns = Vec::new();
    for (key, record) in turns {
        // A turn that refers to items newer than those that were read has a running owner.
        let Some(turn) = decode_turn(key, record, &calls)? else { continue };
        abandoned_turns.push(AbandonedTurn::new(key.clone(), record.version, turn));
    }
    abandoned_turns.sort_by_key(AbandonedTurn::version);
    Ok(abandoned_turns)
}

/// The same turns with the current versions of their records.
async fn read_again(
    store: &dyn StorageAdapter,
    abandoned_turns: &[AbandonedTurn],
) -> Result<Vec<AbandonedTurn>, StoreError> {
    let keys: Vec<String> = abandoned_turns.iter().map(|abandoned| abandoned.key().to_owned()).collect();
    let records = if keys.is_empty() { Vec::new() } else { store.get_many(&keys).await? };
    let abandoned_turns = abandoned_turns.iter().zip(records);
    Ok(abandoned_turns.map(|(abandoned, record)| abandoned.at(record.map(|record| record.version))).collect())
}
