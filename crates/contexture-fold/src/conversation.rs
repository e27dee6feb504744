//! What was said and done, as far as a fold may still show or need it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use contexture_core::item::{FunctionCall, Item, Origin, Role};

use super::fingerprint::Fingerprint;
use super::stubs;
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// The items of a conversation, in order.
///
/// A moment is the number of a message, counted from 1. One message of a recording, or one response of the model, is
/// one moment. Ages are counted in moments, so they do not depend on how many items a message has.
#[derive(Default)]
pub(super) struct ConversationItems {
    entries: Vec<ConversationEntry>,
    moment: u32,
    /// How many messages of the model there are.
    responses: u32,
    /// The newest call of each id.
    calls: HashMap<Box<str>, MadeCall>,
    tokens: u64,
    /// Of those, the tokens of what people and the model said, and of what is pinned.
    dialogue_tokens: u64,
    /// Bytes and tokens of all texts.
    texts: (u64, u64),
    fingerprint: Fingerprint,
}

/// Who speaks in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemSpeaker {
    /// The user.
    User,
    /// The system, or a developer of the agent, including what a harness attached for them.
    Instructor,
    /// A memory layer, or a harness by itself.
    Program,
    /// The model.
    Model,
    /// A tool.
    Tool,
}

impl ItemSpeaker {
    /// Whether a person said it, so that it must not be cut freely.
    pub(super) fn is_person(self) -> bool {
        matches!(self, ItemSpeaker::User | ItemSpeaker::Instructor)
    }
}

/// Kinds of attachments that harnesses add by themselves: files, changes and their own state. All other attachments are
/// somebody's instructions, such as memory files and lists of skills.
pub const NOTE_KINDS: &[&str] = &[
    "directory",
    "edited_text_file",
    "file",
    "hook_success",
    "passing_note",
    "selected_lines_in_ide",
    "task_reminder",
    "todo_reminder",
];

/// An item and what is always true of it.
struct ConversationEntry {
    /// `None` once it was folded away, unless it belongs to the dialogue or may be named again.
    item: Option<Arc<Item>>,
    tokens: u64,
    speaker: ItemSpeaker,
    moment: u32,
    /// For an output, the position of the call that it belongs to. A later call may reuse the id.
    call: Option<usize>,
    /// Whether it is the first item of its message.
    is_first: bool,
    /// Whether the user pinned it, or the call that it belongs to.
    is_pinned: bool,
    /// Whether it is a text of the model.
    is_told: bool,
}

impl ConversationEntry {
    /// Whether it belongs to the dialogue, which a fold keeps.
    fn is_in_dialogue(&self) -> bool {
        self.speaker.is_person() || self.is_told || self.is_pinned
    }
}

/// A call that was made.
pub(super) struct MadeCall {
    /// The position of its item.
    pub(super) at: usize,
    /// The tool.
    pub(super) name: Box<str>,
    /// The call itself, until it has an output and was folded away.
    item: Option<Arc<Item>>,
    is_answered: bool,
}

/// Most items after a position that are searched for outputs of calls before it.
const MAX_STEP_ITEMS: usize = 512;

impl ConversationItems {
    /// Begins the next message; returns its moment.
    pub(super) fn begin_message(&mut self) -> u32 {
        self.moment += 1;
        self.moment
    }

    /// Adds an item to the message that was begun last; returns its position.
    pub(super) fn push(&mut self, item: Arc<Item>, tokens: u64, text_tokens: u64, is_pinned: bool) -> usize {
        let at = self.entries.len();
        let call = match &*item {
            Item::FunctionCall(call) => {
                let made = MadeCall { at, name: call.name.clone(), item: Some(item.clone()), is_answered: false };
                self.calls.insert(call.call_id.clone(), made);
                None
            }
            Item::FunctionCallOutput(output) => self.calls.get_mut(&output.call_id).map(|call| {
                call.is_answered = true;
                call.at
            }),
            _ => None,
        };
        self.fingerprint.add(&item, tokens);
        let is_first = self.entries.last().is_none_or(|entry| entry.moment < self.moment);
        let (speaker, moment) = (speaker_of(&item), self.moment);
        self.responses += u32::from(is_first && speaker == ItemSpeaker::Model);
        if let Some(text) = text_of(&item) {
            self.texts.0 += text.len() as u64;
            self.texts.1 += text_tokens;
        }
        if is_pinned && item.as_call().is_some() {
            self.pin_reasoning();
        }
        let is_pinned = is_pinned || call.is_some_and(|call| self.entries[call].is_pinned);
        self.tokens += tokens;
        let is_told = speaker == ItemSpeaker::Model && said_in(&item).is_some_and(|text| !text.trim().is_empty());
        let entry = ConversationEntry { item: Some(item), tokens, speaker, moment, call, is_first, is_pinned, is_told };
        self.dialogue_tokens += if entry.is_in_dialogue() { tokens } else { 0 };
        self.entries.push(entry);
        at
    }

    /// Pins the reasoning of the newest message: providers require it beside the call that it led to.
    fn pin_reasoning(&mut self) {
        let moment = self.moment;
        for entry in self.entries.iter_mut().rev().take_while(|entry| entry.moment == moment) {
            entry.is_pinned |= matches!(entry.item.as_deref(), Some(Item::Reasoning(_)));
        }
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The newest moment: how many messages there are.
    pub(super) fn now(&self) -> u32 {
        self.moment
    }

    /// How many messages of the model there are: about as many requests were made.
    pub(super) fn responses(&self) -> u32 {
        self.responses
    }

    /// The output at a moment, if it is still held.
    pub(super) fn output_at(&self, moment: u32) -> Option<&Arc<Item>> {
        let at = self.entries.partition_point(|entry| entry.moment < moment);
        let item = self.entries.get(at).filter(|entry| entry.moment == moment)?.item.as_ref()?;
        item.as_output().map(|_| item)
    }

    /// How many messages come before the item at a position.
    pub(super) fn messages_before(&self, at: usize) -> u32 {
        self.entries.get(at).map_or(self.moment, |entry| entry.moment - 1)
    }

    /// The tokens of all items.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The tokens of what people and the model said, and of what is pinned.
    pub(super) fn dialogue_tokens(&self) -> u64 {
        self.dialogue_tokens
    }

    /// Bytes and tokens of all texts.
    pub(super) fn texts(&self) -> (u64, u64) {
        self.texts
    }

    /// An item that was not folded away.
    pub(super) fn item(&self, at: usize) -> &Arc<Item> {
        self.entries[at].item.as_ref().expect("what was folded away is not shown again")
    }

    /// The text of an item that was not folded away; empty for items without one.
    pub(super) fn text(&self, at: usize) -> Cow<'_, str> {
        said_in(self.item(at)).unwrap_or_default()
    }

    /// The tokens of an item.
    pub(super) fn item_tokens(&self, at: usize) -> u64 {
        self.entries[at].tokens
    }

    /// Whether an item is a text of the model.
    pub(super) fn is_told(&self, at: usize) -> bool {
        self.entries[at].is_told
    }

    /// Whether an item is pinned.
    pub(super) fn is_pinned(&self, at: usize) -> bool {
        self.entries[at].is_pinned
    }

    /// The position of the call that the output at a position belongs to.
    pub(super) fn call_at(&self, at: usize) -> Option<usize> {
        self.entries[at].call
    }

    /// The moment of an item.
    pub(super) fn moment(&self, at: usize) -> u32 {
        self.entries[at].moment
    }

    /// Whether an item was not folded away.
    pub(super) fn holds(&self, at: usize) -> bool {
        self.entries.get(at).is_some_and(|entry| entry.item.is_some())
    }

    /// Who speaks in an item.
    pub(super) fn speaker(&self, at: usize) -> ItemSpeaker {
        self.entries[at].speaker
    }

    /// The call that an output belongs to.
    pub(super) fn call_of(&self, item: &Item) -> Option<&MadeCall> {
        self.calls.get(&item.as_output()?.call_id)
    }

    /// Whether a window may begin at a position: a message begins there, and every output after it belongs to a call
    /// after it.
    pub(super) fn can_begin_at(&self, at: usize) -> bool {
        let entry = &self.entries[at];
        let mut calls = self.entries[at..].iter().take(MAX_STEP_ITEMS).filter_map(|entry| entry.call);
        entry.is_first && entry.speaker != ItemSpeaker::Tool && calls.all(|call| call >= at)
    }

    /// The items of the message of the model at a position, and the outputs of its calls, before an end.
    pub(super) fn step_of(&self, at: usize, end: usize) -> impl Iterator<Item = usize> {
        let moment = self.entries[at].moment;
        let first = self.entries.partition_point(|entry| entry.moment < moment);
        let is_of = move |at: &usize| {
            let entry = &self.entries[*at];
            entry.moment == moment || entry.call.is_some_and(|call| self.entries[call].moment == moment)
        };
        (first..end.min(first + MAX_STEP_ITEMS)).filter(is_of)
    }

    /// The kind of a note that a harness wrote by itself.
    pub(super) fn note_kind(&self, at: usize) -> Option<&str> {
        match &self.item(at).as_message()?.meta.origin {
            Origin::Harness { kind: Some(kind), .. } if NOTE_KINDS.contains(&&**kind) => Some(kind),
            _ => None,
        }
    }

    /// Drops items that were folded away. What was said is kept because it is quoted, some outputs because something that
    /// they say may be named again, and calls without an output are kept whole.
    pub(super) fn forget(&mut self, folded: Range<usize>, is_kept: impl Fn(usize) -> bool) {
        for at in folded {
            if self.entries[at].is_in_dialogue() || is_kept(at) {
                continue;
            }
            let Some(item) = self.entries[at].item.take() else { continue };
            let made = item.as_call().and_then(|call| self.calls.get_mut(&call.call_id));
            if let Some(made) = made.filter(|made| made.at == at && made.is_answered) {
                made.item = None;
            }
        }
    }
}

/// Storing and restoring. Items are in the log, and nearly everything else follows from them.
impl ConversationItems {
    /// A digest that identifies these items.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint.to_bytes()
    }

    /// The positions of the items of a message, and of the calls that they belong to.
    pub(super) fn positions_of(&self, moment: u32) -> impl Iterator<Item = usize> {
        let first = self.entries.partition_point(|entry| entry.moment < moment);
        let own = self.entries[first..].iter().take_while(move |entry| entry.moment == moment);
        own.enumerate().flat_map(move |(index, entry)| [first + index].into_iter().chain(entry.call))
    }

    /// Writes what is not in the log: where messages begin, what was pinned, and what was dropped.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { entries, moment, calls, responses: _, tokens: _, dialogue_tokens: _, texts: _, fingerprint: _ } =
            self;
        let mut counts = vec![0_usize; *moment as usize];
        for entry in entries {
            counts[entry.moment as usize - 1] += 1;
        }
        packer.list(counts, Packer::number);
        let pinned: Vec<usize> = (0..entries.len()).filter(|at| entries[*at].is_pinned).collect();
        packer.list(pinned, Packer::number);
        let is_forgotten: Vec<bool> = entries.iter().map(|entry| entry.item.is_none()).collect();
        packer.list(is_forgotten.chunk_by(|one, other| one == other).collect::<Vec<_>>(), |packer, run| {
            packer.flag(run[0]);
            packer.number(run.len());
        });
        let is_kept = |made: &&MadeCall| made.item.is_some() && is_forgotten[made.at];
        let mut kept: Vec<usize> = calls.values().filter(is_kept).map(|made| made.at).collect();
        kept.sort_unstable();
        packer.list(kept, Packer::number);
    }

    /// Takes in the items of the log again. Items are given with the tokens of their texts.
    pub(super) fn wake(unpacker: &mut Unpacker<'_>, text_tokens: impl Fn(u64) -> u64) -> Result<Self, Damaged> {
        let mut conversation = Self::default();
        let mut left = unpacker.log().iter();
        let counts = unpacker.list(Unpacker::number::<usize>)?;
        let pinned = unpacker.list(Unpacker::number::<usize>)?;
        for count in counts {
            conversation.begin_message();
            if count > left.len() {
                return Err(Damaged);
            }
            for (item, tokens) in left.by_ref().take(count) {
                // Reasoning is pinned by the call that it led to.
                let is_reasoning = matches!(**item, Item::Reasoning(_));
                let is_pinned = !is_reasoning && pinned.binary_search(&conversation.len()).is_ok();
                conversation.push(item.clone(), *tokens, text_tokens(*tokens), is_pinned);
            }
        }
        if left.len() > 0 {
            return Err(Damaged);
        }
        let mut at = 0;
        for (is_forgotten, count) in unpacker.list(|unpacker| Ok((unpacker.flag()?, unpacker.number::<usize>()?)))? {
            let run = conversation.entries[at..].get_mut(..count).ok_or(Damaged)?;
            run.iter_mut().filter(|_| is_forgotten).for_each(|entry| entry.item = None);
            at += count;
        }
        let kept = unpacker.list(Unpacker::number::<usize>)?;
        for made in conversation.calls.values_mut() {
            if conversation.entries[made.at].item.is_none() && kept.binary_search(&made.at).is_err() {
                made.item = None;
            }
        }
        Ok(conversation)
    }
}

impl MadeCall {
    /// The call, unless it has an output and was folded away.
    pub(super) fn call(&self) -> Option<&FunctionCall> {
        self.item.as_ref()?.as_call()
    }
}

fn speaker_of(item: &Item) -> ItemSpeaker {
    let Item::Message(message) = item else {
        return if item.is_of_model() { ItemSpeaker::Model } else { ItemSpeaker::Tool };
    };
    match (message.role, &message.meta.origin) {
        (Role::Assistant, _) => ItemSpeaker::Model,
        (_, Origin::Layer { .. }) => ItemSpeaker::Program,
        (_, Origin::Harness { kind: Some(kind), .. }) if NOTE_KINDS.contains(&&**kind) => ItemSpeaker::Program,
        (_, Origin::Harness { .. }) | (Role::System | Role::Developer, _) => ItemSpeaker::Instructor,
        (Role::User, Origin::Said) => ItemSpeaker::User,
    }
}

/// The text of an item, also what the model says to people in a thought, which cannot be replaced.
fn said_in(item: &Item) -> Option<Cow<'_, str>> {
    match item {
        Item::Reasoning(reasoning) if reasoning.is_told => Some(Cow::Borrowed(&reasoning.text)),
        _ => text_of(item),
    }
}

/// The text of an item whose text can be replaced.
pub(super) fn text_of(item: &Item) -> Option<Cow<'_, str>> {
    match item {
        Item::Message(message) => Some(message.text_cow()),
        Item::FunctionCallOutput(output) => Some(Cow::Borrowed(&output.output)),
        Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => None,
    }
}

/// The text that another form of an item replaces: for a call, its arguments.
pub(super) fn replaced_text(item: &Item) -> Option<Cow<'_, str>> {
    item.as_call().map(|call| Cow::Borrowed(&*call.arguments)).or_else(|| text_of(item))
}

/// The same item with another text.
pub(super) fn with_text(item: &Item, text: &str) -> Item {
    let mut item = item.clone();
    match &mut item {
        Item::Message(message) => {
            // Images and other contents that are not text are kept, unless the text says that they are left out.
            let are_kept = !stubs::leaves_out(text);
            let is_other = |content: &contexture_core::item::Content| are_kept && content.as_text().is_none();
            message.content.retain(is_other);
            message.content.insert(0, contexture_core::item::Content::Text { text: text.to_owned() });
        }
        Item::FunctionCallOutput(output) => output.output = text.to_owned(),
        Item::FunctionCall(call) => call.arguments = text.to_owned(),
        Item::Reasoning(_) | Item::Opaque(_) => {}
    }
    item
}
