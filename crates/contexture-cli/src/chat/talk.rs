//! The conversation in a terminal: prompt, responses, questions.

use std::io::{self, Write};

use contexture::engine::TurnAnswer;
use contexture::error::Error;

use super::commands::{self, Outcome};
use super::completion::{Narrowed, ProjectFiles, referenced};
use super::diff;
use super::editor::Editor;
use super::happening::{Call, Happening, Intent, Question, Reply, SHORTENED, one_line};
use super::keyboard::{Key, Keyboard, TERMINATED};
use super::session::{Session, chain, failure_of};
use crate::failure::Failure;
use crate::harmless::{on_one_line, spoken, written_out};
use crate::terminal::{Screen, TextStyle};

/// What a person writes after.
const PROMPT: &str = "› ";

/// The most files that are offered for a reference.
const MAX_OFFERED: usize = 8;

/// The rows of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// Talks until the person ends it.
pub(super) async fn run(mut session: Session, first: Option<String>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::work(format!("use the terminal: {error}")).hint("`--print` needs none");
    let mut talk = Talk {
        keyboard: Keyboard::open().map_err(failed)?,
        files: ProjectFiles::collect(session.workspace.directory()),
        editor: Editor::new(commands::said(&session.execution)),
        drawn_row: 0,
        is_terminated: false,
        impossible: None,
    };
    talk.greet(&session)?;
    if let Some(text) = first {
        talk.print(&format!("{PROMPT}{}\n", written_out(&text)))?;
        talk.turn(&mut session, Some(text)).await?;
    }
    while !talk.is_terminated && talk.impossible.is_none() {
        let Some(text) = talk.read().await? else { break };
        let outcome = match text.trim() {
            "" => Some(Outcome::Continue),
            _ => match commands::run(&mut session, &text, Screen::of_output()).await {
                Ok(outcome) => outcome,
                Err(failure) => Some(Outcome::Shown(format!("{}\n", written_out(failure.sentence())))),
            },
        };
        match outcome {
            None => talk.turn(&mut session, Some(text)).await?,
            Some(Outcome::Quit) => break,
            Some(Outcome::Shown(shown)) => talk.print(&shown)?,
            Some(Outcome::Continue) if session.execution.has_unfinished_turn() => talk.turn(&mut session, None).await?,
            Some(Outcome::Continue) => talk.note("There is nothing to go on with.")?,
        }
    }
    if let Some(error) = talk.impossible.take() {
        // The terminal is restored before the error is printed.
        drop(talk);
        return Err(session.discard(&error).await);
    }
    let thread = session.thread();
    let is_begun = !session.execution.log().is_empty();
    session.execution.complete().await.map_err(|error| failure_of(&error))?;
    if is_begun {
        talk.note(&format!("contexture chat --thread {thread} goes on with this."))?;
    }
    if talk.is_terminated {
        drop(talk);
        std::process::exit(TERMINATED);
    }
    Ok(())
}

/// The terminal, and what is written in it.
struct Talk {
    keyboard: Keyboard,
    files: ProjectFiles,
    editor: Editor,
    /// In which row of what was drawn the cursor is.
    drawn_row: usize,
    /// Whether the program was told to end.
    is_terminated: bool,
    /// Why the conversation cannot even begin.
    impossible: Option<Error>,
}

/// The files that are offered for the reference at the cursor.
#[derive(Default)]
struct Offer {
    letters: Option<String>,
    narrowed: Narrowed,
    paths: Vec<String>,
    chosen: usize,
    /// Whether the person does not want it for these letters.
    is_closed: bool,
}

impl Offer {
    /// Looks up what is offered now; `is_new` if more files are known.
    fn update(&mut self, editor: &Editor, files: &ProjectFiles, is_new: bool) {
        let letters = editor.reference();
        if letters == self.letters && !is_new {
            return;
        }
        self.is_closed &= letters == self.letters;
        let narrowed = &mut self.narrowed;
        let found = letters.as_deref().map(|letters| files.find_again(letters, MAX_OFFERED, narrowed));
        self.paths = found.unwrap_or_default();
        self.chosen = 0;
        self.letters = letters;
    }

    fn is_open(&self) -> bool {
        !self.is_closed && !self.paths.is_empty()
    }
}

/// What a key at the prompt leads to.
enum Read {
    More,
    Said(String),
    Ended,
}

impl Talk {
    fn greet(&self, session: &Session) -> Result<(), Failure> {
        let directory = session.workspace.directory().display();
        self.note(&format!("{} in {directory}; /help lists commands, # completes files.", session.model))?;
        match session.execution.has_unfinished_turn() {
            true => self.note("A turn was interrupted: an empty line goes on with it."),
            false => Ok(()),
        }
    }

    /// Prints a text; the cursor must be at the start of a line or in the middle of what the model says.
    fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.replace('\n', "\r\n").as_bytes())?;
        Ok(stdout.flush()?)
    }

    fn note(&self, text: &str) -> Result<(), Failure> {
        self.print(&format!("{}\n", Screen::of_output().paint(TextStyle::Dim, text)))
    }

    /// Reads what the person says; `None` if that was the end.
    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let mut progress = self.files.progress();
        let mut offer = Offer::default();
        let mut is_leaving = false;
        self.drawn_row = 0;
        loop {
            offer.update(&self.editor, &self.files, false);
            self.draw(&offer)?;
            let key = tokio::select! {
                key = self.keyboard.next() => key,
                Ok(()) = progress.changed(), if offer.letters.is_some() => {
                    offer.update(&self.editor, &self.files, true);
                    continue;
                }
            };
            let mut next = Some(key);
            // What was typed faster than it can be drawn is drawn once.
            while let Some(key) = next {
                let was_leaving = std::mem::replace(&mut is_leaving, key == Key::Interrupt && self.editor.is_empty());
                match self.press(key, &mut offer, was_leaving) {
                    Read::More => {}
                    Read::Ended => return self.leave(&mut offer).map(|()| None),
                    Read::Said(text) => return self.leave(&mut offer).map(|()| Some(text)),
                }
                offer.update(&self.editor, &self.files, false);
                next = self.keyboard.ready();
            }
            if is_leaving {
                self.erase()?;
                self.note("Ctrl-C again, or Ctrl-D, ends.")?;
            }
        }
    }

    fn press(&mut self, key: Key, offer: &mut Offer, was_leaving: bool) -> Read {
        if offer.is_open() && self.choose(&key, offer) {
            return Read::More;
        }
        match key {
            Key::Enter => return Read::Said(self.editor.text()),
            Key::EndOfInput if self.editor.is_empty() => return Read::Ended,
            Key::Interrupt if was_leaving => return Read::Ended,
            Key::Terminated => {
                self.is_terminated = true;
                return Read::Ended;
            }
            Key::Interrupt => self.editor.clear(),
            Key::EndOfInput => self.editor.delete(),
            Key::Up => self.editor.older(),
            Key::Down => self.editor.newer(),
            Key::ClearScreen => {
                // Whatever cannot be written now is written with the next drawing.
                let _ = self.print("\x1b[H\x1b[2J");
                self.drawn_row = 0;
            }
            key => self.edit(key),
        }
        Read::More
    }

    /// A key that changes the text; also while the model speaks.
    fn edit(&mut self, key: Key) {
        let editor = &mut self.editor;
        match key {
            Key::Char(character) => editor.insert(character),
            Key::Pasted(text) => editor.paste(&text),
            Key::LineFeed => editor.insert('\n'),
            Key::Tab => editor.insert('\t'),
            Key::Backspace => editor.backspace(),
            Key::Delete => editor.delete(),
            Key::Left => editor.left(),
            Key::Right => editor.right(),
            Key::WordLeft => editor.word_left(),
            Key::WordRight => editor.word_right(),
            Key::Home => editor.home(),
            Key::End => editor.end(),
            Key::DeleteWord => editor.delete_word(),
            Key::DeleteToStart => editor.delete_to_start(),
            Key::DeleteToEnd => editor.delete_to_end(),
            _ => {}
        }
    }

    /// A key while files are offered; whether it was meant for them.
    fn choose(&mut self, key: &Key, offer: &mut Offer) -> bool {
        let count = offer.paths.len();
        match key {
            Key::Up => offer.chosen = (offer.chosen + count - 1) % count,
            Key::Down => offer.chosen = (offer.chosen + 1) % count,
            Key::Escape => offer.is_closed = true,
            Key::Tab | Key::Enter => {
                let path = &offer.paths[offer.chosen];
                // A reference that is written out is said, not completed once more.
                if *key == Key::Enter && offer.letters.as_ref() == Some(path) {
                    return false;
                }
                self.editor.complete(&referenced(path));
            }
            _ => return false,
        }
        true
    }

    /// Draws the text with what is offered below it.
    fn draw(&mut self, offer: &Offer) -> Result<(), Failure> {
        let screen = Screen::of_output();
        let (columns, rows) = size(screen);
        let layout = self.editor.layout(PROMPT, columns, rows.saturating_sub(MAX_OFFERED + 1).max(1));
        let mut lines = layout.rows;
        for (index, path) in offer.paths.iter().enumerate().filter(|_| offer.is_open()) {
            let path = shortened(&written_out(path), columns.saturating_sub(6));
            lines.push(match index == offer.chosen {
                true => screen.paint(TextStyle::Bold, &format!("  ▸ {path}")),
                false => screen.paint(TextStyle::Dim, &format!("    {path}")),
            });
        }
        let mut text = self.to_start();
        text.push_str(&lines.join("\r\n"));
        let up = lines.len() - 1 - layout.row;
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push('\r');
        if layout.column > 0 {
            text.push_str(&format!("\x1b[{}C", layout.column));
        }
        self.drawn_row = layout.row;
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Moves to the start of what was drawn and clears it.
    fn to_start(&self) -> String {
        let up = if self.drawn_row > 0 { format!("\x1b[{}A", self.drawn_row) } else { String::new() };
        format!("{up}\r\x1b[J")
    }

    fn erase(&mut self) -> Result<(), Failure> {
        let text = self.to_start();
        self.drawn_row = 0;
        self.print(&text)
    }

    /// Leaves what was written on the screen, and begins a new line.
    fn leave(&mut self, offer: &mut Offer) -> Result<(), Failure> {
        offer.is_closed = true;
        self.editor.end();
        self.draw(offer)?;
        self.editor.take();
        self.drawn_row = 0;
        self.print("\n")
    }

    /// Runs a turn, or goes on with the interrupted one, and shows what happens.
    async fn turn(&mut self, session: &mut Session, text: Option<String>) -> Result<(), Failure> {
        let abort = session.begin(text.as_deref()).await?;
        let Session { execution, happenings, .. } = session;
        let (outcome, shortened) = {
            let mut turn = std::pin::pin!(async {
                match text {
                    Some(text) => execution.turn(text).await,
                    None => execution.resume().await.map(Option::unwrap_or_default),
                }
            });
            let mut showing = Showing::default();
            // A question that was open when the turn was interrupted is answered first, so that the model is told that
            // nothing was done; then the turn ends.
            let (mut is_aborted, mut is_ending) = (false, false);
            let outcome = loop {
                tokio::select! {
                    biased;
                    key = self.keyboard.next() => match key {
                        // The second one does not wait for the turn to end by itself.
                        Key::Interrupt | Key::EndOfInput if is_aborted => break Err(Error::Aborted),
                        Key::Interrupt | Key::EndOfInput | Key::Terminated => {
                            is_aborted = true;
                            self.is_terminated |= key == Key::Terminated;
                            match showing.question.take().map(|question| question.reply.send(Reply::Interrupt)) {
                                Some(Ok(())) => {
                                    is_ending = true;
                                    self.print("no\n")?;
                                }
                                Some(Err(_)) | None => abort.abort(),
                            }
                        }
                        key => self.key_in_turn(key, &mut showing)?,
                    },
                    Some(happening) = happenings.recv() => match happening {
                        Happening::Requested | Happening::Called(_) | Happening::Asked(_) if is_ending => abort.abort(),
                        happening => self.show(happening, &mut showing)?,
                    },
                    outcome = &mut turn => break outcome,
                }
            };
            while let Ok(happening) = happenings.try_recv() {
                self.show(happening, &mut showing)?;
            }
            self.end_line(&mut showing)?;
            (outcome, showing.shortened)
        };
        if session.has_shortened_message(&shortened) {
            self.note(SHORTENED)?;
        }
        match outcome {
            Err(error) if session.has_no_beginning(&error) => {
                self.impossible = Some(error);
                Ok(())
            }
            outcome => self.conclude(outcome),
        }
    }

    fn conclude(&self, outcome: Result<TurnAnswer, Error>) -> Result<(), Failure> {
        let screen = Screen::of_output();
        match outcome {
            Ok(_) => Ok(()),
            Err(Error::Aborted) => self.note("Interrupted. An empty line goes on with it; or say something else."),
            Err(error) => {
                let text = on_one_line(&chain(&error));
                self.print(&format!("{} {text}\n", screen.paint(TextStyle::Error, "error:")))?;
                self.note("An empty line tries again.")
            }
        }
    }

    /// A key while the model speaks or asks.
    fn key_in_turn(&mut self, key: Key, showing: &mut Showing) -> Result<(), Failure> {
        let Some(question) = showing.question.take() else {
            // What is typed ahead is there when the prompt comes back.
            self.edit(key);
            return Ok(());
        };
        let reply = match key {
            Key::Char('y' | 'Y') => Reply::Yes,
            Key::Char('a' | 'A') => Reply::Always,
            Key::Char('n' | 'N') | Key::Escape => Reply::No,
            _ => {
                showing.question = Some(question);
                return Ok(());
            }
        };
        let says = match reply {
            Reply::Yes => "yes",
            Reply::Always => "always",
            Reply::No | Reply::Interrupt => "no",
        };
        // If the tool does not wait any more, the turn was interrupted.
        let _ = question.reply.send(reply);
        self.print(&format!("{says}\n"))
    }

    fn show(&self, happening: Happening, showing: &mut Showing) -> Result<(), Failure> {
        let screen = Screen::of_output();
        match happening {
            Happening::Text(text) => {
                let text = spoken(&text);
                showing.is_in_line = text.chars().last().map_or(showing.is_in_line, |last| last != '\n');
                return self.print(&text);
            }
            Happening::Asked(question) => {
                self.end_line(showing)?;
                self.print(&asked(&question.intent, screen))?;
                showing.question = Some(question);
                return Ok(());
            }
            // Ids of calls are only known to differ within a response.
            Happening::Requested => {
                showing.called = None;
                return Ok(());
            }
            Happening::Shortened(_) => {}
            _ => self.end_line(showing)?,
        }
        match happening {
            Happening::Called(call) => self.show_call(call, showing),
            Happening::Failed(call, why) => {
                // What could not be run was not shown before.
                if showing.called.as_ref() != Some(&call.id) {
                    self.show_call(call, showing)?;
                }
                self.print(&format!("{}\n", screen.paint(TextStyle::Dim, &format!("  failed: {why}"))))
            }
            Happening::Edited(edit) => self.print(&format!("{}\n", diff::coloured(&edit, screen).join("\n"))),
            Happening::Fault(line) => self.note(&format!("  {}", one_line(&line, 200))),
            Happening::Shortened(positions) => {
                showing.shortened.extend(positions);
                Ok(())
            }
            Happening::Text(_) | Happening::Asked(_) | Happening::Requested => Ok(()),
        }
    }

    fn show_call(&self, call: Call, showing: &mut Showing) -> Result<(), Failure> {
        showing.called = Some(call.id);
        self.print(&format!("{}\n", Screen::of_output().paint(TextStyle::Hint, &format!("● {}", call.line))))
    }

    fn end_line(&self, showing: &mut Showing) -> Result<(), Failure> {
        match std::mem::take(&mut showing.is_in_line) {
            true => self.print("\n"),
            false => Ok(()),
        }
    }
}

/// What a turn shows at the moment.
#[derive(Default)]
struct Showing {
    /// Whether the model is in the middle of a line.
    is_in_line: bool,
    question: Option<Question>,
    /// The call that was shown last.
    called: Option<String>,
    /// Items of which only a part was sent.
    shortened: Vec<usize>,
}

/// What is asked before something is done.
fn asked(intent: &Intent, screen: Screen) -> String {
    let (shown, question) = match intent {
        Intent::Write(edit) => {
            (format!("{}\n", diff::coloured(edit, screen).join("\n")), format!("write {}?", written_out(&edit.path)))
        }
        Intent::Run(command) => {
            let lines: Vec<String> = written_out(command).lines().map(|line| format!("  $ {line}\n")).collect();
            (screen.paint(TextStyle::Bold, &lines.concat()), "run it?".to_owned())
        }
        Intent::Call(tool, arguments) => {
            (format!("  {}\n", one_line(arguments, 400)), format!("call {}?", written_out(tool)))
        }
    };
    format!("{shown}{} [y]es, [a]lways, [n]o: ", screen.paint(TextStyle::Bold, &question))
}

/// The columns and rows of the terminal.
fn size(screen: Screen) -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (screen.columns, USUAL_ROWS),
    }
}

/// The end of a path that is too long for its row.
fn shortened(path: &str, columns: usize) -> String {
    use unicode_width::UnicodeWidthChar;
    let mut width = 0;
    let mut start = path.len();
    for (at, character) in path.char_indices().rev() {
        width += character.width().unwrap_or(0);
        if width > columns.max(1) {
            return format!("…{}", &path[start..]);
        }
        start = at;
    }
    path.to_owned()
}
