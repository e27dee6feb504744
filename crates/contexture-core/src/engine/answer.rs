//! What a turn is given and what it comes to.

use crate::item::{Content, Item, Message, Role};
use crate::model::LlmResponse;
use crate::usage::StepUsage;

/// What the user said.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnInput(Vec<Content>);

impl TurnInput {
    /// The same as a message of the user.
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

/// What a turn came to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnAnswer {
    /// The model's last response; `None` if a layer dropped the user's message, or if the turn was over and only
    /// its end was not written down.
    pub response: Option<LlmResponse>,
    /// Model calls whose responses were taken.
    pub steps: u32,
    /// Where the tokens of the last request went; `None` if there was none.
    pub usage: Option<StepUsage>,
    /// Whether everything up to here is durable. Always true with [`JournalPolicy::Require`](super::JournalPolicy).
    pub durable: bool,
}

impl TurnAnswer {
    /// What the model said last.
    pub fn text(&self) -> String {
        self.response.as_ref().map(LlmResponse::output_text).unwrap_or_default()
    }
}
