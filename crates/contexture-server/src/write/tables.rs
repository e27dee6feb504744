//! What a gateway needs of its store, whichever database it is in.

use contexture::fold::Pins;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use crate::account::record::RequestRecord;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::{Beginning, Conversation, ConversationKey, ConversationState, DecisionEntry};

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

/// What [`Store`](super::Store) does, for one kind of database. Methods may block; `Store` documents them.
pub(super) trait Tables: Send + Sync {
    fn limit_bytes(&mut self, most_bytes: u64);
    fn versions(&self, key: ConversationKey, most: usize) -> Result<Vec<(String, u64)>, StoreError>;
    fn version(&self, id: &str) -> Result<Option<u64>, StoreError>;
    fn conversations(
        &self,
        key: ConversationKey,
        most: usize,
    ) -> Result<Vec<(Beginning, ConversationState)>, StoreError>;
    fn save(
        &self,
        conversation: &Conversation,
        state: &ConversationState,
        texts: &[(String, String)],
        now_ms: u64,
    ) -> Result<(), StoreError>;
    fn save_rest(&self, conversation: &Conversation, rested: &FolderSnapshot) -> Result<(), StoreError>;
    fn save_pins(&self, conversation: &str, pins: &Pins) -> Result<(), StoreError>;
    fn key_of(&self, conversation: &str) -> Result<Option<ConversationKey>, StoreError>;
    fn save_request(&self, record: &RequestRecord) -> Result<(), StoreError>;
    fn requests(&self, session: Option<&str>) -> Result<Vec<RequestRecord>, StoreError>;
    fn text(&self, hash: &str) -> Result<Option<ShownText>, StoreError>;
    fn decisions(&self, conversation: &str) -> Result<Vec<DecisionEntry>, StoreError>;
    fn names(&self, start: &str) -> Result<Vec<String>, StoreError>;
    fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError>;
    fn shrink(&self, most_bytes: u64) -> Result<(), StoreError>;
    fn note_gateway(&self, gateway: &RunningGateway) -> Result<(), StoreError>;
    fn forget_gateway(&self, id: &str) -> Result<(), StoreError>;
    fn gateways(&self) -> Result<Vec<RunningGateway>, StoreError>;
}

/// Whether a text can be a hash, or the beginning of one.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
