//! `contexture memory import`: adds a conversation to a thread, so that it can be recalled.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use contexture::item::{Content, Item, Message, Meta, Role};
use contexture::memory::memory;
use contexture::redact::redact;
use contexture::store::Place as StorePlace;
use serde::Deserialize;
use serde_json::Value;

use super::import_sessions::{self, SessionImport};
use super::mirror;
use super::own::memory_path;
use super::place::MemoryPlace;
use super::whose::Whose;
use crate::failure::Failure;
use crate::store;
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::Screen;

/// Take in the recorded sessions of your agents, so that they can be searched
///
/// Without arguments, those of Claude Code, Codex, OpenCode, Copilot CLI, Gemini CLI, pi and goose on this machine are
/// found where these keep them. Only what is new is read; if it is interrupted, the next run goes on. Sessions belong to the
/// project that they were in. Keys and passwords are replaced by their kind.
///
/// With --thread, a conversation is added to a thread. Each line of its file is a JSON object: `{"id": "1", "role": "user", "text": "Hello", "at": "2026-01-31T12:00:00Z"}`. The
/// role is user, assistant, system or the name of a person; `at` is a date, a time or seconds since 1970, and may be
/// missing. Lines whose id the thread has already are skipped; a line without an id gets one from its number and text. Of a
/// folder that `contexture memory export` wrote, what you changed in its
/// files is taken over.
#[derive(Args)]
pub struct MemoryImport {
    /// Recorded sessions, or directories with them; an exported folder; with --thread, a file of JSON lines or -
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    whose: Whose,
    /// Forget facts whose files are missing in the folder
    #[arg(long)]
    forget_missing: bool,
    /// Only say what would be imported
    #[arg(long, conflicts_with_all = ["thread", "forget_missing"])]
    dry_run: bool,
    /// Print what was imported as JSON
    #[arg(long)]
    json: bool,
}

/// A conversation, and where it goes.
struct ConversationToImport {
    file: PathBuf,
    place: MemoryPlace,
}

/// One line.
#[derive(Deserialize)]
struct ImportedLine {
    #[serde(default)]
    id: Option<Value>,
    role: String,
    text: String,
    #[serde(default)]
    at: Value,
}

/// Runs the command.
pub(super) fn run(import: &MemoryImport, screen: Screen) -> Result<(), Failure> {
    if let [folder] = import.paths.as_slice()
        && (import.forget_missing || is_exported(folder))
    {
        return mirror::run(folder, &import.whose, import.forget_missing, import.json);
    }
    let Whose { store, thread, resource, .. } = &import.whose;
    let Some(thread) = thread.clone() else {
        return sessions(import, screen);
    };
    let [file] = import.paths.as_slice() else {
        return Err(Failure::usage("a thread takes one file").hint("name the file, or - for standard input"));
    };
    let store = store.clone().map_or_else(|| memory_path().map(StorePlace::File), Ok)?;
    let place = MemoryPlace { store, thread, resource: resource.clone() };
    let import = &ConversationToImport { file: file.clone(), place };
    let lines = read(import)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let redacted = lines.iter().filter(|line| line.is_redacted).count();
    let items = lines.into_iter().map(|line| line.item).collect();
    let (new, known) = runtime.block_on(add(import, items))?;
    let known = if known == 0 { String::new() } else { format!(", {known} were there already") };
    let redacted = if redacted == 0 { String::new() } else { format!(", secrets removed from {redacted}") };
    let told = format!("{new} items added to thread {}{known}{redacted}", import.place.thread);
    Ok(writeln!(io::stdout(), "{}", on_one_line(&told))?)
}

/// Whether a path is a folder that `contexture memory export` wrote, or an empty one.
fn is_exported(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    let mut names = entries.filter_map(|entry| Some(entry.ok()?.path())).peekable();
    names.peek().is_none() || names.any(|name| name.extension().is_some_and(|extension| extension == "md"))
}

/// Takes in recorded sessions.
fn sessions(import: &MemoryImport, screen: Screen) -> Result<(), Failure> {
    let store = match &import.whose.store {
        None => None,
        Some(StorePlace::File(path)) => Some(path.as_path()),
        Some(StorePlace::Postgres(_)) => {
            return Err(Failure::usage("recorded sessions are imported into a file")
                .hint("leave --store away for your own memory, or name a file"));
        }
    };
    let (paths, dry_run, json) = (&import.paths, import.dry_run, import.json);
    import_sessions::run(&SessionImport { paths, store, dry_run, json }, screen)
}

/// An item of a line.
struct Parsed {
    item: Item,
    /// Whether a secret was removed from it.
    is_redacted: bool,
}

/// The items of all lines; of several with one id the last.
fn read(import: &ConversationToImport) -> Result<Vec<Parsed>, Failure> {
    let name = import.file.display();
    let mut text = String::new();
    let read = match import.file.as_os_str() == "-" {
        true => io::stdin().read_to_string(&mut text).map(|_| ()),
        false => fs::read_to_string(&import.file).map(|read| text = read),
    };
    read.map_err(|error| Failure::work(format!("read `{name}`: {error}")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let items = lines.map(|(number, line)| {
        let wrong = |problem: String| {
            Failure::work(format!("line {} of `{name}`: {problem}", number + 1))
                .hint(r#"a line is {"id": "1", "role": "user", "text": "Hello", "at": "2026-01-31T12:00:00Z"}"#)
        };
        let line: ImportedLine = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        line.item(number + 1).map_err(wrong)
    });
    let mut items = items.collect::<Result<Vec<Parsed>, Failure>>()?;
    let mut later = HashSet::new();
    items.reverse();
    items.retain(|read| id_of(&read.item).is_none_or(|id| later.insert(id)));
    items.reverse();
    Ok(items)
}

impl ImportedLine {
    /// The item, of the line with this number.
    fn item(self, number: usize) -> Result<Parsed, String> {
        if self.role.trim().is_empty() {
            return Err("the role is empty".to_owned());
        }
        let mut meta = Meta { time_ms: time(&self.at)?, ..Meta::default() };
        let role = match self.role.to_lowercase().as_str() {
            "user" | "human" => Role::User,
            "assistant" | "ai" | "model" | "bot" => Role::Assistant,
            "system" | "developer" => Role::Developer,
            _ => {
                meta.extra.insert("speaker", self.role.as_str());
                Role::User
            }
        };
        let text = redact(&self.text).into_owned();
        let is_redacted = text != self.text;
        let derived = format!("line-{number}-{:016x}", hash_of(&text));
        let mut message = Message::new(role, vec![Content::Text { text }]);
        message.id = match self.id {
            Some(Value::String(id)) => Some(id.into()),
            Some(Value::Number(id)) => Some(id.to_string().into()),
            None | Some(Value::Null) => Some(derived.into()),
            Some(other) => return Err(format!("the id `{other}` is neither a text nor a number")),
        };
        message.meta = meta;
        Ok(Parsed { item: message.into(), is_redacted })
    }
}

/// A hash that stays the same for ever, since ids are made of it: FNV-1a.
fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Milliseconds since 1970 of a time; `None` if there is none.
fn time(at: &Value) -> Result<Option<u64>, String> {
    match at {
        Value::Null => Ok(None),
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| (0.0..1e14).contains(number));
            let number = number.ok_or_else(|| format!("`{at}` is not a time"))?;
            // Seconds until the year 5138, milliseconds since 1973.
            Ok(Some((if number < 1e11 { number * 1_000.0 } else { number }) as u64))
        }
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => {
            let time = contexture::recall::parse_time(text);
            time.map(Some).ok_or_else(|| format!("`{text}` is not a time"))
        }
        _ => Err(format!("`{at}` is not a time")),
    }
}

/// Adds items to the log and to the index, and returns how many are new and how many were known.
async fn add(import: &ConversationToImport, items: Vec<Item>) -> Result<(usize, usize), Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::of(error);
    let place = &import.place;
    let engine = contexture::open(store::path_of(&place.store), memory(()))
        .map_err(|error| failed(&error).hint("name another store with --store"))?
        .build()
        .map_err(|error| failed(&error))?;
    let mut execution = engine.execution(place.thread.as_str()).start().await.map_err(|error| failed(&error))?;
    let known: HashSet<String> = execution.log().iter().filter_map(id_of).collect();
    let before = items.len();
    let new: Vec<Item> = items.into_iter().filter(|item| id_of(item).is_none_or(|id| !known.contains(&id))).collect();
    let count = new.len();
    execution.import(new).await.map_err(|error| failed(&error))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    // From the start, so that an import that was interrupted is completed.
    let added = place.past()?.add_log(&place.thread, execution.log(), 0, now).await;
    added.map_err(|error| failed(&error))?;
    execution.complete().await.map_err(|error| failed(&error))?;
    Ok((count, before - count))
}

fn id_of(item: &Item) -> Option<String> {
    item.as_message()?.id.as_deref().map(str::to_owned)
}
