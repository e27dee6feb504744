//! `contexture chat`: a conversation with a model that reads and changes the files of a directory.

mod place;
mod threads;
mod happening;
mod undo;
mod gate;
mod unreachable;
mod parts;
mod secrets;
mod told;
mod editor_call;
mod editor_files;
mod session;
mod line_mode;
pub mod editor;
pub mod completion;
mod diff;
mod past;
mod spent;
mod live;
mod marked;
mod form;
mod keyboard;
mod commands;
mod talk;
mod turn;
mod acp;

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

use crate::settings::keys::ModelFormat;
use crate::settings::{Command, Config};
use clap::{Args, ValueEnum};
use contexture::client::ApiKey;

use crate::config::{ConfigFlags, OfChat};
use crate::endpoint::{self, EndpointRequest};
use crate::failure::Failure;
use contexture_terminal::screen::Screen;
use gate::Permission;
use session::{ChatSession, SessionOpener, SessionParts, SessionRequest, ThreadChoice};
use threads::Threads;

/// Talk to a model that reads and changes the files of this directory
///
/// In a terminal it asks before it changes a file or runs a command. `--print`, or a pipe, runs one turn: the answer
/// goes to standard output, what tools do to standard error. Everything is kept, and `--continue` goes on with it, also
/// after the program was killed.
///
/// The model: `--url` and `--model`, or `[chat]` of the configuration, or the provider whose key is in
/// ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or Ollama on this machine.
#[derive(Args, Clone, Debug)]
pub struct Chat {
    /// What to say first; `-` reads it from standard input
    text: Option<String>,
    /// Run one turn and print the answer; the text is read from standard input if it is not given
    #[arg(long, short)]
    print: bool,
    /// Go on with the last thread of this directory, and with its turn if that was interrupted
    #[arg(long = "continue", conflicts_with = "thread")]
    goes_on: bool,
    /// Go on with a thread, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// List the threads of this directory
    #[arg(long, conflicts_with_all = ["text", "print", "goes_on", "thread"])]
    threads: bool,
    /// Serve an editor that speaks the Agent Client Protocol, over standard input and output
    #[arg(long, conflicts_with_all = ["text", "print", "goes_on", "thread", "threads", "base"])]
    acp: bool,
    /// The name of the model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The address of the model's server, which usually ends in /v1
    #[arg(long)]
    url: Option<String>,
    /// How that server is spoken to [default: chat]
    #[arg(long, value_enum)]
    format: Option<FormatFlag>,
    /// The environment variable that has the key for `--url`; without it no key is sent there
    #[arg(long, value_name = "VARIABLE")]
    key_env: Option<String>,
    /// Change files and run commands without asking
    #[arg(long, short)]
    yes: bool,
    /// The directory to work in
    #[arg(long, default_value = ".", value_name = "DIR")]
    base: PathBuf,
    /// Where threads are kept [default: chat.db in the user's state directory]
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags<OfChat>,
}

/// A format, as a flag names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatFlag {
    /// Messages of Anthropic
    Messages,
    /// Chat completions
    Chat,
    /// Responses of OpenAI
    Responses,
    /// Google's generateContent
    Gemini,
}

/// Runs the command.
///
/// # Errors
/// Invalid usage, no model, a store that can't be opened, or a turn that failed.
pub fn run(chat: &Chat, screen: Screen) -> Result<(), Failure> {
    crate::environment::keep_from_programs();
    if chat.acp {
        return serve_editor(chat);
    }
    let directory = chat.base.canonicalize().map_err(|error| {
        Failure::usage(format!("open `{}`: {error}", chat.base.display()))
            .hint("`--base` names the directory to work in")
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        if chat.threads {
            return list_threads(chat, &directory, screen).await;
        }
        let is_line_mode = chat.print || !io::stdin().is_terminal() || !io::stdout().is_terminal();
        let text = said(chat, is_line_mode)?;
        let thread = match (&chat.thread, chat.goes_on) {
            (Some(id), _) => ThreadChoice::Named(id.clone()),
            (None, true) => ThreadChoice::Newest,
            (None, false) => ThreadChoice::New,
        };
        let opener = Opener { chat: chat.clone(), can_ask: !is_line_mode };
        let wanted = SessionRequest { directory, thread, model: None, servers: Vec::new(), files: None };
        let session = opener.open(wanted).await?;
        match is_line_mode {
            true => line_mode::run(session, text).await,
            false => talk::run(&opener, session, text).await,
        }
    });
    // A thread that still walks a large directory is not waited for.
    runtime.shutdown_background();
    outcome
}

fn serve_editor(chat: &Chat) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let opener = Opener { chat: chat.clone(), can_ask: true };
    let outcome = runtime.block_on(acp::serve(opener));
    runtime.shutdown_background();
    outcome
}

/// Opens sessions as the flags of the command say.
struct Opener {
    chat: Chat,
    /// Whether there is somebody who can be asked.
    can_ask: bool,
}

impl SessionOpener for Opener {
    async fn open(&self, request: SessionRequest) -> Result<ChatSession, Failure> {
        let SessionRequest { directory, thread, model, servers, files } = request;
        let opened = directory.canonicalize();
        let directory = opened.map_err(|error| Failure::usage(format!("open `{}`: {error}", directory.display())))?;
        let config = self.chat.config.load(Command::Chat, &directory)?;
        let wanted = wanted(&self.chat, &config);
        let endpoint = endpoint::find(&EndpointRequest { model: model.or(wanted.model.clone()), ..wanted }).await?;
        let permission = match (self.chat.yes, self.can_ask) {
            (true, _) => Permission::Everything,
            (false, true) => Permission::Ask,
            (false, false) => Permission::Nothing,
        };
        let (store, path) = place::open(self.chat.store.as_deref()).map_err(Failure::not_begun)?;
        let opening = SessionParts { store, path, directory, config, endpoint, permission, servers, files };
        ChatSession::open(opening, thread).await.map_err(Failure::not_begun)
    }
}

/// What is said first.
fn said(chat: &Chat, is_line_mode: bool) -> Result<Option<String>, Failure> {
    let is_piped = chat.text.as_deref() == Some("-") || (chat.text.is_none() && is_line_mode);
    // A terminal would wait for somebody who does not know that.
    if !is_piped || (chat.text.is_none() && io::stdin().is_terminal()) {
        let goes_on = chat.goes_on || chat.thread.is_some();
        return match &chat.text {
            None if is_line_mode && !goes_on => Err(nothing_said()),
            text => Ok(text.clone()),
        };
    }
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map_err(|error| Failure::work(format!("read the text: {error}")))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match text.trim().is_empty() {
        true if chat.goes_on || chat.thread.is_some() => Ok(None),
        true => Err(nothing_said()),
        false => Ok(Some(text)),
    }
}

fn nothing_said() -> Failure {
    Failure::usage("there is nothing to say").hint("write it as `contexture chat --print \"explain #src/lib.rs\"`")
}

/// Which model is wanted: flags win over the configuration.
fn wanted(chat: &Chat, config: &Config) -> EndpointRequest {
    let format = chat.format.map(|format| match format {
        FormatFlag::Messages => ModelFormat::Messages,
        FormatFlag::Chat => ModelFormat::Chat,
        FormatFlag::Responses => ModelFormat::Responses,
        FormatFlag::Gemini => ModelFormat::Gemini,
    });
    let is_elsewhere = chat.url.is_some();
    EndpointRequest {
        url: chat.url.clone().or_else(|| config.chat_url()),
        format: format.or_else(|| config.chat_format().filter(|_| !is_elsewhere)),
        model: chat.model.clone().or_else(|| config.chat_model()),
        // The configured key belongs to the configured address.
        key_env: chat.key_env.clone().or_else(|| config.chat_key_env().filter(|_| !is_elsewhere)),
        key: config.chat_key().filter(|_| !is_elsewhere).map(ApiKey::new),
    }
}

async fn list_threads(chat: &Chat, directory: &std::path::Path, screen: Screen) -> Result<(), Failure> {
    let text = match place::existing(chat.store.as_deref()).map_err(Failure::not_begun)? {
        Some(store) => Threads::new(store, directory).table(screen).await?,
        None => threads::NONE_YET.to_owned(),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}
