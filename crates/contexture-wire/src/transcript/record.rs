//! One message of a recording.

use std::borrow::Cow;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Role};

/// The items of one message of a recording: something said, a response of the model with its calls, or what one tool
/// returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    items: Vec<Item>,
}

impl Record {
    /// A response of the model: its text, unless it is empty and there are calls, then its calls.
    pub fn response(text: impl Into<String>, calls: impl IntoIterator<Item = FunctionCall>) -> Self {
        let text = text.into();
        let mut items: Vec<Item> = calls.into_iter().map(Item::from).collect();
        if items.is_empty() || !text.is_empty() {
            items.insert(0, Item::assistant(text));
        }
        Self { items }
    }

    /// A record of these items.
    ///
    /// # Panics
    /// If there are none.
    pub fn from_items(items: Vec<Item>) -> Self {
        assert!(!items.is_empty(), "a record has at least one item");
        Self { items }
    }

    /// The items, in order; never empty.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The items, in order.
    pub fn into_items(self) -> Vec<Item> {
        self.items
    }

    /// Whether the model made it.
    pub fn is_response(&self) -> bool {
        self.items[0].is_of_model()
    }

    /// Who speaks; `None` if it is what a tool returned.
    pub fn role(&self) -> Option<Role> {
        match &self.items[0] {
            Item::Message(message) => Some(message.role),
            Item::FunctionCallOutput(_) => None,
            Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => Some(Role::Assistant),
        }
    }

    /// What was said, or what the tool returned.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.items[0] {
            Item::Message(message) => message.text_cow(),
            Item::FunctionCallOutput(output) => Cow::Borrowed(&output.output),
            Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => Cow::Borrowed(""),
        }
    }

    /// The calls that the model makes in it.
    pub fn calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.items.iter().filter_map(Item::as_call)
    }

    /// What a tool returned.
    pub fn output(&self) -> Option<&FunctionCallOutput> {
        self.items[0].as_output()
    }

    /// When it was recorded, in milliseconds since the Unix epoch, if known.
    pub fn time_ms(&self) -> Option<u64> {
        self.items[0].meta()?.time_ms
    }
}

impl From<Item> for Record {
    fn from(item: Item) -> Self {
        Self { items: vec![item] }
    }
}
