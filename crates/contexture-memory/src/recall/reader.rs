//! Makes passages of the items of a conversation, one after the other.

use std::collections::HashMap;

use contexture_core::item::{FunctionCall, Item, Role};
use contexture_text::spoken::spoken_text;

use super::passage::Passage;

/// Tools that return what is remembered: what they said is in the memory already.
const OWN_TOOLS: &[&str] = &["search_past", "remember", "memory_view"];

/// Makes passages of a conversation's items in their order, without what harnesses wrote around what people said.
pub struct PassageReader {
    thread: String,
    source: Option<String>,
    now_ms: u64,
    position: u64,
    /// Calls whose outputs have not come yet.
    calls: HashMap<Box<str>, FunctionCall>,
}

impl PassageReader {
    /// A reader for a thread, from its first item on. `now_ms` is when items without a time were said.
    pub fn new(thread: impl Into<String>, source: Option<String>, now_ms: u64) -> Self {
        Self { thread: thread.into(), source, now_ms, position: 0, calls: HashMap::new() }
    }

    /// The passage of the next item; `None` if it is not to be searched.
    pub fn next(&mut self, item: &Item) -> Option<Passage> {
        let position = self.position;
        self.position += 1;
        let passage = match item {
            Item::FunctionCall(call) => {
                self.calls.insert(call.call_id.clone(), call.clone());
                None
            }
            Item::FunctionCallOutput(output) => {
                let call = self.calls.remove(&output.call_id)?;
                let is_own = OWN_TOOLS.iter().any(|name| call.name.ends_with(name));
                if is_own || output.output.trim().is_empty() {
                    return None;
                }
                Passage::of_item(&self.thread, position, item, Some(&call), self.now_ms)
            }
            Item::Message(message) if message.role == Role::User => {
                let text = message.text_cow();
                let said = spoken_text(&text)?;
                match said.len() == text.len() {
                    true => Passage::of_item(&self.thread, position, item, None, self.now_ms),
                    false => {
                        let item = Item::message(Role::User, said.into_owned()).with_meta(message.meta.clone());
                        Passage::of_item(&self.thread, position, &item, None, self.now_ms)
                    }
                }
            }
            item => Passage::of_item(&self.thread, position, item, None, self.now_ms),
        }?;
        Some(match &self.source {
            Some(source) => passage.from_source(source.as_str()),
            None => passage,
        })
    }

    /// Sets when items without a time are said from now on.
    pub fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// How many items there were.
    pub fn position(&self) -> u64 {
        self.position
    }
}
