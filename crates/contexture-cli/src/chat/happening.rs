//! What happens in a turn, for those who show it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::decision::{Action, Decision};
use contexture::event::{Event, TraceNote, TraceValue};
use contexture::model::Delta;
use contexture::tools::{McpQuestion, McpReply};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use contexture_terminal::harmless::written_out;

/// The most characters of a line about a call.
const MAX_CHARS: usize = 100;

/// The tool that runs commands.
pub(super) const COMMAND_TOOL: &str = "execute_bash";

/// The most characters of an output that are passed on.
const MAX_OUTPUT_CHARS: usize = 2_000;

/// The most lines that are shown of a command that has ended.
const MAX_LINES: usize = 5;

/// The most characters of such a line.
const MAX_LINE_CHARS: usize = 400;

/// The arguments that say best what a call is for, the best first.
const TELLING: [&str; 6] = ["command", "path", "pattern", "glob", "directory", "query"];

/// Something that happened in a turn.
#[derive(Debug)]
pub(super) enum Happening {
    /// The model said more.
    Text(String),
    /// The model thinks more.
    Thought(String),
    /// A tool is called.
    Called(AgentCall),
    /// A call has an output, of which this is the beginning.
    Returned(AgentCall, String),
    /// A call failed, or was not even run: why, on one line.
    Failed(AgentCall, String),
    /// A file is about to be changed, and nobody is asked.
    Edited(FileEdit),
    /// Somebody must decide.
    Asked(PermissionQuestion),
    /// An MCP server asks the person something.
    Elicited(Elicitation),
    /// A call of an MCP server goes on: how far it is, on one line.
    Progressed(Tail),
    /// Something went wrong, and the turn goes on.
    Fault(String),
    /// The model is about to be asked.
    Requested,
    /// What is sent has so many tokens, of the most that it may have.
    Window { used: u64, size: u64 },
    /// A command printed lines.
    Printed(Tail),
    /// A command ended.
    Ran(CommandEnd),
    /// A request failed and is sent again: when and why, on one line.
    Retried(String),
    /// Only a part of a file that was named is shown to the model: which part is not.
    Cut(String),
    /// Of these items of the log only the beginning and the end are sent.
    Shortened(Vec<usize>),
}

/// A call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentCall {
    pub(super) id: String,
    /// The tool and what it is called for, on one line.
    pub(super) line: String,
    /// The tool.
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl AgentCall {
    pub(super) fn new(id: &str, tool: &str, arguments: &Value) -> Self {
        Self { id: id.to_owned(), line: summary(tool, arguments), name: tool.to_owned(), arguments: arguments.clone() }
    }
}

/// The last lines that came and that nobody has looked at. However many come, few are kept and one happening says so.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Adds a line; whether somebody must be told that there are some.
    pub(super) fn push(&self, line: String) -> bool {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line);
        if lines.len() > MAX_LINES {
            lines.pop_front();
        }
        lines.len() == 1
    }

    /// The lines, which are looked at now.
    pub(super) fn take(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandEnd {
    pub(super) call: AgentCall,
    /// The last lines that it printed.
    pub(super) lines: Vec<String>,
    /// Such as `exit code 1`.
    pub(super) ending: String,
    /// Why it is an error, on one line.
    pub(super) failure: Option<String>,
}

/// What is said if only a part of a message is sent.
pub(super) const SHORTENED: &str = "The message is longer than the window: only its beginning and its end were sent. \
                                    `--budget TOKENS` makes the window larger.";

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEdit {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: String,
}

/// What a tool is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Write(FileEdit),
    Run(String),
    /// A tool of an MCP server, with its arguments.
    Call(String, String),
}

/// A question whether something may be done. If nobody replies, it may not.
#[derive(Debug)]
pub(super) struct PermissionQuestion {
    pub(super) intent: Intent,
    pub(super) reply: oneshot::Sender<PermissionReply>,
}

/// A question of a server. If nobody replies, it is cancelled.
#[derive(Debug)]
pub(super) struct Elicitation {
    pub(super) question: McpQuestion,
    pub(super) reply: oneshot::Sender<McpReply>,
}

/// What a person says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PermissionReply {
    Yes,
    /// For the rest of the session, also for others of its kind.
    Always,
    No,
    /// Not that, but what the person says.
    Instead(String),
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
                Delta::Reasoning { text } => Happening::Thought(text.clone()),
                _ => return,
            },
            Event::Fault(fault) => Happening::Fault(fault.message.clone()),
            Event::Usage(usage) => {
                let _ = happenings.send(Happening::Window { used: usage.total(), size: usage.budget });
                Happening::Requested
            }
            Event::Decision(decision) => match shortened(decision) {
                positions if positions.is_empty() => return,
                positions => Happening::Shortened(positions),
            },
            Event::Output(answered) => {
                let (called, output) = (answered.call, &answered.output.output);
                let is_error = answered.output.outcome.is_error();
                let call = || AgentCall::new(&called.call_id, &called.name, &called.parsed_arguments());
                match ended(output, is_error).filter(|_| &*called.name == COMMAND_TOOL) {
                    Some((lines, ending)) => {
                        let failure = is_error.then(|| last_line(output));
                        Happening::Ran(CommandEnd { call: call(), lines, ending, failure })
                    }
                    None if is_error => Happening::Failed(call(), last_line(output)),
                    None => Happening::Returned(call(), output.chars().take(MAX_OUTPUT_CHARS).collect()),
                }
            }
            Event::Span(span) if span.layer_id.as_str() == "file-reference" => {
                for line in span.notes.iter().filter_map(cut) {
                    let _ = happenings.send(Happening::Cut(line));
                }
                return;
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

/// The last lines of a command's output, and how it ended; `None` if it was not even run.
fn ended(output: &str, is_error: bool) -> Option<(Vec<String>, String)> {
    let (text, ending) = match is_error {
        false => (output.strip_prefix("(no output)").unwrap_or(output), "exit code 0".to_owned()),
        true => {
            let (text, last) = output.trim_end().rsplit_once('\n').unwrap_or(("", output.trim_end()));
            let last = last.strip_prefix('[')?.strip_suffix(']')?;
            let code = last.strip_prefix("The command completed with ").map(|rest| rest.trim_end_matches('.'));
            let is_known = last.starts_with("killed after ") || last == "ended by a signal";
            (text, code.or(is_known.then_some(last))?.to_owned())
        }
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(MAX_LINES)..];
    let mut shown: Vec<String> = Vec::new();
    match lines.len() - last.len() {
        0 => {}
        1 => shown.push("… 1 line before".to_owned()),
        before => shown.push(format!("… {before} lines before")),
    }
    shown.extend(last.iter().map(|line| printed(line)));
    Some((shown, ending))
}

/// A line that a command printed, for a person.
pub(super) fn printed(line: &str) -> String {
    written_out(line.trim_end()).chars().take(MAX_LINE_CHARS).collect()
}

/// What is left out of a file, in a sentence.
fn cut(note: &TraceNote) -> Option<String> {
    let TraceNote::Event { name, attributes } = note else { return None };
    let text = |wanted: &str| {
        attributes.iter().find_map(|(key, value)| match value {
            TraceValue::Text(text) if key == wanted => Some(one_line(text, 200)),
            _ => None,
        })
    };
    let (path, left_out) = (text("path")?, text("left_out")?);
    (name == "cut").then(|| format!("{path} is too long for the window: {left_out} are not shown to the model"))
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
    fn however_much_comes_little_is_kept() {
        let tail = Tail::default();
        let told = (0..10_000).filter(|number| tail.push(number.to_string())).count();
        assert_eq!((told, tail.take()), (1, (9_995..10_000).map(|number| number.to_string()).collect()));
        assert!(tail.take().is_empty() && tail.push("x".to_owned()));
    }

    #[test]
    fn a_command_ends_with_its_last_lines_and_its_code() {
        let strings = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(ended("(no output)", false), Some((vec![], "exit code 0".to_owned())));
        let failed = "1\n2\n3\n4\n5\n6\x1b[1m\n[The command completed with exit code 2.]";
        let lines = strings(&["… 1 line before", "2", "3", "4", "5", "6\\u{1b}[1m"]);
        assert_eq!(ended(failed, true), Some((lines, "exit code 2".to_owned())));
        let killed = Some((strings(&["x"]), "killed after 3 seconds".to_owned()));
        assert_eq!(ended("x\n[killed after 3 seconds]", true), killed);
        assert_eq!(ended("not done: the user said no", true), None);
        assert_eq!(ended("x\n[something else]", true), None);
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
