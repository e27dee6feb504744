//! System messages at the start of a conversation, which come first in every window.

use std::sync::Arc;

use contexture::fold::ShownItem;
use contexture::item::{Item, Role};
use contexture::tokens::TokenCounter;
use contexture::transcript::Record;
use contexture::window::shorten;

/// The share of a window that they may take; longer ones are cut in the middle, so that something else fits.
const LARGEST_PART: u64 = 2;

/// The system's messages at the start of a conversation.
pub struct System {
    counter: Arc<dyn TokenCounter>,
    /// How each is shown.
    items: Vec<ShownItem>,
    /// Tokens that more messages may take.
    left: u64,
    tokens: u64,
}

impl System {
    /// An empty value, for windows of a number of tokens.
    pub fn new(budget: u64, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, items: Vec::new(), left: budget / LARGEST_PART, tokens: 0 }
    }

    /// Adds the next message.
    pub fn push(&mut self, record: Record) {
        let text = record.text();
        let whole = self.counter.count(&text);
        let is_logged = whole <= self.left;
        let (item, tokens) = match is_logged {
            true => (record.into_items().swap_remove(0), whole),
            false => {
                let text = shorten(&*self.counter, &text, self.left);
                let tokens = self.counter.count(&text);
                (Item::message(Role::System, text), tokens)
            }
        };
        self.left = self.left.saturating_sub(tokens);
        self.tokens += tokens;
        self.items.push(ShownItem { position: Some(self.items.len()), is_logged, item: Arc::new(item), tokens });
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How each message is shown.
    pub fn items(&self) -> &[ShownItem] {
        &self.items
    }

    /// Tokens of what is shown.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}
