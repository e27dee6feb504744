//! One turn without a terminal: the answer on standard output, what tools do on standard error.

use std::io::{self, Write};

use contexture::engine::{AbortHandle, TurnAnswer};
use contexture::error::Error;
use tokio::sync::mpsc;

use super::diff;
use super::happening::{Happening, SHORTENED};
use super::keyboard::terminated;
use super::session::{ChatSession, failure_of};
use crate::failure::Failure;
use contexture_terminal::harmless::{spoken, written_out};
use contexture_terminal::screen::{Screen, TextStyle};

/// Goes on with an unfinished turn, and then runs one with the text.
pub(super) async fn run(mut session: ChatSession, text: Option<String>) -> Result<(), Failure> {
    let is_unfinished = session.execution.has_unfinished_turn();
    if text.is_none() && !is_unfinished {
        return Err(Failure::usage("the thread has no unfinished turn, and there is nothing to say")
            .hint("write it as `contexture chat --continue --print \"and now?\"`"));
    }
    if is_unfinished {
        let abort = session.begin(None).await?;
        let ChatSession { execution, happenings, .. } = &mut session;
        let resumed = async { execution.resume().await.map(Option::unwrap_or_default) };
        watch(resumed, &abort, happenings).await?.map_err(|error| failure_of_turn(&session, &error))?;
    }
    if let Some(mut text) = text {
        let abort = session.begin(Some(&mut text)).await.map_err(Failure::not_begun)?;
        let ChatSession { execution, happenings, .. } = &mut session;
        let shortened = match watch(execution.turn(text), &abort, happenings).await? {
            Ok(shortened) => shortened,
            Err(error) if session.has_no_beginning(&error) => return Err(session.discard(&error).await),
            Err(error) => return Err(failure_of_turn(&session, &error)),
        };
        if session.has_shortened_message(&shortened) {
            eprintln!("{}", Screen::of_errors().paint(TextStyle::Dim, SHORTENED));
        }
    }
    session.execution.complete().await.map_err(|error| failure_of(&error))
}

/// Shows what happens in a turn until it ends. Returns the items of which only a part was sent.
async fn watch(
    turn: impl Future<Output = Result<TurnAnswer, Error>>,
    abort: &AbortHandle,
    happenings: &mut mpsc::UnboundedReceiver<Happening>,
) -> Result<Result<Vec<usize>, Error>, Failure> {
    let mut turn = std::pin::pin!(turn);
    let (mut told, mut is_told) = (std::pin::pin!(terminated()?), false);
    let mut printer = Printer::new();
    let outcome = loop {
        tokio::select! {
            biased;
            Some(happening) = happenings.recv() => printer.show(happening)?,
            outcome = &mut turn => break outcome,
            _ = tokio::signal::ctrl_c() => abort.abort(),
            // A command that runs ends with the turn.
            () = &mut told, if !is_told => {
                is_told = true;
                abort.abort();
            }
        }
    };
    while let Ok(happening) = happenings.try_recv() {
        printer.show(happening)?;
    }
    printer.end()?;
    Ok(outcome.map(|_| printer.shortened))
}

fn failure_of_turn(session: &ChatSession, error: &Error) -> Failure {
    match error {
        Error::Aborted => {
            Failure::work("the turn was interrupted").hint("`contexture chat --continue` goes on with it")
        }
        error => session.failure_of(error),
    }
}

/// Prints what happens.
struct Printer {
    screen: Screen,
    /// Whether standard output is at the start of a line.
    is_at_start: bool,
    /// The call that was shown last.
    called: Option<String>,
    /// Items of which only a part was sent.
    shortened: Vec<usize>,
}

impl Printer {
    fn new() -> Self {
        Self { screen: Screen::of_errors(), is_at_start: true, called: None, shortened: Vec::new() }
    }

    fn show(&mut self, happening: Happening) -> Result<(), Failure> {
        let note = match happening {
            Happening::Text(text) => return self.text(&spoken(&text)),
            Happening::Called(call) => {
                self.called = Some(call.id);
                call.line
            }
            // What could not be run was not shown before.
            Happening::Failed(call, why) if self.called.as_ref() != Some(&call.id) => {
                self.show(Happening::Called(call.clone()))?;
                return self.show(Happening::Failed(call, why));
            }
            Happening::Failed(_, why) => format!("  failed: {why}"),
            Happening::Ran(ran) => match ran.failure {
                Some(why) => return self.show(Happening::Failed(ran.call, why)),
                None => return Ok(()),
            },
            Happening::Retried(line) | Happening::Cut(line) => line,
            Happening::Printed(_) | Happening::Thought(_) | Happening::Returned(..) | Happening::Window { .. } => {
                return Ok(());
            }
            Happening::Edited(edit) => diff::counts(&edit),
            Happening::Fault(line) => format!("  {}", written_out(&line)),
            Happening::Shortened(positions) => {
                self.shortened.extend(positions);
                return Ok(());
            }
            // Ids of calls are only known to differ within a response.
            Happening::Requested => {
                self.called = None;
                return Ok(());
            }
            // Without a terminal nobody is asked; dropping the question means no.
            Happening::Asked(_) | Happening::Elicited(_) | Happening::Progressed(_) => return Ok(()),
        };
        self.end()?;
        eprintln!("{}", self.screen.paint(TextStyle::Dim, &note));
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        let Some(last) = text.chars().last() else { return Ok(()) };
        self.is_at_start = last == '\n';
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Ends the line that the model is in.
    fn end(&mut self) -> Result<(), Failure> {
        if self.is_at_start {
            return Ok(());
        }
        self.text("\n")
    }
}
