//! The conversation in a terminal: prompt, responses, questions.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};

use contexture::error::Error;

use super::commands::{self, CommandOutcome};
use super::completion::{Narrowed, ProjectFiles, referenced};
use super::editor::Editor;
use super::keyboard::{Keyboard, KeyboardInput, TERMINATED};
use super::live::Live;
use super::past;
use super::session::{ChatSession, SessionOpener, SessionRequest, ThreadChoice, failure_of};
use crate::failure::Failure;
use contexture_terminal::harmless::written_out;
use contexture_terminal::markdown::{cut, wrapped_text};
use contexture_terminal::screen::{Screen, TextStyle};

/// What a person writes after.
pub(super) const PROMPT: &str = "› ";

/// The most files or commands that are offered at once.
const MAX_OFFERED: usize = 8;

/// The rows of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// Talks until the person ends it.
pub(super) async fn run(
    opener: &impl SessionOpener,
    mut session: ChatSession,
    first: Option<String>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::work(format!("use the terminal: {error}")).hint("`--print` needs none");
    let mut talk = Talk {
        keyboard: Keyboard::open().map_err(failed)?,
        files: ProjectFiles::collect(session.workspace.directory()),
        editor: Editor::new(commands::said(&session.execution)),
        drawn_row: 0,
        is_terminated: false,
        impossible: None,
        live: Live::new(),
        ahead: VecDeque::new(),
        told_cuts: HashSet::new(),
    };
    talk.greet(&session)?;
    if let Some(text) = first {
        talk.print(&format!("{PROMPT}{}\n", written_out(&text)))?;
        talk.turn(&mut session, Some(text)).await?;
    }
    while !talk.is_terminated && talk.impossible.is_none() {
        let text = match talk.ahead.pop_front() {
            Some(text) => {
                talk.print(&format!("{PROMPT}{}\n", written_out(&text)))?;
                text
            }
            None => match talk.read().await? {
                Some(text) => text,
                None => break,
            },
        };
        let outcome = match text.trim() {
            "" => Some(CommandOutcome::Continue),
            _ => match commands::run(&mut session, &text, Screen::of_output()).await {
                Ok(outcome) => outcome,
                Err(failure) => Some(CommandOutcome::Shown(format!("{}\n", written_out(failure.sentence())))),
            },
        };
        match outcome {
            None => talk.turn(&mut session, Some(text)).await?,
            Some(CommandOutcome::Quit) => break,
            Some(CommandOutcome::New) => session = talk.reopened(opener, session, None).await?,
            Some(CommandOutcome::Model(name)) => session = talk.reopened(opener, session, Some(name)).await?,
            Some(CommandOutcome::Shown(shown)) => talk.print(&format!("{shown}\n"))?,
            Some(CommandOutcome::Continue) if session.execution.has_unfinished_turn() => {
                talk.turn(&mut session, None).await?
            }
            Some(CommandOutcome::Continue) => talk.note("There is nothing to go on with.")?,
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
pub(super) struct Talk {
    pub(super) keyboard: Keyboard,
    files: ProjectFiles,
    pub(super) editor: Editor,
    /// In which row of what was drawn the cursor is.
    drawn_row: usize,
    /// Whether the program was told to end.
    pub(super) is_terminated: bool,
    /// Why the conversation cannot even begin.
    pub(super) impossible: Option<Error>,
    /// What is below the conversation while a turn runs.
    pub(super) live: Live,
    /// What was said while the model spoke, and is said after it.
    pub(super) ahead: VecDeque<String>,
    /// What the person was told that is left out of files.
    pub(super) told_cuts: HashSet<String>,
}

/// What is offered for what is written at the cursor: files for a reference, or commands.
#[derive(Default)]
struct Offer {
    letters: Option<String>,
    narrowed: Narrowed,
    kind: OfferKind,
    chosen: usize,
    /// Whether the person does not want it for these letters.
    is_closed: bool,
}

enum OfferKind {
    Files(Vec<String>),
    /// Commands with what each does.
    Commands(Vec<(&'static str, &'static str)>),
}

impl Default for OfferKind {
    fn default() -> Self {
        OfferKind::Files(Vec::new())
    }
}

impl Offer {
    /// Looks up what is offered now; `is_new` if more files are known.
    fn update(&mut self, editor: &Editor, files: &ProjectFiles, is_new: bool) {
        let text = editor.text();
        let begun = commands::beginning(&text);
        let letters = if begun.is_empty() { editor.reference() } else { Some(text) };
        if letters == self.letters && !is_new {
            return;
        }
        self.is_closed &= letters == self.letters;
        self.kind = match (letters.as_deref().filter(|_| begun.is_empty()), begun) {
            (Some(letters), _) => OfferKind::Files(files.find_again(letters, MAX_OFFERED, &mut self.narrowed)),
            (None, begun) => OfferKind::Commands(begun),
        };
        self.chosen = 0;
        self.letters = letters;
    }

    fn count(&self) -> usize {
        match &self.kind {
            OfferKind::Files(paths) => paths.len(),
            OfferKind::Commands(commands) => commands.len(),
        }
    }

    fn is_open(&self) -> bool {
        !self.is_closed && self.count() > 0
    }

    /// The rows that show it, with what is chosen in the middle if there are too many.
    fn rows(&self, screen: Screen, columns: usize) -> Vec<String> {
        let row = |index: usize| match &self.kind {
            OfferKind::Files(paths) => shortened(&written_out(&paths[index]), columns.saturating_sub(6)),
            OfferKind::Commands(commands) => {
                let (name, says) = commands[index];
                cut(&format!("{name:<10} {says}"), columns.saturating_sub(6))
            }
        };
        let first = self.chosen.saturating_sub(MAX_OFFERED / 2).min(self.count().saturating_sub(MAX_OFFERED));
        let rows = (first..self.count().min(first + MAX_OFFERED)).map(|index| match index == self.chosen {
            true => screen.paint(TextStyle::Bold, &format!("  ▸ {}", row(index))),
            false => screen.paint(TextStyle::Dim, &format!("    {}", row(index))),
        });
        rows.collect()
    }
}

/// What a key at the prompt leads to.
enum PromptInput {
    More,
    Said(String),
    Ended,
}

impl Talk {
    fn greet(&mut self, session: &ChatSession) -> Result<(), Failure> {
        let past = past::shown(session.execution.log().iter(), Screen::of_output());
        self.print(&past)?;
        let directory = session.workspace.directory().display();
        self.note(&format!("{} in {directory}; / lists commands, # completes files.", session.model))?;
        match session.execution.has_unfinished_turn() {
            true => self.note("A turn was interrupted: an empty line goes on with it."),
            false => Ok(()),
        }
    }

    /// Opens another session in place of one: a new thread, or the same one with another model. If that is not possible, it
    /// goes on as it was.
    async fn reopened(
        &mut self,
        opener: &impl SessionOpener,
        session: ChatSession,
        model: Option<String>,
    ) -> Result<ChatSession, Failure> {
        let (thread, before) = (session.thread(), session.model.clone());
        let same = if session.execution.log().is_empty() { ThreadChoice::New } else { ThreadChoice::Named(thread) };
        let request = |thread: &ThreadChoice, model: &str| SessionRequest {
            directory: session.workspace.directory().to_owned(),
            thread: thread.clone(),
            model: Some(model.to_owned()),
            servers: Vec::new(),
            files: None,
        };
        let wanted = match &model {
            Some(model) => request(&same, model),
            None => request(&ThreadChoice::New, &before),
        };
        let as_before = request(&same, &before);
        // Only one session has a thread.
        session.execution.complete().await.map_err(|error| failure_of(&error))?;
        let opened = match opener.open(wanted).await {
            Ok(opened) => opened,
            Err(failure) => {
                self.print(&format!("{}\n", written_out(failure.sentence())))?;
                opener.open(as_before).await?
            }
        };
        self.note(&format!("{}, thread {}", opened.model, opened.thread()))?;
        Ok(opened)
    }

    /// Prints a text; the cursor must be at the start of a line or in the middle of what the model says.
    /// What is below the conversation stays below it.
    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        let screen = Screen::of_output();
        let (columns, rows) = size(screen);
        let mut output = self.live.erased();
        output.push_str(&text.replace('\n', "\r\n"));
        output.push_str(&self.live.drawn(screen, columns, rows.saturating_sub(2)));
        if output.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(output.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Prints a line about the conversation.
    pub(super) fn note(&mut self, text: &str) -> Result<(), Failure> {
        let screen = Screen::of_output();
        let rows = wrapped_text(text, 2, screen.columns);
        self.print(&format!("{}\n", screen.paint(TextStyle::Dim, &rows.join("\n"))))
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
                let was_leaving =
                    std::mem::replace(&mut is_leaving, key == KeyboardInput::Interrupt && self.editor.is_empty());
                match self.press(key, &mut offer, was_leaving) {
                    PromptInput::More => {}
                    PromptInput::Ended => return self.leave(&mut offer).map(|()| None),
                    PromptInput::Said(text) => return self.leave(&mut offer).map(|()| Some(text)),
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

    fn press(&mut self, key: KeyboardInput, offer: &mut Offer, was_leaving: bool) -> PromptInput {
        if offer.is_open() && self.choose(&key, offer) {
            return PromptInput::More;
        }
        match key {
            KeyboardInput::Enter => return PromptInput::Said(self.editor.text()),
            KeyboardInput::EndOfInput if self.editor.is_empty() => return PromptInput::Ended,
            KeyboardInput::Interrupt if was_leaving => return PromptInput::Ended,
            KeyboardInput::Terminated => {
                self.is_terminated = true;
                return PromptInput::Ended;
            }
            KeyboardInput::Interrupt => self.editor.clear(),
            KeyboardInput::EndOfInput => self.editor.delete(),
            KeyboardInput::Up => self.editor.older(),
            KeyboardInput::Down => self.editor.newer(),
            KeyboardInput::ClearScreen => {
                // Whatever cannot be written now is written with the next drawing.
                let _ = self.print("\x1b[H\x1b[2J");
                self.drawn_row = 0;
            }
            key => self.edit(key),
        }
        PromptInput::More
    }

    /// A key that changes the text; also while the model speaks.
    pub(super) fn edit(&mut self, key: KeyboardInput) {
        let editor = &mut self.editor;
        match key {
            KeyboardInput::Char(character) => editor.insert(character),
            KeyboardInput::Pasted(text) => editor.paste(&text),
            KeyboardInput::LineFeed => editor.insert('\n'),
            KeyboardInput::Tab => editor.insert('\t'),
            KeyboardInput::Backspace => editor.backspace(),
            KeyboardInput::Delete => editor.delete(),
            KeyboardInput::Left => editor.left(),
            KeyboardInput::Right => editor.right(),
            KeyboardInput::WordLeft => editor.word_left(),
            KeyboardInput::WordRight => editor.word_right(),
            KeyboardInput::Home => editor.home(),
            KeyboardInput::End => editor.end(),
            KeyboardInput::DeleteWord => editor.delete_word(),
            KeyboardInput::DeleteToStart => editor.delete_to_start(),
            KeyboardInput::DeleteToEnd => editor.delete_to_end(),
            _ => {}
        }
    }

    /// A key while something is offered; whether it was meant for that.
    fn choose(&mut self, key: &KeyboardInput, offer: &mut Offer) -> bool {
        let count = offer.count();
        match key {
            KeyboardInput::Up => offer.chosen = (offer.chosen + count - 1) % count,
            KeyboardInput::Down => offer.chosen = (offer.chosen + 1) % count,
            KeyboardInput::Escape => offer.is_closed = true,
            KeyboardInput::Tab | KeyboardInput::Enter => match &offer.kind {
                OfferKind::Files(paths) => {
                    let path = &paths[offer.chosen];
                    // A reference that is written out is said, not completed once more.
                    if *key == KeyboardInput::Enter && offer.letters.as_ref() == Some(path) {
                        return false;
                    }
                    self.editor.complete(&referenced(path));
                }
                OfferKind::Commands(commands) => {
                    let (name, _) = commands[offer.chosen];
                    self.editor.clear();
                    name.chars().for_each(|sign| self.editor.insert(sign));
                    // Enter runs what is chosen; after Tab more can be written.
                    if *key == KeyboardInput::Enter {
                        return false;
                    }
                    self.editor.insert(' ');
                }
            },
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
        if offer.is_open() {
            lines.extend(offer.rows(screen, columns));
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
}

/// The columns and rows of the terminal.
pub(super) fn size(screen: Screen) -> (usize, usize) {
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
