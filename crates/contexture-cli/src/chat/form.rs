//! What an MCP server asks the person while one of its tools is called.

use std::collections::VecDeque;

use contexture::BoxFuture;
use contexture::tools::{McpField, McpHost, McpProgress, McpQuestion, McpReply};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use unicode_width::UnicodeWidthChar;

use super::happening::{Elicitation, Happening, Happenings, Tail, one_line};
use super::keyboard::KeyboardInput;
use contexture_terminal::harmless::written_out;
use contexture_terminal::screen::{Screen, TextStyle};

/// The most characters that are written for a field.
const MAX_CHARS: usize = 10_000;

/// The most characters of what a server says about its progress.
const MAX_PROGRESS_CHARS: usize = 100;

/// Passes on what servers ask and tell.
pub(super) struct ServerHost {
    pub(super) happenings: Happenings,
    /// Whether there is a person who can be asked.
    pub(super) can_ask: bool,
    /// How far calls are.
    pub(super) progress: Tail,
}

impl McpHost for ServerHost {
    fn can_ask(&self) -> bool {
        self.can_ask
    }

    fn ask(&self, question: McpQuestion) -> BoxFuture<'_, McpReply> {
        let (reply, replied) = oneshot::channel();
        let is_asked = self.happenings.send(Happening::Elicited(Elicitation { question, reply })).is_ok();
        Box::pin(async move {
            match is_asked {
                true => replied.await.unwrap_or(McpReply::Cancel),
                false => McpReply::Cancel,
            }
        })
    }

    fn progress(&self, progress: McpProgress) {
        let done = match progress.total {
            Some(total) if total > 0.0 => format!("{} of {total}", progress.done),
            _ => progress.done.to_string(),
        };
        let line = one_line(&format!("{}: {done} {}", progress.server, progress.message), MAX_PROGRESS_CHARS);
        if self.progress.push(line) {
            // If nobody looks any more, the turn is about to be dropped.
            let _ = self.happenings.send(Happening::Progressed(self.progress.clone()));
        }
    }
}

/// A question that is being answered, field by field.
pub(super) struct Form {
    /// The fields that are left; the first is being written.
    fields: VecDeque<McpField>,
    values: Map<String, Value>,
    written: String,
    reply: Option<oneshot::Sender<McpReply>>,
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormStep {
    /// This is shown, and it goes on.
    Shown(String),
    /// This is shown, and it is over.
    Over(String),
}

impl Form {
    /// A question with what is shown for it.
    pub(super) fn open(elicitation: Elicitation, screen: Screen) -> (Self, String) {
        let Elicitation { question, reply } = elicitation;
        let form =
            Self { fields: question.fields.into(), values: Map::new(), written: String::new(), reply: Some(reply) };
        let asks = screen.paint(TextStyle::Bold, &format!("{} asks:", written_out(&question.server)));
        let message = written_out(&question.message);
        let shown = format!("{asks} {message}\n{}", form.prompt());
        (form, shown)
    }

    fn prompt(&self) -> String {
        let Some(field) = self.fields.front() else { return "[y]es, [n]o: ".to_owned() };
        let about = match field.description.is_empty() {
            true => field.expected(),
            false => format!("{}; {}", field.description, field.expected()),
        };
        let usual = match &field.default {
            Some(Value::String(text)) => format!(" [{text}]"),
            Some(value) => format!(" [{value}]"),
            None if field.is_required => String::new(),
            None => " [none]".to_owned(),
        };
        written_out(&format!("  {} ({about}){usual}, Esc for no: ", field.title)).replace('\n', " ")
    }

    /// A key of the person.
    pub(super) fn press(&mut self, key: &KeyboardInput) -> FormStep {
        match key {
            KeyboardInput::Escape => self.end(McpReply::Decline, "no\n"),
            _ if self.fields.is_empty() => match key {
                KeyboardInput::Char('y' | 'Y') => self.end(McpReply::Accept(Map::new()), "yes\n"),
                KeyboardInput::Char('n' | 'N') => self.end(McpReply::Decline, "no\n"),
                _ => FormStep::Shown(String::new()),
            },
            KeyboardInput::Char(character) => self.write(&character.to_string()),
            KeyboardInput::Pasted(text) => self.write(text),
            KeyboardInput::Backspace => {
                let width = self.written.pop().and_then(UnicodeWidthChar::width).unwrap_or(0);
                FormStep::Shown("\u{8} \u{8}".repeat(width))
            }
            KeyboardInput::Enter => self.enter(),
            _ => FormStep::Shown(String::new()),
        }
    }

    fn write(&mut self, text: &str) -> FormStep {
        let room = MAX_CHARS.saturating_sub(self.written.chars().count());
        let text: String = text.chars().filter(|character| !character.is_control()).take(room).collect();
        self.written.push_str(&text);
        FormStep::Shown(written_out(&text))
    }

    fn enter(&mut self) -> FormStep {
        let written = std::mem::take(&mut self.written);
        let Some(field) = self.fields.front() else { return FormStep::Shown(String::new()) };
        match field.read(&written) {
            Err(expected) => FormStep::Shown(format!("\n  {}\n{}", written_out(&expected), self.prompt())),
            Ok(value) => {
                let name = field.name.clone();
                self.values.extend(value.map(|value| (name, value)));
                self.fields.pop_front();
                match self.fields.is_empty() {
                    true => {
                        let values = std::mem::take(&mut self.values);
                        self.end(McpReply::Accept(values), "\n")
                    }
                    false => FormStep::Shown(format!("\n{}", self.prompt())),
                }
            }
        }
    }

    fn end(&mut self, reply: McpReply, shown: &str) -> FormStep {
        // If the server does not wait any more, its call was cancelled.
        let _ = self.reply.take().map(|sender| sender.send(reply));
        FormStep::Over(shown.to_owned())
    }
}
