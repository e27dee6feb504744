//! What is recalled for a request, where a person says something new.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use contexture::facts::Fact;
use contexture::item::{Item, Origin, Role};
use contexture::personal::{Answer, MemoryOwner};
use contexture::recall::{Extent, Passage, PastQuery, SharedEmbedder};
use contexture::tokens::TokenCounter;
use contexture::wire::{Request, read};
use contexture_text::block::flat;
use contexture_text::spoken::spoken_text;

use super::late::RecalledText;
use super::memory::GatewayMemory;
use crate::account::record::{DecidedNote, DecisionKind};
use crate::watch::{MemoryAct, MemoryOperation};

/// How many bytes of what a person said are searched for; a log that was pasted after them is not.
const MOST_ASKED_BYTES: usize = 2_000;

/// How the text that is added begins and ends.
const BLOCK: [&str; 2] = ["<memory>\n", "\n</memory>"];

/// What recalling needs to know of a request.
pub(crate) struct RecallRequest<'a> {
    pub(crate) memory: &'a GatewayMemory,
    /// The name of the key, if there are several.
    pub(crate) key: &'a str,
    /// The conversation, whose own words are not recalled.
    pub(crate) conversation: &'a Arc<str>,
    pub(crate) now_ms: u64,
}

impl RecallRequest<'_> {
    /// What is added for the messages from a position on, if a person says something in them, or said something for which
    /// the memory was late. `log` has the items before.
    pub(crate) fn recalled(
        &self,
        request: &Request<'_>,
        from: usize,
        log: &[(Arc<Item>, u64)],
        counter: &Arc<dyn TokenCounter>,
    ) -> Option<RecalledText> {
        // This runs on a blocking thread, so it may wait.
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let earlier = self.memory.late.take(self.conversation);
        let earlier = earlier.and_then(|search| runtime.block_on(search).ok().flatten());
        let Some((asked, begin)) = newest_words(request, from) else { return earlier };
        let search = MemorySearch {
            memory: self.memory.clone(),
            owners: self.memory.owners(self.key),
            conversation: self.conversation.clone(),
            now_ms: self.now_ms,
            asked,
            seen: SeenTexts::of(request, from..begin, log),
            counter: counter.clone(),
        };
        let mut search = runtime.spawn(search.run());
        if !self.memory.wait.is_zero() {
            let found = runtime.block_on(async { tokio::time::timeout(self.memory.wait, &mut search).await });
            if let Ok(found) = found {
                return found.ok().flatten().or(earlier);
            }
        }
        self.memory.late.put(self.conversation, search);
        Some(earlier.unwrap_or_else(late))
    }
}

/// A search for what is relevant to a person's words, which may go on when its request is sent.
struct MemorySearch {
    memory: GatewayMemory,
    owners: Vec<MemoryOwner>,
    conversation: Arc<str>,
    now_ms: u64,
    asked: String,
    seen: SeenTexts,
    counter: Arc<dyn TokenCounter>,
}

impl MemorySearch {
    async fn run(self) -> Option<RecalledText> {
        let query = PastQuery {
            text: &self.asked,
            now_ms: self.now_ms,
            budget: self.memory.budget,
            counter: &*self.counter,
            extent: Extent::Covering(self.memory.threshold),
            visible: None,
        };
        let is_new = |passage: &Passage| passage.thread != *self.conversation && !self.seen.has(passage);
        let is_new_fact = |fact: &Fact| !self.seen.says(&fact.text);
        let began = Instant::now();
        let found = self.memory.memory.search_where(&self.owners, query, &is_new, &is_new_fact).await;
        self.memory.tell_of(&MemoryOperation {
            act: MemoryAct::Search,
            conversation: &self.conversation,
            time_ms: self.now_ms,
            took: began.elapsed(),
            records: found.as_ref().map_or(0, Answer::len),
            failure: found.is_err().then_some("_OTHER"),
        });
        if let Some(trouble) = self.memory.memory.embedder().and_then(SharedEmbedder::new_trouble) {
            tracing::warn!("the embedder failed, so the memory is searched by its words alone: {trouble}");
        }
        let answer = match found {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!("the memory could not be searched: {error}");
                return None;
            }
        };
        if answer.is_empty() {
            return None;
        }
        let block: Arc<str> = answer.block().into();
        let reason = match answer.len() {
            1 => "a person said something that 1 memory is about".to_owned(),
            count => format!("a person said something that {count} memories are about"),
        };
        let mut note = DecidedNote::new(DecisionKind::Memory, reason);
        note.after_tokens = self.counter.count(&block);
        note.recalled = answer.len();
        Some(RecalledText { text: Some(block), note })
    }
}

fn late() -> RecalledText {
    let reason = "the memory was late: what it finds goes with the next request";
    RecalledText { text: None, note: DecidedNote::new(DecisionKind::Memory, reason) }
}

/// What a person says after the last answer of the model or a tool, from a position on, and where that begins; `None` if
/// nobody says anything there.
fn newest_words(request: &Request<'_>, from: usize) -> Option<(String, usize)> {
    let mut said = Vec::new();
    let mut begin = request.messages().len();
    for (at, message) in request.messages().iter().enumerate().skip(from).rev() {
        let units = read(request.format(), message, None).ok()?;
        let is_given = |item: &Item| item.as_message().is_some_and(|message| message.role != Role::Assistant);
        if !units.iter().all(|unit| is_given(&unit.item)) {
            break;
        }
        begin = at;
        for unit in units.iter().rev() {
            let message = unit.item.as_message().filter(|message| message.role == Role::User);
            let Some(message) = message.filter(|message| message.meta.origin.is_said()) else { continue };
            said.extend(spoken_text(&message.text_cow()).map(std::borrow::Cow::into_owned));
        }
    }
    said.reverse();
    let mut said = said.join("\n");
    said.truncate(said.floor_char_boundary(MOST_ASKED_BYTES.min(said.len())));
    Some((said, begin)).filter(|(said, _)| !said.trim().is_empty())
}

/// How many bytes of a passage's start tell whether it was shown before.
const TELLING_BYTES: usize = 60;

/// The texts that a request has already: what is in a session that is resumed need not be recalled from its recording, and
/// what was recalled once is not recalled again.
struct SeenTexts {
    texts: HashSet<String>,
    /// What was recalled or added before, on one line.
    added: Vec<String>,
}

impl SeenTexts {
    /// The texts of the items that were read, and of messages that are not among them yet.
    fn of(request: &Request<'_>, unread: Range<usize>, log: &[(Arc<Item>, u64)]) -> Self {
        let mut seen = Self { texts: HashSet::new(), added: Vec::new() };
        log.iter().for_each(|(item, _)| seen.add(item));
        for message in request.messages().get(unread).unwrap_or_default() {
            let units = read(request.format(), message, None).unwrap_or_default();
            units.iter().for_each(|unit| seen.add(&unit.item));
        }
        seen
    }

    fn add(&mut self, item: &Item) {
        match item {
            Item::Message(message) if matches!(message.meta.origin, Origin::Layer { .. }) => {
                self.added.push(flat(&message.text_cow()));
            }
            Item::Message(message) => {
                let text = message.text_cow();
                let said = spoken_text(&text).unwrap_or_else(|| text.clone());
                self.texts.insert(said.trim().to_owned());
            }
            Item::FunctionCallOutput(output) => {
                self.texts.insert(output.output.trim().to_owned());
            }
            _ => {}
        }
    }

    fn has(&self, passage: &Passage) -> bool {
        let text = passage.text.trim();
        let output = text.split_once('\n').map_or("", |(_, output)| output.trim());
        self.texts.contains(text)
            || (passage.is_of_tool() && !output.is_empty() && self.texts.contains(output))
            || self.was_added(text)
    }

    /// Whether a sentence was said or recalled before.
    fn says(&self, sentence: &str) -> bool {
        self.was_added(sentence) || self.texts.iter().any(|text| text.contains(sentence))
    }

    fn was_added(&self, text: &str) -> bool {
        let start = flat(text);
        let start = &start[..start.floor_char_boundary(TELLING_BYTES.min(start.len()))];
        self.added.iter().any(|added| added.contains(start))
    }
}

/// The part of a text after a message that is memory.
pub(crate) fn memory_in(attached: &str) -> Option<&str> {
    let start = attached.rfind(BLOCK[0])?;
    attached.ends_with(BLOCK[1]).then(|| &attached[start..])
}
