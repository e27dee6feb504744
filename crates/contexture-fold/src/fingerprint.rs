//! A digest that identifies the items of a conversation.

use contexture_core::item::{Item, Message, Meta, Origin};

/// A digest of items and their tokens, limited to what a folder reads.
///
/// Ids from providers, times and fields that are not interpreted are left out, since they do not affect what a folder
/// does.
#[derive(Clone, Default)]
pub(super) struct Fingerprint(Box<blake3::Hasher>);

impl Fingerprint {
    /// Adds the next item.
    pub(super) fn add(&mut self, item: &Item, tokens: u64) {
        self.number(tokens);
        match item {
            Item::Message(message) => self.message(message),
            Item::FunctionCall(call) => {
                self.number(1);
                [&*call.call_id, &*call.name, &*call.arguments].into_iter().for_each(|text| self.text(text));
                self.meta(&call.meta);
            }
            Item::FunctionCallOutput(output) => {
                self.number(2);
                [&*output.call_id, &*output.output].into_iter().for_each(|text| self.text(text));
                self.number(output.outcome as u64);
                self.meta(&output.meta);
            }
            Item::Reasoning(_) => self.number(3),
            Item::Opaque(_) => self.number(4),
        }
    }

    /// The digest of all items so far.
    pub(super) fn to_bytes(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }

    fn message(&mut self, message: &Message) {
        self.number(0);
        self.text(message.role.as_str());
        self.text(&message.text_cow());
        self.meta(&message.meta);
    }

    fn meta(&mut self, meta: &Meta) {
        self.text(meta.directory.as_deref().unwrap_or_default());
        match &meta.origin {
            Origin::Said => self.number(0),
            Origin::Layer { .. } => self.number(1),
            Origin::Harness { kind, path } => {
                self.number(2);
                self.text(kind.as_deref().unwrap_or_default());
                self.text(path.as_deref().unwrap_or_default());
            }
        }
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }
}
