//! Tools of MCP servers: programs that offer tools over their standard input and output.

mod lines;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture_core::engine::EngineBuilder;
use contexture_core::error::BoxError;
use contexture_core::tool::{Tool, ToolContext, wire_name};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use self::lines::{Line, next_line};
use crate::host::ProgramEnvironment;

/// The requested version of the protocol; servers return the one that they use.
const PROTOCOL: &str = "2025-06-18";

/// Timeout for starting a server and listing its tools.
const START: Duration = Duration::from_secs(30);

/// Timeout of a call.
const CALL: Duration = Duration::from_secs(600);

/// Most pages of tools that are requested.
const MAX_PAGES: usize = 100;

/// Most bytes of the descriptions and parameters of a server's tools.
const MAX_TOOL_BYTES: usize = 4 << 20;

/// Most bytes of a result that the model is shown.
const MAX_RESULT_BYTES: usize = 64 * 1024;

/// Why an MCP server cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its program could not be started.
    #[error("start the MCP server `{server}`")]
    Start {
        /// The server.
        server: String,
        /// What stopped it.
        #[source]
        source: std::io::Error,
    },
    /// It ended, or closed its output.
    #[error("the MCP server `{server}` ended")]
    Ended {
        /// The server.
        server: String,
    },
    /// It sent more in one message, or described more tools, than is read.
    #[error("the MCP server `{server}` sent more than {} MB {what}", limit >> 20)]
    TooLong {
        /// The server.
        server: String,
        /// Where.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// It did not respond in time.
    #[error("the MCP server `{server}` sent no response to `{method}` within {} s", waited.as_secs())]
    TimedOut {
        /// The server.
        server: String,
        /// The request.
        method: String,
        /// How long the client waited.
        waited: Duration,
    },
    /// It returned an error.
    #[error("the MCP server `{server}` refused `{method}`: {message}")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        method: String,
        /// Its message.
        message: String,
    },
}

/// A running MCP server; cheap to clone. Its program ends when the last clone and the last of its tools are dropped.
#[derive(Clone, Debug)]
pub struct McpServer {
    connection: Arc<Connection>,
    tools: Arc<[Offered]>,
    /// The names that two of its tools have.
    repeated: Arc<[String]>,
}

/// A tool as the server describes it.
#[derive(Clone, Debug)]
struct Offered {
    name: String,
    description: String,
    parameters: Value,
}

impl McpServer {
    /// Starts a program in a directory and requests its tools. `name` is the prefix of its tools: `name/tool`. Besides
    /// `variables` it gets those of the process that are on the list of [`ProgramEnvironment`].
    ///
    /// # Errors
    /// The program cannot be started, ends, or does not follow the protocol.
    pub async fn start(
        name: &str,
        command: &str,
        arguments: &[String],
        variables: &[(String, String)],
        directory: &Path,
    ) -> Result<Self, McpError> {
        let with = |environment: ProgramEnvironment, (name, value): &(String, String)| environment.with(name, value);
        let environment = variables.iter().fold(ProgramEnvironment::of_process(), with);
        Self::start_with(name, command, arguments, &environment, directory).await
    }

    /// The same with exactly these environment variables.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_with(
        name: &str,
        command: &str,
        arguments: &[String],
        environment: &ProgramEnvironment,
        directory: &Path,
    ) -> Result<Self, McpError> {
        let mut child = Command::new(command)
            .args(arguments)
            .env_clear()
            .envs(environment.variables())
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| McpError::Start { server: name.to_owned(), source })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(McpError::Ended { server: name.to_owned() });
        };
        let connection = Connection::open(name, child, stdin, stdout);
        let client = json!({ "name": "contexture", "version": env!("CARGO_PKG_VERSION") });
        let hello = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
        connection.request("initialize", hello, START).await?;
        connection.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let mut tools = list_tools(&connection).await?;
        let (mut names, mut repeated) = (HashSet::new(), Vec::new());
        tools.retain(|tool| {
            let is_first = names.insert(wire_name(&tool.name));
            if !is_first {
                repeated.push(tool.name.clone());
            }
            is_first
        });
        Ok(Self { connection, tools: tools.into(), repeated: repeated.into() })
    }

    /// The names of tools that are left out, since an earlier tool of the server has the same name for the model.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }

    /// Adds all tools of the server to an engine.
    pub fn add_tools<Ls>(&self, builder: EngineBuilder<Ls>) -> EngineBuilder<Ls> {
        self.tools().fold(builder, EngineBuilder::tool)
    }

    /// The tools of the server.
    pub fn tools(&self) -> impl Iterator<Item = McpTool> {
        self.tools.iter().map(|offered| McpTool {
            public_name: format!("{}/{}", self.connection.server, offered.name),
            offered: offered.clone(),
            connection: self.connection.clone(),
        })
    }
}

async fn list_tools(connection: &Arc<Connection>) -> Result<Vec<Offered>, McpError> {
    let (mut tools, mut cursor, mut bytes) = (Vec::new(), None::<String>, 0);
    for _ in 0..MAX_PAGES {
        let parameters = cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = connection.request("tools/list", parameters, START).await?;
        for tool in page["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            bytes += tool.to_string().len();
            if bytes > MAX_TOOL_BYTES {
                let server = connection.server.clone();
                return Err(McpError::TooLong { server, what: "of tools", limit: MAX_TOOL_BYTES });
            }
            tools.push(Offered {
                name: name.to_owned(),
                description: tool["description"].as_str().unwrap_or_default().to_owned(),
                parameters: tool.get("inputSchema").cloned().unwrap_or_else(|| json!({ "type": "object" })),
            });
        }
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(tools)
}

/// A tool of an MCP server.
#[derive(Clone, Debug)]
pub struct McpTool {
    public_name: String,
    offered: Offered,
    connection: Arc<Connection>,
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.public_name
    }

    fn description(&self) -> &str {
        &self.offered.description
    }

    fn parameters(&self) -> Value {
        self.offered.parameters.clone()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let parameters = json!({ "name": self.offered.name, "arguments": arguments });
        let result = self.connection.request("tools/call", parameters, CALL).await?;
        let text = shown(&result);
        match result["isError"].as_bool() {
            Some(true) => Err(text.into()),
            _ => Ok(text),
        }
    }
}

/// The text of a result for the model.
fn shown(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    let parts: Vec<String> = parts
        .map(|part| match (part["text"].as_str(), part["resource"]["text"].as_str()) {
            (Some(text), _) | (None, Some(text)) => text.to_owned(),
            (None, None) => format!("[{}, which is not shown]", part["type"].as_str().unwrap_or("something")),
        })
        .collect();
    let text = match (parts.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => structured.to_string(),
        _ => parts.join("\n"),
    };
    match text.len() > MAX_RESULT_BYTES {
        true => {
            let cut = &text[..text.floor_char_boundary(MAX_RESULT_BYTES)];
            format!("{cut}\n[… {} bytes are not shown …]", text.len() - cut.len())
        }
        false => text,
    }
}

/// The connection to a server, and the open requests.
#[derive(Debug)]
struct Connection {
    server: String,
    outgoing: mpsc::UnboundedSender<Value>,
    waiting: Arc<Waiting>,
    last_id: AtomicU64,
    /// Killed when it is dropped.
    _child: Mutex<Child>,
}

/// The senders for open requests, or how the connection ended.
#[derive(Debug)]
struct Waiting(Mutex<Result<HashMap<u64, oneshot::Sender<Value>>, Ending>>);

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The server ended, or closed its output.
    Closed,
    /// A message was too long.
    TooLong,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Result<HashMap<u64, oneshot::Sender<Value>>, Ending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a request of a server has no response.
    fn ending(&self, server: &str) -> McpError {
        let server = server.to_owned();
        match self.lock().as_ref().err() {
            Some(Ending::TooLong) => McpError::TooLong { server, what: "in one message", limit: lines::MAX_BYTES },
            Some(Ending::Closed) | None => McpError::Ended { server },
        }
    }
}

impl Connection {
    fn open(server: &str, child: Child, stdin: ChildStdin, stdout: ChildStdout) -> Arc<Self> {
        let (outgoing, messages) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting(Mutex::new(Ok(HashMap::new()))));
        tokio::spawn(write(stdin, messages));
        tokio::spawn(read(stdout, waiting.clone(), outgoing.downgrade()));
        let server = server.to_owned();
        Arc::new(Self { server, outgoing, waiting, last_id: AtomicU64::new(0), _child: Mutex::new(child) })
    }

    fn send(&self, message: Value) {
        // An error means that the server has ended, which the receiver reports.
        let _ = self.outgoing.send(message);
    }

    async fn request(&self, method: &str, parameters: Value, limit: Duration) -> Result<Value, McpError> {
        let server = || self.server.clone();
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        let is_open = self.waiting.lock().as_mut().map(|waiting| waiting.insert(id, sender)).is_ok();
        if !is_open {
            return Err(self.waiting.ending(&self.server));
        }
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let mut asked = Asked { connection: self, id, is_over: false };
        let response = tokio::time::timeout(limit, receiver).await;
        asked.is_over = matches!(response, Ok(Ok(_)));
        let mut response = match response {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => return Err(self.waiting.ending(&self.server)),
            Err(_) => return Err(McpError::TimedOut { server: server(), method: method.to_owned(), waited: limit }),
        };
        if let Some(error) = response.get("error") {
            let message = error["message"].as_str().unwrap_or("it did not say why").to_owned();
            return Err(McpError::Refused { server: server(), method: method.to_owned(), message });
        }
        Ok(response["result"].take())
    }
}

/// An open request. If it is dropped before its response, the server is told that it is cancelled.
struct Asked<'a> {
    connection: &'a Connection,
    id: u64,
    is_over: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Ok(waiting) = self.connection.waiting.lock().as_mut() {
            waiting.remove(&self.id);
        }
        if !self.is_over {
            let parameters = json!({ "requestId": self.id });
            self.connection
                .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters }));
        }
    }
}

/// Writes messages, one per line.
async fn write(mut stdin: ChildStdin, mut messages: mpsc::UnboundedReceiver<Value>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads messages and passes responses to the requests that wait for them.
async fn read(stdout: ChildStdout, waiting: Arc<Waiting>, outgoing: mpsc::WeakUnboundedSender<Value>) {
    let mut stdout = BufReader::new(stdout);
    let ending = loop {
        let line = match next_line(&mut stdout).await {
            Line::Whole(line) => line,
            Line::TooLong => break Ending::TooLong,
            Line::End => break Ending::Closed,
        };
        // Some servers also print other text.
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
        match (message.get("method"), message["id"].as_u64()) {
            (None, Some(id)) => {
                let sender = waiting.lock().as_mut().ok().and_then(|waiting| waiting.remove(&id));
                // The request may have been dropped.
                let _ = sender.map(|sender| sender.send(message));
            }
            (Some(method), _) if message.get("id").is_some() => {
                let result = match method.as_str() {
                    Some("ping") => json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }),
                    _ => {
                        let error = json!({ "code": -32601, "message": "this client does not offer that" });
                        json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })
                    }
                };
                let _ = outgoing.upgrade().map(|outgoing| outgoing.send(result));
            }
            _ => {}
        }
    };
    // Dropping the senders notifies all open requests; the server notices that nobody reads any more.
    *waiting.lock() = Err(ending);
}
