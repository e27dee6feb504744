//! Reads an archive for display.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use contexture_gateway::write::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::block::BlockKind;
use super::super::text::floor;
use super::super::timeline::{Timeline, ToolStep};
use super::super::view::{
    BlockLine, BlockState, BlockText, ConversationLine, Cost, ListPage, ReadLines, RequestLine, TextHit, WindowForm,
    WindowPage,
};
use super::super::window::{ComparedWindow, ShownBlock, TokenScale, boundary, first_difference};
use super::Archive;
use super::blocks::{self, BlockRow, COLUMNS};
use super::lists::{self, Lists};
use super::reasons::Reasons;

/// Most conversations whose files are kept in memory.
const MAX_TIMELINES: usize = 8;

/// Characters of context around a match.
const AROUND_CHARS: usize = 60;

/// A request for a page of a window.
#[derive(Clone, Copy, Debug)]
pub struct WindowQuery {
    /// The form of the window.
    pub form: WindowForm,
    /// Whether the largest blocks come first.
    pub by_size: bool,
    /// The first row.
    pub from: u64,
    /// Most rows.
    pub limit: u64,
    /// A block whose page is requested, if it is in the window.
    pub block: Option<u32>,
}

const CONVERSATION: &str =
    "id, title, name, parent, format, model, first_ms, last_ms, requests, turns, came, sent, billed,
    passed_through, paid, would_pay, unpriced, folds, failed, is_reading, stopped, largest, unsendable, simulated, agent,
    project";

/// The order of conversations: newest first. A recording without dates is as new as its file.
pub(super) const NEWEST_FIRST: &str = "CASE WHEN last_ms > 0 THEN last_ms ELSE modified_ms END DESC, id";

/// Most numbers of the small picture of a conversation.
const SHAPE: u64 = 24;

fn conversation_line(row: &Row<'_>) -> rusqlite::Result<ConversationLine> {
    let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
    let format: Option<String> = row.get(4)?;
    let (paid, would_pay): (f64, f64) = (row.get(14)?, row.get(15)?);
    Ok(ConversationLine {
        id: row.get(0)?,
        title: row.get(1)?,
        name: row.get(2)?,
        parent: row.get(3)?,
        format: format.and_then(|format| serde_json::from_str(&format).ok()),
        model: row.get(5)?,
        first_ms: number(6)?,
        last_ms: number(7)?,
        requests: number(8)?,
        turns: number(9)?,
        came: number(10)?,
        sent: number(11)?,
        billed: row.get(12)?,
        passed_through: row.get(13)?,
        dollars: (row.get::<_, i64>(16)? == 0 && paid > 0.0).then_some((paid, would_pay)),
        folds: number(17)?,
        failed: number(18)?,
        is_reading: row.get::<_, i64>(19)? == super::READING,
        is_unread: row.get::<_, i64>(19)? == super::UNREAD,
        stopped: row.get(20)?,
        largest: number(21)?,
        beyond: number(22)?,
        simulated: number(23)?,
        agent: row.get(24)?,
        project: row.get(25)?,
        shape: Vec::new(),
    })
}

/// Tokens of some requests of a conversation, in order.
fn shape(connection: &Connection, line: &ConversationLine) -> Result<Vec<u64>, StoreError> {
    let step = line.requests.div_ceil(SHAPE).max(1);
    let mut statement = connection.prepare_cached("SELECT tokens FROM requests WHERE conversation = ?1 AND n = ?2")?;
    let mut shape = Vec::new();
    for n in (step..=line.requests).step_by(step as usize) {
        let tokens: Option<i64> = statement.query_row(params![line.id, n as i64], |row| row.get(0)).optional()?;
        shape.extend(tokens.map(|tokens| tokens as u64));
    }
    Ok(shape)
}

impl Archive {
    /// Conversations, most recently used first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn conversations(&self, from: u64, limit: u64) -> Result<ListPage<ConversationLine>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT {CONVERSATION} FROM conversations ORDER BY {NEWEST_FIRST} LIMIT ?1 OFFSET ?2");
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params![limit as i64, from as i64], conversation_line)?;
        let mut items: Vec<ConversationLine> = rows.collect::<Result<_, _>>()?;
        for line in &mut items {
            line.shape = shape(&connection, line)?;
        }
        let total: i64 = connection.query_row("SELECT count(*) FROM conversations", [], |row| row.get(0))?;
        let end = from + items.len() as u64;
        Ok(ListPage { items, total: Some(total as u64), next: (end < total as u64).then_some(end) })
    }

    /// Returns a conversation.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn conversation(&self, id: &str) -> Result<Option<ConversationLine>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT {CONVERSATION} FROM conversations WHERE id = ?1");
        let line = connection.prepare_cached(&sql)?.query_row(params![id], conversation_line).optional()?;
        line.map(|line| Ok(ConversationLine { shape: shape(&connection, &line)?, ..line })).transpose()
    }

    /// Requests of a conversation starting at a number, in order.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn requests(&self, conversation: &str, from: u64, limit: u64) -> Result<ListPage<RequestLine>, StoreError> {
        let connection = self.lock();
        let sql = "SELECT line FROM requests WHERE conversation = ?1 AND n >= ?2 ORDER BY n LIMIT ?3";
        let mut statement = connection.prepare_cached(sql)?;
        let rows =
            statement.query_map(params![conversation, from as i64, limit as i64], |row| row.get::<_, String>(0))?;
        let mut items: Vec<RequestLine> = Vec::new();
        for row in rows {
            let line: RequestLine = serde_json::from_str(&row?)?;
            items.push(RequestLine { cost: Cost::of(&line.record), ..line });
        }
        let sql = "SELECT count(*) FROM requests WHERE conversation = ?1";
        let total: i64 = connection.prepare_cached(sql)?.query_row(params![conversation], |row| row.get(0))?;
        let next = items.last().map(|line| line.n + 1).filter(|next| *next <= total as u64);
        Ok(ListPage { items, total: Some(total as u64), next })
    }

    /// Calls a function with each request.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn each_request(&self, mut each: impl FnMut(&str, RequestLine)) -> Result<(), StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT conversation, line FROM requests ORDER BY time_ms, n")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let line: String = row.get(1)?;
            each(&row.get::<_, String>(0)?, serde_json::from_str(&line)?);
        }
        Ok(())
    }

    /// The lists of a request, and what was sent with the previous one.
    pub(super) fn lists(&self, conversation: &str, n: u64) -> Result<(Lists, Vec<u32>), StoreError> {
        let connection = self.lock();
        let lists = lists::read(&connection, conversation, n)?;
        let before = if n > 1 { lists::read(&connection, conversation, n - 1)?.sent } else { Vec::new() };
        Ok((lists, before))
    }

    /// A page of a window.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn window(&self, conversation: &str, n: u64, asked: WindowQuery) -> Result<Option<WindowPage>, StoreError> {
        let Some(line) = self.requests(conversation, n, 1)?.items.pop().filter(|line| line.n == n) else {
            return Ok(None);
        };
        let (lists, before) = self.lists(conversation, n)?;
        let all: HashSet<u32> = lists.came.iter().chain(&lists.sent).chain(&before).copied().collect();
        let facts = facts(&self.lock(), &all)?;
        let steps = facts.iter().filter_map(|(id, fact)| Some((*id, fact.step.clone()?))).collect();
        let compared = ComparedWindow { came: &lists.came, sent: &lists.sent, before: &before, steps: &steps };
        let shown = compared.shown(asked.form);
        let own = |id: u32| facts.get(&id).map_or(0, |fact| fact.tokens);
        let total = if asked.form == WindowForm::Came { line.came_tokens } else { line.sent_tokens };
        let is_there = |block: &&ShownBlock| block.state != BlockState::Gone;
        let scale = TokenScale::new(total, shown.iter().filter(is_there).map(|block| own(block.id)).sum());
        let tokens = |id: u32| scale.of(own(id));
        let mut states = BTreeMap::new();
        for block in &shown {
            *states.entry(block.state).or_default() += 1;
        }
        let cached = line.cached_tokens.filter(|_| asked.form != WindowForm::Came);
        let mut places: Vec<usize> = (0..shown.len()).collect();
        if asked.by_size {
            places.sort_by_key(|place| std::cmp::Reverse(tokens(shown[*place].id)));
        }
        let at = asked.block.and_then(|block| places.iter().position(|place| shown[*place].id == block));
        let at = at.map(|at| at as u64);
        let from = at.map_or(asked.from, |at| at - at % asked.limit);
        let end = (from + asked.limit).min(places.len() as u64);
        let wanted: Vec<(usize, ShownBlock)> =
            places[(from.min(end) as usize)..end as usize].iter().map(|place| (*place, shown[*place])).collect();
        Ok(Some(WindowPage {
            form: asked.form,
            total: shown.len() as u64,
            tokens: total,
            first_difference: first_difference(&shown).map(|place| place as u64),
            cache_boundary: cached.map(|cached| boundary(&shown, tokens, cached) as u64),
            states,
            at,
            from,
            blocks: self.block_lines(conversation, n, &wanted, scale)?,
            next: (end < places.len() as u64).then_some(end),
        }))
    }

    fn block_lines(
        &self,
        conversation: &str,
        n: u64,
        wanted: &[(usize, ShownBlock)],
        scale: TokenScale,
    ) -> Result<Vec<BlockLine>, StoreError> {
        let timeline = self.timeline(conversation)?;
        let connection = self.lock();
        let ids: Vec<u32> = wanted.iter().map(|(_, shown)| shown.id).collect();
        let rows = blocks::rows(&connection, &ids)?;
        let pins = pins(&connection, conversation)?;
        let mut why = Reasons::new(&connection, conversation);
        let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::with_capacity(wanted.len());
        for (place, shown) in wanted {
            let Some(row) = rows.get(&shown.id) else { continue };
            let (since, left) = place_of(&connection, conversation, shown.id)?;
            let grade = timeline.grade(shown.id, n);
            let reason = why.of(shown.state, since, left)?;
            let line = block_line(*place, row, shown, reason, grade, pins.contains(&shown.id), since);
            let views = blocks::views(&connection, row)?;
            lines.push(BlockLine { views, tokens: scale.of(row.tokens), ..line });
        }
        Ok(lines)
    }

    /// Part of a block's text.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn block(&self, id: u32, from: u64, limit: u64) -> Result<Option<BlockText>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT {COLUMNS}, text FROM blocks WHERE id = ?1");
        let read = |row: &Row<'_>| Ok((BlockRow::read(row, 0)?, row.get::<_, String>(11)?));
        let Some((row, text)) = connection.prepare_cached(&sql)?.query_row(params![id], read).optional()? else {
            return Ok(None);
        };
        let from = floor(&text, from as usize);
        let end = floor(&text, from.saturating_add(limit as usize));
        Ok(Some(BlockText {
            id,
            source: row.source,
            kind: row.kind,
            name: row.name,
            call: row.call,
            bytes: row.bytes,
            from: from as u64,
            text: text[from..end].to_owned(),
            next: (end < text.len() && end > from).then_some(end as u64),
        }))
    }

    /// Whether a conversation contains a block.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn has_block(&self, conversation: &str, block: u32) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM places WHERE conversation = ?1 AND block = ?2";
        Ok(self.lock().query_row(sql, params![conversation, block], |_| Ok(())).optional()?.is_some())
    }

    /// The files of a conversation up to now.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn timeline(&self, conversation: &str) -> Result<Arc<Mutex<Timeline>>, StoreError> {
        let mut timelines = self.timelines.lock().unwrap_or_else(PoisonError::into_inner);
        if timelines.len() >= MAX_TIMELINES && !timelines.contains_key(conversation) {
            timelines.clear();
        }
        let new = || Arc::new(Mutex::new(Timeline::new(self.dialects.clone())));
        let timeline = timelines.entry(conversation.to_owned()).or_insert_with(new).clone();
        drop(timelines);
        let connection = self.lock();
        let mut known = timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let sql = "SELECT number, block, n, kind, call, name, text, is_error FROM places JOIN blocks ON id = block
                   WHERE conversation = ?1 AND number > ?2 AND is_sent = 0 AND kind IN ('call', 'output') ORDER BY number";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![conversation, known.newest])?;
        while let Some(row) = rows.next()? {
            known.newest = row.get(0)?;
            known.take(ToolStep {
                block: row.get(1)?,
                n: row.get::<_, i64>(2)? as u64,
                is_call: row.get::<_, String>(3)? == BlockKind::Call.name(),
                call: row.get(4)?,
                name: row.get(5)?,
                text: row.get(6)?,
                is_error: row.get(7)?,
            });
        }
        drop(known);
        Ok(timeline)
    }

    /// Blocks that contain a text, newest first. `before` is where the previous page ended.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn search(
        &self,
        words: &str,
        conversation: Option<&str>,
        before: Option<u64>,
        limit: u64,
    ) -> Result<ListPage<TextHit>, StoreError> {
        let pattern = format!("%{}%", words.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        let connection = self.lock();
        let sql = "SELECT number, conversation, n, is_sent, block, source, blocks.name, text, title
                   FROM places JOIN blocks ON blocks.id = block JOIN conversations ON conversations.id = conversation
                   WHERE number < ?1 AND (?2 IS NULL OR conversation = ?2) AND text LIKE ?3 ESCAPE '\\'
                   ORDER BY number DESC LIMIT ?4";
        let mut statement = connection.prepare_cached(sql)?;
        let before = before.map_or(i64::MAX, |before| before as i64);
        let mut rows = statement.query(params![before, conversation, pattern, limit as i64])?;
        let (mut items, mut newest) = (Vec::new(), None);
        while let Some(row) = rows.next()? {
            newest = Some(row.get::<_, i64>(0)? as u64);
            items.push(hit(row, words)?);
        }
        let next = newest.filter(|_| items.len() as u64 == limit);
        Ok(ListPage { items, total: None, next })
    }
}

fn hit(row: &Row<'_>, words: &str) -> rusqlite::Result<TextHit> {
    let text: String = row.get(7)?;
    let at = find(&text, words).unwrap_or(0);
    let end = floor(&text, at + words.len());
    let start = floor(&text, at.saturating_sub(AROUND_CHARS * 2));
    let on_one_line = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    let before = on_one_line(&text[start..at]);
    let source: String = row.get(5)?;
    Ok(TextHit {
        conversation: row.get(1)?,
        title: row.get(8)?,
        n: row.get::<_, i64>(2)? as u64,
        form: if row.get(3)? { WindowForm::Sent } else { WindowForm::Came },
        block: row.get(4)?,
        source: super::super::block::BlockSource::named(&source).unwrap_or(super::super::block::BlockSource::Output),
        name: row.get(6)?,
        before,
        found: text[at..end].to_owned(),
        behind: on_one_line(&text[end..floor(&text, end + AROUND_CHARS * 2)]),
    })
}

/// Finds some words in a text, ignoring ASCII case.
fn find(text: &str, words: &str) -> Option<usize> {
    let (text, words) = (text.as_bytes(), words.as_bytes());
    if words.is_empty() {
        return None;
    }
    text.windows(words.len()).position(|part| part.eq_ignore_ascii_case(words))
}

/// What is needed of all blocks of a window.
pub(super) struct WindowBlockFact {
    pub(super) tokens: u64,
    /// For a call or an output: which of the two, and the id of the call.
    pub(super) step: Option<(BlockKind, String)>,
}

pub(super) fn facts(connection: &Connection, ids: &HashSet<u32>) -> Result<HashMap<u32, WindowBlockFact>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT tokens, kind, call FROM blocks WHERE id = ?1")?;
    let mut facts = HashMap::with_capacity(ids.len());
    for id in ids {
        let read =
            |row: &Row<'_>| Ok(WindowBlockFact { tokens: row.get::<_, i64>(0)? as u64, step: blocks::step(row, 1)? });
        if let Some(fact) = statement.query_row(params![id], read).optional()? {
            facts.insert(*id, fact);
        }
    }
    Ok(facts)
}

fn pins(connection: &Connection, conversation: &str) -> Result<HashSet<u32>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT block FROM pins WHERE conversation = ?1")?;
    let rows = statement.query_map(params![conversation], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The request in which a block first appeared, and the one since which it is no longer sent.
fn place_of(connection: &Connection, conversation: &str, block: u32) -> Result<(u64, Option<u64>), StoreError> {
    let sql = "SELECT n, left_n FROM places WHERE conversation = ?1 AND block = ?2";
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Option<i64>>(1)?.map(|n| n as u64)));
    let place = connection.prepare_cached(sql)?.query_row(params![conversation, block], read).optional()?;
    Ok(place.unwrap_or((0, None)))
}

fn block_line(
    place: usize,
    row: &BlockRow,
    shown: &ShownBlock,
    reason: Option<String>,
    grade: Option<ReadLines>,
    is_pinned: bool,
    since: u64,
) -> BlockLine {
    let (grade, grade_reason) = grade.map_or((None, None), |grade| (Some(grade.grade), grade.reason));
    BlockLine {
        place: place as u64,
        id: row.id,
        source: row.source,
        kind: row.kind,
        part: row.part(),
        role: row.role.clone(),
        name: row.name.clone(),
        made: row.made.clone(),
        views: Vec::new(),
        tokens: row.tokens,
        bytes: row.bytes,
        is_error: row.is_error,
        preview: row.preview.clone(),
        state: shown.state,
        reason,
        grade,
        grade_reason,
        other: shown.other,
        is_pinned,
        since,
    }
}
