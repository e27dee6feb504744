//! Tools of MCP servers: programs that offer tools over their standard input and output, and servers over HTTP.

mod asking;
mod connection;
mod error;
mod hello;
#[cfg(feature = "client")]
mod http;
mod incoming;
mod lines;
mod result;

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::engine::EngineBuilder;
use contexture_core::error::BoxError;
use contexture_core::schema::Schema;
use contexture_core::tool::{Tool, ToolContext, wire_name};
use serde_json::{Map, Value, json};
use tokio::process::Command;

pub use self::asking::{McpField, McpFieldKind, McpHost, McpProgress, McpQuestion, McpReply};
use self::asking::{NoHost, ask};
use self::connection::{Connection, McpRequestKind};
pub use self::error::McpError;
use self::hello::{begin, handshake};
#[cfg(feature = "client")]
pub use self::http::McpAddress;
use self::result::{check, shown};
use crate::host::ProgramEnvironment;

/// Timeout for listing the tools of a server.
const LIST: Duration = Duration::from_secs(30);

/// Timeout of a call.
const CALL: Duration = Duration::from_secs(600);

/// Most pages of tools that are requested.
const MAX_PAGES: usize = 100;

/// Most bytes of the descriptions and parameters of a server's tools.
const MAX_TOOL_BYTES: usize = 4 << 20;

/// How often a call may be asked for more before it has a result.
const MAX_ROUNDS: u32 = 10;

/// Most things that a call is asked for at once.
const MAX_REQUESTS: usize = 8;

/// Most bytes of what a server wants to be told again.
const MAX_STATE_BYTES: usize = 1 << 20;

/// How long is waited first if a call only has to be made again; twice as long each time.
const AGAIN: Duration = Duration::from_millis(50);

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
    /// What its results promise to be.
    output: Option<Schema>,
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
        Self::start_for(name, command, arguments, environment, directory, Arc::new(NoHost)).await
    }

    /// The same, for somebody whom the server may ask.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_for(
        name: &str,
        command: &str,
        arguments: &[String],
        environment: &ProgramEnvironment,
        directory: &Path,
        host: Arc<dyn McpHost>,
    ) -> Result<Self, McpError> {
        let open = || {
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
            match (child.stdin.take(), child.stdout.take()) {
                (Some(stdin), Some(stdout)) => Ok(Connection::open(name, child, stdin, stdout, host.clone())),
                _ => Err(McpError::Ended { server: name.to_owned() }),
            }
        };
        let mut connection = open()?;
        match begin(&connection).await {
            // Some servers end if the first message is not the one that they know.
            Err(McpError::Ended { .. }) => {
                connection = open()?;
                handshake(&connection).await?;
            }
            begun => begun?,
        }
        Self::with_tools(connection).await
    }

    /// Connects to a server over HTTP and requests its tools, for somebody whom the server may ask.
    ///
    /// # Errors
    /// The address is not one, the server cannot be reached, or does not follow the protocol.
    #[cfg(feature = "client")]
    pub async fn connect(name: &str, address: &McpAddress, host: Arc<dyn McpHost>) -> Result<Self, McpError> {
        let connection = Connection::open_at(name, address, host)?;
        begin(&connection).await?;
        Self::with_tools(connection).await
    }

    async fn with_tools(connection: Arc<Connection>) -> Result<Self, McpError> {
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

    /// Whether the server speaks the revision in which every request says everything.
    pub fn is_stateless(&self) -> bool {
        self.connection.is_stateless()
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
        let page = connection.request(McpRequestKind::Query, "tools/list", parameters, LIST).await?;
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
                // A schema that is not understood promises nothing.
                output: tool.get("outputSchema").and_then(|schema| Schema::new(schema).ok()),
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
        let result = self.result(arguments).await?;
        let text = shown(&result);
        match result["isError"].as_bool() {
            Some(true) => Err(text.into()),
            _ => {
                check(&result, self.offered.output.as_ref())?;
                Ok(text)
            }
        }
    }
}

impl McpTool {
    /// The result of a call. A server may ask the user first, as often as [`MAX_ROUNDS`]: it is called again with what
    /// the user said.
    async fn result(&self, arguments: Value) -> Result<Value, McpError> {
        let asks = |reason: String| McpError::Asks { server: self.connection.server.clone(), reason };
        let mut parameters = json!({ "name": self.offered.name, "arguments": arguments });
        for round in 0..=MAX_ROUNDS {
            let mut result =
                self.connection.request(McpRequestKind::Call, "tools/call", parameters.clone(), CALL).await?;
            match result["resultType"].as_str() {
                None | Some("complete") => return Ok(result),
                Some("input_required") => {}
                Some(other) => return Err(asks(format!("its result is of the kind `{}`", cut(other)))),
            }
            match result["inputRequests"].as_object().filter(|requests| !requests.is_empty()) {
                Some(requests) => parameters["inputResponses"] = Value::Object(self.responses(requests).await?),
                None => {
                    parameters["inputResponses"] = Value::Null;
                    tokio::time::sleep(AGAIN * 2_u32.pow(round)).await;
                }
            }
            let state = result["requestState"].take();
            if !state.is_null() && !state.is_string() {
                return Err(asks("it wants to be told something again that is no text".to_owned()));
            }
            let is_long = state.as_str().is_some_and(|state| state.len() > MAX_STATE_BYTES);
            parameters["requestState"] = state;
            if is_long {
                return Err(asks(format!("it wants to be told more than {MAX_STATE_BYTES} bytes again")));
            }
            let parameters = parameters.as_object_mut();
            parameters.into_iter().for_each(|object| object.retain(|_, value| !value.is_null()));
        }
        Err(asks(format!("it did so more than {MAX_ROUNDS} times")))
    }

    /// What the user says to everything that the server asks for.
    async fn responses(&self, requests: &Map<String, Value>) -> Result<Map<String, Value>, McpError> {
        let asks = |reason: String| McpError::Asks { server: self.connection.server.clone(), reason };
        if requests.len() > MAX_REQUESTS {
            return Err(asks(format!("more than {MAX_REQUESTS} things at once")));
        }
        let mut responses = Map::new();
        for (key, request) in requests {
            let method = request["method"].as_str().unwrap_or_default();
            if method != "elicitation/create" {
                return Err(asks(format!("`{}`, which is not offered", cut(method))));
            }
            let response = ask(&*self.connection.host, &self.connection.server, &request["params"]).await;
            responses.insert(key.clone(), response.map_err(asks)?);
        }
        Ok(responses)
    }
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}
