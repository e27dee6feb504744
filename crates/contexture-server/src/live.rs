//! A conversation in the hands of a folder.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::fold::{FoldDecision, Folder, Meter, Policy, Replay, Rest, ShownItem};
use contexture::item::{Item, Meta, Origin};
use contexture::tokens::TokenCounter;
use contexture::wire::{Format, Plan, Unit, WireError, groups, read, unit_tokens};
use serde_json::value::RawValue;

/// How an agent with a shell sees the whole of what is shown shortened.
const SHOW_COMMAND: &str = "`contexture show`";

/// The part of a message that stands for what is sent behind it.
const BEHIND: usize = usize::MAX;

/// The layer that what is sent behind a message is told to be of.
const REFERENCES: &str = "file-reference";

/// What a folder is made with.
#[derive(Clone)]
pub struct LiveSettings {
    /// What tools do.
    pub dialects: Dialects,
    /// Where the agent works.
    pub directory: Option<Arc<str>>,
    /// Whether what is shortened can be had again.
    pub can_show: bool,
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
}

/// A folder with where its items are in the requests.
pub struct Live {
    format: Format,
    folder: Folder,
    /// What it took in, with its tokens. Items that are still shown are the folder's own.
    log: Vec<(Arc<Item>, u64)>,
    /// Where each item is.
    places: Vec<Place>,
    /// How many messages it took in, leading instructions included.
    messages: usize,
    /// How many messages at the start are instructions, which it is not given.
    lead: usize,
    directory: Option<Arc<str>>,
    counter: Arc<dyn TokenCounter>,
    /// What is sent behind messages that name files.
    behind: Behind,
}

/// Texts that are sent behind messages, by message.
pub type Behind = BTreeMap<usize, Arc<str>>;

/// A folder at rest, after a request of so many messages.
#[derive(Clone, Debug)]
pub struct Rested {
    /// The folder.
    pub rest: Rest,
    /// How many messages the request had.
    pub messages: usize,
}

#[derive(Clone, Copy)]
struct Place {
    message: usize,
    unit: usize,
    of: usize,
}

/// What a folder decided about a request.
pub struct Outcome {
    /// What is sent.
    pub plan: Plan,
    /// What was decided anew.
    pub decisions: Vec<FoldDecision>,
    /// Whether the past was folded.
    pub has_folded: bool,
}

impl Live {
    /// A folder that took in nothing.
    pub fn new(format: Format, lead: usize, policy: Policy, settings: &LiveSettings, behind: Behind) -> Self {
        let folder = Folder::new(policy, Meter::new(settings.counter.clone())).with_dialects(settings.dialects.clone());
        let folder = if settings.can_show { folder.with_output_tool(SHOW_COMMAND) } else { folder };
        let (directory, counter) = (settings.directory.clone(), settings.counter.clone());
        Self { format, folder, log: Vec::new(), places: Vec::new(), messages: lead, lead, directory, counter, behind }
    }

    /// The folder that was put to rest.
    ///
    /// # Errors
    /// A message has a part of an unknown kind, or the folder was about other messages.
    pub fn woken(mut self, messages: &[&RawValue], rested: &Rested) -> Result<Self, WireError> {
        let known = messages.get(self.messages..rested.messages).ok_or(WireError::OtherRequest)?;
        for (place, item) in self.arriving(known, self.messages)?.into_iter().flatten() {
            self.places.push(place);
            self.log.push(item);
        }
        self.messages = rested.messages;
        self.folder = self.folder.wake(&rested.rest, &self.log).map_err(|_| WireError::OtherRequest)?;
        Ok(self)
    }

    /// The folder as it was after requests of so many messages, with what was decided then.
    ///
    /// # Errors
    /// A message has a part of an unknown kind.
    pub fn rebuilt(
        mut self,
        messages: &[&RawValue],
        points: &[usize],
        decisions: Vec<FoldDecision>,
    ) -> Result<Self, WireError> {
        let mut parts = Vec::new();
        for point in points {
            let new = messages.get(self.messages..*point).ok_or(WireError::OtherRequest)?;
            parts.push(self.arriving(new, self.messages)?);
            self.messages = *point;
        }
        let mut replay = Replay::new(self.folder, decisions);
        for part in parts {
            for message in part {
                self.places.extend(message.iter().map(|(place, _)| *place));
                self.log.extend(message.iter().map(|(_, item)| item.clone()));
                replay.push(message.into_iter().map(|(_, item)| item));
            }
            replay.request();
        }
        self.folder = replay.go_on();
        // They are kept already.
        self.folder.take_decisions();
        Ok(self)
    }

    /// The folder at rest, if everything that it took in was decided about.
    pub fn rest(&self) -> Option<Rested> {
        let rest = self.folder.rest(&self.log).ok()?;
        Some(Rested { rest, messages: self.messages })
    }

    fn arriving(&self, messages: &[&RawValue], first: usize) -> Result<Arriving, WireError> {
        let mut units: Vec<(Place, Item)> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            // Where the agent works is known at its start; from there on its calls tell.
            let directory = self.directory.as_ref().filter(|_| first + at == self.lead);
            let read: Vec<Unit> = read(self.format, message, directory)?;
            let of = read.len();
            let place = |unit| Place { message: first + at, unit, of };
            units.extend(read.into_iter().enumerate().map(|(unit, read)| (place(unit), read.item)));
            if let Some(text) = self.behind.get(&(first + at)) {
                units.push((place(BEHIND), made_behind(text)));
            }
        }
        let groups = groups(units.iter().map(|(place, item)| (place.message, item)));
        let mut units = units.into_iter();
        let counted = |(place, item): (Place, Item)| {
            let tokens = unit_tokens(&*self.counter, &item);
            (place, (Arc::new(item), tokens))
        };
        Ok(groups.into_iter().map(|group| units.by_ref().take(group.len()).map(counted).collect()).collect())
    }

    /// How many messages it took in.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Has a text sent behind a message that is not taken in yet.
    pub fn put_behind(&mut self, message: usize, text: Arc<str>) {
        self.behind.insert(message, text);
    }

    /// Takes in all messages of a request that it does not know.
    ///
    /// # Errors
    /// A message has a part of an unknown kind. Then nothing was taken in.
    pub fn catch_up(&mut self, messages: &[&RawValue]) -> Result<(), WireError> {
        let new = messages.get(self.messages..).ok_or(WireError::OtherRequest)?;
        for message in self.arriving(new, self.messages)? {
            self.places.extend(message.iter().map(|(place, _)| *place));
            self.log.extend(message.iter().map(|(_, item)| item.clone()));
            self.folder.push(message.into_iter().map(|(_, item)| item));
        }
        self.messages = messages.len();
        Ok(())
    }

    /// Decides about the request that is made now.
    pub fn request(&mut self, policy: Policy, is_cold: bool) -> Outcome {
        self.folder.set_policy(policy);
        if is_cold {
            self.folder.cache_is_cold();
        }
        self.folder.request();
        let decisions = self.folder.take_decisions();
        let has_folded = decisions.iter().any(|decision| matches!(decision, FoldDecision::Fold(_)));
        Outcome { plan: self.plan(), decisions, has_folded }
    }

    /// What is sent for what was taken in.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        plan.push_kept(0..self.lead);
        for shown in self.folder.window() {
            match shown.position.and_then(|at| self.places.get(at)) {
                Some(place) if place.unit == BEHIND => plan.push_made(text_of(shown)),
                Some(place) => {
                    let text = (!shown.is_logged).then(|| text_of(shown));
                    plan.push_unit(place.message, place.unit, place.of, text);
                }
                None => plan.push_made(text_of(shown)),
            }
        }
        plan.cover(self.messages);
        plan
    }

    /// Tokens of what is sent for what was taken in, and of what came.
    pub fn tokens(&self) -> (u64, u64) {
        let added = self.places.iter().zip(&self.log).filter(|(place, _)| place.unit == BEHIND);
        let added: u64 = added.map(|(_, (_, tokens))| tokens).sum();
        (self.folder.tokens(), self.folder.passed_through_tokens() - added)
    }

    /// Where an item of the folder is: its message, and its part of it.
    pub fn place_of(&self, position: usize) -> Option<(usize, usize)> {
        self.places.get(position).map(|place| (place.message, place.unit))
    }

    /// Whether every call in the window has its output and the other way round. Providers refuse all else.
    pub fn is_paired(&self) -> bool {
        let mut open: Vec<&str> = Vec::new();
        for shown in self.folder.window() {
            match &*shown.item {
                Item::FunctionCall(call) => open.push(&call.call_id),
                Item::FunctionCallOutput(output) => match open.iter().position(|id| *id == &*output.call_id) {
                    Some(at) => {
                        open.swap_remove(at);
                    }
                    None => return false,
                },
                _ => {}
            }
        }
        open.is_empty()
    }
}

fn made_behind(text: &str) -> Item {
    let origin = Origin::Layer { id: REFERENCES.into() };
    Item::developer(text).with_meta(Meta { origin, ..Meta::default() })
}

fn text_of(shown: &ShownItem) -> Arc<str> {
    match &*shown.item {
        Item::Message(message) => message.text_cow().into(),
        Item::FunctionCallOutput(output) => output.output.as_str().into(),
        Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => "".into(),
    }
}

/// Messages as a folder takes them in, with where each item is.
type Arriving = Vec<Vec<(Place, (Arc<Item>, u64))>>;
