//! Reads conversations from a file.

use std::sync::Arc;

use contexture::fold::{FoldDecision, Pins, Rest};
use contexture::wire::{Digest, Format};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::error::StoreError;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::{DecisionEntry, Decisions};
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::health::StopReason;
use crate::conversation::plan_history::PlanStep;
use crate::conversation::reading::Attached;
use crate::conversation::seen::SeenMessages;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, ConversationKey};

/// A conversation without its decisions.
pub(super) struct ConversationRow {
    beginning: Beginning,
    seen: SeenMessages,
    points: Vec<usize>,
    billed: Billed,
    stopped: Option<StopReason>,
    version: u64,
}

/// Reads a conversation without its decisions.
pub(super) fn read_conversation(row: &Row<'_>, key: ConversationKey) -> Result<ConversationRow, StoreError> {
    let text = |at: usize| row.get::<_, String>(at);
    let format: Format = serde_json::from_str(&text(2)?)?;
    let beginning = Beginning {
        id: text(0)?.into(),
        key,
        scope: Digest(row.get(10)?),
        parent: row.get::<_, Option<String>>(1)?.map(Arc::from),
        format,
        lead: row.get::<_, i64>(3)? as usize,
        is_held_out: row.get(4)?,
    };
    Ok(ConversationRow {
        beginning,
        seen: SeenMessages::from_bytes(&row.get::<_, Vec<u8>>(5)?),
        points: serde_json::from_str(&text(6)?)?,
        billed: Billed::restored(serde_json::from_str(&text(7)?)?),
        stopped: row.get::<_, Option<String>>(8)?.map(StopReason::from_text),
        version: row.get::<_, i64>(9)? as u64,
    })
}

impl ConversationRow {
    /// Reads its plan changes and decisions.
    pub(super) fn with_decisions(self, connection: &Connection) -> Result<(Beginning, ConversationState), StoreError> {
        let id = &*self.beginning.id;
        let steps = read_steps(connection, id)?;
        let (entries, unreadable) = read_entries(connection, id)?;
        let decisions = Decisions::restored(self.points, steps, entries, read_attached(connection, id)?)
            .with_folder(read_pins(connection, id)?, read_snapshot(connection, id)?);
        let stopped = unreadable.or(self.stopped);
        let state = ConversationState::restored(self.seen, decisions, self.billed, stopped, self.version);
        Ok((self.beginning, state))
    }
}

fn read_steps(connection: &Connection, id: &str) -> Result<Vec<PlanStep>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT step FROM steps WHERE conversation = ?1 ORDER BY n")?;
    let mut steps = Vec::new();
    for row in statement.query_map(params![id], |row| row.get::<_, String>(0))? {
        steps.push(serde_json::from_str(&row?)?);
    }
    Ok(steps)
}

/// Reads the decisions of a conversation, and why no more can be made if one of them cannot be read.
pub(super) fn read_entries(
    connection: &Connection,
    id: &str,
) -> Result<(Vec<DecisionEntry>, Option<StopReason>), StoreError> {
    let sql = "SELECT messages, decision FROM decisions WHERE conversation = ?1 ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    let (mut entries, mut unreadable) = (Vec::new(), None);
    for row in rows {
        let (messages, decision) = row?;
        let stored: Value = serde_json::from_str(&decision)?;
        match FoldDecision::from_stored(&stored) {
            Ok(decision) => entries.push(DecisionEntry { messages: messages as usize, decision }),
            // The plan still determines what is sent; only new decisions are not possible.
            Err(error) => unreadable = Some(StopReason::Other(error.to_string())),
        }
    }
    Ok((entries, unreadable))
}

fn read_attached(connection: &Connection, id: &str) -> Result<Attached, StoreError> {
    let mut statement = connection.prepare_cached("SELECT message, text FROM behind WHERE conversation = ?1")?;
    let mut attached = Attached::new();
    for row in statement.query_map(params![id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))? {
        let (message, text) = row?;
        attached.insert(message as usize, text.into());
    }
    Ok(attached)
}

fn read_pins(connection: &Connection, id: &str) -> Result<Pins, StoreError> {
    let sql = "SELECT pins FROM pins WHERE conversation = ?1";
    let pins = connection.prepare_cached(sql)?.query_row(params![id], |row| row.get::<_, String>(0)).optional()?;
    Ok(pins.map(|pins| serde_json::from_str(&pins)).transpose()?.unwrap_or_default())
}

/// Reads the folder of a conversation. If that cannot be read, the conversation is replayed.
fn read_snapshot(connection: &Connection, id: &str) -> Result<Option<FolderSnapshot>, StoreError> {
    let sql = "SELECT messages, bytes FROM rests WHERE conversation = ?1";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
    let stored = connection.prepare_cached(sql)?.query_row(params![id], read).optional()?;
    Ok(stored.and_then(|(messages, bytes)| {
        Some(FolderSnapshot { rest: Rest::from_bytes(bytes).ok()?, messages: messages as usize })
    }))
}
