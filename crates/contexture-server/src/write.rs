//! Conversations, decisions and receipts of gateways: in a file of this machine, or in a database that many share.

pub(crate) mod content;
mod error;
mod tables;
mod read;
mod sqlite;
#[cfg(feature = "postgres")]
mod waiting;
#[cfg(feature = "postgres")]
mod records;
#[cfg(feature = "postgres")]
mod shared;

use std::path::Path;

use contexture::fold::Pins;
use contexture::store::Place;

use crate::account::record::RequestRecord;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::{Beginning, Conversation, ConversationKey, ConversationState, DecisionEntry};
pub use error::StoreError;
use sqlite::SqliteTables;
use tables::Tables;
pub use tables::{RunningGateway, ShownText};

/// The store of the gateway.
///
/// Its methods block. In a database, they wait for a limited time, and fail at once for a moment after it could not be
/// reached: a gateway goes on without its store.
pub struct Store {
    tables: Box<dyn Tables>,
}

impl Store {
    /// Opens a store, and creates it if it does not exist: a file, or a database as `postgres://user@host/database`.
    ///
    /// # Errors
    /// The file cannot be created or read, or the database cannot be used.
    pub fn open(place: &Path) -> Result<Self, StoreError> {
        let tables: Box<dyn Tables> = match Place::new(place) {
            Place::File(path) => Box::new(SqliteTables::open(&path)?),
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => Box::new(shared::SharedTables::open(&url)?),
            #[cfg(not(feature = "postgres"))]
            Place::Postgres(_) => return Err(StoreError::WithoutPostgres),
        };
        Ok(Self { tables })
    }

    /// Sets another limit for its size.
    pub fn with_most_bytes(mut self, most_bytes: u64) -> Self {
        self.tables.limit_bytes(most_bytes);
        self
    }

    /// Whether a file is a store of the gateway. The file is not changed.
    pub fn is_at(path: &Path) -> bool {
        SqliteTables::is_at(path)
    }

    /// Ids of the conversations under a key, each with its version, most recently used first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn versions(&self, key: ConversationKey, most: usize) -> Result<Vec<(String, u64)>, StoreError> {
        self.tables.versions(key, most)
    }

    /// The stored version of a conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn version(&self, id: &str) -> Result<Option<u64>, StoreError> {
        self.tables.version(id)
    }

    /// The conversations under a key, most recently used first. One that cannot be read is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn conversations(
        &self,
        key: ConversationKey,
        most: usize,
    ) -> Result<Vec<(Beginning, ConversationState)>, StoreError> {
        self.tables.conversations(key, most)
    }

    /// Writes the decisions of a conversation in one transaction. After this they are durable.
    ///
    /// # Errors
    /// It could not be written, or another gateway continued the conversation. Then nothing was written.
    pub fn save(
        &self,
        conversation: &Conversation,
        state: &ConversationState,
        texts: &[(String, String)],
        now_ms: u64,
    ) -> Result<(), StoreError> {
        self.tables.save(conversation, state, texts, now_ms)
    }

    /// Writes the snapshot of a conversation's folder.
    ///
    /// # Errors
    /// It could not be written.
    pub fn save_rest(&self, conversation: &Conversation, rested: &FolderSnapshot) -> Result<(), StoreError> {
        self.tables.save_rest(conversation, rested)
    }

    /// Writes what is pinned in a conversation, and deletes the snapshot of its folder, which lacks the new pins.
    ///
    /// # Errors
    /// It could not be written. Then nothing was changed.
    pub fn save_pins(&self, conversation: &str, pins: &Pins) -> Result<(), StoreError> {
        self.tables.save_pins(conversation, pins)
    }

    /// The key of a conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn key_of(&self, conversation: &str) -> Result<Option<ConversationKey>, StoreError> {
        self.tables.key_of(conversation)
    }

    /// Writes the record of a request.
    ///
    /// # Errors
    /// It could not be written.
    pub fn save_request(&self, record: &RequestRecord) -> Result<(), StoreError> {
        self.tables.save_request(record)
    }

    /// The records of one session, or of all, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn requests(&self, session: Option<&str>) -> Result<Vec<RequestRecord>, StoreError> {
        self.tables.requests(session)
    }

    /// The whole of a shortened text, by its hash or a prefix of at least 6 digits.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn text(&self, hash: &str) -> Result<Option<ShownText>, StoreError> {
        self.tables.text(hash)
    }

    /// The decisions of a conversation, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn decisions(&self, conversation: &str) -> Result<Vec<DecisionEntry>, StoreError> {
        self.tables.decisions(conversation)
    }

    /// Ids of conversations that begin with a prefix, most recently used first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn names(&self, start: &str) -> Result<Vec<String>, StoreError> {
        self.tables.names(start)
    }

    /// Deletes one conversation, or all. Returns how many were deleted.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError> {
        self.tables.forget(conversation)
    }

    /// Deletes the least recently used conversations until the store has at most this many bytes.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn shrink(&self, most_bytes: u64) -> Result<(), StoreError> {
        self.tables.shrink(most_bytes)
    }

    /// Registers a running gateway.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn note_gateway(&self, gateway: &RunningGateway) -> Result<(), StoreError> {
        self.tables.note_gateway(gateway)
    }

    /// Removes a gateway that ended.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn forget_gateway(&self, id: &str) -> Result<(), StoreError> {
        self.tables.forget_gateway(id)
    }

    /// Gateways that are running or were killed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn gateways(&self) -> Result<Vec<RunningGateway>, StoreError> {
        self.tables.gateways()
    }
}

#[cfg(all(test, unix, feature = "postgres"))]
mod tests;
