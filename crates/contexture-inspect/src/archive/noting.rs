//! Adds requests to an archive: first when they are sent, then when their responses have ended.

use std::collections::{HashMap, HashSet};

use contexture::files::observer::Observer;
use contexture::item::{FunctionCall, FunctionCallOutput, Item, Outcome};
use contexture::wire::{Digest, Format, Request, raw_digest};
use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::write::StoreError;
use contexture_text::spoken::title_of;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::block::{BlockDraft, BlockKind, BlockSource, RequestHead, head_drafts, item_draft, message_drafts};
use super::super::made;
use super::super::verdict;
use super::super::view::{Cost, RequestLine};
use super::blocks;
use super::lists::{self, Lists};
use super::newest::{BlockFact, ListsChange, NewestWindow};
use super::writing::{
    add_to_conversation, drop_answer, place_answer, sent_as_it_came, write_answer, write_conversation, write_places,
    write_request,
};
use super::{Archive, ArchivedRequest, MAX_HELD, Ticket};

/// How far a request has got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    /// It is about to be sent.
    Sent,
    /// It has ended, and its record is complete.
    Over,
}

impl Archive {
    /// Adds a request that is about to be sent.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_sent(&self, seen: ArchivedRequest<'_>) -> Result<Ticket, StoreError> {
        self.note(&seen, RequestStage::Sent, |writer| {
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
        self.note(seen, RequestStage::Sent, |writer| {
            let lists = Lists { came: writer.keep(came)?, sent: writer.keep(sent)? };
            Ok((lists, Vec::new()))
        })
    }

    /// Adds a request that has ended, with the blocks that are new in it. `write` returns those of the whole request.
    ///
    /// # Errors
    /// It could not be written.
    pub(in super::super) fn note_played(
        &self,
        seen: &ArchivedRequest<'_>,
        write: impl FnOnce(&mut BlockWriter<'_>) -> Result<Lists, StoreError>,
    ) -> Result<Ticket, StoreError> {
        self.note(seen, RequestStage::Over, |writer| Ok((write(writer)?, Vec::new())))
    }

    /// Writes blocks of a conversation. Returns them with its newest window, which is to be held after the commit.
    fn kept(
        &self,
        connection: &Connection,
        conversation: &str,
        drafts: Vec<BlockDraft>,
    ) -> Result<(Vec<u32>, NewestWindow), StoreError> {
        let held = self.held().remove(conversation);
        let mut last = match held {
            Some(last) => last,
            None => self.wake(connection, conversation)?,
        };
        let mut writer = BlockWriter { archive: self, connection, last: &mut last, by_bytes: HashMap::new() };
        let blocks = writer.keep(drafts)?;
        Ok((blocks, last))
    }

    /// Stores what the model answered to a request, as it arrived. What the agent sends back replaces it.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_arrived(&self, ticket: &Ticket, items: &[Item]) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        // It may have been deleted meanwhile, or an agent was quicker and has sent the answer back.
        let sql = "SELECT EXISTS (SELECT 1 FROM requests WHERE conversation = ?1 AND n = ?2)
                   AND NOT EXISTS (SELECT 1 FROM answers WHERE conversation = ?1 AND n = ?2)";
        let is_wanted = transaction
            .prepare_cached(sql)?
            .query_row(params![ticket.conversation, ticket.n as i64], |row| row.get::<_, bool>(0))?;
        if is_wanted {
            let drafts = items.iter().map(|item| item_draft(item, &*self.counter)).collect();
            let (blocks, last) = self.kept(&transaction, &ticket.conversation, drafts)?;
            place_answer(&transaction, ticket, &blocks)?;
            transaction.commit()?;
            self.hold(&ticket.conversation, last);
        }
        Ok(())
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
        stage: RequestStage,
        write: impl FnOnce(&mut BlockWriter<'_>) -> Result<(Lists, Vec<u32>), StoreError>,
    ) -> Result<Ticket, StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let held = self.held().remove(seen.conversation);
        let mut last = match held {
            Some(last) => last,
            None => self.wake(&transaction, seen.conversation)?,
        };
        let mut writer =
            BlockWriter { archive: self, connection: &transaction, last: &mut last, by_bytes: HashMap::new() };
        let (lists, head) = write(&mut writer)?;
        last.by_bytes = std::mem::take(&mut writer.by_bytes);
        last.n += 1;
        read_facts(&transaction, &mut last, &lists)?;
        let came_before = last.lists.came.len();
        let change = last.change(lists);
        let mut line = line_of(seen, &head, &last, &transaction)?;
        let before = last.line.take();
        if stage == RequestStage::Over {
            note_outcome(&mut line, &seen.record, before.as_ref());
            add_to_conversation(&transaction, seen.conversation, &seen.record)?;
        }
        write_request(&transaction, seen, &change, &last.lists, &line)?;
        write_places(&transaction, seen.conversation, line.n, &change)?;
        // Otherwise the agent went back, and began anew from there.
        if change.came_keep == came_before {
            let answer = answer_in(&last, &change);
            drop_answer(&transaction, seen.conversation, line.n - 1, &last.lists.came)?;
            write_answer(&transaction, seen.conversation, line.n - 1, &answer)?;
        }
        write_conversation(&transaction, seen, &line)?;
        transaction.commit()?;
        let ticket = Ticket { conversation: seen.conversation.to_owned(), n: line.n };
        // Not the turn of the line, which is at least 1: somebody may speak for the first time later.
        (last.turn, last.head, last.line) = (last.turns(), head, Some(line));
        // Before anybody else writes: what is held must not be older than what is written.
        self.hold(seen.conversation, last);
        drop(connection);
        self.look_at_size()?;
        Ok(ticket)
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
        let mut last = NewestWindow::new(n, turn, Observer::new(self.dialects.clone()));
        let lists = lists::read(connection, conversation, n)?;
        read_facts(connection, &mut last, &lists)?;
        last.change(lists);
        Ok(last)
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
                last.change(lists);
            }
        }
        note_outcome(&mut line, record, before.as_ref());
        transaction
            .prepare_cached("UPDATE requests SET line = ?3, tokens = ?4 WHERE conversation = ?1 AND n = ?2")?
            .execute(params![
                ticket.conversation,
                ticket.n as i64,
                serde_json::to_string(&line)?,
                line.sent_tokens as i64
            ])?;
        add_to_conversation(&transaction, &ticket.conversation, record)?;
        transaction.commit()?;
        Ok(())
    }
}

/// Says what became of a request.
fn note_outcome(line: &mut RequestLine, record: &RequestRecord, before: Option<&RequestLine>) {
    line.record = record.clone();
    line.is_over = true;
    if let Some(usage) = record.usage.filter(|usage| usage.total_input() > 0) {
        let sent = usage.total_input();
        let came = record.bill.map_or(sent, |bill| bill.came);
        line.count_as(sent, came, usage.cache_read);
    }
    let verdicts = verdict::of(line, before);
    line.verdicts.extend(verdicts);
}

/// What the model answered to the request before, as far as this one says it.
fn answer_in(last: &NewestWindow, change: &ListsChange) -> Vec<u32> {
    let is_of_model = |id: &&u32| last.facts.get(id).is_some_and(|fact| fact.source == BlockSource::Model);
    last.lists.came[change.came_keep..].iter().take_while(is_of_model).copied().collect()
}

/// Writes the blocks of a request.
pub struct BlockWriter<'a> {
    archive: &'a Archive,
    connection: &'a Connection,
    last: &'a mut NewestWindow,
    by_bytes: HashMap<Digest, Vec<u32>>,
}

impl BlockWriter<'_> {
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

    /// The blocks of drafts. Outputs are attributed to files.
    pub fn keep(&mut self, drafts: Vec<BlockDraft>) -> Result<Vec<u32>, StoreError> {
        let mut blocks = Vec::with_capacity(drafts.len());
        for mut draft in drafts {
            // An output that shows a file is attributed the same way in received and sent requests.
            self.name_output(&mut draft)?;
            blocks.push(self.kept(draft)?);
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

    /// The blocks of a piece of JSON. If `came` is given, what is not in it is marked as changed by Contexture.
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
            self.name_output(&mut draft)?;
            if let Some(came) = came
                && blocks::find(self.connection, &draft)?.is_none_or(|id| !came.contains(&id))
            {
                draft = made::marked(draft);
            }
            blocks.push(self.kept(draft)?);
        }
        self.by_bytes.insert(digest, blocks.clone());
        Ok(blocks)
    }

    /// The block of a draft. A call is held as it came until its output comes.
    fn kept(&mut self, mut draft: BlockDraft) -> Result<u32, StoreError> {
        let id = blocks::keep(self.connection, &mut draft)?;
        self.last.facts.insert(id, BlockFact::of(&draft));
        if draft.kind == BlockKind::Call && draft.made.is_empty() {
            self.last.calls.insert(draft.call, (draft.name, draft.text));
        }
        Ok(id)
    }

    /// Sets the tool or file of an output.
    fn name_output(&mut self, draft: &mut BlockDraft) -> Result<(), StoreError> {
        if draft.kind != BlockKind::Output {
            return Ok(());
        }
        let held = self.last.calls.remove(&draft.call);
        let Some((name, arguments)) =
            held.map_or_else(|| blocks::call(self.connection, &draft.call), |call| Ok(Some(call)))?
        else {
            return Ok(());
        };
        let outcome = if draft.is_error { Outcome::Failed } else { Outcome::Done };
        let call = FunctionCall::new(&draft.call, &name, arguments);
        let output = FunctionCallOutput::new(&draft.call, draft.text.clone(), outcome);
        let seen = self.last.observer.observe(&call, &output);
        draft.name = name;
        if !seen.blocks().is_empty() {
            draft.source = BlockSource::File;
            draft.name = seen.paths.first().cloned().unwrap_or_else(|| draft.name.clone());
        }
        Ok(())
    }
}

/// A request as lists show it while in progress.
fn line_of(
    seen: &ArchivedRequest<'_>,
    head: &[u32],
    last: &NewestWindow,
    connection: &Connection,
) -> Result<RequestLine, StoreError> {
    let turn = last.turns();
    let is_said = |id: &&u32| last.facts.get(id).is_some_and(|fact| fact.source == BlockSource::Said);
    let said = match turn != last.turn {
        true => last.lists.came.iter().rev().find(is_said).map(|id| text_of(connection, *id)).transpose()?,
        false => None,
    };
    let is_head_known = last.n > 1 && !last.head.is_empty();
    let changed = is_head_known
        .then(|| verdict::head_change(&last.head, head, &|id| last.facts.get(&id).map(|fact| fact.source)));
    let (came_tokens, sent_tokens) = last.tokens();
    Ok(RequestLine {
        n: last.n,
        turn: turn.max(1),
        said: said.and_then(|text| title_of(&text)),
        sent_tokens,
        came_tokens,
        parts: last.parts(),
        cached_tokens: None,
        sent_blocks: last.lists.sent.len() as u64,
        came_blocks: last.lists.came.len() as u64,
        is_over: false,
        verdicts: changed.unwrap_or_default(),
        record: seen.record.clone(),
        cost: Cost::default(),
    })
}

/// Reads what is needed of blocks that were written before this run.
fn read_facts(connection: &Connection, last: &mut NewestWindow, lists: &Lists) -> Result<(), StoreError> {
    let news = |before: &[u32], list: &[u32]| list[lists::shared(before, list)..].to_vec();
    let mut new = news(&last.lists.came, &lists.came);
    new.extend(news(&last.lists.sent, &lists.sent));
    new.retain(|id| !last.facts.contains_key(id));
    for (id, row) in blocks::rows(connection, &new)? {
        last.facts.insert(id, BlockFact { source: row.source, part: row.part(), tokens: row.tokens });
    }
    Ok(())
}

fn text_of(connection: &Connection, id: u32) -> Result<String, StoreError> {
    Ok(connection.query_row("SELECT text FROM blocks WHERE id = ?1", params![id], |row| row.get(0))?)
}
