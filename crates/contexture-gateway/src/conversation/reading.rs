//! The messages of a conversation as items for a folder, with the position of each item in the requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::item::{FunctionCall, Item, Meta, Origin};
use contexture::tokens::TokenCounter;
use contexture::wire::{Format, WireError, groups, read_at, told, unit_tokens};
use serde_json::value::RawValue;

use super::directory::of_message;

/// The part number of a text that is sent after a message.
const AFTER_MESSAGE: usize = usize::MAX;

/// The layer to which a text that is sent after a message is attributed.
const REFERENCES: &str = "file-reference";

/// How agents say that a file has not changed since they read it.
const UNCHANGED: &str = "File unchanged since last read";

/// Longest text that is treated as such a note.
const MAX_NOTE_BYTES: usize = 400;

/// Texts that are sent after messages, by message.
pub(crate) type Attached = BTreeMap<usize, Arc<str>>;

/// The messages read so far.
pub(crate) struct ConversationReading {
    format: Format,
    /// How many leading messages are instructions, which are not read.
    lead: usize,
    directory: Option<Arc<str>>,
    counter: Arc<dyn TokenCounter>,
    /// Whether the model's thoughts are what it says to people.
    tells_in_thoughts: bool,
    /// Texts that are sent after messages that name files.
    attached: Attached,
    /// How many messages were read, including the leading instructions.
    messages: usize,
    /// The messages that have no parts.
    empty: Vec<usize>,
    log: Vec<(Arc<Item>, u64)>,
    /// The position of each item.
    places: Vec<ItemPlace>,
}

/// The position of an item in the requests.
#[derive(Clone, Debug)]
pub(crate) struct ItemPlace {
    /// The index of the message.
    pub message: usize,
    /// The index of the part.
    pub unit: usize,
    /// How many parts the message has.
    pub of: usize,
    /// Its text, if that is not the received one.
    pub text: Option<Arc<str>>,
}

impl ItemPlace {
    /// Whether it is a text that is sent after the message.
    pub fn is_attached(&self) -> bool {
        self.unit == AFTER_MESSAGE
    }
}

/// Messages as groups of items.
pub(crate) type Groups = Vec<Vec<(Arc<Item>, u64)>>;

impl ConversationReading {
    /// Creates a reading that starts after the instructions.
    pub fn new(
        format: Format,
        lead: usize,
        directory: Option<Arc<str>>,
        counter: Arc<dyn TokenCounter>,
        attached: Attached,
    ) -> Self {
        Self {
            format,
            lead,
            directory,
            counter,
            tells_in_thoughts: false,
            attached,
            messages: lead,
            empty: Vec::new(),
            log: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The format of the requests.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How many messages were read.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// How many leading messages are instructions.
    pub fn lead(&self) -> usize {
        self.lead
    }

    /// The items read so far, each with its tokens.
    pub fn log(&self) -> &[(Arc<Item>, u64)] {
        &self.log
    }

    /// The position of an item.
    pub fn place(&self, position: usize) -> Option<&ItemPlace> {
        self.places.get(position)
    }

    /// Tokens of the texts that are sent after messages.
    pub fn attached_tokens(&self) -> u64 {
        let attached = self.places.iter().zip(&self.log).filter(|(place, _)| place.is_attached());
        attached.map(|(_, (_, tokens))| tokens).sum()
    }

    /// The messages that have no parts.
    pub fn empty(&self) -> impl Iterator<Item = usize> {
        self.empty.iter().copied()
    }

    /// Says whether the model's thoughts in messages that are read from now on are what it says to people.
    pub fn tell_in_thoughts(&mut self, tells_in_thoughts: bool) {
        self.tells_in_thoughts = tells_in_thoughts;
    }

    /// Adds a text to be sent after a message that has not been read yet.
    pub fn attach(&mut self, message: usize, text: Arc<str>) {
        self.attached.insert(message, text);
    }

    /// Reads the messages of a request up to the index `until`.
    ///
    /// # Errors
    /// A message has a part of an unknown kind. Then nothing was read.
    pub fn take(&mut self, messages: &[&RawValue], until: usize) -> Result<Groups, WireError> {
        let new = messages.get(self.messages..until).ok_or(WireError::OtherRequest)?;
        let mut units: Vec<(ItemPlace, Item)> = Vec::new();
        let mut empty = Vec::new();
        for at in self.messages..self.messages + new.len() {
            let is_first = at == self.lead;
            // What instructions say holds from the start; messages may say otherwise, and later calls say where they run.
            let read = read_at(self.format, messages, at, self.directory.as_ref().filter(|_| is_first))?;
            let mut read = if self.tells_in_thoughts { told(read) } else { read };
            for unit in &mut read {
                note_directory(&mut unit.item, is_first);
            }
            let of = read.len();
            if of == 0 {
                empty.push(at);
            }
            let place = |unit| ItemPlace { message: at, unit, of, text: None };
            units.extend(read.into_iter().enumerate().map(|(unit, read)| (place(unit), read.item)));
            if let Some(text) = self.attached.get(&at) {
                units.push((place(AFTER_MESSAGE), attached_item(text)));
            }
        }
        let groups = groups(units.iter().map(|(place, item)| (place.message, item)));
        self.messages = until;
        self.empty.extend(empty);
        let first = self.log.len();
        for (mut place, mut item) in units {
            if let Some(text) = self.meant_by(&item) {
                item = with_output(item, &text);
                place.text = Some(text);
            }
            let tokens = unit_tokens(&*self.counter, &item);
            self.places.push(place);
            self.log.push((Arc::new(item), tokens));
        }
        Ok(groups.into_iter().map(|group| self.log[first + group.start..first + group.end].to_vec()).collect())
    }

    /// Returns the file content that a "file unchanged" note refers to. The agent has that earlier read in its history,
    /// but the model may not see it any more.
    fn meant_by(&self, item: &Item) -> Option<Arc<str>> {
        let output = item.as_output().filter(|output| output.output.len() <= MAX_NOTE_BYTES)?;
        if !output.output.trim_start().starts_with(UNCHANGED) {
            return None;
        }
        let call = self.call_of(&output.call_id, self.log.len())?;
        let arguments = call.parsed_arguments();
        let is_same = |other: &FunctionCall| other.name == call.name && other.parsed_arguments() == arguments;
        let outputs = self.log.iter().enumerate().rev().filter_map(|(at, (item, _))| Some((at, item.as_output()?)));
        let mut reads = outputs.filter(|(at, output)| self.call_of(&output.call_id, *at).is_some_and(is_same));
        reads.next().map(|(_, output)| output.output.as_str().into())
    }

    /// The newest call with an id before a position.
    fn call_of(&self, id: &str, before: usize) -> Option<&FunctionCall> {
        let calls = self.log[..before].iter().rev().filter_map(|(item, _)| item.as_call());
        calls.into_iter().find(|call| &*call.call_id == id)
    }
}

/// Notes the directory that a message says the agent works in.
fn note_directory(item: &mut Item, is_first: bool) {
    if let (Some(path), Item::Message(message)) = (of_message(item, is_first), item) {
        message.meta.directory = Some(path);
    }
}

fn attached_item(text: &str) -> Item {
    let origin = Origin::Layer { id: REFERENCES.into() };
    Item::developer(text).with_meta(Meta { origin, ..Meta::default() })
}

fn with_output(item: Item, text: &str) -> Item {
    match item {
        Item::FunctionCallOutput(mut output) => {
            output.output = text.to_owned();
            output.into()
        }
        other => other,
    }
}
