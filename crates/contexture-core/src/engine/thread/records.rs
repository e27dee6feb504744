//! The stored records of a thread.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::engine::provider::Provider;
use crate::id::{ExecutionId, LayerId, ThreadId};
use crate::item::{FunctionCall, Item};
use crate::log::{Entry, ItemLog};
use crate::store::{Key, Record, StoreError, escape_segment};
use crate::turn::{StoredTurn, Turn};
use crate::window::{Churn, Epoch};

/// The format number of all records of a thread.
const FORMAT: u32 = 1;
/// How many other writers the head has. An older writer has received its result long ago.
const MAX_OTHERS: usize = 8;

/// The keys of the records of a thread.
pub(super) struct Keys {
    /// Their common prefix.
    pub(super) all: String,
    pub(super) head: String,
    pub(super) epoch: String,
    log: String,
    decisions: String,
    pub(super) turns: String,
    /// The record of our own turn.
    pub(super) turn: String,
}

impl Keys {
    pub(super) fn new(thread: &ThreadId, execution: &ExecutionId) -> Self {
        let key = |name| Key::new("threads").then(thread.as_str()).then(name);
        let turns = key("turns").into_prefix();
        Self {
            all: Key::new("threads").then(thread.as_str()).into_prefix(),
            head: key("head").into_string(),
            epoch: key("epoch").into_string(),
            log: key("log").into_prefix(),
            decisions: key("decisions").into_prefix(),
            turn: format!("{turns}{}", escape_segment(execution.as_str())),
            turns,
        }
    }

    pub(super) fn log_record(&self, number: u64) -> String {
        format!("{}{number:020}", self.log)
    }

    pub(super) fn decision(&self, number: u64) -> String {
        format!("{}{number:020}", self.decisions)
    }
}

/// The size of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadSize {
    pub(super) items: usize,
    pub(super) records: u64,
    pub(super) decisions: u64,
}

/// A durable batch: its writer, and the size of the thread after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CommittedBatch {
    pub(super) execution: ExecutionId,
    /// The number of the batch among those of its writer.
    pub(super) commit: u64,
    #[serde(flatten)]
    pub(super) size: ThreadSize,
    /// Whether it left an unfinished turn.
    pub(super) turn: bool,
}

/// The record of a thread that changes with every batch.
#[derive(Serialize, Deserialize)]
pub(super) struct ThreadHead {
    format: u32,
    /// The batch that wrote this head.
    pub(super) last: CommittedBatch,
    /// The newest batch of each other writer, newest first.
    others: Vec<CommittedBatch>,
    churn: BTreeMap<LayerId, Churn>,
    calibration: f64,
    last_sent: Option<Duration>,
    ever_hit: bool,
    /// For the thread of a child: whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    child: Option<ChildRecord>,
}

/// What is needed to remove the thread of a child together with that of an ancestor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChildRecord {
    /// The threads of the executions that it was started by.
    pub(crate) ancestors: Vec<ThreadId>,
    /// The layers that may have a state in the thread.
    pub(crate) layers: Vec<LayerId>,
}

/// What a thread's head says about its ancestors, if it is the thread of a child.
pub(crate) fn child_record(head: &Record) -> Option<ChildRecord> {
    #[derive(Deserialize)]
    struct OfChild {
        child: Option<ChildRecord>,
    }
    serde_json::from_slice::<OfChild>(&head.value).ok()?.child
}

impl ThreadHead {
    pub(super) fn new(
        last: CommittedBatch,
        others: Vec<CommittedBatch>,
        churn: BTreeMap<LayerId, Churn>,
        provider: &Provider,
        child: Option<ChildRecord>,
    ) -> Self {
        Self {
            format: FORMAT,
            last,
            others,
            churn,
            calibration: provider.calibration(),
            last_sent: provider.last_sent(),
            ever_hit: provider.ever_hit(),
            child,
        }
    }

    /// The state of the provider.
    pub(super) fn provider(&self) -> Provider {
        Provider::restore(self.last_sent, self.ever_hit, self.calibration)
    }

    /// Whose it is, for the thread of a child.
    pub(super) fn child(&self) -> Option<ChildRecord> {
        self.child.clone()
    }

    /// How often the blocks of layers changed.
    pub(super) fn into_churn(self) -> BTreeMap<LayerId, Churn> {
        self.churn
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(super) fn decode(key: &str, record: &Record) -> Result<Self, StoreError> {
        decode(key, record, |head: &Self| head.format)
    }

    /// The batch of that writer and number, if it is durable.
    pub(super) fn batch_of(&self, execution: &ExecutionId, commit: u64) -> Option<&CommittedBatch> {
        let mut batches = std::iter::once(&self.last).chain(&self.others);
        batches.find(|committed_batch| committed_batch.execution == *execution && committed_batch.commit == commit)
    }

    /// The newest batch of each writer except one, newest first.
    pub(super) fn others_than(&self, execution: &ExecutionId) -> Vec<CommittedBatch> {
        let batches = std::iter::once(&self.last).chain(&self.others);
        batches.filter(|committed_batch| committed_batch.execution != *execution).take(MAX_OTHERS).cloned().collect()
    }
}

/// Items of the log that were committed together.
#[derive(Serialize, Deserialize)]
pub(super) struct LogRecord<'a> {
    format: u32,
    /// The counter that counted the tokens.
    counter: Cow<'a, str>,
    tokens: Vec<u64>,
    items: Vec<Arc<Item>>,
}

impl<'a> LogRecord<'a> {
    pub(super) fn new(counter: &'a str, entries: &[&Entry]) -> Self {
        Self {
            format: FORMAT,
            counter: counter.into(),
            tokens: entries.iter().map(|entry| entry.tokens).collect(),
            items: entries.iter().map(|entry| entry.item.clone()).collect(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(super) fn decode(key: &str, record: &Record) -> Result<LogRecord<'static>, StoreError> {
        decode(key, record, |log: &LogRecord<'static>| log.format)
    }

    /// Its items.
    pub(super) fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// How many items it has.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The items, each with its tokens if this counter counted them.
    pub(super) fn into_items(self, counter: &str) -> impl Iterator<Item = (Arc<Item>, Option<u64>)> + use<'a> {
        let counted = self.counter == counter && self.tokens.len() == self.items.len();
        let tokens = if counted { self.tokens } else { Vec::new() };
        self.items.into_iter().enumerate().map(move |(index, item)| (item, tokens.get(index).copied()))
    }
}

/// The stored form of a decision, in a separate field beside the format.
#[derive(Serialize, Deserialize)]
struct DecisionRecord<T> {
    format: u32,
    decision: T,
}

#[derive(Serialize, Deserialize)]
struct EpochRecord<T> {
    format: u32,
    epoch: T,
}

#[derive(Serialize, Deserialize)]
struct TurnRecord<T> {
    format: u32,
    turn: T,
}

pub(super) fn encode_decision(decision: &Decision) -> Vec<u8> {
    encode(&DecisionRecord { format: FORMAT, decision })
}

pub(super) fn encode_epoch(epoch: &Epoch) -> Vec<u8> {
    encode(&EpochRecord { format: FORMAT, epoch })
}

pub(super) fn encode_turn(turn: &Turn, log: &ItemLog) -> Vec<u8> {
    encode(&TurnRecord { format: FORMAT, turn: StoredTurn::new(turn, |call_id| log.open_call(call_id)) })
}

pub(super) fn decode_decision(key: &str, record: &Record) -> Result<Decision, StoreError> {
    decode(key, record, |record: &DecisionRecord<Decision>| record.format).map(|record| record.decision)
}

pub(super) fn decode_epoch(key: &str, record: &Record) -> Result<Epoch, StoreError> {
    decode(key, record, |record: &EpochRecord<Epoch>| record.format).map(|record| record.epoch)
}

/// The turn of a record; `calls` returns a number of calls of the log from a position on. `None` if the log does not
/// have these calls.
pub(super) fn decode_turn(
    key: &str,
    record: &Record,
    calls: impl FnOnce(usize, usize) -> Vec<FunctionCall>,
) -> Result<Option<Turn>, StoreError> {
    let TurnRecord { turn, .. } = decode(key, record, |record: &TurnRecord<StoredTurn>| record.format)?;
    Ok(turn.into_turn(calls))
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have text keys and no foreign types, so they have a JSON form")
}

fn decode<T: for<'a> Deserialize<'a>>(
    key: &str,
    record: &Record,
    format: impl FnOnce(&T) -> u32,
) -> Result<T, StoreError> {
    #[derive(Deserialize)]
    struct ThreadRecordFormat {
        format: u32,
    }
    let decoded = serde_json::from_slice::<T>(&record.value);
    // Check the format first: a record of another format may fail to parse, and the error should name the format.
    let found = match &decoded {
        Ok(value) => Some(format(value)),
        Err(_) => serde_json::from_slice::<ThreadRecordFormat>(&record.value).ok().map(|found| found.format),
    };
    match (decoded, found) {
        (_, Some(found)) if found != FORMAT => {
            Err(corrupt(key, format!("it has format {found}, and this program knows {FORMAT}")))
        }
        (decoded, _) => decoded.map_err(|error| corrupt(key, error.to_string())),
    }
}

pub(super) fn corrupt(key: &str, reason: impl Into<String>) -> StoreError {
    StoreError::Corrupt { key: key.to_owned(), reason: reason.into() }
}
