//! The connection to a server, and requests to it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use super::asking::McpHost;
use super::error::McpError;
#[cfg(feature = "client")]
use super::http::{McpAddress, Poster};
use super::incoming::{Incoming, OpenRequests, PendingResponse};

/// The revision without a handshake: every request says by itself what it is of.
pub(super) const STATELESS: &str = "2026-07-28";

/// Most messages that wait until the server reads them.
const MAX_OUTGOING: usize = 256;

/// The connection to a server, and the open requests.
pub(super) struct Connection {
    pub(super) server: String,
    outgoing: mpsc::Sender<Value>,
    waiting: Arc<OpenRequests>,
    last_id: AtomicU64,
    pub(super) host: Arc<dyn McpHost>,
    /// Set when the server turns out to speak [`STATELESS`].
    is_stateless: OnceLock<()>,
    /// The revision that a handshake agreed on.
    agreed: Arc<OnceLock<String>>,
    /// Killed when it is dropped.
    _child: Option<Mutex<Child>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

/// What kind of request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum McpRequestKind {
    /// It begins the connection, and is never cancelled.
    Hello,
    /// It asks for something.
    Query,
    /// It calls a tool: the server may ask the user, and tell how far it is.
    Call,
}

impl Connection {
    /// A connection to a program.
    pub(super) fn open(
        server: &str,
        child: Child,
        stdin: ChildStdin,
        stdout: ChildStdout,
        host: Arc<dyn McpHost>,
    ) -> Arc<Self> {
        let (connection, incoming, messages) = Self::new(server, Some(child), host);
        tokio::spawn(write(stdin, messages));
        tokio::spawn(incoming.read(stdout));
        connection
    }

    /// A connection to an address, to which every message is posted.
    #[cfg(feature = "client")]
    pub(super) fn open_at(server: &str, address: &McpAddress, host: Arc<dyn McpHost>) -> Result<Arc<Self>, McpError> {
        let (connection, incoming, messages) = Self::new(server, None, host);
        let poster = Poster::new(address, incoming, connection.agreed.clone())
            .map_err(|problem| McpError::Address { server: server.to_owned(), problem })?;
        tokio::spawn(poster.post_all(messages));
        Ok(connection)
    }

    fn new(server: &str, child: Option<Child>, host: Arc<dyn McpHost>) -> (Arc<Self>, Incoming, mpsc::Receiver<Value>) {
        let (outgoing, messages) = mpsc::channel(MAX_OUTGOING);
        let waiting = Arc::new(OpenRequests::new());
        let incoming = Incoming::new(server, waiting.clone(), outgoing.downgrade(), host.clone());
        let connection = Self {
            server: server.to_owned(),
            outgoing,
            waiting,
            last_id: AtomicU64::new(0),
            host,
            is_stateless: OnceLock::new(),
            agreed: Arc::default(),
            _child: child.map(Mutex::new),
        };
        (Arc::new(connection), incoming, messages)
    }

    /// Notes the revision that a handshake agreed on.
    pub(super) fn set_agreed(&self, version: &str) {
        // It is set once, or to the same again.
        let _ = self.agreed.set(version.to_owned());
    }

    /// From now on every request says what it is of.
    pub(super) fn set_stateless(&self) {
        // It is set once, or to the same again.
        let _ = self.is_stateless.set(());
    }

    pub(super) fn is_stateless(&self) -> bool {
        self.is_stateless.get().is_some()
    }

    /// Sends a message, if the server reads what it is sent.
    pub(super) fn send(&self, message: Value) {
        // If the server has ended or does not read, the receiver of the response reports it.
        let _ = self.outgoing.try_send(message);
    }

    /// What the client can do.
    pub(super) fn capabilities(&self) -> Value {
        match self.host.can_ask() {
            true => json!({ "elicitation": { "form": {} } }),
            false => json!({}),
        }
    }

    /// What a request of [`STATELESS`] says about itself.
    pub(super) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": about(),
            "io.modelcontextprotocol/clientCapabilities": self.capabilities(),
        })
    }

    pub(super) async fn request(
        &self,
        kind: McpRequestKind,
        method: &str,
        mut parameters: Value,
        limit: Duration,
    ) -> Result<Value, McpError> {
        let server = || self.server.clone();
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_stateless() && kind != McpRequestKind::Hello {
            parameters["_meta"] = self.meta();
        }
        if kind == McpRequestKind::Call {
            parameters["_meta"]["progressToken"] = id.into();
        }
        let (sender, receiver) = oneshot::channel();
        if !self.waiting.insert(id, PendingResponse { response: sender, is_call: kind == McpRequestKind::Call }) {
            return Err(self.waiting.ending(&self.server));
        }
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let mut asked = OpenRequest { connection: self, id, is_over: kind == McpRequestKind::Hello };
        let response = tokio::time::timeout(limit, receiver).await;
        asked.is_over |= matches!(response, Ok(Ok(_)));
        let mut response = match response {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => return Err(self.waiting.ending(&self.server)),
            Err(_) => return Err(McpError::TimedOut { server: server(), method: method.to_owned(), waited: limit }),
        };
        if let Some(error) = response.get("error") {
            let message = error["message"].as_str().unwrap_or("it did not say why").to_owned();
            let code = error["code"].as_i64().unwrap_or_default();
            return Err(McpError::Refused { server: server(), method: method.to_owned(), code, message });
        }
        Ok(response["result"].take())
    }
}

/// What the client says about itself.
pub(super) fn about() -> Value {
    json!({ "name": "contexture", "version": env!("CARGO_PKG_VERSION") })
}

/// An open request. If it is dropped before its response, the server is told that it is cancelled.
struct OpenRequest<'a> {
    connection: &'a Connection,
    id: u64,
    is_over: bool,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.connection.waiting.remove(self.id);
        if !self.is_over {
            let parameters = json!({ "requestId": self.id });
            self.connection
                .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters }));
        }
    }
}

/// Writes messages, one per line.
async fn write(mut stdin: ChildStdin, mut messages: mpsc::Receiver<Value>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}
