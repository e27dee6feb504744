//! A conversation in the hands of a folder.

use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::files::disk::Gate;
use contexture::fold::{Asking, FoldDecision, Folder, Meter, Policy, Replay, Rest, ShownItem};
use contexture::host::FsAdapter;
use contexture::item::Item;
use contexture::tokens::TokenCounter;
use contexture::wire::{Format, Plan, WireError};
use serde_json::value::RawValue;

use crate::reading::{Behind, Reading};

/// How an agent with a shell sees the whole of what is shown shortened.
const SHOW_COMMAND: &str = "`contexture show`";

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
    folder: Folder,
    reading: Reading,
    /// The agent's files as they were last seen on the disk.
    gate: Gate,
}

/// A folder at rest, after a request of so many messages.
#[derive(Clone, Debug)]
pub struct Rested {
    /// The folder.
    pub rest: Rest,
    /// How many messages the request had.
    pub messages: usize,
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
        Self { folder, reading: Reading::new(format, lead, directory, counter, behind), gate: Gate::default() }
    }

    /// The folder that was put to rest.
    ///
    /// # Errors
    /// A message has a part of an unknown kind, or the folder was about other messages.
    pub fn woken(self, messages: &[&RawValue], rested: &Rested) -> Result<Self, WireError> {
        let Self { folder, mut reading, gate } = self;
        reading.take(messages, rested.messages)?;
        let folder = folder.wake(&rested.rest, reading.log()).map_err(|_| WireError::OtherRequest)?;
        Ok(Self { folder, reading, gate })
    }

    /// The folder as it was after requests of so many messages, with what was decided then.
    ///
    /// # Errors
    /// A message has a part of an unknown kind.
    pub fn rebuilt(
        self,
        messages: &[&RawValue],
        points: &[usize],
        decisions: Vec<FoldDecision>,
    ) -> Result<Self, WireError> {
        let Self { folder, mut reading, gate } = self;
        let mut replay = Replay::new(folder, decisions);
        for point in points {
            for message in reading.take(messages, *point)? {
                replay.push(message);
            }
            replay.request();
        }
        let mut folder = replay.go_on();
        // They are kept already.
        folder.take_decisions();
        Ok(Self { folder, reading, gate })
    }

    /// The folder at rest.
    pub fn rest(&self) -> Option<Rested> {
        let rest = self.folder.rest(self.reading.log()).ok()?;
        Some(Rested { rest, messages: self.messages() })
    }

    /// How many messages it took in.
    pub fn messages(&self) -> usize {
        self.reading.messages()
    }

    /// Has a text sent behind a message that is not taken in yet.
    pub fn put_behind(&mut self, message: usize, text: Arc<str>) {
        self.reading.put_behind(message, text);
    }

    /// Takes in all messages of a request that it does not know.
    ///
    /// # Errors
    /// A message has a part of an unknown kind. Then nothing was taken in.
    pub fn catch_up(&mut self, messages: &[&RawValue]) -> Result<(), WireError> {
        for message in self.reading.take(messages, messages.len())? {
            self.folder.push(message);
        }
        Ok(())
    }

    /// Decides about the request that is made now. What is about to be shown is held against the disk, if there is one.
    pub fn request(&mut self, policy: Policy, is_cold: bool, disk: Option<&dyn FsAdapter>) -> Outcome {
        self.folder.set_policy(policy);
        if is_cold {
            self.folder.cache_is_cold();
        }
        self.ask(disk);
        let decisions = self.folder.take_decisions();
        let has_folded = decisions.iter().any(|decision| matches!(decision, FoldDecision::Fold(_)));
        Outcome { plan: self.plan(), decisions, has_folded }
    }

    fn ask(&mut self, disk: Option<&dyn FsAdapter>) {
        let Self { folder, gate, .. } = self;
        // Deciding has a thread of its own, on which it may wait.
        let Some((disk, runtime)) = disk.zip(tokio::runtime::Handle::try_current().ok()) else {
            folder.request();
            return;
        };
        let mut asking = Asking::new(folder);
        loop {
            let wanted = asking.wanted();
            if wanted.is_empty() {
                asking.window();
                return;
            }
            asking.found(runtime.block_on(gate.look(disk, &wanted)));
        }
    }

    /// What is sent for what was taken in.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        plan.push_kept(0..self.reading.lead());
        for shown in self.folder.window() {
            match shown.position.and_then(|at| self.reading.place(at)) {
                Some(place) if !place.is_behind() => {
                    let text = if shown.is_logged { place.text.clone() } else { Some(text_of(shown)) };
                    plan.push_unit(place.message, place.unit, place.of, text);
                }
                _ => plan.push_made(text_of(shown)),
            }
        }
        plan.cover(self.messages());
        plan
    }

    /// Tokens of what is sent for what was taken in, and of what came.
    pub fn tokens(&self) -> (u64, u64) {
        (self.folder.tokens(), self.folder.passed_through_tokens() - self.reading.behind_tokens())
    }

    /// Where an item of the folder is: its message, and its part of it.
    pub fn place_of(&self, position: usize) -> Option<(usize, usize)> {
        self.reading.place(position).map(|place| (place.message, place.unit))
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

fn text_of(shown: &ShownItem) -> Arc<str> {
    match &*shown.item {
        Item::Message(message) => message.text_cow().into(),
        Item::FunctionCallOutput(output) => output.output.as_str().into(),
        Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => "".into(),
    }
}
