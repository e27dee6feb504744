//! Reads a whole conversation for export.

use std::collections::HashMap;
use std::sync::PoisonError;

use contexture_gateway::write::StoreError;
use rusqlite::params;
use serde_json::{Value, json};

use super::super::block::BlockKind;
use super::super::exported::{ExportRow, ExportedWords};
use super::super::view::WindowForm;
use super::super::window::{ComparedWindow, boundary, first_difference};
use super::reading::api_name;
use super::reasons::Reasons;
use super::{Archive, blocks, lists};

/// What the export needs to know of each block.
struct ExportedBlock {
    tokens: u64,
    since: u64,
    left: Option<u64>,
    /// For a call or an output: which of the two, and the id of the call.
    step: Option<(BlockKind, String)>,
}

impl Archive {
    /// Calls a function with each window of a conversation, in order.
    pub(in super::super) fn each_window(
        &self,
        conversation: &str,
        form: WindowForm,
        words: &mut ExportedWords,
        mut each: impl FnMut(Vec<ExportRow>, Option<u64>, Option<u64>),
    ) -> Result<(), StoreError> {
        let requests = self.requests(conversation, 0, u64::from(u32::MAX))?.items;
        let timeline = self.timeline(conversation)?;
        let connection = self.lock();
        let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known(&connection, conversation)?;
        let steps = known.iter().filter_map(|(id, known)| Some((*id, known.step.clone()?))).collect();
        let mut reasons = Reasons::new(&connection, conversation);
        let mut before: Vec<u32> = Vec::new();
        for line in &requests {
            let lists = lists::read(&connection, conversation, line.n)?;
            let compared = ComparedWindow { came: &lists.came, sent: &lists.sent, before: &before, steps: &steps };
            let shown = compared.shown(form);
            let mut rows = Vec::with_capacity(shown.len());
            for block in &shown {
                let place = known.get(&block.id);
                let (since, left) = place.map_or((0, None), |known| (known.since, known.left));
                let reason = reasons.of(block.state, since, left)?;
                let grade = timeline.grade(block.id, line.n);
                let (grade, why) = grade.map_or((None, None), |grade| (Some(api_name(grade.grade)), grade.reason));
                let (reason, grade, why) = (words.place(reason), words.place(grade), words.place(why));
                rows.push(ExportRow(block.id, api_name(block.state), reason, grade, why, block.other.unwrap_or(0)));
            }
            let tokens = |id: u32| known.get(&id).map_or(0, |known| known.tokens);
            let cached = line.cached_tokens.filter(|_| form != WindowForm::Came);
            let end = cached.map(|cached| boundary(&shown, tokens, cached) as u64);
            each(rows, first_difference(&shown).map(|place| place as u64), end);
            before = lists.sent;
        }
        Ok(())
    }

    /// Calls a function with each block of a conversation and its text.
    pub(in super::super) fn each_block(
        &self,
        conversation: &str,
        mut each: impl FnMut(u32, Value, &str),
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let sql = "SELECT id, source, kind, role, name, call, is_error, tokens, bytes, preview, text, n, made
                   FROM places JOIN blocks ON id = block WHERE conversation = ?1 ORDER BY number";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![conversation])?;
        while let Some(row) = rows.next()? {
            let text = |at: usize| row.get::<_, String>(at);
            let number = |at: usize| row.get::<_, i64>(at);
            let block = json!({
                "source": text(1)?, "kind": text(2)?, "role": text(3)?, "name": text(4)?, "call": text(5)?,
                "is_error": row.get::<_, bool>(6)?, "tokens": number(7)?, "bytes": number(8)?, "preview": text(9)?,
                "since": number(11)?, "made": text(12)?,
            });
            each(row.get(0)?, block, &text(10)?);
        }
        Ok(())
    }
}

/// Reads all blocks of a conversation.
fn known(connection: &rusqlite::Connection, conversation: &str) -> Result<HashMap<u32, ExportedBlock>, StoreError> {
    let sql = "SELECT block, tokens, n, left_n, kind, call FROM places JOIN blocks ON id = block
               WHERE conversation = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![conversation])?;
    let mut known = HashMap::new();
    while let Some(row) = rows.next()? {
        let left = row.get::<_, Option<i64>>(3)?.map(|left| left as u64);
        let step = blocks::step(row, 4)?;
        let (tokens, since) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
        known.insert(row.get(0)?, ExportedBlock { tokens, since, left, step });
    }
    Ok(known)
}
