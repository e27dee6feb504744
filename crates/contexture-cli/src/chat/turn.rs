//! A turn in a terminal: what the model says, what tools do, and what somebody is asked.

use std::time::Instant;

use contexture::engine::TurnAnswer;
use contexture::error::Error;
use contexture::usage::StepUsage;
use tokio::time::{MissedTickBehavior, interval};

use super::diff;
use super::form::{Form, FormStep};
use super::happening::{
    AgentCall, CommandEnd, Happening, Intent, PermissionQuestion, PermissionReply, SHORTENED, one_line,
};
use super::keyboard::KeyboardInput;
use super::live::TICK;
use super::marked::MarkedAnswer;
use super::session::ChatSession;
use super::spent;
use super::talk::{PROMPT, Talk, size};
use crate::failure::Failure;
use contexture_terminal::harmless::{on_one_line, spoken, written_out};
use contexture_terminal::markdown::{columns, wrapped_text};
use contexture_terminal::screen::{Screen, TextStyle};

/// What is said while nothing has come of an answer.
const WAITING: &str = "waiting for the model";

/// What a person writes after who wants something else.
const INSTEAD: &str = "no\ninstead: ";

/// The most characters of it.
const MAX_INSTEAD_CHARS: usize = 10_000;

/// The most messages that are typed ahead.
const MAX_AHEAD: usize = 20;

/// What a turn shows at the moment.
#[derive(Default)]
struct Showing {
    /// The answer, and the line of it that is not complete.
    answer: MarkedAnswer,
    line: String,
    question: Option<PermissionQuestion>,
    /// What is to be done instead of what is asked, while it is written.
    instead: Option<String>,
    /// What an MCP server asks.
    form: Option<Form>,
    /// The call that was shown last.
    called: Option<String>,
    /// Whether what was printed last is about a call; a blank line is before the first of several.
    is_in_calls: bool,
    /// Items of which only a part was sent.
    shortened: Vec<usize>,
}

impl Talk {
    /// Runs a turn, or goes on with the interrupted one, and shows what happens.
    pub(super) async fn turn(&mut self, session: &mut ChatSession, mut text: Option<String>) -> Result<(), Failure> {
        let abort = session.begin(text.as_mut()).await?;
        let (spent_before, begun) = (session.execution.token_usage(), Instant::now());
        let ChatSession { execution, happenings, .. } = session;
        self.live.typed.clear();
        self.live.begin(WAITING);
        let (outcome, shortened) = {
            let mut turn = std::pin::pin!(async {
                match text {
                    Some(text) => execution.turn(text).await,
                    None => execution.resume().await.map(Option::unwrap_or_default),
                }
            });
            let mut showing = Showing::default();
            let mut tick = interval(TICK);
            tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
            // A question that was open when the turn was interrupted is answered first, so that the model is told that
            // nothing was done; then the turn ends.
            let (mut is_aborted, mut is_ending) = (false, false);
            let outcome = loop {
                tokio::select! {
                    biased;
                    key = self.keyboard.next() => match key {
                        // The second one does not wait for the turn to end by itself.
                        KeyboardInput::Interrupt | KeyboardInput::EndOfInput if is_aborted => break Err(Error::Aborted),
                        KeyboardInput::Interrupt | KeyboardInput::EndOfInput | KeyboardInput::Terminated => {
                            is_aborted = true;
                            self.is_terminated |= key == KeyboardInput::Terminated;
                            is_ending |= self.interrupt(&mut showing)?;
                            if !is_ending {
                                abort.abort();
                            }
                        }
                        key => self.key_in_turn(key, &mut showing)?,
                    },
                    Some(happening) = happenings.recv() => match happening {
                        Happening::Requested | Happening::Called(_) | Happening::Asked(_) if is_ending => abort.abort(),
                        happening => self.show(happening, &mut showing)?,
                    },
                    outcome = &mut turn => break outcome,
                    _ = tick.tick() => self.draw_live()?,
                }
            };
            while let Ok(happening) = happenings.try_recv() {
                self.show(happening, &mut showing)?;
            }
            self.end_line(&mut showing)?;
            (outcome, showing.shortened)
        };
        self.live.pause();
        self.print("")?;
        if session.has_shortened_message(&shortened) {
            self.note(SHORTENED)?;
        }
        match outcome {
            Err(error) if session.has_no_beginning(&error) => {
                self.impossible = Some(error);
                Ok(())
            }
            outcome => {
                let seconds = begun.elapsed().as_secs();
                let usage = session.execution.usage();
                let (spent_after, request) = (session.execution.token_usage(), usage.map_or(0, StepUsage::total));
                let spent = spent::line(&session.model, spent_before, spent_after, request, seconds);
                let gauge = usage.map(spent::gauge);
                let lines: Vec<String> = gauge.into_iter().chain(spent).collect();
                if !lines.is_empty() {
                    self.print("\n")?;
                    self.note(&lines.join(" · "))?;
                }
                self.conclude(session, outcome)?;
                self.print("\n")
            }
        }
    }

    /// The person ends the turn: what is asked is not done, and what was typed ahead is there to be changed. Whether
    /// the turn ends by itself.
    fn interrupt(&mut self, showing: &mut Showing) -> Result<bool, Failure> {
        (showing.form, showing.instead) = (None, None);
        let ahead: Vec<String> = self.ahead.drain(..).collect();
        if !ahead.is_empty() {
            self.editor.home();
            self.editor.paste(&(ahead.join("\n") + "\n"));
            self.editor.end();
        }
        match showing.question.take().map(|question| question.reply.send(PermissionReply::Interrupt)) {
            Some(Ok(())) => {
                self.print("no\n")?;
                Ok(true)
            }
            Some(Err(_)) | None => Ok(false),
        }
    }

    fn conclude(&mut self, session: &ChatSession, outcome: Result<TurnAnswer, Error>) -> Result<(), Failure> {
        let screen = Screen::of_output();
        match outcome {
            Ok(_) => Ok(()),
            Err(Error::Aborted) => self.note("Interrupted. An empty line goes on with it; or say something else."),
            Err(error) => {
                let failure = session.failure_of(&error);
                let rows = wrapped_text(&format!("error: {}", on_one_line(failure.sentence())), 2, screen.columns);
                let told = rows.join("\n").replacen("error:", &screen.paint(TextStyle::Error, "error:"), 1);
                self.print(&format!("{told}\n"))?;
                if let Some(hint) = failure.said_hint() {
                    self.note(&on_one_line(hint))?;
                }
                self.note("An empty line tries again.")
            }
        }
    }

    /// Draws what is being done anew.
    fn draw_live(&mut self) -> Result<(), Failure> {
        if !self.live.is_busy() {
            return Ok(());
        }
        self.live.turn();
        self.print("")
    }

    /// A key while the model speaks or asks.
    fn key_in_turn(&mut self, key: KeyboardInput, showing: &mut Showing) -> Result<(), Failure> {
        if let Some(form) = &mut showing.form {
            let (text, is_over) = match form.press(&key) {
                FormStep::Shown(text) => (text, false),
                FormStep::Over(text) => (text, true),
            };
            if is_over {
                showing.form = None;
            }
            self.print(&text)?;
            if is_over {
                self.live.begin(WAITING);
            }
            return Ok(());
        }
        if showing.instead.is_some() {
            return self.key_instead(&key, showing);
        }
        let Some(question) = showing.question.take() else { return self.key_ahead(key) };
        let reply = match key {
            KeyboardInput::Char('i' | 'I') => {
                showing.question = Some(question);
                showing.instead = Some(String::new());
                return self.print(INSTEAD);
            }
            KeyboardInput::Char('y' | 'Y') => PermissionReply::Yes,
            KeyboardInput::Char('a' | 'A') => PermissionReply::Always,
            KeyboardInput::Char('n' | 'N') | KeyboardInput::Escape => PermissionReply::No,
            _ => {
                showing.question = Some(question);
                return Ok(());
            }
        };
        let says = match reply {
            PermissionReply::Yes => "yes".to_owned(),
            PermissionReply::Always => format!("always {}", kind_of(&question.intent)),
            PermissionReply::No | PermissionReply::Instead(_) | PermissionReply::Interrupt => "no".to_owned(),
        };
        let doing = match &question.intent {
            Intent::Write(edit) => format!("writing {}", one_line(&edit.path, 60)),
            Intent::Run(command) => one_line(command, 60),
            Intent::Call(tool, _) => one_line(tool, 60),
        };
        self.live.begin(if reply == PermissionReply::No { WAITING } else { &doing });
        // If the tool does not wait any more, the turn was interrupted.
        let _ = question.reply.send(reply);
        self.print(&format!("{says}\n"))
    }

    /// A key of what is to be done instead.
    fn key_instead(&mut self, key: &KeyboardInput, showing: &mut Showing) -> Result<(), Failure> {
        let (Some(written), Some(question)) = (&mut showing.instead, &showing.question) else { return Ok(()) };
        let typed = match key {
            KeyboardInput::Char(character) => character.to_string(),
            KeyboardInput::Pasted(text) => text.clone(),
            KeyboardInput::Backspace => {
                let width = written.pop().map_or(0, |last| columns(&last.to_string()));
                return self.print(&"\u{8} \u{8}".repeat(width));
            }
            // It is asked again.
            KeyboardInput::Escape => {
                showing.instead = None;
                let asked = asked_text(&question.intent, Screen::of_output());
                return self.print(&format!("\n{asked}"));
            }
            KeyboardInput::Enter if !written.trim().is_empty() => {
                let (text, question) = (showing.instead.take().unwrap_or_default(), showing.question.take());
                // If the tool does not wait any more, the turn was interrupted.
                let _ = question.map(|question| question.reply.send(PermissionReply::Instead(text)));
                self.live.begin(WAITING);
                return self.print("\n");
            }
            _ => return Ok(()),
        };
        let room = MAX_INSTEAD_CHARS.saturating_sub(written.chars().count());
        let typed: String = typed.chars().map(|c| if c.is_control() { ' ' } else { c }).take(room).collect();
        written.push_str(&typed);
        self.print(&written_out(&typed))
    }

    /// A key for what is said next: it is there when the prompt comes back, and what ended with Enter is said then.
    fn key_ahead(&mut self, key: KeyboardInput) -> Result<(), Failure> {
        match key {
            KeyboardInput::Enter if self.editor.text().trim().is_empty() => {}
            KeyboardInput::Enter if self.ahead.len() < MAX_AHEAD => {
                let text = self.editor.take();
                self.ahead.push_back(text);
            }
            KeyboardInput::Enter => {}
            key => self.edit(key),
        }
        let queued = match self.ahead.len() {
            0 => String::new(),
            1 => format!("{PROMPT}{} (said next)", one_line(&self.ahead[0], 60)),
            count => format!("{PROMPT}{count} messages are said next"),
        };
        let written = self.editor.layout(PROMPT, size(Screen::of_output()).0, 1);
        self.live.typed = match self.editor.is_empty() {
            true => queued,
            false => written.rows.concat(),
        };
        self.print("")
    }

    fn show(&mut self, happening: Happening, showing: &mut Showing) -> Result<(), Failure> {
        let screen = Screen::of_output();
        let is_beside = matches!(
            happening,
            Happening::Text(_) | Happening::Thought(_) | Happening::Printed(_) | Happening::Progressed(_)
        );
        if !is_beside {
            self.end_line(showing)?;
        }
        match happening {
            Happening::Text(text) => self.show_text(&text, showing),
            Happening::Asked(question) => {
                self.live.pause();
                self.print(&permission_text(&question.intent, screen))?;
                showing.question = Some(question);
                Ok(())
            }
            Happening::Elicited(elicitation) => {
                self.live.pause();
                let (form, shown) = Form::open(elicitation, screen);
                showing.form = Some(form);
                self.print(&shown)
            }
            // Ids of calls are only known to differ within a response.
            Happening::Requested => {
                showing.called = None;
                self.live.clear_printed();
                self.wait_for(WAITING)
            }
            Happening::Thought(_) => self.wait_for("thinking"),
            Happening::Returned(..) => self.wait_for(WAITING),
            Happening::Window { .. } => Ok(()),
            Happening::Called(call) => self.show_call(call, showing),
            Happening::Failed(call, why) => {
                // What could not be run was not shown before.
                if showing.called.as_ref() != Some(&call.id) {
                    self.show_call(call, showing)?;
                }
                self.live.begin(WAITING);
                self.note(&format!("  failed: {why}"))
            }
            Happening::Ran(ran) => self.show_ran(&ran, showing),
            Happening::Edited(edit) => self.print(&format!("{}\n", diff::coloured(&edit, screen).join("\n"))),
            Happening::Printed(tail) => {
                tail.take().into_iter().for_each(|line| self.live.print(line));
                self.print("")
            }
            Happening::Progressed(tail) => {
                tail.take().last().into_iter().for_each(|line| self.live.begin(line));
                self.print("")
            }
            Happening::Retried(line) => {
                self.live.begin("asking the model again");
                self.note(&line)
            }
            Happening::Cut(line) => match self.told_cuts.insert(line.clone()) {
                true => self.note(&line),
                false => Ok(()),
            },
            Happening::Fault(line) => self.note(&format!("  {}", one_line(&line, 200))),
            Happening::Shortened(positions) => {
                showing.shortened.extend(positions);
                Ok(())
            }
        }
    }

    /// Says below what was printed what is waited for.
    fn wait_for(&mut self, what: &str) -> Result<(), Failure> {
        self.live.begin(what);
        self.print("")
    }

    /// More of the answer: whole lines are printed, the rest of it is below them.
    fn show_text(&mut self, text: &str, showing: &mut Showing) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let screen = Screen::of_output();
        showing.is_in_calls = false;
        showing.line.push_str(&spoken(text));
        let mut printed = String::new();
        // The rows below must not be broken by the terminal.
        let narrow = Screen { columns: size(screen).0.saturating_sub(1).max(2), ..screen };
        while let Some(end) = showing.line.find('\n') {
            let line: String = showing.line.drain(..=end).collect();
            let rows = showing.answer.line(line.trim_end_matches('\n'), screen);
            rows.iter().for_each(|row| printed.push_str(&format!("{row}\n")));
        }
        self.live.partial = showing.answer.unfinished(&showing.line, narrow);
        self.live.begin("answering");
        self.print(&printed)
    }

    fn show_call(&mut self, call: AgentCall, showing: &mut Showing) -> Result<(), Failure> {
        let screen = Screen::of_output();
        showing.called = Some(call.id);
        self.live.clear_printed();
        self.live.begin(&call.line);
        let rows = wrapped_text(&format!("● {}", call.line), 2, screen.columns);
        if !std::mem::replace(&mut showing.is_in_calls, true) {
            self.print("\n")?;
        }
        self.print(&format!("{}\n", screen.paint(TextStyle::Hint, &rows.join("\n"))))
    }

    /// The end of a command: its last lines, and how it ended.
    fn show_ran(&mut self, ran: &CommandEnd, showing: &mut Showing) -> Result<(), Failure> {
        if showing.called.as_ref() != Some(&ran.call.id) {
            self.show_call(ran.call.clone(), showing)?;
        }
        let screen = Screen::of_output();
        let seconds = match self.live.seconds() {
            0..10 => String::new(),
            seconds => format!(" after {seconds} s"),
        };
        let lines = ran.lines.iter().map(|line| format!("  │ {line}"));
        let lines = lines.chain([format!("  └ {}{seconds}", ran.ending)]);
        let rows: Vec<String> = lines.flat_map(|line| wrapped_text(&line, 4, screen.columns)).collect();
        self.live.clear_printed();
        self.live.begin(WAITING);
        self.print(&format!("{}\n", screen.paint(TextStyle::Dim, &rows.join("\n"))))
    }

    /// Ends the line that the model is in.
    fn end_line(&mut self, showing: &mut Showing) -> Result<(), Failure> {
        let line = std::mem::take(&mut showing.line);
        self.live.partial.clear();
        let screen = Screen::of_output();
        let mut rows = if line.is_empty() { Vec::new() } else { showing.answer.line(&line, screen) };
        rows.extend(showing.answer.end(screen));
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        if text.is_empty() { Ok(()) } else { self.print(&text) }
    }
}

/// What is allowed for the rest of the session.
fn kind_of(intent: &Intent) -> String {
    match intent {
        Intent::Write(_) => "write files".to_owned(),
        Intent::Run(_) => "run commands".to_owned(),
        Intent::Call(tool, _) => format!("call {}", one_line(tool, 40)),
    }
}

/// What is shown before something is done, and what is asked.
fn permission_text(intent: &Intent, screen: Screen) -> String {
    let shown = match intent {
        Intent::Write(edit) => format!("{}\n", diff::coloured(edit, screen).join("\n")),
        Intent::Run(command) => {
            let lines: Vec<String> = written_out(command).lines().map(|line| format!("  $ {line}\n")).collect();
            screen.paint(TextStyle::Bold, &lines.concat())
        }
        Intent::Call(_, arguments) => format!("  {}\n", one_line(arguments, 400)),
    };
    format!("{shown}{}", asked_text(intent, screen))
}

/// What is asked, with the keys that answer it.
fn asked_text(intent: &Intent, screen: Screen) -> String {
    let question = match intent {
        Intent::Write(edit) => format!("write {}?", written_out(&edit.path)),
        Intent::Run(_) => "run it?".to_owned(),
        Intent::Call(tool, _) => format!("call {}?", written_out(tool)),
    };
    let keys = format!("[y]es, [a]lways {}, [i]nstead …, [n]o:", kind_of(intent));
    let rows = wrapped_text(&format!("{question} {keys}"), 2, screen.columns).join("\n");
    match rows.strip_prefix(&question) {
        Some(keys) => format!("{}{keys} ", screen.paint(TextStyle::Bold, &question)),
        None => format!("{rows} "),
    }
}
