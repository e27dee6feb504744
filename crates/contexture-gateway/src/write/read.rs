//! Reads conversations from a file.

use std::sync::Arc;

use contexture::fold::{FoldDecision, Pins, Rest};
use contexture::wire::{Digest, Format};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::error::StoreError;
use super::sums::{number, part, slices, verified};
use crate::conversation::Beginning;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::{DecisionEntry, Decisions};
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::health::StopReason;
use crate::conversation::plan_history::PlanStep;
use crate::conversation::reading::Attached;
use crate::conversation::seen::SeenMessages;
use crate::conversation::state::ConversationState;

/// A conversation without its decisions.
pub(super) struct ConversationRow {
    beginning: Beginning,
    seen: SeenMessages,
    points: Vec<usize>,
    billed: Billed,
    stopped: Option<StopReason>,
    version: u64,
    /// How many steps, decisions and attached texts belong to it. Rows of older versions do not say.
    counts: Option<[i64; 3]>,
}

/// The columns of a row that [`read_conversation`] reads.
pub(super) const CONVERSATION: &str = "id, parent, format, lead, held_out, known, points, account, stopped, version, scope, key, \
                                       used_ms, steps, decisions, behind, sum, whole";

/// Reads a conversation without its decisions.
pub(super) fn read_conversation(row: &Row<'_>) -> Result<ConversationRow, StoreError> {
    let text = |at: usize| row.get::<_, String>(at);
    let (id, known, version) = (text(0)?, row.get::<_, Vec<u8>>(5)?, row.get::<_, i64>(9)?);
    let (points, account) = (text(6)?, text(7)?);
    let mut parts: Vec<Vec<u8>> =
        vec![id.clone().into(), known.clone(), points.clone().into(), account.clone().into(), number(version).to_vec()];
    let what = format!("the conversation `{id}`");
    verified(row.get(16)?, &slices(&parts), &what)?;
    for at in [11, 10, 1, 2, 3, 4, 8, 12, 13, 14, 15] {
        parts.push(part(row.get_ref(at)?));
    }
    verified(row.get(17)?, &slices(&parts), &what)?;
    let counts = [13, 14, 15].map(|at| row.get::<_, Option<i64>>(at));
    let [steps, decisions, behind] = counts;
    let counts = steps?.zip(decisions?).zip(behind?).map(|((steps, decisions), behind)| [steps, decisions, behind]);
    let format: Format = serde_json::from_str(&text(2)?)?;
    let beginning = Beginning {
        id: id.into(),
        key: Digest(row.get(11)?),
        scope: Digest(row.get(10)?),
        parent: row.get::<_, Option<String>>(1)?.map(Arc::from),
        format,
        lead: row.get::<_, i64>(3)? as usize,
        is_held_out: row.get(4)?,
    };
    Ok(ConversationRow {
        beginning,
        seen: SeenMessages::from_bytes(&known),
        points: serde_json::from_str(&points)?,
        billed: Billed::restored(serde_json::from_str(&account)?),
        stopped: row.get::<_, Option<String>>(8)?.map(StopReason::from_text),
        version: version as u64,
        counts,
    })
}

impl ConversationRow {
    /// Reads its plan changes and decisions.
    pub(super) fn with_decisions(self, connection: &Connection) -> Result<(Beginning, ConversationState), StoreError> {
        let id = &*self.beginning.id;
        let steps = read_steps(connection, id)?;
        let (entries, unreadable) = read_entries(connection, id)?;
        let attached = read_attached(connection, id)?;
        let found = [steps.len(), entries.len() + unreadable.len(), attached.len()].map(|count| count as i64);
        if self.counts.is_some_and(|counts| counts != found) {
            return Err(StoreError::Damaged(format!("parts of the conversation `{id}` are missing")));
        }
        let decisions = Decisions::restored(self.points, steps, entries, attached)
            .with_folder(read_pins(connection, id)?, read_snapshot(connection, id)?);
        let stopped = unreadable.into_iter().last().or(self.stopped);
        let state = ConversationState::restored(self.seen, decisions, self.billed, stopped, self.version);
        Ok((self.beginning, state))
    }
}

fn read_steps(connection: &Connection, id: &str) -> Result<Vec<PlanStep>, StoreError> {
    let sql = "SELECT step, n, sum FROM steps WHERE conversation = ?1 ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![id])?;
    let mut steps = Vec::new();
    while let Some(row) = rows.next()? {
        let (step, n): (String, i64) = (row.get(0)?, row.get(1)?);
        verified(row.get(2)?, &[id.as_bytes(), &number(n), step.as_bytes()], &format!("a plan of `{id}`"))?;
        steps.push(serde_json::from_str(&step)?);
    }
    Ok(steps)
}

/// Reads the decisions of a conversation, and for each that this version cannot read why no more can be made.
pub(super) fn read_entries(
    connection: &Connection,
    id: &str,
) -> Result<(Vec<DecisionEntry>, Vec<StopReason>), StoreError> {
    let sql = "SELECT messages, decision, n, sum FROM decisions WHERE conversation = ?1 ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![id])?;
    let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let (messages, decision, n): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let parts: [&[u8]; 3] = [id.as_bytes(), &number(n), decision.as_bytes()];
        verified(row.get(3)?, &parts, &format!("a decision about `{id}`"))?;
        let stored: Value = serde_json::from_str(&decision)?;
        match FoldDecision::from_stored(&stored) {
            Ok(decision) => entries.push(DecisionEntry { messages: messages as usize, decision }),
            // The plan still determines what is sent; only new decisions are not possible.
            Err(error) => unreadable.push(StopReason::Other(error.to_string())),
        }
    }
    Ok((entries, unreadable))
}

fn read_attached(connection: &Connection, id: &str) -> Result<Attached, StoreError> {
    let mut statement = connection.prepare_cached("SELECT message, text, sum FROM behind WHERE conversation = ?1")?;
    let mut rows = statement.query(params![id])?;
    let mut attached = Attached::new();
    while let Some(row) = rows.next()? {
        let (message, text): (i64, String) = (row.get(0)?, row.get(1)?);
        verified(row.get(2)?, &[id.as_bytes(), &number(message), text.as_bytes()], &format!("a text of `{id}`"))?;
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
