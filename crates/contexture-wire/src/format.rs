//! The formats that are understood.

use serde::{Deserialize, Serialize};

/// How a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Anthropic messages.
    Messages,
    /// OpenAI chat completions, and what many others offer under that name.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Google's `generateContent`, of the Gemini API and of Vertex AI.
    Gemini,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::Messages, Format::Chat, Format::Responses, Format::Gemini];

    /// The format of requests to a path, without its query.
    ///
    /// ```
    /// use contexture_wire::Format;
    /// assert_eq!(Format::of_path("/v1/messages"), Some(Format::Messages));
    /// assert_eq!(Format::of_path("/v1/messages/count_tokens"), None);
    /// assert_eq!(Format::of_path("/api/v3/chat/completions"), Some(Format::Chat));
    /// assert_eq!(Format::of_path("/v1beta/models/gemini-2.5-pro:streamGenerateContent"), Some(Format::Gemini));
    /// ```
    pub fn of_path(path: &str) -> Option<Format> {
        let path = path.trim_end_matches('/');
        let ends = [
            ("/messages", Format::Messages),
            ("/chat/completions", Format::Chat),
            ("/responses", Format::Responses),
            (":generateContent", Format::Gemini),
            (":streamGenerateContent", Format::Gemini),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, format)| format)
    }

    /// The field of a request that holds its messages.
    pub(super) fn list(self) -> &'static str {
        match self {
            Format::Messages | Format::Chat => "messages",
            Format::Responses => "input",
            Format::Gemini => "contents",
        }
    }

    /// The format's name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Format::Messages => "Anthropic messages",
            Format::Chat => "OpenAI chat completions",
            Format::Responses => "OpenAI responses",
            Format::Gemini => "Gemini generateContent",
        }
    }
}
