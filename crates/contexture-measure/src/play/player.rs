//! Plays a recorded conversation through the folder, request by request.

use std::sync::Arc;
use std::time::Duration;

use contexture::files::dialect::Dialects;
use contexture::fold::decision::Piece;
use contexture::fold::{Fold, FoldDecision, Folder, Meter, Policy, ShownItem};
use contexture::item::{Item, Role};
use contexture::tokens::TokenCounter;
use contexture::transcript::Record;

use super::ruler;
use super::system::System;
use crate::pauses::Pauses;

/// A conversation that is being played: before every response the folder returns a window.
///
/// Positions are those of the transcript. System messages at the start come first in every window and are not folded;
/// later system messages are folded like the rest.
pub struct Player<I> {
    policy: Policy,
    counter: Arc<dyn TokenCounter>,
    system: System,
    folder: Folder,
    /// For each item of the folder, the record that it is from.
    record_of: Vec<usize>,
    /// How many items each record has.
    items_of: Vec<usize>,
    records: I,
    /// How many records were added to the folder.
    taken: usize,
    /// The response to the last request, not added yet.
    response: Option<Record>,
    window: Vec<SentMessage>,
    pauses: Pauses,
}

/// One message of a window.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// The record that it shows, as it is or shortened; `None` for a message that replaces others.
    pub position: Option<usize>,
    /// Whether it shows all of the record as it is.
    pub is_whole: bool,
    items: Vec<Arc<Item>>,
}

impl SentMessage {
    fn new(position: Option<usize>, shown: &ShownItem) -> Self {
        Self { position, is_whole: shown.is_logged, items: vec![shown.item.clone()] }
    }

    /// The message as it would be sent. One that replaces others has the role of the user.
    pub fn record(&self) -> Record {
        if let (None, [item]) = (self.position, self.items.as_slice()) {
            let text = item.as_message().map(|message| message.text()).unwrap_or_default();
            return Item::message(Role::User, text).into();
        }
        Record::from_items(self.items.iter().map(|item| (**item).clone()).collect())
    }

    /// How many blocks it is for a provider.
    pub fn blocks(&self) -> usize {
        self.items.len()
    }

    /// Whether a provider would get the same bytes.
    fn is_same(&self, other: &SentMessage) -> bool {
        let is_same = |(one, two): (&Arc<Item>, &Arc<Item>)| Arc::ptr_eq(one, two) || one == two;
        self.position == other.position
            && self.items.len() == other.items.len()
            && self.items.iter().zip(&other.items).all(is_same)
    }
}

/// One request, as its difference to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The position of the assistant message that is the response to it.
    pub before: usize,
    /// How many leading messages of the last request it begins with.
    pub keep: usize,
    /// How many leading messages will probably stay with the next fold.
    pub standing: usize,
    /// Whether the provider's cache has expired since the last request.
    pub is_cold: bool,
}

impl<I: Iterator<Item = Record>> Player<I> {
    /// Starts with an empty window.
    pub fn new(
        policy: Policy,
        counter: Arc<dyn TokenCounter>,
        records: impl IntoIterator<Item = Record, IntoIter = I>,
    ) -> Self {
        Self {
            system: System::new(policy.budget, counter.clone()),
            folder: Folder::new(policy.clone(), Meter::of_texts(counter.clone())),
            policy,
            counter,
            record_of: Vec::new(),
            items_of: Vec::new(),
            records: records.into_iter(),
            taken: 0,
            response: None,
            window: Vec::new(),
            pauses: Pauses::new(None),
        }
    }

    /// Sets the dialects.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.folder = self.folder.with_dialects(dialects);
        self
    }

    /// Sets after which pause the provider's cache expires; the pauses are those of the recording.
    pub fn with_cache_life(mut self, cache_life: Option<Duration>) -> Self {
        self.pauses = Pauses::new(cache_life);
        self
    }

    /// Advances to the next request. Returns `None` at the end of the recording.
    pub fn step(&mut self) -> Option<ReplayStep> {
        if let Some(response) = self.response.take() {
            self.pauses.note(&response);
            self.push(response);
        }
        while let Some(record) = self.records.next() {
            if record.is_response() {
                self.response = Some(record);
                return Some(self.ask());
            }
            self.pauses.note(&record);
            self.take_in(record);
        }
        None
    }

    fn take_in(&mut self, record: Record) {
        if record.role() != Some(Role::System) || !self.folder.is_empty() {
            return self.push(record);
        }
        self.taken += 1;
        self.items_of.push(1);
        self.system.push(record);
        self.folder.set_policy(self.next_policy());
    }

    /// The policy for the next request, as a gateway has it: the system messages take their part of the budget, and
    /// folds depend on whether the bill is above that of pass-through.
    fn next_policy(&self) -> Policy {
        let left = self.policy.budget.saturating_sub(self.system.tokens()).max(1);
        let account = self.folder.account();
        self.policy.clone().with_budget(left).after_bill(account.billed, account.passed_through)
    }

    fn push(&mut self, record: Record) {
        self.record_of.extend(record.items().iter().map(|_| self.taken));
        self.items_of.push(record.items().len());
        self.taken += 1;
        let counted = |item: Item| (ruler::tokens(&*self.counter, &item), Arc::new(item));
        let items = record.into_items().into_iter().map(counted).map(|(tokens, item)| (item, tokens));
        self.folder.push(items.collect::<Vec<_>>());
    }

    fn ask(&mut self) -> ReplayStep {
        let is_cold = self.pauses.has_expired();
        self.folder.set_policy(self.next_policy());
        if is_cold {
            self.folder.cache_is_cold();
        }
        let mut window: Vec<SentMessage> =
            self.system.items().iter().map(|shown| SentMessage::new(shown.position, shown)).collect();
        let mut standing = window.len();
        self.folder.request();
        let stays = self.folder.standing();
        for (at, shown) in self.folder.window().iter().enumerate() {
            let position = shown.position.map(|at| self.record_of[at]);
            match window.last_mut() {
                Some(sent) if position.is_some() && sent.position == position => {
                    sent.is_whole &= shown.is_logged;
                    sent.items.push(shown.item.clone());
                }
                _ => window.push(SentMessage::new(position, shown)),
            }
            if at < stays {
                standing = window.len();
            }
        }
        // A text of the agent may be shown without its calls.
        for sent in &mut window {
            sent.is_whole &= sent.position.is_none_or(|at| self.items_of[at] == sent.items.len());
        }
        let keep = self.window.iter().zip(&window).take_while(|(old, new)| old.is_same(new)).count();
        self.window = window;
        ReplayStep { before: self.taken, keep, standing, is_cold }
    }

    /// The window of the last request.
    pub fn window(&self) -> &[SentMessage] {
        &self.window
    }

    /// The folder, with everything so far except for the first system messages.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How many records the folder has.
    pub fn folded_records(&self) -> usize {
        self.taken - self.system.len()
    }

    /// The decisions since the last call, oldest first.
    pub fn take_decisions(&mut self) -> Vec<FoldDecision> {
        let decisions = self.folder.take_decisions();
        decisions.into_iter().map(|decision| self.of_records(decision)).collect()
    }

    /// A decision with positions of records instead of items.
    fn of_records(&self, mut decision: FoldDecision) -> FoldDecision {
        let record = |at: usize| self.record_of.get(at).copied().unwrap_or(self.taken);
        match &mut decision {
            FoldDecision::Fold(Fold { at, keep, head, start, shortened, cut_said, cut_told, cut_records, .. }) => {
                (*at, *start, *keep) = (record(*at), record(*start), *keep + self.system.len());
                for piece in head {
                    match piece {
                        Piece::Logged(at) | Piece::Shortened(at, _) => *at = record(*at),
                        Piece::Records(records) => {
                            (records.from, records.to) = (record(records.from), record(records.to));
                        }
                        Piece::Made(_) => {}
                    }
                }
                shortened.iter_mut().for_each(|(at, _)| *at = record(*at));
                for cut in cut_said.iter_mut().chain(cut_told).chain(cut_records) {
                    cut.position = record(cut.position);
                }
            }
            FoldDecision::BringBack(brought) => brought.at = record(brought.at),
            FoldDecision::Cold { at } => *at = record(*at),
            FoldDecision::Disk(checked) => checked.at = record(checked.at),
            FoldDecision::Shorten { position, .. } => *position = record(*position),
        }
        decision
    }
}
