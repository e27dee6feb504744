//! A conversation together with its folder.

use std::sync::Arc;
use std::time::Instant;

use contexture::files::dialect::Dialects;
use contexture::files::disk::Gate;
use contexture::fold::decision::{Piece, Records};
use contexture::fold::short_hash;
use contexture::fold::{Asking, FoldDecision, Folder, Meter, Policy, Replay, Rest, ShownItem};
use contexture::host::FsAdapter;
use contexture::item::{Item, Role};
use contexture::tokens::TokenCounter;
use contexture::wire::in_force::{set_by, unread_kinds};
use contexture::wire::{Format, Plan, WireError, raw_digest};
use serde_json::value::RawValue;

use crate::conversation::in_view::{FilesInView, files_in_view};
use crate::conversation::reading::{Attached, ConversationReading, ItemPlace};

/// How an agent with a shell can show the whole of a shortened text.
const SHOW_COMMAND: &str = "`contexture show`";

/// The settings of a folder.
#[derive(Clone)]
pub(crate) struct FolderSettings {
    /// What tools do.
    pub dialects: Dialects,
    /// Whether shortened texts can be shown in full again.
    pub can_show: bool,
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// How all conversations look at the disk.
    pub gate: Gate,
}

/// The agent's files, and how long a request may wait for them.
#[derive(Clone, Copy)]
pub(crate) struct Disk<'d> {
    /// The files.
    pub files: &'d Arc<dyn FsAdapter>,
    /// When the files of a request are no longer waited for, all of them together.
    pub until: Instant,
}

/// Files in use that are looked at while no request waits.
const WARMED: usize = 32;

impl Disk<'_> {
    /// Completes when files are no longer waited for.
    async fn passed(self) {
        tokio::time::sleep_until(self.until.into()).await;
    }
}

/// A folder, with the position of its items in the requests.
pub(crate) struct ConversationFolder {
    folder: Folder,
    reading: ConversationReading,
    /// The agent's files as they were last seen on the disk.
    gate: Gate,
    /// Decisions that are in the folder but were made too late to be sent. They take effect with the next request.
    late: Option<NewDecisions>,
    bound: Bound,
    /// How often the client had changed its past when the messages were read.
    rewrites: u64,
}

/// Reasoning that the provider has bound to what was sent before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bound {
    /// Whether the provider binds it.
    pub is_bound: bool,
    /// It is from before the newest fold in this many messages, and refused since then.
    pub messages: usize,
}

/// New decisions about a request, and what follows from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewDecisions {
    /// The plan with them.
    pub plan: Plan,
    /// The decisions.
    pub decisions: Vec<FoldDecision>,
    /// The texts for files that messages name, each with its message.
    pub named: Vec<(usize, Arc<str>)>,
}

impl NewDecisions {
    /// Whether there is a fold among them.
    pub fn has_folded(&self) -> bool {
        self.decisions.iter().any(|decision| matches!(decision, FoldDecision::Fold(_)))
    }

    /// Whether there is nothing new.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.named.is_empty()
    }
}

/// A snapshot of a folder.
#[derive(Clone, Debug)]
pub struct FolderSnapshot {
    /// The folder.
    pub rest: Rest,
    /// The message count of the request after which it was taken.
    pub messages: usize,
}

impl ConversationFolder {
    /// Creates an empty folder.
    ///
    /// `directory` is where the agent works, if its instructions say it.
    pub fn new(
        format: Format,
        lead: usize,
        policy: Policy,
        settings: &FolderSettings,
        directory: Option<Arc<str>>,
        attached: Attached,
    ) -> Self {
        let folder = Folder::new(policy, Meter::new(settings.counter.clone()))
            .with_dialects(settings.dialects.clone())
            .with_settings(set_by);
        let folder = if settings.can_show { folder.with_output_tool(SHOW_COMMAND) } else { folder };
        let reading = ConversationReading::new(format, lead, directory, settings.counter.clone(), attached);
        Self { folder, reading, gate: settings.gate.beside(), late: None, bound: Bound::default(), rewrites: 0 }
    }

    /// Says which kinds of blocks stay as they came, because a fold of some was refused.
    pub fn sparing(self, kinds: Vec<Box<str>>) -> Self {
        if kinds.is_empty() {
            return self;
        }
        let spared = move |item: &Item| {
            let mut sets = set_by(item);
            if unread_kinds(item).iter().any(|kind| kinds.contains(kind)) {
                let text = serde_json::to_string(item).unwrap_or_default();
                sets.push(format!("spared {}", raw_digest(text.as_bytes())).into());
            }
            sets
        };
        Self { folder: self.folder.with_settings(spared), ..self }
    }

    /// Says whether the model's thoughts in messages that are read from now on are what it says to people.
    pub fn telling_in_thoughts(mut self, tells_in_thoughts: bool) -> Self {
        self.reading.tell_in_thoughts(tells_in_thoughts);
        self
    }

    /// Says how often the client had changed its past before its messages are read.
    pub fn after_rewrites(self, rewrites: u64) -> Self {
        Self { rewrites, ..self }
    }

    /// How often the client had changed its past when its messages were read.
    pub fn rewrites(&self) -> u64 {
        self.rewrites
    }

    /// Restores the folder from a snapshot.
    ///
    /// # Errors
    /// A message has a part of an unknown kind, or the snapshot is of other messages.
    pub fn restored(self, messages: &[&RawValue], snapshot: &FolderSnapshot) -> Result<Self, WireError> {
        let Self { folder, mut reading, gate, late, bound, rewrites } = self;
        reading.take(messages, snapshot.messages)?;
        let folder = folder.wake(&snapshot.rest, reading.log()).map_err(|_| WireError::OtherRequest)?;
        Ok(Self { folder, reading, gate, late, bound, rewrites })
    }

    /// Replays requests since the last one that it knows, from their message counts and the decisions made for them.
    ///
    /// # Errors
    /// A message has a part of an unknown kind.
    pub fn rebuilt(
        self,
        messages: &[&RawValue],
        points: &[usize],
        decisions: Vec<FoldDecision>,
    ) -> Result<Self, WireError> {
        let Self { folder, mut reading, gate, late, bound, rewrites } = self;
        let mut replay = Replay::new(folder, decisions);
        for point in points {
            for message in reading.take(messages, *point)? {
                replay.push(message);
            }
            replay.request();
        }
        let mut folder = replay.go_on();
        // These decisions are stored already.
        folder.take_decisions();
        Ok(Self { folder, reading, gate, late, bound, rewrites })
    }

    /// Says what the provider does with reasoning from before the folds so far.
    pub fn bind(&mut self, bound: Bound) {
        self.bound = bound;
    }

    /// Whether reasoning from before a fold is refused.
    pub fn is_bound(&self) -> bool {
        self.bound.is_bound
    }

    /// Keeps decisions that were made too late for the next request.
    pub fn with_late(mut self, late: NewDecisions) -> Self {
        self.late = Some(late);
        self
    }

    /// Whether it has decisions that were made too late.
    pub fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Takes the decisions that were made too late.
    pub fn take_late(&mut self) -> NewDecisions {
        self.late.take().unwrap_or_default()
    }

    /// Whether the files that decisions made too late show are still as they show them. Files that newer messages name
    /// are not looked at: those messages tell what became of them.
    pub fn holds_on(&mut self, disk: Option<Disk<'_>>, newer: &[&RawValue]) -> bool {
        let Some((disk, runtime)) = disk.zip(tokio::runtime::Handle::try_current().ok()) else { return true };
        let decisions = self.late.as_ref().map(|late| late.decisions.as_slice()).unwrap_or_default();
        let mut wanted = self.folder.files_of(decisions);
        wanted.retain(|wanted| {
            let name = wanted.path.rsplit(['/', '\\']).next().unwrap_or_default();
            !newer.iter().any(|message| message.get().contains(name))
        });
        // This runs on a blocking thread, so it may wait.
        let found = runtime.block_on(async { self.gate.look(disk.files, &wanted, disk.passed()).await });
        !self.folder.differs(found)
    }

    /// Looks at the files in use while no request waits, so that less is left to do when they are about to be shown.
    pub fn warm(&self, files: &Arc<dyn FsAdapter>) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.gate.warm(files, self.folder.files_in_use(WARMED));
        }
    }

    /// Takes a snapshot of the folder. There is none while decisions are not in effect yet.
    pub fn snapshot(&self) -> Option<FolderSnapshot> {
        if self.is_late() {
            return None;
        }
        let rest = self.folder.rest(self.reading.log()).ok()?;
        Some(FolderSnapshot { rest, messages: self.messages() })
    }

    /// How many messages it has read.
    pub fn messages(&self) -> usize {
        self.reading.messages()
    }

    /// Adds a text to be sent after a message that has not been read yet.
    pub fn attach(&mut self, message: usize, text: Arc<str>) {
        self.reading.attach(message, text);
    }

    /// Reads all new messages of a request.
    ///
    /// # Errors
    /// A message has a part of an unknown kind. Then nothing was read.
    pub fn catch_up(&mut self, messages: &[&RawValue]) -> Result<(), WireError> {
        for message in self.reading.take(messages, messages.len())? {
            self.folder.push(message);
        }
        Ok(())
    }

    /// Decides what to send for the current request. Files about to be shown are checked on the disk, if there is one.
    pub fn request(&mut self, policy: Policy, is_cold: bool, disk: Option<Disk<'_>>) -> NewDecisions {
        let decisions = self.decide(policy, is_cold, disk);
        NewDecisions { plan: self.plan(), decisions, named: Vec::new() }
    }

    /// The same without the plan.
    pub fn decide(&mut self, policy: Policy, is_cold: bool, disk: Option<Disk<'_>>) -> Vec<FoldDecision> {
        self.folder.set_policy(policy);
        if is_cold {
            self.folder.cache_is_cold();
        }
        self.ask(disk);
        let decisions = self.folder.take_decisions();
        if decisions.iter().any(|decision| matches!(decision, FoldDecision::Fold(_))) {
            self.bound.messages = self.messages();
        }
        decisions
    }

    /// The window as it is now.
    pub fn window(&self) -> &[ShownItem] {
        self.folder.window()
    }

    /// How many items at the start of the window will probably stay with the next fold.
    pub fn standing(&self) -> usize {
        self.folder.standing()
    }

    /// What the window shows of the files that the agent works on.
    pub fn files_in_view(&self) -> FilesInView {
        let texts: Vec<Arc<str>> = self.folder.window().iter().map(text_of).collect();
        files_in_view(self.log(), texts.iter().map(|text| &**text))
    }

    /// The items read so far, each with its tokens.
    pub fn log(&self) -> &[(Arc<Item>, u64)] {
        self.reading.log()
    }

    fn ask(&mut self, disk: Option<Disk<'_>>) {
        let Self { folder, gate, .. } = self;
        // This runs on a blocking thread, so it may wait.
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
            asking.found(runtime.block_on(async { gate.look(disk.files, &wanted, disk.passed()).await }));
        }
    }

    /// The plan of what is sent.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        plan.push_kept(0..self.reading.lead());
        let (window, start) = (self.folder.window(), self.folder.start());
        // Messages without any part are nothing to a folder; where nothing was folded they stay.
        let mut empty = self.reading.empty().peekable();
        let mut is_head = start > 0;
        let standing = self.folder.standing();
        for (index, shown) in window.iter().enumerate() {
            if index == standing {
                plan.stand(plan.segments().len());
            }
            if is_head && shown.position.is_some_and(|at| at >= start) {
                is_head = false;
                let first = shown.position.and_then(|at| self.reading.place(at)).map_or(0, |place| place.message);
                while empty.next_if(|message| *message < first).is_some() {}
            }
            if self.is_refused(shown) {
                let told = shown.item.as_reasoning().filter(|thought| thought.is_told);
                if let Some((thought, place)) = told.zip(shown.position.and_then(|at| self.reading.place(at))) {
                    plan.push_unit(place.message, place.unit, place.of, Some(thought.text.as_str().into()));
                }
                continue;
            }
            let place = shown.position.and_then(|at| self.reading.place(at)).filter(|_| !is_head);
            while let Some(message) = empty.next_if(|message| place.is_some_and(|place| *message < place.message)) {
                plan.push_kept(message..message + 1);
            }
            match shown.position.and_then(|at| self.reading.place(at)) {
                Some(place) if self.is_told_alone(window, index, place) => plan.push_told(text_of(shown)),
                // In formats in which text and images are one part, the part cannot be kept without them.
                Some(_) if self.leaves_out_others(shown) => plan.push_made(text_of(shown)),
                Some(place) if !place.is_attached() => {
                    let text = if shown.is_logged { place.text.clone() } else { Some(text_of(shown)) };
                    plan.push_unit(place.message, place.unit, place.of, text);
                }
                _ => plan.push_made(text_of(shown)),
            }
        }
        empty.for_each(|message| plan.push_kept(message..message + 1));
        plan.cover(self.messages());
        plan
    }

    /// Whether an item is reasoning that the provider has bound to what was sent before a fold.
    fn is_refused(&self, shown: &ShownItem) -> bool {
        let place = shown.position.and_then(|at| self.reading.place(at));
        let is_before = place.is_some_and(|place| place.message < self.bound.messages);
        self.bound.is_bound && is_before && matches!(&*shown.item, Item::Reasoning(_))
    }

    /// Whether a text of the model is shown without the calls or the reasoning that came with it, so that its message
    /// cannot be sent as it came.
    fn is_told_alone(&self, window: &[ShownItem], index: usize, place: &ItemPlace) -> bool {
        let ShownItem { position: Some(at), item, is_logged, .. } = &window[index] else { return false };
        let Some(message) = item.as_message().filter(|message| message.role == Role::Assistant) else { return false };
        if *at >= self.folder.start() {
            return false;
        }
        let shows = |other: usize| {
            let at = index.checked_add_signed(other as isize - place.unit as isize);
            let place_of =
                |shown: &ShownItem| self.reading.place(shown.position?).map(|place| (place.message, place.unit));
            at.and_then(|at| window.get(at)).and_then(place_of) == Some((place.message, other))
        };
        let is_parted = message.id.is_some() && self.is_parted_from_reasoning(window, index, *at);
        !is_logged || is_parted || !(0..place.of).all(shows)
    }

    /// Whether the reasoning of the response that an item is part of is not shown with it. Providers expect what has an
    /// id together with it.
    fn is_parted_from_reasoning(&self, window: &[ShownItem], index: usize, at: usize) -> bool {
        let is_made = |item: &Item| {
            matches!(item, Item::FunctionCall(_) | Item::Opaque(_))
                || item.as_message().is_some_and(|message| message.role == Role::Assistant)
        };
        let before = self.reading.log()[..at].iter().rev();
        let made = before.clone().take_while(|(item, _)| is_made(item)).count() + 1;
        match before.map(|(item, _)| item).nth(made - 1).map(|item| &**item) {
            Some(Item::Reasoning(_)) => {
                let shown = index.checked_sub(made).and_then(|index| window.get(index));
                shown.is_none_or(|shown| shown.position != Some(at - made) || self.is_refused(shown))
            }
            _ => false,
        }
    }

    /// Whether images and other contents that are no text are left out of a message that is shown.
    fn leaves_out_others(&self, shown: &ShownItem) -> bool {
        let others = |item: &Item| {
            let contents = item.as_message().map(|message| message.content.as_slice()).unwrap_or_default();
            contents.iter().filter(|content| content.as_text().is_none()).count()
        };
        let logged = shown.position.and_then(|at| self.reading.log().get(at));
        let has_parts = matches!(self.reading.format(), Format::Messages | Format::Gemini);
        !has_parts && logged.is_some_and(|(item, _)| others(item) > others(&shown.item))
    }

    /// Tokens sent, and tokens received.
    pub fn tokens(&self) -> (u64, u64) {
        (self.folder.tokens(), self.folder.passed_through_tokens() - self.reading.attached_tokens())
    }

    /// The message of an item, and the part of that message.
    pub fn place_of(&self, position: usize) -> Option<(usize, usize)> {
        self.reading.place(position).map(|place| (place.message, place.unit))
    }

    /// The outputs that records name by their hash, each with it.
    pub fn recorded_outputs(&self, piece: &Piece) -> Vec<(String, String)> {
        let Piece::Records(Records { from, to, text }) = piece else { return Vec::new() };
        let log = self.reading.log().get(*from..*to).unwrap_or_default();
        let outputs = log.iter().filter_map(|(item, _)| item.as_output());
        let named = outputs.map(|output| (short_hash(&output.output), output.output.clone()));
        named.filter(|(hash, _)| text.contains(hash.as_str())).collect()
    }

    /// Whether every call in the window has its output and every output its call. Providers refuse anything else.
    pub fn is_paired(&self) -> bool {
        let (mut open, mut alone): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for shown in self.folder.window() {
            match &*shown.item {
                Item::FunctionCall(call) => open.push(&call.call_id),
                Item::FunctionCallOutput(output) => match open.iter().position(|id| *id == &*output.call_id) {
                    Some(at) => {
                        open.swap_remove(at);
                    }
                    None => alone.push(&output.call_id),
                },
                _ => {}
            }
        }
        // A call that the client only refers to is in none of its requests.
        let has_call =
            |id: &&str| self.log().iter().any(|(item, _)| item.as_call().is_some_and(|call| &*call.call_id == *id));
        open.is_empty() && !alone.iter().any(has_call)
    }
}

fn text_of(shown: &ShownItem) -> Arc<str> {
    match &*shown.item {
        Item::Message(message) => message.text_cow().into(),
        Item::FunctionCallOutput(output) => output.output.as_str().into(),
        Item::FunctionCall(call) => (&*call.arguments).into(),
        Item::Reasoning(_) | Item::Opaque(_) => "".into(),
    }
}
