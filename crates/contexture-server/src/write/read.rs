//! Reads conversations from the store.

use std::sync::Arc;

use contexture::fold::{FoldDecision, Rest};
use contexture::wire::{Digest, Format};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::error::StoreError;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::plan_history::{PlanHistory, PlanStep};
use crate::conversation::{Beginning, ConversationKey, ConversationState, DecisionEntry};
use crate::find::hashes::MessageHashes;

/// Reads a conversation without its decisions.
pub(super) fn read_conversation(
    row: &Row<'_>,
    key: ConversationKey,
) -> Result<(Beginning, ConversationState), StoreError> {
    let text = |at: usize| row.get::<_, String>(at);
    let known: Vec<u8> = row.get(5)?;
    let known = known.as_chunks::<16>().0.iter().map(|plain| MessageHashes { raw: None, plain: Digest(*plain) });
    let state = ConversationState {
        known: known.collect(),
        points: serde_json::from_str(&text(6)?)?,
        account: serde_json::from_str(&text(7)?)?,
        stopped: row.get(8)?,
        version: row.get::<_, i64>(9)? as u64,
        saved_version: row.get::<_, i64>(9)? as u64,
        ..ConversationState::default()
    };
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
    Ok((beginning, state))
}

/// Reads the plan changes and decisions of a conversation.
pub(super) fn read_decided(connection: &Connection, id: &str, state: &mut ConversationState) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT step FROM steps WHERE conversation = ?1 ORDER BY n")?;
    let mut steps: Vec<PlanStep> = Vec::new();
    for row in statement.query_map(params![id], |row| row.get::<_, String>(0))? {
        steps.push(serde_json::from_str(&row?)?);
    }
    state.saved_steps = steps.len();
    state.steps = PlanHistory::of(steps);
    let sql = "SELECT messages, decision FROM decisions WHERE conversation = ?1 ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    for row in rows {
        let (messages, decision) = row?;
        let stored: Value = serde_json::from_str(&decision)?;
        match FoldDecision::from_stored(&stored) {
            Ok(decision) => state.decisions.push(DecisionEntry { messages: messages as usize, decision }),
            // The plan still determines what is sent; only new decisions are not possible.
            Err(error) => state.stopped = Some(error.to_string()),
        }
    }
    state.saved_decisions = state.decisions.len();
    let mut statement = connection.prepare_cached("SELECT message, text FROM behind WHERE conversation = ?1")?;
    for row in statement.query_map(params![id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))? {
        let (message, text) = row?;
        state.attached.insert(message as usize, text.into());
    }
    let sql = "SELECT pins FROM pins WHERE conversation = ?1";
    let pins = connection.prepare_cached(sql)?.query_row(params![id], |row| row.get::<_, String>(0)).optional()?;
    state.pins = pins.map(|pins| serde_json::from_str(&pins)).transpose()?.unwrap_or_default();
    let sql = "SELECT messages, bytes FROM rests WHERE conversation = ?1";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
    let rested = connection.prepare_cached(sql)?.query_row(params![id], read).optional()?;
    // If the snapshot cannot be read, the conversation is replayed.
    state.rested = rested.and_then(|(messages, bytes)| {
        Some(Arc::new(FolderSnapshot { rest: Rest::from_bytes(bytes).ok()?, messages: messages as usize }))
    });
    Ok(())
}
