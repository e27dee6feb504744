//! Plays recordings into an inspector, request by request.

use std::collections::HashSet;

use contexture::item::{Item, Role};
use contexture::transcript::Record;
use contexture::wire::as_reminder;
use contexture_gateway::simulate::played::{Played, PlayedRequest};
use contexture_gateway::write::StoreError;
use serde_json::json;

use super::archive::{ArchivedRequest, BlockWriter, Lists, Ticket};
use super::block::{BlockDraft, BlockKind, BlockSource, counted_draft};
use super::made;
use super::server::Inspector;
use contexture::tokens::{Estimate, TokenCounter};

/// Requests after which pages are told how far a recording is read.
const REQUESTS_PER_EVENT: u64 = 500;

/// What stands for the part of an agent's prompt that its recordings do not have.
const NOT_RECORDED: &str = "[The recording does not have the agent's own prompt and its tools. Their size is assumed.]";

/// Plays a recording into an inspector as a conversation. Returns the number of requests.
///
/// # Errors
/// A request could not be written.
pub fn play(inspector: &Inspector, played: &Played, id: &str, records: &[Record]) -> Result<usize, StoreError> {
    let mut playing = PlayingRecording {
        inspector,
        id,
        by_harness: texts_of_the_harness(records),
        head: Vec::new(),
        came: Vec::new(),
        sent: Vec::new(),
        answered: None,
        failed: None,
    };
    let count = played.play(id, records, &mut |request| {
        if playing.failed.is_none() {
            playing.failed = playing.note(&request).err();
        }
    });
    if let Some((ticket, answer)) = playing.answered.take().filter(|_| playing.failed.is_none()) {
        inspector.archive().note_arrived(&ticket, &answer)?;
    }
    playing.failed.map_or(Ok(count), Err)
}

/// A recording that is being played.
struct PlayingRecording<'a> {
    inspector: &'a Inspector,
    id: &'a str,
    /// What the agent's program said by itself. A request has it as the user's.
    by_harness: HashSet<String>,
    /// The blocks of the agent's own prompt.
    head: Vec<u32>,
    /// The blocks of all items that came.
    came: Vec<u32>,
    /// The blocks of the last window.
    sent: Vec<u32>,
    /// The last request, and what the model answered to it.
    answered: Option<(Ticket, Vec<Item>)>,
    failed: Option<StoreError>,
}

impl PlayingRecording<'_> {
    fn note(&mut self, request: &PlayedRequest<'_>) -> Result<(), StoreError> {
        let archive = self.inspector.archive();
        let new = request.came[self.came.len()..].iter().map(|(item, tokens)| self.came_draft(item, *tokens));
        let new: Vec<BlockDraft> = new.collect();
        // Usually the answer is what comes next, and is stored with that.
        if let Some((ticket, answer)) = self.answered.take()
            && new.first().is_none_or(|draft| draft.source != BlockSource::Model)
        {
            archive.note_arrived(&ticket, &answer)?;
        }
        let record = request.record.clone();
        let format = record.format.unwrap_or(contexture::wire::Format::Messages);
        let seen = ArchivedRequest { conversation: self.id, parent: None, format, came: "", sent: None, record };
        let ticket = archive.note_played(&seen, |writer| self.write(writer, request, new))?;
        if ticket.n.is_multiple_of(REQUESTS_PER_EVENT) {
            self.inspector.tell("conversation", json!({"conversation": self.id}));
        }
        self.answered = Some((ticket, request.answer.clone()));
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

    /// Writes the blocks that are new in a request. Returns all of it.
    fn write(
        &mut self,
        writer: &mut BlockWriter<'_>,
        request: &PlayedRequest<'_>,
        new: Vec<BlockDraft>,
    ) -> Result<Lists, StoreError> {
        if self.head.is_empty() {
            self.head = writer.keep(prompt(request))?;
        }
        self.came.extend(writer.keep(new)?);
        self.sent.truncate(request.kept);
        for shown in &request.window[self.sent.len()..] {
            match shown.position.filter(|_| shown.is_logged) {
                Some(position) => self.sent.push(self.came[position]),
                None => self.sent.extend(writer.keep(vec![shown_draft(&shown.item, shown.tokens)])?),
            }
        }
        let whole = |list: &[u32]| self.head.iter().chain(list).copied().collect();
        Ok(Lists { came: whole(&self.came), sent: whole(&self.sent) })
    }
}

/// The texts of a recording that no person said, as they are sent: skills, reminders, files that were attached.
fn texts_of_the_harness(records: &[Record]) -> HashSet<String> {
    let messages = records.iter().flat_map(Record::items).filter_map(Item::as_message);
    let own = messages.filter(|message| matches!(message.role, Role::System | Role::Developer));
    // What the system said inside a conversation is sent as a reminder.
    let sent = own.map(|message| match message.role {
        Role::System => as_reminder(&message.meta.origin, &message.text()),
        _ => message.text(),
    });
    sent.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// The block of an item that is not sent as it came.
fn shown_draft(item: &Item, tokens: u64) -> BlockDraft {
    made::marked(counted_draft(item, tokens))
}

/// The agent's own prompt: the instructions of the recording, and what is assumed beside them.
fn prompt(request: &PlayedRequest<'_>) -> Vec<BlockDraft> {
    let draft = |name: &str, text: &str, tokens| BlockDraft {
        source: BlockSource::System,
        kind: BlockKind::Text,
        role: "system",
        name: name.to_owned(),
        call: String::new(),
        made: "",
        is_error: false,
        tokens,
        text: text.to_owned(),
    };
    let known = Estimate.count(request.instructions);
    let recorded = (known > 0).then(|| draft("", request.instructions, known));
    let missing = request.prompt.saturating_sub(known);
    let assumed = (missing > 0).then(|| draft("the agent’s own prompt and tools, as assumed", NOT_RECORDED, missing));
    recorded.into_iter().chain(assumed).collect()
}
