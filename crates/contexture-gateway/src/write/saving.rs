//! What is written about a conversation, and what can be waited for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::error::StoreError;
use crate::account::bill::Account;
use crate::account::record::RequestRecord;
use crate::conversation::Beginning;
use crate::conversation::reading::Attached;
use crate::conversation::state::ConversationState;
use crate::conversation::stored::{InStore, StoredMark};

/// What each of the parts of a conversation takes beside its text, about.
const LEAST_BYTES: usize = 64;

/// What a conversation takes beside its parts while it waits to be written.
const SAVING_BYTES: usize = 1_024;

/// What is to be written about a conversation: everything small, and what is new of the rest.
pub struct Saving {
    /// What identifies it.
    pub(crate) beginning: Beginning,
    /// 16 bytes for each message of its newest request.
    pub(crate) known: Vec<u8>,
    /// The message count of each request.
    pub(crate) points: Vec<usize>,
    /// Its bill.
    pub(crate) account: Account,
    /// Why nothing is decided any more.
    pub(crate) stopped: Option<String>,
    /// What is in the store afterwards.
    pub(crate) after: InStore,
    /// The number of the first of the steps, and of the first of the decisions.
    pub(crate) first: (usize, usize),
    /// Changes of the plan, as JSON.
    pub(crate) steps: Vec<String>,
    /// Decisions as JSON, each with the message count of its request.
    pub(crate) decisions: Vec<(usize, String)>,
    /// Texts that are sent after messages.
    pub(crate) attached: Attached,
    /// The whole of texts that were shortened, by their hashes.
    pub(crate) texts: Vec<(String, String)>,
    /// When it was used.
    pub(crate) used_ms: u64,
    /// Whether it has to outlast an end of the machine, and not only of this program.
    pub(crate) is_synced: bool,
    /// What tells how much is in the store.
    pub(crate) mark: Arc<StoredMark>,
}

impl Saving {
    /// What is new about a conversation.
    ///
    /// # Errors
    /// Something cannot be written as JSON.
    pub(crate) fn new(
        beginning: &Beginning,
        state: &ConversationState,
        texts: Vec<(String, String)>,
        used_ms: u64,
    ) -> Result<Self, StoreError> {
        let (made, stored) = (state.decisions(), state.stored());
        let first = stored.saved_counts();
        let steps: Vec<String> =
            made.steps().iter().skip(first.0).map(serde_json::to_string).collect::<Result<_, _>>()?;
        let decisions = made.entries().iter().skip(first.1);
        let decisions: Vec<_> =
            decisions.map(|entry| (entry.messages, entry.decision.to_stored().to_string())).collect();
        let after = InStore { version: stored.version(), steps: made.steps().len(), decisions: made.entries().len() };
        Ok(Self {
            beginning: beginning.clone(),
            known: state.seen().to_bytes(),
            points: made.points().to_vec(),
            account: *state.billed().account(),
            stopped: state.health().stopped().map(ToString::to_string),
            after,
            first,
            attached: made.attached().clone(),
            is_synced: !steps.is_empty() || !decisions.is_empty(),
            steps,
            decisions,
            texts,
            used_ms,
            mark: stored.mark().clone(),
        })
    }

    /// Whether it may have texts after messages that are not in the store: they come with decisions.
    pub fn has_attached(&self) -> bool {
        self.is_synced || self.first == (0, 0)
    }

    /// About how many bytes it takes until it is written.
    pub(super) fn bytes(&self) -> usize {
        let steps: usize = self.steps.iter().map(|step| step.len() + LEAST_BYTES).sum();
        let decisions: usize = self.decisions.iter().map(|(_, decision)| decision.len() + LEAST_BYTES).sum();
        let shared = LEAST_BYTES * self.attached.len();
        SAVING_BYTES + self.known.len() + 8 * self.points.len() + steps + decisions + shared + self.texts_bytes()
    }

    /// The same of the texts that its decisions shorten.
    pub(super) fn texts_bytes(&self) -> usize {
        self.texts.iter().map(|(hash, text)| hash.len() + text.len() + LEAST_BYTES).sum()
    }

    /// The same with what an older one has that was not written and is not in this one.
    pub(super) fn following(mut self, older: Self) -> Self {
        self.is_synced |= older.is_synced;
        self.texts.extend(older.texts);
        self
    }
}

/// A version of a conversation that is in the store, or will be.
#[derive(Clone, Debug)]
pub(crate) struct KeptVersion {
    mark: Arc<StoredMark>,
    version: u64,
}

impl KeptVersion {
    /// The newest version of a conversation.
    pub(crate) fn of(state: &ConversationState) -> Self {
        Self { mark: state.stored().mark().clone(), version: state.stored().version() }
    }

    /// Whether it is in the store now.
    pub fn is_saved(&self) -> bool {
        self.is_in(&self.mark.now())
    }

    /// Whether it is in a store that has so much.
    pub(super) fn is_in(&self, in_store: &InStore) -> bool {
        in_store.version >= self.version
    }
}

/// The place of a request's record in a store.
#[derive(Debug)]
pub struct RecordPlace {
    /// Its name.
    pub(super) id: String,
    /// Its number, once it has one.
    pub(super) number: OnceLock<i64>,
    /// The decisions with which the request is sent.
    kept: Option<KeptVersion>,
    /// Whether the record says that these decisions are not in the store.
    is_marked: AtomicBool,
}

impl RecordPlace {
    /// A place for the record of a request that is sent with these decisions.
    pub(crate) fn new(kept: Option<KeptVersion>) -> Arc<Self> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        Arc::new(Self { id, number: OnceLock::new(), kept, is_marked: AtomicBool::new(false) })
    }

    /// Whether everything with which the request is sent is in the store.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.as_ref().is_none_or(KeptVersion::is_saved)
    }

    /// Whether it will be once a store has so much of its conversation.
    pub(super) fn is_kept_with(&self, in_store: &InStore) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.is_in(in_store))
    }

    /// Whether the record that was written last says that something is not in the store.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    /// Notes what the record says that was written.
    pub(super) fn mark(&self, is_marked: bool) {
        self.is_marked.store(is_marked, Ordering::Relaxed);
    }
}

/// The record as it is written: one whose request was sent with decisions that are not in the store says so. It may be
/// the last that is known of them.
pub(super) fn as_written(record: &RequestRecord, is_kept: bool) -> Result<String, StoreError> {
    let text = match is_kept {
        true => serde_json::to_string(record),
        false => serde_json::to_string(&RequestRecord { is_unsaved: true, ..record.clone() }),
    };
    Ok(text?)
}

/// A write that was begun.
pub struct PendingWrite(Receiver<Result<(), StoreError>>);

/// Tells the outcome of a write.
pub(crate) struct Writing(SyncSender<Result<(), StoreError>>);

impl PendingWrite {
    /// A write, and what tells its outcome.
    pub(crate) fn pending() -> (Writing, Self) {
        let (send, receive) = sync_channel(1);
        (Writing(send), Self(receive))
    }

    /// A write that failed at once.
    pub fn failed(error: StoreError) -> Self {
        let (writing, written) = Self::pending();
        writing.tell(Err(error));
        written
    }

    /// Waits until it is written, or until this moment. It is written afterwards nevertheless.
    ///
    /// # Errors
    /// It was not written, or not in time.
    pub fn wait(&self, until: Instant) -> Result<(), StoreError> {
        match self.0.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Err(StoreError::NotInTime),
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::Closed),
        }
    }
}

impl Writing {
    /// Tells the outcome. Nobody need wait for it.
    pub fn tell(self, outcome: Result<(), StoreError>) {
        let _ = self.0.send(outcome);
    }
}
