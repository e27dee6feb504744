//! Plays recordings into an inspector, request by request.

use std::collections::HashSet;

use contexture::item::{Item, Role};
use contexture::transcript::Record;
use contexture_gateway::simulate::played::{Played, PlayedRequest};
use contexture_gateway::write::StoreError;
use serde_json::json;

use super::archive::{ArchivedRequest, Lists, Ticket};
use super::block::{BlockDraft, BlockKind, BlockSource, counted_draft, item_draft};
use super::made;
use super::server::Inspector;
use contexture::tokens::{Estimate, TokenCounter};

/// Requests after which pages are told how far a recording is read.
const REQUESTS_PER_EVENT: u64 = 500;

/// Plays a recording into an inspector as a conversation. Returns the number of requests.
///
/// # Errors
/// A request could not be written.
pub fn play(inspector: &Inspector, played: &Played, id: &str, records: &[Record]) -> Result<usize, StoreError> {
    let by_harness = texts_of_the_harness(records);
    let mut playing =
        Playing { inspector, id, by_harness, head: Vec::new(), came: Vec::new(), sent: Vec::new(), failed: None };
    let count = played.play(id, records, &mut |request| {
        if playing.failed.is_none() {
            playing.failed = playing.note(&request).err();
        }
    });
    playing.failed.map_or(Ok(count), Err)
}

/// A recording that is being played.
struct Playing<'a> {
    inspector: &'a Inspector,
    id: &'a str,
    /// What the agent's program said by itself. A request has it as the user's.
    by_harness: HashSet<String>,
    /// The block of the instructions.
    head: Vec<u32>,
    /// The blocks of all items that came.
    came: Vec<u32>,
    /// The blocks of the last window.
    sent: Vec<u32>,
    failed: Option<StoreError>,
}

impl Playing<'_> {
    fn note(&mut self, request: &PlayedRequest<'_>) -> Result<(), StoreError> {
        let archive = self.inspector.archive();
        if self.head.is_empty() && !request.instructions.is_empty() {
            self.head = archive.keep_blocks(self.id, vec![instructions(request.instructions)])?;
        }
        let new = request.came[self.came.len()..].iter().map(|(item, tokens)| self.came_draft(item, *tokens));
        let new = archive.keep_blocks(self.id, new.collect())?;
        self.came.extend(new);
        self.sent.truncate(request.kept);
        let mut drafts: Vec<(usize, BlockDraft)> = Vec::new();
        for (at, shown) in request.window.iter().enumerate().skip(self.sent.len()) {
            match shown.position.filter(|_| shown.is_logged) {
                Some(position) => self.sent.push(self.came[position]),
                None => {
                    self.sent.push(0);
                    drafts.push((at, shown_draft(&shown.item, shown.tokens)));
                }
            }
        }
        let (places, drafts): (Vec<usize>, Vec<BlockDraft>) = drafts.into_iter().unzip();
        if !drafts.is_empty() {
            let written = archive.keep_blocks(self.id, drafts)?;
            places.into_iter().zip(written).for_each(|(place, id)| self.sent[place] = id);
        }
        let whole = |list: &[u32]| self.head.iter().chain(list).copied().collect();
        let lists = Lists { came: whole(&self.came), sent: whole(&self.sent) };
        let record = request.record.clone();
        let format = record.format.unwrap_or(contexture::wire::Format::Messages);
        let seen = ArchivedRequest { conversation: self.id, parent: None, format, came: "", sent: None, record };
        let ticket = archive.note_blocks(&seen, lists)?;
        self.note_answer(&ticket, request)?;
        if ticket.n.is_multiple_of(REQUESTS_PER_EVENT) {
            self.inspector.tell("conversation", json!({"conversation": self.id}));
        }
        Ok(())
    }

    /// The block of an item as it came.
    fn came_draft(&self, item: &Item, tokens: u64) -> BlockDraft {
        let draft = counted_draft(item, tokens);
        match draft.source == BlockSource::Said && self.by_harness.contains(draft.text.trim()) {
            true => BlockDraft { source: BlockSource::System, role: "system", ..draft },
            false => draft,
        }
    }

    /// Stores the answer; the next request has the same, but there may be none.
    fn note_answer(&self, ticket: &Ticket, request: &PlayedRequest<'_>) -> Result<(), StoreError> {
        let drafts: Vec<BlockDraft> = request.answer.iter().map(|item| item_draft(item, &Estimate)).collect();
        let archive = self.inspector.archive();
        let blocks = archive.keep_blocks(self.id, drafts)?;
        archive.note_answer(ticket, &blocks)
    }
}

/// The texts of a recording that no person said: skills, reminders, files that were attached.
fn texts_of_the_harness(records: &[Record]) -> HashSet<String> {
    let messages = records.iter().flat_map(Record::items).filter_map(Item::as_message);
    let own = messages.filter(|message| matches!(message.role, Role::System | Role::Developer));
    own.map(|message| message.text().trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// The block of an item that is not sent as it came.
fn shown_draft(item: &Item, tokens: u64) -> BlockDraft {
    let draft = counted_draft(item, tokens);
    if draft.kind == BlockKind::Text { made::marked(draft) } else { draft }
}

fn instructions(text: &str) -> BlockDraft {
    BlockDraft {
        source: BlockSource::System,
        kind: BlockKind::Text,
        role: "system",
        name: String::new(),
        call: String::new(),
        made: "",
        is_error: false,
        tokens: Estimate.count(text),
        text: text.to_owned(),
    }
}
