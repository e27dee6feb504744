//! What a gateway asks of its store, whichever database it is in.

use std::sync::Arc;
use std::time::Duration;

use contexture::fold::Pins;
use contexture::wire::Digest;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::saving::{PendingWrite, RecordPlace, Saving};
use crate::account::record::RequestRecord;
use crate::conversation::decisions::DecisionEntry;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation, ConversationKey};

/// A text that `contexture show` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownText {
    /// The whole text.
    pub text: String,
    /// The conversation it is from.
    pub conversation: String,
}

/// A gateway that is running, or was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningGateway {
    /// Its name.
    pub id: String,
    /// The address it listens on.
    pub address: String,
    /// The token for its own routes.
    pub token: String,
    /// Its process id.
    pub pid: u32,
    /// The machine it runs on; empty in a store that only one machine can use.
    pub host: String,
}

/// How much the clocks of those who write to a store may differ, in milliseconds.
pub(super) const CLOCKS_MS: u64 = 86_400_000;

/// Conversations, decisions and receipts of gateways.
///
/// Methods that return something block; in a database they wait for a limited time, and fail at once for a moment after
/// it could not be reached: a gateway goes on without its store. What writes for requests only begins to: it returns
/// what can be waited for, and is written in the order of the calls, also if nobody waits. All errors are those of the
/// database, apart from what is said.
pub trait Store: Send + Sync {
    /// How long a request waits for what it writes, apart from its own limit. `None` if it waits at most for that limit.
    fn patience(&self) -> Option<Duration>;

    /// Ids of conversations under a key, each with its version: those whose newest request ends with one of these
    /// messages, and the most recently used ones.
    ///
    /// # Errors
    /// The store cannot be read.
    fn candidates(&self, key: ConversationKey, ends: &[Digest], most: usize) -> Result<Vec<(String, u64)>, StoreError>;

    /// The stored version of a conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    fn version(&self, id: &str) -> Result<Option<u64>, StoreError>;

    /// A conversation. `None` if there is none, or if it cannot be read.
    ///
    /// # Errors
    /// The store cannot be read.
    fn conversation(&self, id: &str) -> Result<Option<(Beginning, ConversationState)>, StoreError>;

    /// Begins to write the decisions of a conversation in one transaction. Once it is written, its mark says so, and no
    /// end of this program undoes it; what says so is also safe from an end of the machine. It fails if another gateway
    /// continued the conversation. Then nothing was written.
    fn save(&self, saving: Saving) -> PendingWrite;

    /// Begins to write the snapshot of a conversation's folder, if there is room.
    fn save_snapshot(&self, conversation: &Conversation, snapshot: &Arc<FolderSnapshot>);

    /// Begins to write the record of a request, in place of what was written with the same place before. If decisions with
    /// which the request is sent are not in the store at that moment, the record says so.
    fn save_request(&self, place: &Arc<RecordPlace>, record: Arc<RequestRecord>) -> PendingWrite;

    /// Whether it keeps up with what is written: if not, new decisions have to wait. What is begun without room fails.
    fn has_room(&self) -> bool;

    /// About how many bytes wait to be written.
    fn waiting_bytes(&self) -> usize;

    /// Waits until everything is written that was begun before, for a limited time.
    fn flush(&self, time: Duration);

    /// What is wrong with the store, if that was noticed.
    fn damage(&self) -> Option<String> {
        None
    }

    /// Writes what is pinned in a conversation, and deletes the snapshot of its folder, which lacks the new pins.
    ///
    /// # Errors
    /// It could not be written. Then nothing was changed.
    fn save_pins(&self, conversation: &str, pins: &Pins) -> Result<(), StoreError>;

    /// The key of a conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    fn key_of(&self, conversation: &str) -> Result<Option<ConversationKey>, StoreError>;

    /// The records of one session, or of all, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn requests(&self, session: Option<&str>) -> Result<Vec<RequestRecord>, StoreError>;

    /// The records of requests that came at some time or later, in any order. By default all are read.
    ///
    /// # Errors
    /// The store cannot be read.
    fn requests_since(&self, time_ms: u64) -> Result<Vec<RequestRecord>, StoreError> {
        let mut records = self.requests(None)?;
        records.retain(|record| record.time_ms >= time_ms);
        Ok(records)
    }

    /// The whole of a shortened text, by its hash or a prefix of at least 6 digits.
    ///
    /// # Errors
    /// The store cannot be read.
    fn text(&self, hash: &str) -> Result<Option<ShownText>, StoreError>;

    /// The decisions of a conversation, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn decisions(&self, conversation: &str) -> Result<Vec<DecisionEntry>, StoreError>;

    /// Ids of conversations that begin with a prefix, most recently used first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn names(&self, start: &str) -> Result<Vec<String>, StoreError>;

    /// Deletes one conversation, or all. Returns how many were deleted.
    ///
    /// # Errors
    /// The store cannot be written.
    fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError>;

    /// Deletes the least recently used conversations until the store has at most this many bytes.
    ///
    /// # Errors
    /// The store cannot be written.
    fn shrink(&self, most_bytes: u64) -> Result<(), StoreError>;

    /// Begins to delete what is needed to send the same bytes of conversations again that were used last before some time;
    /// the records of their requests stay. The first time nothing is deleted: it returns how many they are, so that it can
    /// be said. By default nothing expires.
    ///
    /// # Errors
    /// The store cannot be read.
    fn expire(&self, before_ms: u64) -> Result<usize, StoreError> {
        let _ = before_ms;
        Ok(0)
    }

    /// Registers a running gateway.
    ///
    /// # Errors
    /// The store cannot be written.
    fn note_gateway(&self, gateway: &RunningGateway) -> Result<(), StoreError>;

    /// Removes a gateway that ended.
    ///
    /// # Errors
    /// The store cannot be written.
    fn forget_gateway(&self, id: &str) -> Result<(), StoreError>;

    /// Gateways that are running or were killed.
    ///
    /// # Errors
    /// The store cannot be read.
    fn gateways(&self) -> Result<Vec<RunningGateway>, StoreError>;
}

/// Whether a text can be a hash, or the beginning of one.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
