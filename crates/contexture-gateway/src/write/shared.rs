//! The store of gateways on many machines, in PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture::fold::Pins;
use contexture::store::PostgresStore;
use contexture::wire::Digest;

use super::error::StoreError;
use super::records::GatewayRecords;
use super::room::{TakenRoom, WriteRoom};
use super::saving::{PendingWrite, RecordPlace, Saving};
use super::store::{RunningGateway, ShownText, Store, is_hash};
use super::waiting::DatabaseRuntime;
use crate::account::record::RequestRecord;
use crate::conversation::decisions::DecisionEntry;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation, ConversationKey};

/// How long a request waits for the database before it counts as gone: longer than a restart of the server takes, and
/// longer than it is tried again meanwhile. What is slow is waited for, because other gateways go by what is in it.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long something may take that only a command waits for.
const ASKING: Duration = Duration::from_secs(60);

/// Writes between two checks of the size.
const WRITES_PER_LOOK: u64 = 500;

/// The store of gateways in a database.
pub(super) struct SharedStore {
    records: GatewayRecords,
    waiting: DatabaseRuntime,
    writes: AtomicU64,
    most_bytes: u64,
    room: Arc<WriteRoom>,
}

impl SharedStore {
    pub(super) fn open(url: &str, most_bytes: u64) -> Result<Self, StoreError> {
        let writer = uuid::Uuid::now_v7().simple().to_string().into();
        let records = GatewayRecords { store: PostgresStore::open(url)?, writer };
        let waiting = DatabaseRuntime::new()?;
        let store = records.store.clone();
        let looked = store.clone();
        waiting.wait(ASKING, async move { Ok(store.check().await?) })?;
        waiting.probe_with(move || {
            let store = looked.clone();
            Box::pin(async move { store.check().await.is_ok() })
        });
        Ok(Self { records, waiting, writes: AtomicU64::new(0), most_bytes, room: WriteRoom::of_store() })
    }

    fn records(&self) -> GatewayRecords {
        self.records.clone()
    }

    /// Begins to write something, which takes its room until that has ended.
    fn begin(
        &self,
        room: TakenRoom,
        work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) -> PendingWrite {
        self.waiting.begin(PATIENCE, async move {
            let _room = room;
            work.await
        })
    }
}

impl Store for SharedStore {
    fn patience(&self) -> Option<Duration> {
        Some(PATIENCE)
    }

    fn candidates(&self, key: ConversationKey, ends: &[Digest], most: usize) -> Result<Vec<(String, u64)>, StoreError> {
        self.waiting.wait(PATIENCE, self.records().candidates(key, ends.to_vec(), most))
    }

    fn version(&self, id: &str) -> Result<Option<u64>, StoreError> {
        self.waiting.wait(PATIENCE, self.records().version(id.to_owned()))
    }

    fn conversation(&self, id: &str) -> Result<Option<(Beginning, ConversationState)>, StoreError> {
        self.waiting.wait(PATIENCE, self.records().one(id.to_owned()))
    }

    fn save(&self, saving: Saving) -> PendingWrite {
        if (self.writes.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(WRITES_PER_LOOK) {
            let shrink = self.records().shrink(self.most_bytes);
            self.waiting.begin(ASKING, async move {
                // What could not be deleted is deleted next time.
                let _ = shrink.await;
                Ok(())
            });
        }
        let Some(room) = self.room.take(saving.bytes()) else { return PendingWrite::failed(StoreError::Full) };
        self.begin(room, self.records().save(saving))
    }

    fn save_snapshot(&self, conversation: &Conversation, snapshot: &Arc<FolderSnapshot>) {
        let Some(room) = self.room.take(snapshot.rest.as_bytes().len()) else { return };
        let (id, bytes) = (conversation.id().to_string(), snapshot.rest.as_bytes().to_vec());
        // If this fails, the conversation is replayed after a restart.
        let _ = self.begin(room, self.records().save_snapshot(id, snapshot.messages, bytes));
    }

    fn save_request(&self, place: &Arc<RecordPlace>, record: Arc<RequestRecord>) -> PendingWrite {
        let Some(room) = self.room.take(record.bytes()) else { return PendingWrite::failed(StoreError::Full) };
        self.begin(room, self.records().save_request(place.clone(), record))
    }

    fn has_room(&self) -> bool {
        self.room.is_free()
    }

    fn waiting_bytes(&self) -> usize {
        self.room.taken()
    }

    fn flush(&self, time: Duration) {
        self.waiting.settle(time);
    }

    fn save_pins(&self, conversation: &str, pins: &Pins) -> Result<(), StoreError> {
        let pins = serde_json::to_string(pins)?;
        self.waiting.wait(PATIENCE, self.records().save_pins(conversation.to_owned(), pins))
    }

    fn key_of(&self, conversation: &str) -> Result<Option<ConversationKey>, StoreError> {
        self.waiting.wait(PATIENCE, self.records().key_of(conversation.to_owned()))
    }

    fn requests(&self, session: Option<&str>) -> Result<Vec<RequestRecord>, StoreError> {
        self.waiting.wait(ASKING, self.records().requests(session.map(str::to_owned)))
    }

    fn requests_since(&self, time_ms: u64) -> Result<Vec<RequestRecord>, StoreError> {
        self.waiting.wait(ASKING, self.records().requests_since(time_ms))
    }

    fn text(&self, hash: &str) -> Result<Option<ShownText>, StoreError> {
        match is_hash(hash) {
            true => self.waiting.wait(ASKING, self.records().text(hash.to_owned())),
            false => Ok(None),
        }
    }

    fn decisions(&self, conversation: &str) -> Result<Vec<DecisionEntry>, StoreError> {
        self.waiting.wait(ASKING, self.records().decisions(conversation.to_owned()))
    }

    fn names(&self, start: &str) -> Result<Vec<String>, StoreError> {
        self.waiting.wait(ASKING, self.records().names(start.to_owned()))
    }

    fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError> {
        self.waiting.wait(ASKING, self.records().forget(conversation.map(str::to_owned)))
    }

    fn shrink(&self, most_bytes: u64) -> Result<(), StoreError> {
        self.waiting.wait(ASKING, self.records().shrink(most_bytes))
    }

    fn note_gateway(&self, gateway: &RunningGateway) -> Result<(), StoreError> {
        self.waiting.wait(PATIENCE, self.records().note_gateway(gateway.clone()))
    }

    fn forget_gateway(&self, id: &str) -> Result<(), StoreError> {
        self.waiting.wait(PATIENCE, self.records().forget_gateway(id.to_owned()))
    }

    fn gateways(&self) -> Result<Vec<RunningGateway>, StoreError> {
        self.waiting.wait(ASKING, self.records().gateways())
    }
}
