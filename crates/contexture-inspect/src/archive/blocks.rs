//! The texts of an archive, each stored once.

use std::collections::HashMap;

use contexture_gateway::write::StoreError;
use contexture_text::window_part::WindowPart;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::block::{BlockDraft, BlockKind, BlockSource, part_of};
use super::super::made;
use super::super::text::preview;
use super::super::view::FileView;

/// Characters of a block that lists show.
pub const PREVIEW_CHARS: usize = 160;

/// A block without its text.
#[derive(Clone, Debug)]
pub struct BlockRow {
    /// Its id.
    pub id: u32,
    /// Its source.
    pub source: BlockSource,
    /// Its kind.
    pub kind: BlockKind,
    /// The role of its author.
    pub role: String,
    /// The tool or file it is about.
    pub name: String,
    /// The id of the call that it is, or that it is the output of.
    pub call: String,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// Tokens, by our own count.
    pub tokens: u64,
    /// Bytes of its text.
    pub bytes: u64,
    /// The start of its text.
    pub preview: String,
    /// What it is, if Contexture wrote it.
    pub made: String,
}

/// The columns of a [`BlockRow`].
pub const COLUMNS: &str = "id, source, kind, role, name, call, is_error, tokens, bytes, preview, made";

impl BlockRow {
    /// The part of a window that it belongs to, wherever it stands.
    pub fn part(&self) -> WindowPart {
        part_of(self.source, self.kind, &self.role, &self.name, &self.made)
    }

    /// Reads the columns starting at an index.
    pub fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(at)?,
            source: BlockSource::named(&row.get::<_, String>(at + 1)?).unwrap_or(BlockSource::Output),
            kind: BlockKind::named(&row.get::<_, String>(at + 2)?),
            role: row.get(at + 3)?,
            name: row.get(at + 4)?,
            call: row.get(at + 5)?,
            is_error: row.get(at + 6)?,
            tokens: row.get::<_, i64>(at + 7)? as u64,
            bytes: row.get::<_, i64>(at + 8)? as u64,
            preview: row.get(at + 9)?,
            made: row.get(at + 10)?,
        })
    }
}

/// Returns the block of a draft, and writes it if it is new. A known block keeps its count of tokens, which differs a
/// little between formats, and the draft gets it too.
pub fn keep(connection: &Connection, draft: &mut BlockDraft) -> Result<u32, StoreError> {
    let hash = draft.hash();
    let mut known = connection.prepare_cached("SELECT id, tokens FROM blocks WHERE hash = ?1")?;
    let known = known.query_row(params![hash], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).optional()?;
    if let Some((id, tokens)) = known {
        draft.tokens = tokens as u64;
        return Ok(id);
    }
    let sql = "INSERT INTO blocks (hash, source, kind, role, name, call, is_error, tokens, bytes, preview, made, text)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    connection.prepare_cached(sql)?.execute(params![
        hash,
        draft.source.name(),
        draft.kind.name(),
        draft.role,
        draft.name,
        draft.call,
        draft.is_error,
        draft.tokens as i64,
        draft.text.len() as i64,
        preview(&draft.text, PREVIEW_CHARS),
        draft.made,
        draft.text
    ])?;
    Ok(connection.last_insert_rowid() as u32)
}

/// Returns the block of a draft, if it exists.
pub fn find(connection: &Connection, draft: &BlockDraft) -> Result<Option<u32>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT id FROM blocks WHERE hash = ?1")?;
    Ok(statement.query_row(params![draft.hash()], |row| row.get(0)).optional()?)
}

/// Reads some blocks.
pub fn rows(connection: &Connection, ids: &[u32]) -> Result<HashMap<u32, BlockRow>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM blocks WHERE id = ?1"))?;
    let mut rows = HashMap::with_capacity(ids.len());
    for id in ids {
        if let Some(row) = statement.query_row(params![id], |row| BlockRow::read(row, 0)).optional()? {
            rows.insert(*id, row);
        }
    }
    Ok(rows)
}

/// The lines of files that a block shows, if Contexture wrote it.
pub fn views(connection: &Connection, row: &BlockRow) -> Result<Vec<FileView>, StoreError> {
    if row.source != BlockSource::Made {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached("SELECT text FROM blocks WHERE id = ?1")?;
    let text: String = statement.query_row(params![row.id], |row| row.get(0))?;
    Ok(made::views(row.id, &text))
}

/// The name and the arguments of a call as it came, if it exists.
pub fn call(connection: &Connection, id: &str) -> Result<Option<(String, String)>, StoreError> {
    let sql = "SELECT name, text FROM blocks WHERE call = ?1 AND kind = 'call' AND made = '' ORDER BY id DESC LIMIT 1";
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    Ok(connection.prepare_cached(sql)?.query_row(params![id], read).optional()?)
}

/// The kind of a call or an output with the id of the call, from these two columns starting at an index; `None` for other
/// blocks.
pub fn step(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<(BlockKind, String)>> {
    let kind = BlockKind::named(&row.get::<_, String>(at)?);
    let call: String = row.get(at + 1)?;
    Ok(matches!(kind, BlockKind::Call | BlockKind::Output).then_some((kind, call)))
}
