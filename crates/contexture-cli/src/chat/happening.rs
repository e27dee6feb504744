//! What happens in a turn, for those who show it.

use contexture::event::Event;
use contexture::model::Delta;
use tokio::sync::{mpsc, oneshot};

/// Something that happened in a turn.
#[derive(Debug)]
pub(super) enum Happening {
    /// The model said more.
    Text(String),
    /// A tool is called: its name and what for, on one line.
    Called(String),
    /// A tool failed: why, on one line.
    Failed(String),
    /// A file is about to be changed, and nobody is asked.
    Edited(Edit),
    /// Somebody must decide.
    Asked(Question),
    /// Something went wrong, and the turn goes on.
    Fault(String),
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: String,
}

/// What a tool is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Write(Edit),
    Run(String),
    /// A tool of an MCP server, with its arguments.
    Call(String, String),
}

/// A question whether something may be done. If nobody replies, it may not.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) intent: Intent,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What a person says to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Yes,
    /// For the rest of the session, also for others of its kind.
    Always,
    No,
}

/// Where happenings are sent.
pub(super) type Happenings = mpsc::UnboundedSender<Happening>;

/// An observer of an engine that passes on what people want to see.
pub(super) fn observer(happenings: Happenings) -> impl Fn(Event<'_>) + Send + Sync {
    move |event| {
        let happening = match event {
            Event::Delta(piece) => match &piece.delta {
                Delta::Text { text } => Happening::Text(text.clone()),
                _ => return,
            },
            Event::Fault(fault) => Happening::Fault(fault.message.clone()),
            _ => return,
        };
        // If nobody looks any more, the turn is about to be dropped.
        let _ = happenings.send(happening);
    }
}

/// A text without the characters that control a terminal; line feeds and tabs stay.
pub(super) fn harmless(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}

/// The first line of a text that says something, cut to a number of characters.
pub(super) fn one_line(text: &str, max_chars: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = harmless(line).replace('\t', " ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_does_not_control_the_terminal() {
        assert_eq!(harmless("a\x1b[2Jb\r\n\tc\u{9b}31m\x07"), "a[2Jb\n\tc31m");
        assert_eq!(one_line("\n  first \x1b[1m\nsecond", 20), "first [1m");
        assert_eq!(one_line("日本語です", 3), "日本語…");
    }
}
