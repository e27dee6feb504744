//! Texts of the log that are shown shorter, and how they are had again.

use std::sync::Arc;

use super::{Folder, cut};
use crate::files::observation::Seen;
use crate::fold::cap::cap;
use crate::fold::doors;
use crate::fold::terse::terse;
use crate::transcript::{Message, Role};

impl Folder {
    /// The same, telling the model with which tool it sees the whole of what is shown shortened.
    ///
    /// The tool is given a `hash` and a `from_line`, and answers from the log: the newest text that
    /// [`has_hash`](crate::fold::cap::has_hash). Without a tool nothing is promised.
    pub fn with_output_tool(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        self.ledger = self.ledger.with_output_tool(name.clone());
        self.output_tool = Some(name);
        self
    }

    /// What stands for an output from its first sending on, and why; `None` if it is sent as it is.
    pub(super) fn shorter(&self, tool: &str, seen: &Seen, text: &str) -> Option<(String, &'static str)> {
        let limit = self.policy.output_tokens;
        let terse = self.policy.terse.then(|| terse(text, &seen.blocks())).flatten();
        let shown = terse.as_deref().unwrap_or(text);
        if self.can_cap(tool, seen) && self.counter.count(shown) > limit {
            return Some((self.capped(text, limit), "too long to be worth sending whole"));
        }
        terse.map(|terse| (terse, "the same in fewer words"))
    }

    /// Whether an output of a tool may lose its middle before it is first sent.
    ///
    /// What the output tool shows is what was asked for: cutting it again would send the model in circles.
    fn can_cap(&self, tool: &str, seen: &Seen) -> bool {
        self.output_tool.as_deref() != Some(tool) && doors::can_cap(seen)
    }

    /// A text within a number of tokens, saying how to see the rest.
    pub(super) fn capped(&self, text: &str, tokens: u64) -> String {
        cap(&*self.counter, text, tokens, self.output_tool.as_deref())
    }

    /// The text of a message within a number of tokens.
    pub(super) fn shortened(&self, at: usize, tokens: u64) -> Arc<str> {
        let message = self.message(at);
        if self.is_shown_by_tool(message) {
            return cap(&*self.counter, &message.text, tokens, None).into();
        }
        match (message.role, &self.output_tool) {
            (Role::Tool, _) | (_, Some(_)) => self.capped(&message.text, tokens).into(),
            _ => cut(&*self.counter, &message.text, tokens).into(),
        }
    }

    /// Whether a message is an answer of the output tool.
    fn is_shown_by_tool(&self, message: &Message) -> bool {
        let call = message.tool_call_id.as_ref().and_then(|id| self.calls.get(id));
        call.is_some_and(|made| self.output_tool.as_deref() == Some(&made.call.name))
    }
}
