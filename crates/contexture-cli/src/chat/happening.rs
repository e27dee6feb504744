//! What happens in a turn, for those who show it.

use contexture::decision::{Action, Decision};
use contexture::event::Event;
use contexture::model::Delta;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::harmless::written_out;

/// The most characters of a line about a call.
const MAX_CHARS: usize = 100;

/// The arguments that say best what a call is for, the best first.
const TELLING: [&str; 6] = ["command", "path", "pattern", "glob", "directory", "query"];

/// Something that happened in a turn.
#[derive(Debug)]
pub(super) enum Happening {
    /// The model said more.
    Text(String),
    /// A tool is called.
    Called(Call),
    /// A call failed, or was not even run: why, on one line.
    Failed(Call, String),
    /// A file is about to be changed, and nobody is asked.
    Edited(Edit),
    /// Somebody must decide.
    Asked(Question),
    /// Something went wrong, and the turn goes on.
    Fault(String),
    /// The model is about to be asked.
    Requested,
    /// Of these items of the log only the beginning and the end are sent.
    Shortened(Vec<usize>),
}

/// A call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    /// The tool and what it is called for, on one line.
    pub(super) line: String,
}

impl Call {
    pub(super) fn new(id: &str, tool: &str, arguments: &Value) -> Self {
        Self { id: id.to_owned(), line: summary(tool, arguments) }
    }
}

/// What is said if only a part of a message is sent.
pub(super) const SHORTENED: &str = "The message is longer than the window: only its beginning and its end were sent. \
                                    `--budget TOKENS` makes the window larger.";

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
    /// The person ends the turn instead.
    Interrupt,
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
            Event::Usage(_) => Happening::Requested,
            Event::Decision(decision) => match shortened(decision) {
                positions if positions.is_empty() => return,
                positions => Happening::Shortened(positions),
            },
            Event::Output(answered) if answered.output.outcome.is_error() => {
                let call = answered.call;
                let call = Call::new(&call.call_id, &call.name, &call.parsed_arguments());
                Happening::Failed(call, last_line(&answered.output.output))
            }
            _ => return,
        };
        // If nobody looks any more, the turn is about to be dropped.
        let _ = happenings.send(happening);
    }
}

/// The first line of a text that says something, cut to a number of characters.
pub(super) fn one_line(text: &str, max_chars: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = written_out(line).replace('\t', " ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The items of which a part is left out from now on, by the window or by the layer that folds the past.
fn shortened(decision: &Decision) -> Vec<usize> {
    let position = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let list = |what: &Value, name: &str| what[name].as_array().cloned().unwrap_or_default();
    match &decision.action {
        Action::Shorten { position, .. } => vec![*position],
        Action::Layer(what) => {
            let recent = list(what, "shortened").into_iter().filter_map(|item| position(&item[0]));
            let said = list(what, "cut_said").into_iter().filter_map(|item| position(&item["position"]));
            recent.chain(said).collect()
        }
        _ => Vec::new(),
    }
}

/// A call on one line.
fn summary(name: &str, arguments: &Value) -> String {
    let telling = TELLING.iter().find_map(|argument| arguments[*argument].as_str());
    one_line(&format!("{name} {}", telling.map(|text| one_line(text, MAX_CHARS)).unwrap_or_default()), MAX_CHARS)
}

/// The last line of an error that says something: commands print what matters at their end.
fn last_line(text: &str) -> String {
    one_line(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default(), MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_says_does_not_control_the_terminal() {
        assert_eq!(one_line("\n  first \x1b[1m\nsecond", 20), "first \\u{1b}[1m");
        assert_eq!(one_line("日本語です", 3), "日本語…");
    }

    #[test]
    fn a_call_is_one_line() {
        assert_eq!(summary("execute_bash", &json!({"command": "make\nmake test"})), "execute_bash make");
        assert_eq!(summary("read_file", &json!({"path": "a\x1b[1m.rs", "offset": 3})), "read_file a\\u{1b}[1m.rs");
        assert_eq!(summary("list_files", &json!({})), "list_files");
        assert_eq!(
            last_line("one\n[The command completed with exit code 1.]\n"),
            "[The command completed with exit code 1.]"
        );
    }
}
