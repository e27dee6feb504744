//! `contexture mcp`: what is remembered, for any agent that speaks MCP.

mod http;
mod offered;
mod protocol;
mod stdio;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use contexture::bpe::Bpe;
use contexture::engine::Engine;
use contexture::facts::Added;
use contexture::layers::ToolMemory;
use contexture::personal::{MemoryOwner, PersonalMemory};
use contexture::recall::{Extent, PastIndex, PastQuery};
use contexture::store::SqliteIndex;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::gateway::place::existing_store;
use crate::memory::embedder::{configured_embedder, tell_trouble};
use crate::memory::now_ms;
use crate::memory::own::{current_project, memory_path, open_memory, told_of_secrets};
use offered::{MEMORY_PREFIX, REMEMBER, SEARCH, SHOW};

/// The most bytes of a text that `show` returns at once.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// The most tokens that `search` returns, unless it is told.
const SEARCH_TOKENS: u64 = 2_000;
/// The most tokens that `search` returns.
const MAX_SEARCH_TOKENS: u64 = 50_000;
/// The most bytes of any result.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// The user whose files are those for all projects.
const DEFAULT_USER: &str = "user";
/// The thread whose executions open the memory; nothing is logged there.
const THREAD: &str = "mcp";

/// Serve what is remembered to other agents, as an MCP server over standard input and output, or over HTTP
///
/// Its tools are a search over past conversations of this project, `remember`, the six commands of the memory tool over
/// files of this project, and the full text of what the gateway shortened or folded away. With `--listen` it serves HTTP at /mcp to those who send its
/// token, which is printed when it starts.
#[derive(Args)]
pub struct Mcp {
    /// The store: a SQLite file, which is created if it does not exist; without one, your own memory
    #[arg(long, hide = true, value_name = "DB")]
    store: Option<PathBuf>,
    /// The user whose memory it is; without one, yours, with that of the project of the current directory
    #[arg(long, hide = true, value_name = "ID")]
    resource: Option<String>,
    /// Keep files and facts for all your projects, and search what is known for all of them
    #[arg(long, conflicts_with_all = ["resource", "thread"])]
    everywhere: bool,
    /// Search this conversation alone
    #[arg(long, hide = true, value_name = "ID")]
    thread: Option<String>,
    /// Serve HTTP at an address, such as 127.0.0.1:7719; port 0 is a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The environment variable that has the token for `--listen` [default: a new token with every start]
    #[arg(long, value_name = "VARIABLE", requires = "listen")]
    token_env: Option<String>,
}

/// What tools work on.
struct Server {
    engine: Engine<(ToolMemory,)>,
    memory: PersonalMemory,
    resource: String,
    searched: Searched,
    /// Held by the one call that works on the files: two would each see half of the other.
    files: tokio::sync::Mutex<()>,
}

/// Whose conversations are searched.
enum Searched {
    /// Those of a project and its person.
    Own(Vec<MemoryOwner>),
    /// Those of a thread or a user that was named.
    Named(PastIndex, String),
}

/// What a tool returns.
struct ToolAnswer {
    text: String,
    /// The same as data, if the tool has a schema for it.
    structured: Option<Value>,
}

impl From<String> for ToolAnswer {
    fn from(text: String) -> Self {
        Self { text, structured: None }
    }
}

/// Runs the command.
///
/// # Errors
/// The store cannot be opened, the address cannot be listened on, or the output cannot be written.
pub fn run(command: &Mcp) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let server = Arc::new(Server::open(command)?);
        match &command.listen {
            Some(address) => http::serve(server, address, command.token_env.as_deref()).await,
            None => stdio::serve(server).await,
        }
    });
    runtime.shutdown_background();
    outcome
}

impl Server {
    fn open(command: &Mcp) -> Result<Self, Failure> {
        let path = command.store.clone().map_or_else(memory_path, Ok)?;
        let failed = |problem: String| {
            Failure::work(format!("open the store `{}`: {problem}", path.display()))
                .hint("name another one with --store")
        };
        let mut memory = open_memory(&path)?.memory;
        let embedder = configured_embedder(crate::settings::Command::Mcp)?;
        if let Some(embedder) = &embedder {
            memory = memory.with_embedder(embedder.clone());
        }
        let builder = contexture::open(&path, contexture::memory::memory((ToolMemory::new(),)))
            .map_err(|error| failed(error.to_string()))?;
        let engine = builder.build().map_err(|error| failed(error.to_string()))?;
        let named = |scope: String, whose: String| {
            let past = PastIndex::new(Arc::new(SqliteIndex::new(&path)), &scope);
            Searched::Named(embedder.iter().cloned().fold(past, PastIndex::sharing_embedder), whose)
        };
        let searched = match (&command.thread, &command.resource) {
            (Some(thread), _) => named(format!("thread:{thread}"), format!("the thread `{thread}`")),
            (None, Some(resource)) => named(format!("resource:{resource}"), format!("the user `{resource}`")),
            (None, None) if command.everywhere => Searched::Own(vec![MemoryOwner::Person]),
            (None, None) => Searched::Own(vec![current_project()?, MemoryOwner::Person]),
        };
        let resource = match (&command.resource, &searched) {
            (Some(resource), _) => resource.clone(),
            (None, Searched::Own(owners)) => match owners.first() {
                Some(MemoryOwner::Project(directory)) => directory.clone(),
                _ => DEFAULT_USER.to_owned(),
            },
            (None, Searched::Named(..)) => DEFAULT_USER.to_owned(),
        };
        Ok(Self { engine, memory, resource, searched, files: tokio::sync::Mutex::default() })
    }

    /// Runs a tool; an error is told to the model.
    async fn call(self: &Arc<Self>, name: &str, mut input: Value) -> Result<ToolAnswer, String> {
        if !input.is_object() {
            return Err("`arguments` must be an object".to_owned());
        }
        if let Some(command) = name.strip_prefix(MEMORY_PREFIX) {
            input["command"] = command.into();
            // A change that began is made as a whole, also if its request is cancelled.
            let server = self.clone();
            let called = tokio::spawn(async move { server.memory_tool(input).await });
            return called.await.map_err(|error| error.to_string())?.map(|text| cut(text).into());
        }
        match name {
            SEARCH => self.search(&input).await,
            REMEMBER => self.remember(&input).await,
            SHOW => show(&input),
            _ => Err(format!("there is no tool `{name}`")),
        }
    }

    /// Runs a command of the memory tool, in an execution of its own so that it sees what others wrote.
    async fn memory_tool(&self, input: Value) -> Result<String, String> {
        let _one = self.files.lock().await;
        let execution = self.engine.execution(THREAD).resource(self.resource.as_str());
        let execution = execution.start().await.map_err(|error| error.to_string())?;
        let called = execution.memory().call_json("tool-memory/memory", input).await;
        let ended = execution.complete().await;
        let called = called.map_err(|error| cause(&error))?;
        ended.map_err(|error| error.to_string())?;
        Ok(called.result.as_str().map_or_else(|| called.result.to_string(), str::to_owned))
    }

    async fn search(&self, input: &Value) -> Result<ToolAnswer, String> {
        let text = input["text"].as_str().ok_or("`text` is missing")?;
        let query = PastQuery {
            text,
            now_ms: now_ms(),
            budget: input["tokens"].as_u64().unwrap_or(SEARCH_TOKENS).min(MAX_SEARCH_TOKENS),
            counter: &Bpe::o200k(),
            extent: Extent::Full,
            visible: None,
        };
        let (text, whose) = match &self.searched {
            Searched::Own(owners) => {
                let answer = self.memory.search(owners, query).await.map_err(|error| error.to_string())?;
                (answer.text, owners.first().map(|owner| format!("of {owner}")).unwrap_or_default())
            }
            Searched::Named(past, whose) => {
                let found = past.search(query).await.map_err(|error| error.to_string())?;
                let others = "; --resource and --thread of `contexture mcp` choose others";
                (found.text, format!("in the conversations of {whose}{others}"))
            }
        };
        tell_trouble(self.memory.embedder());
        let is_found = !text.is_empty();
        let text = if is_found { cut(text) } else { format!("nothing was found {whose}") };
        let structured = json!({ "is_found": is_found, "text": text });
        Ok(ToolAnswer { text, structured: Some(structured) })
    }

    /// Remembers a fact as the agent's own statement: nothing here shows whose words it is made of.
    async fn remember(&self, input: &Value) -> Result<ToolAnswer, String> {
        let text = input["text"].as_str().ok_or("`text` is missing")?;
        let person = MemoryOwner::Person;
        let owner = match &self.searched {
            Searched::Own(owners) => owners.first().unwrap_or(&person),
            Searched::Named(..) => &person,
        };
        let added = self.memory.tell_by_agent(owner, text, now_ms()).await.map_err(|error| error.to_string())?;
        let told = match added {
            Added::New(id) => format!("remembered as {id}"),
            Added::Known(id) => format!("{id} says so already"),
        };
        Ok((told + &told_of_secrets(text)).into())
    }
}

/// The last cause of an error: what the tool itself says.
fn cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// The text that the gateway keeps under a hash, from a line on.
fn show(input: &Value) -> Result<ToolAnswer, String> {
    let hash = input["hash"].as_str().filter(|hash| !hash.is_empty()).ok_or("`hash` is missing")?;
    let from = input["from_line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or(1).max(1);
    let unknown = || format!("nothing is kept under `{hash}`");
    let store = existing_store().map_err(|failure| failure.sentence().to_owned())?.ok_or_else(unknown)?;
    let shown = store.text(hash).map_err(|error| error.to_string())?.ok_or_else(unknown)?;
    let text: String = shown.text.split_inclusive('\n').skip(from - 1).collect();
    if text.len() <= MAX_SHOWN_BYTES {
        let structured = json!({ "text": text, "from_line": from });
        return Ok(ToolAnswer { text, structured: Some(structured) });
    }
    let cut = text.floor_char_boundary(MAX_SHOWN_BYTES);
    let cut = text[..cut].rfind('\n').map_or(cut, |at| at + 1);
    let next = from + text[..cut].matches('\n').count();
    let structured = json!({ "text": &text[..cut], "from_line": from, "next_line": next });
    let text = format!("{}[cut; go on with from_line {next}]", &text[..cut]);
    Ok(ToolAnswer { text, structured: Some(structured) })
}

/// A text that is not longer than a result may be.
fn cut(text: String) -> String {
    match text.len() > MAX_RESULT_BYTES {
        true => {
            let kept = &text[..text.floor_char_boundary(MAX_RESULT_BYTES)];
            format!("{kept}\n[cut: {} more bytes]", text.len() - kept.len())
        }
        false => text,
    }
}
