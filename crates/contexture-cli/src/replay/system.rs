//! What the system says before anything else is said: it stands first in every window.

use std::sync::Arc;

use contexture::fold::Slot;
use contexture::fold::digest::shorten;
use contexture::tokens::TokenCounter;
use contexture::transcript::Message;

/// The part of a window that the system may take; what is longer is cut in its middle, so that something else fits.
const LARGEST_PART: u64 = 2;

/// The system's messages at the start of a conversation.
pub struct System {
    counter: Arc<dyn TokenCounter>,
    messages: Vec<Arc<Message>>,
    /// How each is shown.
    slots: Vec<Slot>,
    /// Tokens that more messages may take.
    left: u64,
    tokens: u64,
    whole_tokens: u64,
}

impl System {
    /// Nothing yet, in windows of a number of tokens.
    pub fn new(budget: u64, counter: Arc<dyn TokenCounter>) -> Self {
        let left = budget / LARGEST_PART;
        Self { counter, messages: Vec::new(), slots: Vec::new(), left, tokens: 0, whole_tokens: 0 }
    }

    /// Takes in the next message.
    pub fn push(&mut self, message: Arc<Message>) {
        let whole = self.counter.count(&message.text);
        let at = self.messages.len();
        let (slot, tokens) = match whole <= self.left {
            true => (Slot::Logged(at), whole),
            false => {
                let text = self.cut(&message.text);
                let tokens = self.counter.count(&text);
                (Slot::Shortened(at, text.into()), tokens)
            }
        };
        self.left = self.left.saturating_sub(tokens);
        self.tokens += tokens;
        self.whole_tokens += whole;
        self.slots.push(slot);
        self.messages.push(message);
    }

    /// The head and the tail of a text, as much of it as may be shown.
    fn cut(&self, text: &str) -> String {
        let mut bytes = text.len();
        loop {
            let short = shorten(text, bytes);
            if bytes == 0 || self.counter.count(&short) <= self.left {
                return short;
            }
            bytes = bytes * 3 / 4;
        }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the system says nothing.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How each message is shown.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Tokens of what is shown.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Tokens of what was said.
    pub fn whole_tokens(&self) -> u64 {
        self.whole_tokens
    }

    /// The message at a position, as it is shown.
    pub fn render(&self, position: usize) -> Message {
        let message = (*self.messages[position]).clone();
        match &self.slots[position] {
            Slot::Shortened(_, text) => Message { text: text.to_string(), ..message },
            Slot::Logged(_) | Slot::Made(_) => message,
        }
    }
}
