//! Plays a recorded conversation through the folder, request by request.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use contexture::files::dialect::Dialects;
use contexture::fold::{Account, Fold, FoldDecision, Folder, Policy, Slot};
use contexture::tokens::TokenCounter;
use contexture::transcript::{Message, Role};

use super::system::System;

/// A conversation that is being played: before every assistant message the folder is asked for a window.
///
/// Positions are those of the transcript. What the system says before anything else is said stands first in every
/// window, whole, and is no part of what is folded; what it says later is folded like the rest.
pub struct Player<I> {
    policy: Policy,
    system: System,
    folder: Folder,
    /// Positions in the folder at which the system speaks.
    system_later: HashSet<usize>,
    messages: I,
    /// The message that answers the last request, not taken in yet.
    answer: Option<Arc<Message>>,
    window: Vec<Slot>,
    cache_life: Option<Duration>,
    /// When the model last answered, and when something was last said to it, in milliseconds since the Unix epoch.
    answered_ms: Option<u64>,
    heard_ms: Option<u64>,
    requests: u64,
    /// Of those behind the first, requests that found the provider's cache empty.
    cold_requests: u64,
}

/// One request, told by what it has in common with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The position of the assistant message that answers it.
    pub before: usize,
    /// How many leading messages of the last request it begins with.
    pub keep: usize,
}

impl<I: Iterator<Item = Arc<Message>>> Player<I> {
    /// Begins with an empty window.
    pub fn new(
        policy: Policy,
        counter: Arc<dyn TokenCounter>,
        messages: impl IntoIterator<Item = Arc<Message>, IntoIter = I>,
    ) -> Self {
        Self {
            system: System::new(policy.budget, counter.clone()),
            folder: Folder::new(policy.clone(), counter),
            policy,
            system_later: HashSet::new(),
            messages: messages.into_iter(),
            answer: None,
            window: Vec::new(),
            cache_life: None,
            answered_ms: None,
            heard_ms: None,
            requests: 0,
            cold_requests: 0,
        }
    }

    /// The same with other dialects.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.folder = self.folder.with_dialects(dialects);
        self
    }

    /// The same with a provider whose cache expires after a pause, where the recording says how long it was.
    pub fn with_cache_life(mut self, cache_life: Option<Duration>) -> Self {
        self.cache_life = cache_life;
        self
    }

    /// Goes on to the next request. There is none when all messages are taken in.
    pub fn step(&mut self) -> Option<Step> {
        if let Some(answer) = self.answer.take() {
            self.answered_ms = answer.time_ms.or(self.answered_ms);
            self.folder.push(answer);
        }
        while let Some(message) = self.messages.next() {
            if message.role == Role::Assistant {
                self.answer = Some(message);
                return Some(self.ask());
            }
            self.heard_ms = message.time_ms.or(self.heard_ms);
            self.take_in(message);
        }
        None
    }

    fn take_in(&mut self, mut message: Arc<Message>) {
        if message.role != Role::System {
            return self.folder.push(message);
        }
        let at = self.folder.len();
        if at > 0 {
            // To the folder this is something that was said; whoever sees the window is told who said it.
            Arc::make_mut(&mut message).role = Role::User;
            self.system_later.insert(at);
            return self.folder.push(message);
        }
        self.system.push(message);
        let left = Policy::new(self.policy.budget.saturating_sub(self.system.tokens()).max(1));
        let left = left.with_prices(self.policy.prices).with_message_tokens(self.policy.message_tokens);
        self.folder.set_policy(left);
    }

    fn ask(&mut self) -> Step {
        if self.has_expired() {
            self.folder.cache_is_cold();
            self.cold_requests += u64::from(self.requests > 0);
        }
        self.requests += 1;
        let offset = self.system.len();
        let folded = self.folder.request();
        let window: Vec<Slot> =
            self.system.slots().iter().cloned().chain(folded.iter().map(|s| shifted(s, offset))).collect();
        let keep = self.window.iter().zip(&window).take_while(|(old, new)| old == new).count();
        self.window = window;
        Step { before: offset + self.folder.len(), keep }
    }

    /// Whether so much time went by since the model answered that the provider has forgotten the last request.
    fn has_expired(&self) -> bool {
        let (Some(life), Some(answered), Some(heard)) = (self.cache_life, self.answered_ms, self.heard_ms) else {
            return false;
        };
        u128::from(heard.saturating_sub(answered)) > life.as_millis()
    }

    /// The window of the last request.
    pub fn window(&self) -> &[Slot] {
        &self.window
    }

    /// One message of a window as it would be sent.
    pub fn render_slot(&self, slot: &Slot) -> Message {
        let offset = self.system.len();
        let Some(position) = slot.position() else { return self.folder.render_slot(slot) };
        let Some(at) = position.checked_sub(offset) else { return self.system.render(position) };
        let mut message = self.folder.render_slot(&match slot {
            Slot::Shortened(_, text) => Slot::Shortened(at, text.clone()),
            _ => Slot::Logged(at),
        });
        if self.system_later.contains(&at) {
            message.role = Role::System;
        }
        message
    }

    /// The folder, with all that was taken in so far except for what the system said first.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What was decided since this was last asked for, oldest first.
    pub fn take_decisions(&mut self) -> Vec<FoldDecision> {
        let offset = self.system.len();
        self.folder.take_decisions().into_iter().map(|decision| decision_shifted(decision, offset)).collect()
    }

    /// The tokens of the last window.
    pub fn tokens(&self) -> u64 {
        self.system.tokens() + self.folder.tokens()
    }

    /// The tokens that pass-through would have sent.
    pub fn passed_through_tokens(&self) -> u64 {
        self.system.whole_tokens() + self.folder.passed_through_tokens()
    }

    /// What was billed so far, against pass-through.
    pub fn account(&self) -> Account {
        let prices = self.policy.prices;
        let mut account = *self.folder.account();
        if let Some(later) = self.requests.checked_sub(1) {
            let (written, read) = (1 + self.cold_requests, later - self.cold_requests);
            let bill =
                |tokens: u64| prices.bill(0, tokens) * written as f64 + prices.bill(tokens, tokens) * read as f64;
            account.billed += bill(self.system.tokens());
            account.passed_through += bill(self.system.whole_tokens());
        }
        account
    }
}

/// A slot of the folder's log as one of the transcript's.
fn shifted(slot: &Slot, offset: usize) -> Slot {
    match slot {
        Slot::Logged(at) => Slot::Logged(at + offset),
        Slot::Shortened(at, text) => Slot::Shortened(at + offset, text.clone()),
        Slot::Made(text) => Slot::Made(text.clone()),
    }
}

fn decision_shifted(mut decision: FoldDecision, offset: usize) -> FoldDecision {
    match &mut decision {
        FoldDecision::Fold(Fold { at, keep, head, start, shortened, .. }) => {
            (*at, *keep, *start) = (*at + offset, *keep + offset, *start + offset);
            head.iter_mut().for_each(|slot| *slot = shifted(slot, offset));
            shortened.iter_mut().for_each(|(at, _)| *at += offset);
        }
        FoldDecision::Recall(recall) => recall.at += offset,
        FoldDecision::Cold { at } => *at += offset,
        FoldDecision::Shorten { position, .. } => *position += offset,
    }
    decision
}
