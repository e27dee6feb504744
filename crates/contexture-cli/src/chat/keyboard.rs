//! The keys of a terminal, and the state that it must be left in.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Asks the terminal to mark what is pasted.
const MARK_PASTES: &str = "\x1b[?2004h";

/// Takes that back, shows the cursor and ends colours.
const RESTORE: &str = "\x1b[?2004l\x1b[?25h\x1b[0m";

/// The exit code of a program that was told to end: 128 and the number of SIGTERM.
pub(super) const TERMINATED: i32 = 143;

/// How long the conversation may take to end.
const LAST_MOMENTS: Duration = Duration::from_secs(3);

/// Something that a person does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyboardInput {
    Char(char),
    Pasted(String),
    Enter,
    /// A new line in the text.
    LineFeed,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    Tab,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    DeleteWord,
    DeleteToStart,
    DeleteToEnd,
    ClearScreen,
    Resized,
    /// The program was told to end (SIGTERM, or the terminal is gone).
    Terminated,
}

/// While it exists, the terminal sends every key; when it is dropped, the terminal is as it was.
pub(super) struct Keyboard {
    keys: mpsc::UnboundedReceiver<KeyboardInput>,
    _raw: Raw,
}

struct Raw;

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

impl Keyboard {
    /// Begins to read keys.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(super) fn open() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Raw;
        restore_on_panic();
        let mut stdout = io::stdout().lock();
        stdout.write_all(MARK_PASTES.as_bytes())?;
        stdout.flush()?;
        drop(stdout);
        let (sender, keys) = mpsc::unbounded_channel();
        let mut is_before = true;
        tokio::spawn(end_when_told(terminated()?, sender.clone()));
        // It waits for a key until the program ends.
        std::thread::spawn(move || {
            loop {
                // What was typed before has a line feed where Enter was pressed.
                let was_before = is_before && event::poll(Duration::ZERO).unwrap_or(false);
                is_before = was_before;
                let Ok(event) = event::read() else { break };
                let key = key_of(event).map(|key| if was_before { as_typed_before(key) } else { key });
                if key.is_some_and(|key| sender.send(key).is_err()) {
                    break;
                }
            }
        });
        Ok(Self { keys, _raw: raw })
    }

    /// The next key; a terminal that is gone is the end of input.
    pub(super) async fn next(&mut self) -> KeyboardInput {
        self.keys.recv().await.unwrap_or(KeyboardInput::EndOfInput)
    }

    /// The next key, if there is one already.
    pub(super) fn ready(&mut self) -> Option<KeyboardInput> {
        self.keys.try_recv().ok()
    }
}

/// Ends when the program is told to end.
///
/// # Errors
/// The system has no signals.
pub(super) fn terminated() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut ended, mut gone) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    Ok(async move {
        tokio::select! {
            _ = ended.recv() => {}
            _ = gone.recv() => {}
        }
    })
}

/// Has the conversation end, so that a running command ends with it; if it does not, ends the program.
async fn end_when_told(told: impl Future<Output = ()>, keys: mpsc::UnboundedSender<KeyboardInput>) {
    told.await;
    // Without a conversation the program is about to end.
    let _ = keys.send(KeyboardInput::Terminated);
    tokio::time::sleep(LAST_MOMENTS).await;
    restore();
    std::process::exit(TERMINATED);
}

fn restore() {
    // If the terminal is gone there is nothing to restore.
    let _ = terminal::disable_raw_mode();
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(RESTORE.as_bytes());
    let _ = stdout.flush();
}

/// Restores the terminal before the message of a panic is printed.
fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        before(panic);
    }));
}

/// A key that was pressed before the terminal sent every key.
fn as_typed_before(key: KeyboardInput) -> KeyboardInput {
    if key == KeyboardInput::LineFeed { KeyboardInput::Enter } else { key }
}

fn key_of(event: Event) -> Option<KeyboardInput> {
    match event {
        Event::Paste(text) => Some(KeyboardInput::Pasted(text)),
        Event::Resize(..) => Some(KeyboardInput::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => pressed(key),
        _ => None,
    }
}

fn pressed(KeyEvent { code, modifiers, .. }: KeyEvent) -> Option<KeyboardInput> {
    let has_control = modifiers.contains(KeyModifiers::CONTROL);
    let has_alt = modifiers.contains(KeyModifiers::ALT);
    Some(match code {
        KeyCode::Char(letter) if has_control => return with_control(letter),
        KeyCode::Char('b') if has_alt => KeyboardInput::WordLeft,
        KeyCode::Char('f') if has_alt => KeyboardInput::WordRight,
        KeyCode::Char(character) => KeyboardInput::Char(character),
        KeyCode::Enter if has_alt || modifiers.contains(KeyModifiers::SHIFT) => KeyboardInput::LineFeed,
        KeyCode::Enter => KeyboardInput::Enter,
        KeyCode::Backspace if has_alt || has_control => KeyboardInput::DeleteWord,
        KeyCode::Backspace => KeyboardInput::Backspace,
        KeyCode::Delete => KeyboardInput::Delete,
        KeyCode::Left if has_control || has_alt => KeyboardInput::WordLeft,
        KeyCode::Right if has_control || has_alt => KeyboardInput::WordRight,
        KeyCode::Left => KeyboardInput::Left,
        KeyCode::Right => KeyboardInput::Right,
        KeyCode::Up => KeyboardInput::Up,
        KeyCode::Down => KeyboardInput::Down,
        KeyCode::Home => KeyboardInput::Home,
        KeyCode::End => KeyboardInput::End,
        KeyCode::Tab => KeyboardInput::Tab,
        KeyCode::Esc => KeyboardInput::Escape,
        _ => return None,
    })
}

fn with_control(letter: char) -> Option<KeyboardInput> {
    Some(match letter {
        'c' => KeyboardInput::Interrupt,
        'd' => KeyboardInput::EndOfInput,
        'a' => KeyboardInput::Home,
        'e' => KeyboardInput::End,
        'b' => KeyboardInput::Left,
        'f' => KeyboardInput::Right,
        'p' => KeyboardInput::Up,
        'n' => KeyboardInput::Down,
        'h' => KeyboardInput::Backspace,
        'j' => KeyboardInput::LineFeed,
        'k' => KeyboardInput::DeleteToEnd,
        'l' => KeyboardInput::ClearScreen,
        'u' => KeyboardInput::DeleteToStart,
        'w' => KeyboardInput::DeleteWord,
        _ => return None,
    })
}
