//! The records of gateways in a store that many machines share, and how they are read and written.
//!
//! | key | value |
//! | --- | --- |
//! | `gateway/conversations/ID/row` | everything small about a conversation, and how many of the others there are |
//! | `gateway/conversations/ID/known` | 16 bytes for each message of its newest request |
//! | `gateway/conversations/ID/steps/N`, `…/decisions/N` | changes of its plan; decisions |
//! | `gateway/conversations/ID/attached/N` | a text that is sent after message N |
//! | `gateway/conversations/ID/texts/HASH` | the whole of a text that was shortened |
//! | `gateway/conversations/ID/rest`, `…/pins` | its folder, beginning with 8 bytes: its messages; what is pinned |
//! | `gateway/keys/KEY/ID` | the version of a conversation and when it was used, by how it begins |
//! | `gateway/hashes/HASH/ID` | nothing: which conversation has the text of a hash |
//! | `gateway/requests/ID/UUID` | a request, by its conversation (`-` without one) |
//! | `gateway/running/ID` | a gateway |

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use contexture::fold::{FoldDecision, Rest};
use contexture::store::{Batch, PostgresStore, Record, StorageAdapter, Version};
use contexture::wire::{Digest, Format};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::StoreError;
use super::saving::{RecordPlace, Saving, as_written};
use super::store::{CLOCKS_MS, RunningGateway, ShownText};
use crate::account::bill::Account;
use crate::account::record::RequestRecord;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::{DecisionEntry, Decisions};
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::health::StopReason;
use crate::conversation::plan_history::PlanStep;
use crate::conversation::reading::Attached;
use crate::conversation::seen::SeenMessages;
use crate::conversation::state::ConversationState;
use crate::conversation::stored::InStore;
use crate::conversation::{Beginning, ConversationKey};

const CONVERSATIONS: &str = "gateway/conversations/";
const KEYS: &str = "gateway/keys/";
const HASHES: &str = "gateway/hashes/";
const REQUESTS: &str = "gateway/requests/";
const RUNNING: &str = "gateway/running/";

/// What requests without a conversation are filed under.
const NONE: &str = "-";

/// The newest format of a row that is known, and the one that is written.
const FORMAT: u32 = 1;

/// Most records that are read or deleted at once.
const MOST_AT_ONCE: usize = 500;

/// How often a write is tried while others of the same gateway come first.
const MOST_TRIES: usize = 8;

/// The small part of a conversation.
#[derive(Serialize, Deserialize)]
struct ConversationHead {
    /// The version of this format.
    row: u32,
    key: Digest,
    scope: Digest,
    parent: Option<String>,
    format: Format,
    lead: usize,
    is_held_out: bool,
    points: Vec<usize>,
    account: Account,
    stopped: Option<String>,
    version: u64,
    /// How many steps and decisions there are.
    steps: usize,
    decisions: usize,
    /// Messages with a text after them, each with the hash of that text.
    attached: BTreeMap<usize, String>,
    /// Who wrote it: by that a write is known again whose outcome was not learnt.
    #[serde(default)]
    writer: String,
}

/// A decision with the message count of its request.
#[derive(Serialize)]
struct Decided<'a> {
    messages: usize,
    decision: &'a serde_json::value::RawValue,
}

/// What is listed under the key of a conversation.
#[derive(Serialize, Deserialize)]
struct ListedConversation {
    version: u64,
    used_ms: u64,
    /// The last message of its newest request.
    #[serde(default)]
    end: Option<Digest>,
}

/// Everything that is new about a conversation since the stored row, in one batch.
fn batch(saving: &Saving, writer: &str, stored: Option<(ConversationHead, Version)>) -> Result<Batch, StoreError> {
    let beginning = &saving.beginning;
    let of = |part: &str| format!("{CONVERSATIONS}{}/{part}", beginning.id);
    let hash = |text: &Arc<str>| blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
    let row = ConversationHead {
        row: FORMAT,
        key: beginning.key,
        scope: beginning.scope,
        parent: beginning.parent.as_deref().map(str::to_owned),
        format: beginning.format,
        lead: beginning.lead,
        is_held_out: beginning.is_held_out,
        points: saving.points.clone(),
        account: saving.account,
        stopped: saving.stopped.clone(),
        version: saving.after.version,
        steps: saving.after.steps,
        decisions: saving.after.decisions,
        attached: saving.attached.iter().map(|(message, text)| (*message, hash(text))).collect(),
        writer: writer.to_owned(),
    };
    let (stored, version) = stored.map_or((None, None), |(row, version)| (Some(row), Some(version)));
    let end = saving.known.last_chunk::<16>().map(|end| Digest(*end));
    let listed = serde_json::to_vec(&ListedConversation { version: row.version, used_ms: saving.used_ms, end })?;
    let mut batch = Batch::new()
        .expect(of("row"), version)
        .set(of("row"), serde_json::to_vec(&row)?)
        .set(format!("{KEYS}{}/{}", row.key, beginning.id), listed)
        .set(of("known"), saving.known.clone());
    for (n, step) in (saving.first.0..).zip(&saving.steps) {
        batch = batch.set(of(&numbered("steps", n)), step.as_bytes());
    }
    for (n, (messages, decision)) in (saving.first.1..).zip(&saving.decisions) {
        let decision: &serde_json::value::RawValue = serde_json::from_str(decision)?;
        let value = serde_json::to_vec(&Decided { messages: *messages, decision })?;
        batch = batch.set(of(&numbered("decisions", n)), value);
    }
    if let Some(stored) = &stored {
        // What was reverted.
        let gone = (row.steps..stored.steps).map(|n| numbered("steps", n));
        let gone = gone.chain((row.decisions..stored.decisions).map(|n| numbered("decisions", n)));
        batch = gone.fold(batch, |batch, part| batch.delete(of(&part)));
    }
    let is_stored = |message: &usize| {
        stored.as_ref().is_some_and(|stored| stored.attached.get(message) == row.attached.get(message))
    };
    for (message, text) in saving.attached.iter().filter(|(message, _)| !is_stored(message)) {
        batch = batch.set(of(&numbered("attached", *message)), text.as_bytes());
    }
    Ok(with_texts(batch, saving))
}

fn with_texts(mut batch: Batch, saving: &Saving) -> Batch {
    let id = &saving.beginning.id;
    for (hash, text) in &saving.texts {
        batch = batch.set(format!("{CONVERSATIONS}{id}/texts/{hash}"), text.as_bytes());
        batch = batch.set(format!("{HASHES}{hash}/{id}"), Vec::new());
    }
    batch
}

fn numbered(part: &str, n: usize) -> String {
    format!("{part}/{n:08}")
}

/// The records of gateways. Cheap to clone.
#[derive(Clone)]
pub(super) struct GatewayRecords {
    pub(super) store: PostgresStore,
    /// The name of this run of a program.
    pub(super) writer: Arc<str>,
}

impl GatewayRecords {
    pub(super) async fn candidates(
        self,
        key: ConversationKey,
        ends: Vec<Digest>,
        most: usize,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        let ends: HashSet<[u8; 16]> = ends.into_iter().map(|end| end.0).collect();
        let listed = self.listed(&format!("{KEYS}{key}/")).await?.into_iter().enumerate();
        let is_one =
            |at: usize, listed: &ListedConversation| at < most || listed.end.is_some_and(|end| ends.contains(&end.0));
        let found = listed.filter(|(at, (_, listed))| is_one(*at, listed));
        Ok(found.map(|(_, (id, listed))| (id, listed.version)).collect())
    }

    /// Ids below a prefix of keys, most recently used first.
    async fn listed(&self, prefix: &str) -> Result<Vec<(String, ListedConversation)>, StoreError> {
        let keys = self.store.list(prefix).await?;
        let mut listed = Vec::new();
        for (key, record) in keys.iter().zip(self.many(&keys).await?) {
            let id = key.rsplit('/').next().unwrap_or_default().to_owned();
            // It was deleted in between, or is of a newer version.
            let Some(read) = record.and_then(|record| serde_json::from_slice(&record.value).ok()) else { continue };
            listed.push((id, read));
        }
        listed.sort_by_key(|(_, listed): &(String, ListedConversation)| std::cmp::Reverse(listed.used_ms));
        Ok(listed)
    }

    async fn many(&self, keys: &[String]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut records = Vec::with_capacity(keys.len());
        for keys in keys.chunks(MOST_AT_ONCE) {
            records.extend(self.store.get_many(keys).await?);
        }
        Ok(records)
    }

    /// The row of a conversation. `None` if there is none, or if it is of a newer version.
    async fn row(&self, id: &str) -> Result<Option<(ConversationHead, Version)>, StoreError> {
        let record = self.store.get(&format!("{CONVERSATIONS}{id}/row")).await?;
        Ok(record.and_then(|record| Some((row_of(&record)?, record.version))))
    }

    pub(super) async fn version(self, id: String) -> Result<Option<u64>, StoreError> {
        Ok(self.row(&id).await?.map(|(row, _)| row.version))
    }

    pub(super) async fn key_of(self, id: String) -> Result<Option<ConversationKey>, StoreError> {
        Ok(self.row(&id).await?.map(|(row, _)| row.key))
    }

    pub(super) async fn one(self, id: String) -> Result<Option<(Beginning, ConversationState)>, StoreError> {
        match self.row(&id).await? {
            Some((row, _)) => self.conversation(id, row).await,
            None => Ok(None),
        }
    }

    /// Reads what belongs to a row. `None` if some of it is missing or cannot be read.
    async fn conversation(
        &self,
        id: String,
        row: ConversationHead,
    ) -> Result<Option<(Beginning, ConversationState)>, StoreError> {
        let singles = ["known", "pins", "rest"].map(str::to_owned).into_iter();
        let parts = singles
            .chain((0..row.steps).map(|n| numbered("steps", n)))
            .chain((0..row.decisions).map(|n| numbered("decisions", n)))
            .chain(row.attached.keys().map(|n| numbered("attached", *n)));
        let keys: Vec<String> = parts.map(|part| format!("{CONVERSATIONS}{id}/{part}")).collect();
        let mut values = self.many(&keys).await?.into_iter().map(|record| record.map(|record| record.value));
        let (known, pins, rest) = (values.next().flatten(), values.next().flatten(), values.next().flatten());
        let Some(others) = values.collect::<Option<Vec<Vec<u8>>>>() else { return Ok(None) };
        Ok(state_of(&row, known, pins, rest, &others).map(|state| (beginning_of(id, &row), state)))
    }

    /// Writes a conversation. Several writes of one gateway may be under way at once, and are known by who wrote the row.
    pub(super) async fn save(self, saving: Saving) -> Result<(), StoreError> {
        let writer = format!("{}/{}", self.writer, saving.mark.number());
        let mut is_unknown = false;
        for _ in 0..MOST_TRIES {
            let stored = self.row(&saving.beginning.id).await?;
            let is_own = stored.as_ref().is_some_and(|(row, _)| row.writer == writer);
            match &stored {
                Some((row, _)) if !is_own && row.version != saving.mark.now().version => {
                    saving.mark.note_overtaken();
                    return Err(StoreError::Conflict);
                }
                None if saving.first != (0, 0) => {
                    saving.mark.set(InStore::default());
                    return Err(StoreError::Gone);
                }
                _ => {}
            }
            // It was delayed, and later writes of this gateway came first. Others may have written since, from those.
            let is_old = stored.as_ref().is_some_and(|(row, _)| saving.after.version < row.version);
            let batch = match is_old {
                true => with_texts(Batch::new(), &saving),
                false => batch(&saving, &writer, stored)?,
            };
            match self.store.apply(batch).await {
                Ok(_) => {
                    if !is_old {
                        saving.mark.raise(saving.after);
                    }
                    return Ok(());
                }
                // It may have been another write of this gateway.
                Err(contexture::store::StoreError::Conflict { .. }) => {}
                // Its connection was lost, and another write came first when it was tried again: the row tells what became
                // of it. A second time the database is gone.
                Err(contexture::store::StoreError::Io { .. }) if !is_unknown => is_unknown = true,
                Err(error) => return Err(error.into()),
            }
        }
        saving.mark.note_overtaken();
        Err(StoreError::Conflict)
    }

    pub(super) async fn save_snapshot(self, id: String, messages: usize, bytes: Vec<u8>) -> Result<(), StoreError> {
        let mut value = (messages as u64).to_be_bytes().to_vec();
        value.extend(bytes);
        self.store.set(&format!("{CONVERSATIONS}{id}/rest"), value).await?;
        Ok(())
    }

    pub(super) async fn save_pins(self, id: String, pins: String) -> Result<(), StoreError> {
        let of = |part: &str| format!("{CONVERSATIONS}{id}/{part}");
        self.store.apply(Batch::new().set(of("pins"), pins).delete(of("rest"))).await?;
        Ok(())
    }

    pub(super) async fn save_request(
        self,
        place: Arc<RecordPlace>,
        record: Arc<RequestRecord>,
    ) -> Result<(), StoreError> {
        let id = record.conversation.as_deref().unwrap_or(NONE);
        let key = format!("{REQUESTS}{id}/{}", place.id);
        let is_kept = place.is_kept();
        self.store.set(&key, as_written(&record, is_kept)?.into_bytes()).await?;
        place.mark(!is_kept);
        Ok(())
    }

    pub(super) async fn requests(self, session: Option<String>) -> Result<Vec<RequestRecord>, StoreError> {
        let mut keys = self.store.list(REQUESTS).await?;
        // The last part of a key begins with the time.
        keys.sort_by(|one, other| one.rsplit('/').next().cmp(&other.rsplit('/').next()));
        let mut requests = Vec::new();
        for record in self.many(&keys).await?.into_iter().flatten() {
            let request: RequestRecord = serde_json::from_slice(&record.value)?;
            if session.as_ref().is_none_or(|session| request.session == *session) {
                requests.push(request);
            }
        }
        Ok(requests)
    }

    pub(super) async fn requests_since(self, time_ms: u64) -> Result<Vec<RequestRecord>, StoreError> {
        let mut keys = self.store.list(REQUESTS).await?;
        keys.retain(|key| place_ms(key).is_none_or(|came| came.saturating_add(CLOCKS_MS) >= time_ms));
        let mut requests = Vec::new();
        for record in self.many(&keys).await?.into_iter().flatten() {
            let request: RequestRecord = serde_json::from_slice(&record.value)?;
            requests.extend(Some(request).filter(|request| request.time_ms >= time_ms));
        }
        Ok(requests)
    }

    pub(super) async fn text(self, hash: String) -> Result<Option<ShownText>, StoreError> {
        let keys = self.store.list(&format!("{HASHES}{}", hash.to_ascii_lowercase())).await?;
        let Some((hash, conversation)) = keys.first().and_then(|key| key[HASHES.len()..].split_once('/')) else {
            return Ok(None);
        };
        let record = self.store.get(&format!("{CONVERSATIONS}{conversation}/texts/{hash}")).await?;
        let text = record.map(|record| String::from_utf8_lossy(&record.value).into_owned());
        Ok(text.map(|text| ShownText { text, conversation: conversation.to_owned() }))
    }

    pub(super) async fn decisions(self, id: String) -> Result<Vec<DecisionEntry>, StoreError> {
        let Some((row, _)) = self.row(&id).await? else { return Ok(Vec::new()) };
        Ok(self.conversation(id, row).await?.map(|(_, state)| state.decisions().entries().to_vec()).unwrap_or_default())
    }

    pub(super) async fn names(self, start: String) -> Result<Vec<String>, StoreError> {
        let listed = self.listed(KEYS).await?;
        Ok(listed.into_iter().map(|(id, _)| id).filter(|id| id.starts_with(&start)).collect())
    }

    pub(super) async fn forget(self, conversation: Option<String>) -> Result<usize, StoreError> {
        let Some(id) = conversation else {
            let count = self.store.list(KEYS).await?.len();
            for prefix in [KEYS, REQUESTS, HASHES, CONVERSATIONS] {
                self.delete(self.store.list(prefix).await?).await?;
            }
            return Ok(count);
        };
        let row = self.row(&id).await?;
        let prefix = format!("{CONVERSATIONS}{id}/");
        let mut keys = self.store.list(&prefix).await?;
        let hashes = keys.iter().filter_map(|key| key[prefix.len()..].strip_prefix("texts/"));
        let hashes: Vec<String> = hashes.map(|hash| format!("{HASHES}{hash}/{id}")).collect();
        keys.extend(hashes);
        keys.extend(row.as_ref().map(|(row, _)| format!("{KEYS}{}/{id}", row.key)));
        keys.extend(self.store.list(&format!("{REQUESTS}{id}/")).await?);
        self.delete(keys).await?;
        Ok(usize::from(row.is_some()))
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        for keys in keys.chunks(MOST_AT_ONCE) {
            self.store.apply(keys.iter().fold(Batch::new(), |batch, key| batch.delete(key))).await?;
        }
        Ok(())
    }

    /// Deletes the least recently used conversations until the records have at most this many bytes.
    pub(super) async fn shrink(self, most_bytes: u64) -> Result<(), StoreError> {
        loop {
            let bytes = self.store.bytes("gateway/").await?;
            let mut listed = self.listed(KEYS).await?;
            if bytes <= most_bytes || listed.is_empty() {
                return Ok(());
            }
            // As many as would do if all were of one size: measuring is slower than deleting.
            let share = (bytes - most_bytes) as f64 / bytes as f64;
            let kept = listed.len() - ((listed.len() as f64 * share).floor() as usize).clamp(1, listed.len());
            for (id, _) in listed.drain(kept..).rev() {
                self.clone().forget(Some(id)).await?;
            }
        }
    }

    pub(super) async fn note_gateway(self, gateway: RunningGateway) -> Result<(), StoreError> {
        self.store.set(&format!("{RUNNING}{}", gateway.id), serde_json::to_vec(&gateway)?).await?;
        Ok(())
    }

    pub(super) async fn forget_gateway(self, id: String) -> Result<(), StoreError> {
        self.store.delete(&format!("{RUNNING}{id}")).await?;
        Ok(())
    }

    pub(super) async fn gateways(self) -> Result<Vec<RunningGateway>, StoreError> {
        let keys = self.store.list(RUNNING).await?;
        let records = self.many(&keys).await?.into_iter().flatten();
        Ok(records.filter_map(|record| serde_json::from_slice(&record.value).ok()).collect())
    }
}

/// When a request came, by the last part of its key, which begins with the time.
fn place_ms(key: &str) -> Option<u64> {
    let place = key.rsplit('/').next()?;
    u64::from_str_radix(place.get(..12)?, 16).ok()
}

fn row_of(record: &Record) -> Option<ConversationHead> {
    serde_json::from_slice(&record.value).ok().filter(|row: &ConversationHead| row.row <= FORMAT)
}

fn beginning_of(id: String, row: &ConversationHead) -> Beginning {
    Beginning {
        id: id.into(),
        key: row.key,
        scope: row.scope,
        parent: row.parent.as_deref().map(Arc::from),
        format: row.format,
        lead: row.lead,
        is_held_out: row.is_held_out,
    }
}

/// `others` are the steps, the decisions and the texts after messages, in this order.
fn state_of(
    row: &ConversationHead,
    known: Option<Vec<u8>>,
    pins: Option<Vec<u8>>,
    rest: Option<Vec<u8>>,
    others: &[Vec<u8>],
) -> Option<ConversationState> {
    let (steps, others) = others.split_at_checked(row.steps)?;
    let (decisions, texts) = others.split_at_checked(row.decisions)?;
    let steps = steps.iter().map(|step| serde_json::from_slice(step).ok()).collect::<Option<Vec<PlanStep>>>()?;
    let mut stopped = row.stopped.clone().map(StopReason::from_text);
    let mut entries = Vec::with_capacity(decisions.len());
    for decided in decisions {
        let stored: Value = serde_json::from_slice(decided).ok()?;
        match FoldDecision::from_stored(&stored["decision"]) {
            Ok(decision) => {
                let messages = usize::try_from(stored["messages"].as_u64()?).ok()?;
                entries.push(DecisionEntry { messages, decision });
            }
            // The plan still determines what is sent; only new decisions are not possible.
            Err(error) => stopped = Some(StopReason::Other(error.to_string())),
        }
    }
    let mut attached = Attached::new();
    for (message, text) in row.attached.keys().zip(texts) {
        attached.insert(*message, std::str::from_utf8(text).ok()?.into());
    }
    let pins = pins.and_then(|pins| serde_json::from_slice(&pins).ok()).unwrap_or_default();
    let decisions = Decisions::restored(row.points.clone(), steps, entries, attached)
        .with_folder(pins, rest.and_then(|rest| snapshot_of(&rest)));
    let (seen, billed) = (SeenMessages::from_bytes(&known?), Billed::restored(row.account));
    Some(ConversationState::restored(seen, decisions, billed, stopped, row.version))
}

/// A folder that cannot be read is replayed.
fn snapshot_of(value: &[u8]) -> Option<FolderSnapshot> {
    let (messages, bytes) = value.split_first_chunk::<8>()?;
    let messages = usize::try_from(u64::from_be_bytes(*messages)).ok()?;
    Some(FolderSnapshot { rest: Rest::from_bytes(bytes.to_vec()).ok()?, messages })
}
