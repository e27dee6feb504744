//! The messages of a request, and how much of them is cached.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::transcript::{Message, Role};

/// One message of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// The message of the log at this position, as it is.
    Logged(usize),
    /// The message of the log at this position with another text.
    Shortened(usize, Arc<str>),
    /// A message that stands for others; it speaks as the user.
    Made(Arc<str>),
}

impl Slot {
    /// The message that it shows, as it would be sent; `logged` answers those of the log.
    pub fn render<'a>(&self, logged: impl FnOnce(usize) -> &'a Message) -> Message {
        match self {
            Slot::Logged(at) => logged(*at).clone(),
            Slot::Shortened(at, text) => Message { text: text.to_string(), ..logged(*at).clone() },
            Slot::Made(text) => Message::said(Role::User, text.to_string()),
        }
    }

    /// The position in the log, if it shows a logged message.
    pub fn position(&self) -> Option<usize> {
        match self {
            Slot::Logged(at) | Slot::Shortened(at, _) => Some(*at),
            Slot::Made(_) => None,
        }
    }
}

/// The slots of a request with their tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    slots: Vec<Slot>,
    tokens: Vec<u64>,
    total: u64,
    /// How many slots the request before had in common with the one before it or sent anew: all of them are
    /// cached now.
    sent: usize,
}

impl Window {
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn push(&mut self, slot: Slot, tokens: u64) {
        self.slots.push(slot);
        self.tokens.push(tokens);
        self.total += tokens;
    }

    /// Tokens of the slots that the provider has seen.
    pub(super) fn cached(&self) -> u64 {
        self.tokens[..self.sent].iter().sum()
    }

    /// Notes that all slots were sent.
    pub(super) fn mark_sent(&mut self) {
        self.sent = self.slots.len();
    }

    /// Notes that the provider has forgotten all slots.
    pub(super) fn forget_sent(&mut self) {
        self.sent = 0;
    }

    /// Puts other slots in place; those that stay the same at the start stay cached.
    pub(super) fn replace(&mut self, slots: Vec<(Slot, u64)>) {
        let same = self.slots[..self.sent].iter().zip(&slots).take_while(|(old, (new, _))| *old == new).count();
        self.total = slots.iter().map(|(_, tokens)| tokens).sum();
        (self.slots, self.tokens) = slots.into_iter().unzip();
        self.sent = same;
    }
}
