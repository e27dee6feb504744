//! Adds requests to an archive: first when they are sent, then when their responses have ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use contexture::files::observer::Observer;
use contexture::wire::{Digest, Format, Request, raw_digest};
use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::write::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::block::{BlockDraft, BlockKind, BlockSource, RequestHead, head_drafts, message_drafts};
use super::super::text::first_line;
use super::super::verdict;
use super::super::view::RequestLine;
use super::blocks;
use super::lists::{self, Lists, REQUESTS_PER_WHOLE, shared};
use super::{Archive, ArchivedRequest, MAX_HELD, Ticket};

/// Characters of a user's message that a list shows.
const SAID_CHARS: usize = 120;

/// How harnesses begin messages that they write in the user's place.
const HARNESS: &[&str] =
    &["<system-reminder>", "<environment_context>", "<user_instructions>", "<command-", "<local-command", "Caveat:"];

/// The newest window of a conversation.
pub struct NewestWindow {
    n: u64,
    turn: u64,
    lists: Lists,
    /// The blocks of messages, by a hash of the message's bytes.
    by_bytes: HashMap<Digest, Vec<u32>>,
    /// What is needed of the blocks to compute a window's totals.
    facts: HashMap<u32, BlockFact>,
    /// Blocks before the messages.
    head: Vec<u32>,
    observer: Observer,
}

/// What is needed of a block to compute a window's totals.
#[derive(Clone, Copy)]
struct BlockFact {
    source: BlockSource,
    tokens: u64,
    /// Whether a user said it.
    is_said: bool,
}

impl Archive {
    /// Adds a request that is about to be sent.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_sent(&self, seen: ArchivedRequest<'_>) -> Result<Ticket, StoreError> {
        self.note(&seen, |writer| {
            let (came, head) = writer.came(seen.format, seen.came)?;
            let sent = match seen.sent {
                Some(body) => writer.sent(seen.format, body, &came)?,
                None => came.clone(),
            };
            Ok((Lists { came, sent }, head))
        })
    }

    /// Adds a request whose blocks are known, as received and as sent.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_drafts(
        &self,
        seen: &ArchivedRequest<'_>,
        came: Vec<BlockDraft>,
        sent: Vec<BlockDraft>,
    ) -> Result<Ticket, StoreError> {
        self.note(seen, |writer| {
            let lists = Lists { came: writer.keep(came)?, sent: writer.keep(sent)? };
            Ok((lists, Vec::new()))
        })
    }

    /// Adds the record of a request whose window was not kept.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_record(&self, record: &RequestRecord) -> Result<(), StoreError> {
        let conversation = record.conversation.as_deref().unwrap_or(super::ASIDE);
        let format = record.format.unwrap_or(Format::Messages);
        let seen = ArchivedRequest { conversation, parent: None, format, came: "", sent: None, record: record.clone() };
        let ticket = self.note_drafts(&seen, Vec::new(), Vec::new())?;
        self.note_over(&ticket, record)
    }

    fn note(
        &self,
        seen: &ArchivedRequest<'_>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(Lists, Vec<u32>), StoreError>,
    ) -> Result<Ticket, StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let held = self.held().remove(seen.conversation);
        let mut last = match held {
            Some(last) => last,
            None => self.wake(&transaction, seen.conversation)?,
        };
        let before = std::mem::take(&mut last.lists);
        let mut writer = Writer { archive: self, connection: &transaction, last: &mut last, by_bytes: HashMap::new() };
        let (lists, head) = write(&mut writer)?;
        last.by_bytes = std::mem::take(&mut writer.by_bytes);
        last.n += 1;
        let line = line_of(seen, &lists, &head, &mut last, &transaction)?;
        write_request(&transaction, seen, &before, &lists, &line)?;
        write_places(&transaction, seen.conversation, line.n, &before, &lists)?;
        write_conversation(&transaction, seen, &line)?;
        transaction.commit()?;
        let in_use: HashSet<u32> = lists.came.iter().chain(&lists.sent).copied().collect();
        last.facts.retain(|id, _| in_use.contains(id));
        (last.turn, last.lists, last.head) = (line.turn, lists, head);
        // Before anybody else writes: what is held must not be older than what is written.
        self.hold(seen.conversation, last);
        drop(connection);
        self.look_at_size()?;
        Ok(Ticket { conversation: seen.conversation.to_owned(), n: line.n })
    }

    fn hold(&self, conversation: &str, last: NewestWindow) {
        let mut held = self.held();
        if held.len() >= MAX_HELD {
            // Evicts any of them: it is read from disk again when needed.
            if let Some(name) = held.keys().next().cloned() {
                held.remove(&name);
            }
        }
        held.insert(conversation.to_owned(), last);
    }

    /// Reads the newest window of a conversation from disk.
    fn wake(&self, connection: &Connection, conversation: &str) -> Result<NewestWindow, StoreError> {
        let sql = "SELECT n, line FROM requests WHERE conversation = ?1 ORDER BY n DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?));
        let newest = connection.prepare_cached(sql)?.query_row(params![conversation], read).optional()?;
        let (n, turn) = match newest {
            Some((n, line)) => (n, serde_json::from_str::<RequestLine>(&line)?.turn),
            None => (0, 0),
        };
        Ok(NewestWindow {
            n,
            turn,
            lists: lists::read(connection, conversation, n)?,
            by_bytes: HashMap::new(),
            facts: HashMap::new(),
            head: Vec::new(),
            observer: Observer::new(self.dialects.clone()),
        })
    }

    /// Stores the outcome of a request.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_over(&self, ticket: &Ticket, record: &RequestRecord) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let read = |n: u64| -> Result<Option<RequestLine>, StoreError> {
            let sql = "SELECT line FROM requests WHERE conversation = ?1 AND n = ?2";
            let mut statement = transaction.prepare_cached(sql)?;
            let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
            let line = statement.query_row(params![ticket.conversation, n as i64], read).optional()?;
            Ok(line.map(|line| serde_json::from_str(&line)).transpose()?)
        };
        // It may have been deleted meanwhile.
        let Some(mut line) = read(ticket.n)? else { return Ok(()) };
        let before = if ticket.n > 1 { read(ticket.n - 1)? } else { None };
        if line.record.is_changed && !record.is_changed {
            let lists = sent_as_it_came(&transaction, ticket, &mut line)?;
            // Otherwise a later request is the newest.
            if let Some(last) = self.held().get_mut(&ticket.conversation).filter(|last| last.n == ticket.n) {
                last.lists = lists;
            }
        }
        line.record = record.clone();
        line.is_over = true;
        line.cached_tokens = record.usage.filter(|usage| usage.total_input() > 0).map(|usage| {
            let share = usage.cache_read as f64 / usage.total_input() as f64;
            (share * line.sent_tokens as f64) as u64
        });
        let verdicts = verdict::of(&line, before.as_ref());
        line.verdicts.extend(verdicts);
        transaction
            .prepare_cached("UPDATE requests SET line = ?3 WHERE conversation = ?1 AND n = ?2")?
            .execute(params![ticket.conversation, ticket.n as i64, serde_json::to_string(&line)?])?;
        add_to_conversation(&transaction, &ticket.conversation, record)?;
        transaction.commit()?;
        Ok(())
    }
}

/// Corrects a request that was sent again as it came, after the provider had refused it rewritten. Returns its lists.
fn sent_as_it_came(connection: &Connection, ticket: &Ticket, line: &mut RequestLine) -> Result<Lists, StoreError> {
    let Ticket { conversation, n } = ticket;
    let rewritten = lists::read(connection, conversation, *n)?;
    let lists = Lists { came: rewritten.came.clone(), sent: rewritten.came.clone() };
    let before = if *n > 1 { lists::read(connection, conversation, n - 1)? } else { Lists::default() };
    // A request that came meanwhile is stored as a difference from this one.
    let next = lists::read(connection, conversation, n + 1)?;
    write_sent(connection, conversation, *n, &before.sent, &lists.sent)?;
    write_sent(connection, conversation, n + 1, &lists.sent, &next.sent)?;
    write_places(connection, conversation, *n, &rewritten, &lists)?;
    line.sources.clear();
    let mut statement = connection.prepare_cached("SELECT source, tokens FROM blocks WHERE id = ?1")?;
    for id in &lists.sent {
        let (source, tokens): (String, i64) = statement.query_row(params![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        *line.sources.entry(source).or_default() += tokens as u64;
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

/// Splits the bodies of a request into blocks.
struct Writer<'a> {
    archive: &'a Archive,
    connection: &'a Connection,
    last: &'a mut NewestWindow,
    by_bytes: HashMap<Digest, Vec<u32>>,
}

impl Writer<'_> {
    /// The blocks of a request as received, and separately those before its messages.
    fn came(&mut self, format: Format, body: &str) -> Result<(Vec<u32>, Vec<u32>), StoreError> {
        let mut list = Vec::new();
        for (part, raw) in RequestHead::parse(body).parts() {
            list.extend(self.blocks(raw.get(), |counter| head_drafts(part, raw, counter), None)?);
        }
        let head = list.clone();
        let Ok(request) = Request::parse(format, body) else { return Ok((list, head)) };
        for raw in request.messages() {
            list.extend(self.blocks(raw.get(), |counter| message_drafts(format, raw, counter), None)?);
        }
        Ok((list, head))
    }

    /// The blocks of drafts.
    fn keep(&mut self, drafts: Vec<BlockDraft>) -> Result<Vec<u32>, StoreError> {
        let mut blocks = Vec::with_capacity(drafts.len());
        for mut draft in drafts {
            // An output that shows a file is attributed the same way in received and sent requests.
            blocks::name_output(self.connection, &mut self.last.observer, &mut draft)?;
            let id = blocks::keep(self.connection, &mut draft)?;
            self.last.facts.insert(id, BlockFact::of(&draft));
            blocks.push(id);
        }
        Ok(blocks)
    }

    /// The blocks of a request as sent.
    fn sent(&mut self, format: Format, body: &str, came: &[u32]) -> Result<Vec<u32>, StoreError> {
        let came: HashSet<u32> = came.iter().copied().collect();
        let mut list = Vec::new();
        for (part, raw) in RequestHead::parse(body).parts() {
            list.extend(self.blocks(raw.get(), |counter| head_drafts(part, raw, counter), None)?);
        }
        let Ok(request) = Request::parse(format, body) else { return Ok(list) };
        for raw in request.messages() {
            list.extend(self.blocks(raw.get(), |counter| message_drafts(format, raw, counter), Some(&came))?);
        }
        Ok(list)
    }

    /// The blocks of a piece of JSON. If `came` is given, texts not in it are marked as made by Contexture.
    fn blocks(
        &mut self,
        json: &str,
        drafts: impl FnOnce(&dyn contexture::tokens::TokenCounter) -> Vec<BlockDraft>,
        came: Option<&HashSet<u32>>,
    ) -> Result<Vec<u32>, StoreError> {
        let digest = raw_digest(json.as_bytes());
        if let Some(known) = self.by_bytes.get(&digest).or_else(|| self.last.by_bytes.get(&digest)).cloned() {
            self.by_bytes.insert(digest, known.clone());
            return Ok(known);
        }
        let mut blocks = Vec::new();
        for mut draft in drafts(&*self.archive.counter) {
            blocks::name_output(self.connection, &mut self.last.observer, &mut draft)?;
            if let Some(came) = came
                && draft.kind == BlockKind::Text
                && blocks::find(self.connection, &draft)?.is_none_or(|id| !came.contains(&id))
            {
                draft.source = BlockSource::Made;
            }
            let id = blocks::keep(self.connection, &mut draft)?;
            self.last.facts.insert(id, BlockFact::of(&draft));
            blocks.push(id);
        }
        self.by_bytes.insert(digest, blocks.clone());
        Ok(blocks)
    }
}

impl BlockFact {
    fn of(draft: &BlockDraft) -> Self {
        let is_said = draft.source == BlockSource::Said && !HARNESS.iter().any(|start| draft.text.starts_with(start));
        Self { source: draft.source, tokens: draft.tokens, is_said }
    }
}

/// A request as lists show it while in progress.
fn line_of(
    seen: &ArchivedRequest<'_>,
    lists: &Lists,
    head: &[u32],
    last: &mut NewestWindow,
    connection: &Connection,
) -> Result<RequestLine, StoreError> {
    read_facts(connection, last, lists)?;
    let facts = |list: &[u32]| list.iter().filter_map(|id| last.facts.get(id)).copied().collect::<Vec<_>>();
    let (came, sent) = (facts(&lists.came), facts(&lists.sent));
    let mut sources: BTreeMap<String, u64> = BTreeMap::new();
    for fact in &sent {
        *sources.entry(fact.source.name().to_owned()).or_default() += fact.tokens;
    }
    let turn = turns(&came);
    let said = lists.came.iter().rev().find(|id| last.facts.get(id).is_some_and(|fact| fact.is_said));
    let said = said.filter(|_| turn != last.turn).map(|id| text_of(connection, *id)).transpose()?;
    let is_head_known = last.n > 1 && !last.head.is_empty();
    let changed = is_head_known
        .then(|| verdict::head_change(&last.head, head, &|id| last.facts.get(&id).map(|fact| fact.source)));
    Ok(RequestLine {
        n: last.n,
        turn: turn.max(1),
        said: said.map(|text| first_line(&text, SAID_CHARS)),
        sent_tokens: sent.iter().map(|fact| fact.tokens).sum(),
        came_tokens: came.iter().map(|fact| fact.tokens).sum(),
        sources,
        cached_tokens: None,
        sent_blocks: sent.len() as u64,
        came_blocks: came.len() as u64,
        is_over: false,
        verdicts: changed.unwrap_or_default(),
        record: seen.record.clone(),
    })
}

/// Counts the turns: consecutive messages of the user are one turn.
fn turns(came: &[BlockFact]) -> u64 {
    let mut turns = 0;
    let mut is_speaking = false;
    for fact in came {
        match fact.source {
            BlockSource::Said if fact.is_said && !is_speaking => {
                turns += 1;
                is_speaking = true;
            }
            BlockSource::Said => {}
            _ => is_speaking = false,
        }
    }
    turns
}

/// Reads what is needed of blocks that were written before this run.
fn read_facts(connection: &Connection, last: &mut NewestWindow, lists: &Lists) -> Result<(), StoreError> {
    let sql = "SELECT source, tokens, substr(text, 1, 40) FROM blocks WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    for id in lists.came.iter().chain(&lists.sent) {
        if last.facts.contains_key(id) {
            continue;
        }
        let read = |row: &rusqlite::Row<'_>| {
            let (source, start) = (row.get::<_, String>(0)?, row.get::<_, String>(2)?);
            let source = BlockSource::named(&source).unwrap_or(BlockSource::Output);
            let is_said = source == BlockSource::Said && !HARNESS.iter().any(|words| start.starts_with(words));
            Ok(BlockFact { source, tokens: row.get::<_, i64>(1)? as u64, is_said })
        };
        if let Some(fact) = statement.query_row(params![id], read).optional()? {
            last.facts.insert(*id, fact);
        }
    }
    Ok(())
}

fn text_of(connection: &Connection, id: u32) -> Result<String, StoreError> {
    Ok(connection.query_row("SELECT substr(text, 1, 2000) FROM blocks WHERE id = ?1", params![id], |row| row.get(0))?)
}

fn write_request(
    connection: &Connection,
    seen: &ArchivedRequest<'_>,
    before: &Lists,
    lists: &Lists,
    line: &RequestLine,
) -> Result<(), StoreError> {
    let base = line.n - (line.n - 1) % REQUESTS_PER_WHOLE;
    let keep = |before: &[u32], list: &[u32]| if is_whole(line.n) { 0 } else { shared(before, list) };
    let (came, sent) = (keep(&before.came, &lists.came), keep(&before.sent, &lists.sent));
    connection.prepare_cached("INSERT INTO requests VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?.execute(params![
        seen.conversation,
        line.n as i64,
        seen.record.time_ms as i64,
        base as i64,
        came as i64,
        lists::bytes(&lists.came[came..]),
        sent as i64,
        lists::bytes(&lists.sent[sent..]),
        serde_json::to_string(line)?
    ])?;
    Ok(())
}

/// Stores where blocks first appeared, and since when they are no longer sent.
fn write_places(
    connection: &Connection,
    conversation: &str,
    n: u64,
    before: &Lists,
    lists: &Lists,
) -> Result<(), StoreError> {
    let sql = "INSERT OR IGNORE INTO places (conversation, block, n, is_sent) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = connection.prepare_cached(sql)?;
    let new = |before: &[u32], list: &[u32]| list[shared(before, list)..].to_vec();
    for (list, is_sent) in [(new(&before.came, &lists.came), false), (new(&before.sent, &lists.sent), true)] {
        for block in list {
            insert.execute(params![conversation, block, n as i64, is_sent])?;
        }
    }
    let sent: HashSet<u32> = lists.sent.iter().copied().collect();
    let was_sent: HashSet<u32> = before.sent.iter().copied().collect();
    let mut note = connection.prepare_cached("UPDATE places SET left_n = ?3 WHERE conversation = ?1 AND block = ?2")?;
    for block in before.sent.iter().filter(|block| !sent.contains(block)) {
        note.execute(params![conversation, block, n as i64])?;
    }
    for block in lists.sent.iter().filter(|block| !was_sent.contains(block)) {
        note.execute(params![conversation, block, None::<i64>])?;
    }
    let was_came: HashSet<u32> = before.came.iter().copied().collect();
    // A received block that is not sent in its first request was left out at once.
    for block in lists.came.iter().filter(|block| !sent.contains(block) && !was_came.contains(block)) {
        note.execute(params![conversation, block, n as i64])?;
    }
    Ok(())
}

fn write_conversation(
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

fn add_to_conversation(connection: &Connection, conversation: &str, record: &RequestRecord) -> Result<(), StoreError> {
    let billed = record.usage.zip(record.bill);
    let bill = billed.map(|(_, bill)| bill).unwrap_or_default();
    let dollars = billed.zip(record.dollars).map(|((usage, bill), (input, output))| {
        let output = usage.output as f64 * output;
        ((bill.billed * input + output) / 1e6, (bill.passed_through * input + output) / 1e6)
    });
    let folds = record.decided.iter().filter(|note| note.is_fold()).count();
    let sql = "UPDATE conversations SET came = came + ?2, sent = sent + ?3, billed = billed + ?4,
               passed_through = passed_through + ?5, paid = paid + ?6, would_pay = would_pay + ?7,
               unpriced = unpriced + ?8, folds = folds + ?9, failed = failed + ?10 WHERE id = ?1";
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
        i64::from(record.status >= 400)
    ])?;
    Ok(())
}
