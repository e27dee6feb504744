//! Input and result of a turn.

use crate::item::{Content, Item, Message, Role};
use crate::model::LlmResponse;
use crate::usage::StepUsage;

/// The user's message.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnInput(Vec<Content>);

impl TurnInput {
    /// Converts it to an item.
    pub(crate) fn into_message(self) -> Item {
        Message::new(Role::User, self.0).into()
    }
}

impl From<&str> for TurnInput {
    fn from(text: &str) -> Self {
        TurnInput(vec![Content::Text { text: text.to_owned() }])
    }
}

impl From<String> for TurnInput {
    fn from(text: String) -> Self {
        TurnInput(vec![Content::Text { text }])
    }
}

impl From<Vec<Content>> for TurnInput {
    fn from(content: Vec<Content>) -> Self {
        TurnInput(content)
    }
}

/// The result of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnAnswer {
    /// The model's last response; `None` if a layer dropped the user's message, or if the turn was complete and only
    /// its end had not been stored.
    pub response: Option<LlmResponse>,
    /// The number of accepted responses.
    pub steps: u32,
    /// The token usage of the last request; `None` if there was none.
    pub usage: Option<StepUsage>,
    /// Whether everything up to here is durable. Always true with [`JournalPolicy::Require`](super::JournalPolicy).
    pub durable: bool,
}

impl TurnAnswer {
    /// The text of the last response.
    pub fn text(&self) -> String {
        self.response.as_ref().map(LlmResponse::output_text).unwrap_or_default()
    }
}
