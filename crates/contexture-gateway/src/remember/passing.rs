//! What passes through the gateway is kept, after its response, in the background.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use contexture::item::{Item, Role};
use contexture::personal::MemoryOwner;
use contexture::recall::{Passage, PassageReader};
use contexture::wire::{Format, Request, read};

use super::memory::GatewayMemory;
use crate::accept::compaction::compaction;
use crate::watch::{MemoryAct, MemoryOperation};

/// How a line of a person begins that is to be remembered.
const REMEMBER: &str = "remember:";

/// What is told of where passages of a gateway come from.
const EARLIER: &str = "an earlier run";

/// A request that is on its way.
pub(crate) struct PassingRequest {
    pub(crate) memory: GatewayMemory,
    /// The name of the key, if there are several.
    pub(crate) key: String,
    pub(crate) conversation: Arc<str>,
    pub(crate) format: Format,
    pub(crate) body: Bytes,
}

/// Something to keep.
struct NewPassages {
    passages: Vec<Passage>,
    /// The last answer.
    answer: Option<Passage>,
    /// What a person asked to remember.
    told: Vec<String>,
    /// Whether some of them may be in the index already.
    is_resumed: bool,
}

impl PassingRequest {
    /// Keeps what is new in it, and what was answered if that ended the turn. Blocks, so it runs in the background; what fails
    /// is tried again with the next request.
    pub(crate) fn keep(&self, answered: Option<String>, now_ms: u64) {
        let Some(runtime) = tokio::runtime::Handle::try_current().ok() else { return };
        let owners = self.memory.owners(&self.key);
        let (Some(new), Some(owner)) = (self.new_passages(answered, now_ms), owners.first()) else { return };
        if let Err(error) = runtime.block_on(self.write(new, owner, now_ms)) {
            tracing::warn!("what passed could not be remembered: {error}");
            self.memory.readers.forget(&self.conversation);
        }
    }

    /// The passages of the messages that were not taken in yet.
    fn new_passages(&self, answered: Option<String>, now_ms: u64) -> Option<NewPassages> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let request = Request::parse(self.format, text).ok()?;
        if !request.has_tools() || compaction(&request).is_some() {
            // A title, or another request on the side.
            return None;
        }
        let mut readers = self.memory.readers.with_room(&self.conversation);
        let is_first = !readers.contains_key(&self.conversation);
        let (taken, reader) = readers
            .entry(self.conversation.clone())
            .or_insert_with(|| (0, PassageReader::new(&*self.conversation, Some(EARLIER.to_owned()), now_ms)));
        reader.set_now(now_ms);
        let messages = request.messages().get(*taken..)?;
        let mut new = NewPassages { passages: Vec::new(), answer: None, told: Vec::new(), is_resumed: false };
        // What came before the last answer in a conversation that is seen for the first time was said earlier, nobody
        // knows when.
        let mut earlier = 0;
        for message in messages {
            for unit in read(self.format, message, None).ok()? {
                if is_first && unit.item.is_of_model() {
                    earlier = new.passages.len();
                    new.told.clear();
                }
                let passage = reader.next(&unit.item);
                new.told.extend(
                    passage.iter().filter(|_| is_user(&unit.item)).flat_map(|passage| facts_to_remember(&passage.text)),
                );
                new.passages.extend(passage);
            }
        }
        *taken = request.messages().len();
        new.passages[..earlier].iter_mut().for_each(|passage| passage.at_ms = None);
        new.is_resumed = is_first && *taken > 1;
        // The next request, if there is one, has it at the same place and writes it again.
        let answer = answered.map(|text| Item::message(Role::Assistant, text));
        new.answer =
            answer.and_then(|item| Passage::of_item(&self.conversation, reader.position(), &item, None, now_ms));
        Some(new)
    }

    async fn write(
        &self,
        new: NewPassages,
        owner: &MemoryOwner,
        now_ms: u64,
    ) -> Result<(), contexture::error::BoxError> {
        let past = self.memory.memory.past(owner);
        let mut passages = new.passages;
        if new.is_resumed {
            let mut unknown = Vec::new();
            for passage in passages {
                if !past.has(&passage.thread, passage.position).await? {
                    unknown.push(passage);
                }
            }
            passages = unknown;
        }
        passages.extend(new.answer.map(|answer| answer.from_source(EARLIER)));
        let (began, count) = (Instant::now(), passages.len());
        let added = past.add(passages).await;
        self.tell_of(MemoryAct::Create, now_ms, began, count, added.is_err());
        if added? > 0 {
            self.memory.memory.note_said(owner, &self.conversation, now_ms).await?;
        }
        let (began, count, mut has_failed) = (Instant::now(), new.told.len(), false);
        for text in new.told {
            // What is refused, as an empty line, is no fault of the request's.
            if let Err(error) = self.memory.memory.tell(owner, &text, now_ms).await {
                tracing::info!("`{REMEMBER}` was not followed: {error}");
                has_failed = true;
            }
        }
        self.tell_of(MemoryAct::Upsert, now_ms, began, count, has_failed);
        Ok(())
    }

    /// Tells watchers what was written, if there was anything to write.
    fn tell_of(&self, act: MemoryAct, time_ms: u64, began: Instant, records: usize, has_failed: bool) {
        if records == 0 {
            return;
        }
        let failure = has_failed.then_some("_OTHER");
        let took = began.elapsed();
        self.memory.tell_of(&MemoryOperation {
            act,
            conversation: &self.conversation,
            time_ms,
            took,
            records,
            failure,
        });
    }
}

fn is_user(item: &Item) -> bool {
    item.as_message().is_some_and(|message| message.role == Role::User)
}

/// What the lines of a person ask to remember.
fn facts_to_remember(text: &str) -> Vec<String> {
    let after = |line: &str| {
        let line = line.trim();
        let start = line.get(..REMEMBER.len())?;
        start.eq_ignore_ascii_case(REMEMBER).then(|| line[REMEMBER.len()..].trim().to_owned())
    };
    text.lines().filter_map(after).filter(|fact| !fact.is_empty()).collect()
}
