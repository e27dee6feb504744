//! `contexture mcp`: what is remembered, for any agent that speaks MCP over standard input and output.

mod offered;

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use contexture::bpe::Bpe;
use contexture::engine::Engine;
use contexture::layers::ToolMemory;
use contexture::memory::memory;
use contexture::recall::{Extent, PastIndex, PastQuery};
use contexture::store::SqliteIndex;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::gateway::place::existing_store;
use offered::{MEMORY_PREFIX, SEARCH, SHOW};

/// The versions of the protocol that are spoken, newest first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// The longest line that is read.
const MAX_LINE_BYTES: usize = 4 << 20;
/// How far the id of a longer line is looked for.
const MAX_HEAD_BYTES: usize = 4 * 1024;
/// The most bytes of a text that `show` returns at once.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// The most tokens that `search` returns, unless it is told.
const SEARCH_TOKENS: u64 = 2_000;
/// The thread whose executions open the memory; nothing is logged there.
const THREAD: &str = "mcp";

/// Serve what is remembered to other agents, as an MCP server over standard input and output
///
/// Its tools are the six commands of the memory tool, a search over past conversations, and the full text of what the
/// gateway shortened or folded away.
#[derive(Args)]
pub struct Mcp {
    /// The store: a SQLite file, which is created if it does not exist
    #[arg(long, value_name = "DB")]
    store: PathBuf,
    /// The user whose memory it is
    #[arg(long, value_name = "ID", default_value = "user")]
    resource: String,
    /// Search this conversation alone
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
}

/// What tools work on.
struct Server {
    engine: Engine<(ToolMemory,)>,
    past: PastIndex,
    resource: String,
    /// Whose conversations are searched.
    searched: String,
}

/// An error of the protocol: its code and message.
type Refusal = (i64, String);

/// Runs the command.
///
/// # Errors
/// The store cannot be opened, or the output cannot be written.
pub fn run(command: &Mcp) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = runtime.block_on(async { Server::open(command) })?;
    let (mut input, mut output, mut line) = (io::stdin().lock(), io::stdout().lock(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some(response) = runtime.block_on(server.line(&line)) {
            output.write_all(format!("{response}\n").as_bytes())?;
            output.flush()?;
        }
    }
}

impl Server {
    fn open(command: &Mcp) -> Result<Self, Failure> {
        let failed = |problem: String| {
            Failure::work(format!("open the store `{}`: {problem}", command.store.display()))
                .hint("name another one with --store")
        };
        let builder = contexture::open(&command.store, memory((ToolMemory::new(),)))
            .map_err(|error| failed(error.to_string()))?;
        let engine = builder.build().map_err(|error| failed(error.to_string()))?;
        let (scope, searched) = match &command.thread {
            Some(thread) => (format!("thread:{thread}"), format!("the thread `{thread}`")),
            None => (format!("resource:{}", command.resource), format!("the user `{}`", command.resource)),
        };
        let past = PastIndex::new(Arc::new(SqliteIndex::new(&command.store)), &scope);
        Ok(Self { engine, past, resource: command.resource.clone(), searched })
    }

    /// The response to a line; notifications and empty lines have none.
    async fn line(&self, line: &[u8]) -> Option<Value> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let refused = |id: Value, (code, message): Refusal| {
            Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
        };
        if line.len() > MAX_LINE_BYTES {
            let message = format!("the message has more than {MAX_LINE_BYTES} bytes");
            return refused(id_at_the_start(line).unwrap_or_default(), (-32600, message));
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return refused(Value::Null, (-32700, "the message is not JSON".to_owned()));
        };
        if !message.is_object() {
            return refused(Value::Null, (-32600, "the message is no request".to_owned()));
        }
        let id = message.get("id").filter(|id| !id.is_null())?.clone();
        let Some(method) = message["method"].as_str() else {
            // A response, which nobody asked for.
            return None;
        };
        match self.request(method, &message["params"]).await {
            Ok(result) => Some(json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Err(refusal) => refused(id, refusal),
        }
    }

    async fn request(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        match method {
            "initialize" => {
                let asked = params["protocolVersion"].as_str();
                let version = VERSIONS.into_iter().find(|version| Some(*version) == asked).unwrap_or(VERSIONS[0]);
                Ok(json!({
                    "protocolVersion": version,
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "contexture", "version": env!("CARGO_PKG_VERSION") },
                }))
            }
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": offered::tools() })),
            "tools/call" => {
                let name = params["name"].as_str().ok_or((-32602, "`name` is missing".to_owned()))?;
                let input = params.get("arguments").filter(|input| !input.is_null()).cloned().unwrap_or(json!({}));
                if !offered::tools().iter().any(|tool| tool["name"] == name) {
                    return Err((-32602, format!("there is no tool `{name}`")));
                }
                let (text, is_error) = match self.call(name, input).await {
                    Ok(text) => (text, false),
                    Err(message) => (message, true),
                };
                Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
            }
            _ => Err((-32601, format!("there is no method `{method}`"))),
        }
    }

    /// Runs a tool; an error is told to the model.
    async fn call(&self, name: &str, mut input: Value) -> Result<String, String> {
        if !input.is_object() {
            return Err("`arguments` must be an object".to_owned());
        }
        if let Some(command) = name.strip_prefix(MEMORY_PREFIX) {
            input["command"] = command.into();
            return self.memory(input).await;
        }
        match name {
            SEARCH => self.search(&input).await,
            SHOW => show(&input),
            _ => Err(format!("there is no tool `{name}`")),
        }
    }

    /// Runs a command of the memory tool, in an execution of its own so that it sees what others wrote.
    async fn memory(&self, input: Value) -> Result<String, String> {
        let execution = self.engine.execution(THREAD).resource(self.resource.as_str());
        let execution = execution.start().await.map_err(|error| error.to_string())?;
        let called = execution.memory().call_json("tool-memory/memory", input).await;
        let ended = execution.complete().await;
        let called = called.map_err(|error| cause(&error))?;
        ended.map_err(|error| error.to_string())?;
        Ok(called.result.as_str().map_or_else(|| called.result.to_string(), str::to_owned))
    }

    async fn search(&self, input: &Value) -> Result<String, String> {
        let text = input["text"].as_str().ok_or("`text` is missing")?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let query = PastQuery {
            text,
            now_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            budget: input["tokens"].as_u64().unwrap_or(SEARCH_TOKENS),
            counter: &Bpe::o200k(),
            extent: Extent::Full,
            visible: None,
        };
        let found = self.past.search(query).await.map_err(|error| error.to_string())?;
        Ok(match found.text.is_empty() {
            true => format!(
                "nothing was found in the conversations of {}; --resource and --thread of `contexture mcp` choose others",
                self.searched
            ),
            false => found.text,
        })
    }
}

/// The id of a request that is too long to be read, if it comes before anything long: clients write it first.
fn id_at_the_start(line: &[u8]) -> Option<Value> {
    let head = &line[..line.len().min(MAX_HEAD_BYTES)];
    let mut rest = head.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (name, after) = first_value(rest)?;
        let after = after.trim_ascii_start().strip_prefix(b":")?;
        let (value, after) = first_value(after)?;
        if name == "id" {
            return Some(value).filter(|id| id.is_string() || id.is_number());
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The JSON value at the start of a text, and what is after it; `None` if it is not complete.
fn first_value(text: &[u8]) -> Option<(Value, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    // A number may go on behind the end of the text.
    (end < text.len()).then(|| (value, &text[end..]))
}

/// The last cause of an error: what the tool itself says.
fn cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// The text that the gateway keeps under a hash, from a line on.
fn show(input: &Value) -> Result<String, String> {
    let hash = input["hash"].as_str().filter(|hash| !hash.is_empty()).ok_or("`hash` is missing")?;
    let from = input["from_line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or(1).max(1);
    let unknown = || format!("nothing is kept under `{hash}`");
    let store = existing_store().map_err(|failure| failure.sentence().to_owned())?.ok_or_else(unknown)?;
    let shown = store.text(hash).map_err(|error| error.to_string())?.ok_or_else(unknown)?;
    let text: String = shown.text.split_inclusive('\n').skip(from - 1).collect();
    if text.len() <= MAX_SHOWN_BYTES {
        return Ok(text);
    }
    let cut = text.floor_char_boundary(MAX_SHOWN_BYTES);
    let cut = text[..cut].rfind('\n').map_or(cut, |at| at + 1);
    let next = from + text[..cut].matches('\n').count();
    Ok(format!("{}[cut; go on with from_line {next}]", &text[..cut]))
}
