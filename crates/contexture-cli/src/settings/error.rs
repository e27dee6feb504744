//! Why a configuration cannot be used.

use super::origin::SettingOrigin;

/// Why a configuration cannot be used: a message ([`Display`](std::fmt::Display)) and a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ConfigError {
    sentence: String,
    hint: String,
}

impl ConfigError {
    /// A problem in one source. The message begins with the file and line, or names the variable or flag.
    pub(super) fn new(origin: &SettingOrigin, problem: &str, hint: impl Into<String>) -> Self {
        let sentence = match origin {
            SettingOrigin::File { name, line, .. } => format!("`{name}`, line {line}: {problem}"),
            SettingOrigin::Variable(name) => format!("variable `{name}`: {problem}"),
            SettingOrigin::Flag(name) => format!("flag `{name}`: {problem}"),
            SettingOrigin::Default => problem.to_owned(),
        };
        Self { sentence: printable(&sentence), hint: printable(&hint.into()) }
    }

    /// The hint, as one line.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// The most characters of a value that a message shows.
const MAX_SHOWN_CHARS: usize = 40;

/// The first line of a text, cut to what fits in a message.
pub(super) fn clip(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let is_whole = line.len() == text.trim_end().len() && line.chars().count() <= MAX_SHOWN_CHARS;
    let shown: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    if is_whole { shown } else { format!("{shown}…") }
}

/// A text with its control characters escaped: a foreign file must not control the terminal.
pub(super) fn printable(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}
