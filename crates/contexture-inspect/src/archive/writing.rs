//! Writes requests and conversations to the tables of an archive.

use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::write::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::view::RequestLine;
use super::lists::{self, Lists, REQUESTS_PER_WHOLE, shared};
use super::newest::ListsChange;
use super::{ArchivedRequest, Ticket, blocks};

/// Corrects a request that was sent again as it came, after the provider had refused it rewritten. Returns its lists.
pub fn sent_as_it_came(connection: &Connection, ticket: &Ticket, line: &mut RequestLine) -> Result<Lists, StoreError> {
    let Ticket { conversation, n } = ticket;
    let rewritten = lists::read(connection, conversation, *n)?;
    let lists = Lists { came: rewritten.came.clone(), sent: rewritten.came.clone() };
    let before = if *n > 1 { lists::read(connection, conversation, n - 1)? } else { Lists::default() };
    // A request that came meanwhile is stored as a difference from this one.
    let next = lists::read(connection, conversation, n + 1)?;
    write_sent(connection, conversation, *n, &before.sent, &lists.sent)?;
    write_sent(connection, conversation, n + 1, &lists.sent, &next.sent)?;
    correct_places(connection, conversation, *n, &rewritten, &lists)?;
    let rows = blocks::rows(connection, &lists.sent)?;
    line.parts.clear();
    for row in lists.sent.iter().filter_map(|id| rows.get(id)) {
        *line.parts.entry(row.part()).or_default() += row.tokens;
    }
    (line.sent_tokens, line.sent_blocks) = (line.came_tokens, line.came_blocks);
    Ok(lists)
}

/// Replaces what a request has sent, if there is such a request.
fn write_sent(
    connection: &Connection,
    conversation: &str,
    n: u64,
    before: &[u32],
    sent: &[u32],
) -> Result<(), StoreError> {
    let keep = if is_whole(n) { 0 } else { shared(before, sent) };
    let sql = "UPDATE requests SET sent_keep = ?3, sent = ?4 WHERE conversation = ?1 AND n = ?2";
    let parameters = params![conversation, n as i64, keep as i64, lists::bytes(&sent[keep..])];
    connection.prepare_cached(sql)?.execute(parameters)?;
    Ok(())
}

/// Whether the list of a request is stored whole.
fn is_whole(n: u64) -> bool {
    (n - 1).is_multiple_of(REQUESTS_PER_WHOLE)
}

/// Corrects since when blocks are not sent any more, after a request was sent as it came.
fn correct_places(
    connection: &Connection,
    conversation: &str,
    n: u64,
    rewritten: &Lists,
    lists: &Lists,
) -> Result<(), StoreError> {
    let mut note = connection.prepare_cached("UPDATE places SET left_n = ?3 WHERE conversation = ?1 AND block = ?2")?;
    for block in &lists.sent {
        note.execute(params![conversation, block, None::<i64>])?;
    }
    for block in rewritten.sent.iter().filter(|block| !lists.sent.contains(block)) {
        note.execute(params![conversation, block, n as i64])?;
    }
    Ok(())
}

/// Stores what the model answered to a request, before the agent has sent it back.
pub fn place_answer(connection: &Connection, ticket: &Ticket, blocks: &[u32]) -> Result<(), StoreError> {
    // They are part of the next request, if there is one.
    let sql = "INSERT OR IGNORE INTO places (conversation, block, n, is_sent) VALUES (?1, ?2, ?3, 0)";
    let mut place = connection.prepare_cached(sql)?;
    for block in blocks {
        place.execute(params![ticket.conversation, block, ticket.n as i64 + 1])?;
    }
    write_answer(connection, &ticket.conversation, ticket.n, blocks)
}

/// Deletes an answer as it arrived, of which the next request has its own form: `came` are the blocks of that.
pub fn drop_answer(connection: &Connection, conversation: &str, n: u64, came: &[u32]) -> Result<(), StoreError> {
    let mut place = connection
        .prepare_cached("DELETE FROM places WHERE conversation = ?1 AND block = ?2 AND n = ?3 AND is_sent = 0")?;
    let sql = "DELETE FROM blocks WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM places WHERE block = ?1)";
    let mut unused = connection.prepare_cached(sql)?;
    for block in read_answer(connection, conversation, n)?.iter().filter(|block| !came.contains(block)) {
        if place.execute(params![conversation, block, n as i64 + 1])? > 0 {
            unused.execute(params![block])?;
        }
    }
    Ok(())
}

/// The blocks of an answer, as far as it is known.
pub fn read_answer(connection: &Connection, conversation: &str, n: u64) -> Result<Vec<u32>, StoreError> {
    let sql = "SELECT blocks FROM answers WHERE conversation = ?1 AND n = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let ids: Option<Vec<u8>> = statement.query_row(params![conversation, n as i64], |row| row.get(0)).optional()?;
    Ok(ids.unwrap_or_default().as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
}

/// Stores what the model answered to a request.
pub fn write_answer(connection: &Connection, conversation: &str, n: u64, blocks: &[u32]) -> Result<(), StoreError> {
    if !blocks.is_empty() && n > 0 {
        let sql = "INSERT OR REPLACE INTO answers (conversation, n, blocks) VALUES (?1, ?2, ?3)";
        connection.prepare_cached(sql)?.execute(params![conversation, n as i64, lists::bytes(blocks)])?;
    }
    Ok(())
}

pub fn write_request(
    connection: &Connection,
    seen: &ArchivedRequest<'_>,
    change: &ListsChange,
    lists: &Lists,
    line: &RequestLine,
) -> Result<(), StoreError> {
    let base = line.n - (line.n - 1) % REQUESTS_PER_WHOLE;
    let keep = |keep: usize| if is_whole(line.n) { 0 } else { keep };
    let (came, sent) = (keep(change.came_keep), keep(change.sent_keep));
    let sql = "INSERT INTO requests (conversation, n, time_ms, base, came_keep, came, sent_keep, sent, line, tokens)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    connection.prepare_cached(sql)?.execute(params![
        seen.conversation,
        line.n as i64,
        seen.record.time_ms as i64,
        base as i64,
        came as i64,
        lists::bytes(&lists.came[came..]),
        sent as i64,
        lists::bytes(&lists.sent[sent..]),
        serde_json::to_string(line)?,
        line.sent_tokens as i64
    ])?;
    Ok(())
}

/// Stores where blocks first appeared, and since when they are no longer sent. Those of the last request are known.
pub fn write_places(
    connection: &Connection,
    conversation: &str,
    n: u64,
    change: &ListsChange,
) -> Result<(), StoreError> {
    let sql = "INSERT OR IGNORE INTO places (conversation, block, n, is_sent) VALUES (?1, ?2, ?3, 0)";
    let mut came = connection.prepare_cached(sql)?;
    for block in &change.came_new {
        came.execute(params![conversation, block, n as i64])?;
    }
    let sql = "INSERT INTO places (conversation, block, n, is_sent) VALUES (?1, ?2, ?3, 1)
               ON CONFLICT (conversation, block) DO UPDATE SET left_n = NULL";
    let mut sent = connection.prepare_cached(sql)?;
    for block in &change.sent_new {
        sent.execute(params![conversation, block, n as i64])?;
    }
    // A received block that is not sent in its first request was left out at once.
    let mut left = connection.prepare_cached("UPDATE places SET left_n = ?3 WHERE conversation = ?1 AND block = ?2")?;
    for block in change.gone.iter().chain(&change.left_out) {
        left.execute(params![conversation, block, n as i64])?;
    }
    Ok(())
}

/// Adds a request to its conversation.
pub fn write_conversation(
    connection: &Connection,
    seen: &ArchivedRequest<'_>,
    line: &RequestLine,
) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO conversations (id, parent, format, model, title, first_ms, last_ms, requests, turns, largest)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO UPDATE SET
               format = ?3, model = ?4, title = CASE WHEN title = '' THEN ?5 ELSE title END,
               first_ms = CASE WHEN requests = 0 THEN ?6 ELSE first_ms END,
               last_ms = ?6, requests = ?7, turns = max(turns, ?8), largest = max(largest, ?9)";
    connection.prepare_cached(sql)?.execute(params![
        seen.conversation,
        seen.parent,
        serde_json::to_string(&seen.format)?,
        seen.record.model,
        line.said.as_deref().unwrap_or_default(),
        seen.record.time_ms as i64,
        line.n as i64,
        line.turn as i64,
        line.came_tokens.max(line.sent_tokens) as i64
    ])?;
    Ok(())
}

/// Adds the outcome of a request to its conversation.
pub fn add_to_conversation(
    connection: &Connection,
    conversation: &str,
    record: &RequestRecord,
) -> Result<(), StoreError> {
    let billed = record.usage.zip(record.bill);
    let bill = billed.map(|(_, bill)| bill).unwrap_or_default();
    let dollars = record.paid();
    let folds = record.decided.iter().filter(|note| note.is_fold()).count();
    let sql = "UPDATE conversations SET came = came + ?2, sent = sent + ?3, billed = billed + ?4,
               passed_through = passed_through + ?5, paid = paid + ?6, would_pay = would_pay + ?7,
               unpriced = unpriced + ?8, folds = folds + ?9, failed = failed + ?10, unsendable = unsendable + ?11,
               simulated = simulated + ?12, largest = max(largest, ?2, ?3) WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![
        conversation,
        bill.came as i64,
        bill.sent as i64,
        bill.billed,
        bill.passed_through,
        dollars.map_or(0.0, |dollars| dollars.0),
        dollars.map_or(0.0, |dollars| dollars.1),
        i64::from(billed.is_some() && dollars.is_none()),
        folds as i64,
        i64::from(record.status >= 400),
        i64::from(bill.is_beyond),
        i64::from(record.is_simulated)
    ])?;
    Ok(())
}
