//! What a server sends: responses to open requests, questions, and how far its calls are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::process::ChildStdout;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::asking::{McpHost, McpProgress, ask};
use super::error::McpError;
use super::lines::{self, ServerLine, next_line};

/// The open requests, or how the connection ended.
#[derive(Debug)]
pub(super) struct OpenRequests {
    requests: Mutex<Result<HashMap<u64, PendingResponse>, ConnectionEnd>>,
    /// How many of them are calls of tools.
    calls: watch::Sender<usize>,
}

/// An open request.
#[derive(Debug)]
pub(super) struct PendingResponse {
    pub(super) response: oneshot::Sender<Value>,
    pub(super) is_call: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionEnd {
    /// The server ended, or closed its output.
    Closed,
    /// A message was too long.
    TooLong,
}

impl OpenRequests {
    pub(super) fn new() -> Self {
        Self { requests: Mutex::new(Ok(HashMap::new())), calls: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Result<HashMap<u64, PendingResponse>, ConnectionEnd>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; `false` if the connection has ended.
    pub(super) fn insert(&self, id: u64, open: PendingResponse) -> bool {
        let is_call = open.is_call;
        let is_open = self.lock().as_mut().map(|requests| requests.insert(id, open)).is_ok();
        if is_open && is_call {
            self.calls.send_modify(|count| *count += 1);
        }
        is_open
    }

    pub(super) fn remove(&self, id: u64) -> Option<PendingResponse> {
        let open = self.lock().as_mut().ok().and_then(|requests| requests.remove(&id))?;
        if open.is_call {
            self.calls.send_modify(|count| *count = count.saturating_sub(1));
        }
        Some(open)
    }

    /// Whether a request has no response yet.
    #[cfg(feature = "client")]
    fn is_open(&self, id: u64) -> bool {
        self.lock().as_ref().is_ok_and(|requests| requests.contains_key(&id))
    }

    /// Whether a tool is being called with this id.
    fn is_calling(&self, id: u64) -> bool {
        self.lock().as_ref().is_ok_and(|requests| requests.get(&id).is_some_and(|open| open.is_call))
    }

    /// Dropping the senders notifies all open requests.
    fn end(&self, ending: ConnectionEnd) {
        *self.lock() = Err(ending);
        self.calls.send_replace(0);
    }

    /// Why a request of a server has no response.
    pub(super) fn ending(&self, server: &str) -> McpError {
        let server = server.to_owned();
        match self.lock().as_ref().err() {
            Some(ConnectionEnd::TooLong) => {
                McpError::TooLong { server, what: "in one message", limit: lines::MAX_BYTES }
            }
            Some(ConnectionEnd::Closed) | None => McpError::Ended { server },
        }
    }
}

/// The reading side of a connection.
pub(super) struct Incoming {
    server: String,
    waiting: Arc<OpenRequests>,
    outgoing: mpsc::WeakSender<Value>,
    host: Arc<dyn McpHost>,
    /// A permit for the one question that may be open.
    questions: Arc<Semaphore>,
}

impl Incoming {
    pub(super) fn new(
        server: &str,
        waiting: Arc<OpenRequests>,
        outgoing: mpsc::WeakSender<Value>,
        host: Arc<dyn McpHost>,
    ) -> Self {
        Self { server: server.to_owned(), waiting, outgoing, host, questions: Arc::new(Semaphore::new(1)) }
    }

    /// Reads messages and passes responses to the requests that wait for them.
    pub(super) async fn read(self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let ending = loop {
            let line = match next_line(&mut stdout).await {
                ServerLine::Whole(line) => line,
                ServerLine::TooLong => break ConnectionEnd::TooLong,
                ServerLine::End => break ConnectionEnd::Closed,
            };
            // Some servers also print other text.
            if let Ok(message) = serde_json::from_slice(&line) {
                self.take(message);
            }
        };
        // The server notices that nobody reads any more.
        self.waiting.end(ending);
    }

    /// A message of the server.
    pub(super) fn take(&self, message: Value) {
        match (message["method"].as_str(), message.get("id")) {
            (None, Some(id)) => {
                let open = id.as_u64().and_then(|id| self.waiting.remove(id));
                // The request may have been dropped.
                let _ = open.map(|open| open.response.send(message));
            }
            (Some(method), Some(id)) => self.asked(method, id, &message["params"]),
            (Some("notifications/progress"), None) => self.progress(&message["params"]),
            _ => {}
        }
    }

    /// Whether a request has no response yet.
    #[cfg(feature = "client")]
    pub(super) fn is_open(&self, id: u64) -> bool {
        self.waiting.is_open(id)
    }

    fn progress(&self, params: &Value) {
        let is_open = params["progressToken"].as_u64().is_some_and(|id| self.waiting.is_calling(id));
        if let Some(progress) = McpProgress::read(&self.server, params).filter(|_| is_open) {
            self.host.progress(progress);
        }
    }

    /// A request of the server.
    fn asked(&self, method: &str, id: &Value, params: &Value) {
        let (id, outgoing) = (id.clone(), self.outgoing.clone());
        let reply = move |result: Result<Value, String>| {
            let reply = match result {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(message) => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": message } })
                }
            };
            // A server that does not read gets no more replies.
            let _ = outgoing.upgrade().map(|outgoing| outgoing.try_send(reply));
        };
        match method {
            "ping" => reply(Ok(json!({}))),
            "elicitation/create" => {
                let mut calls = self.waiting.calls.subscribe();
                let permit = self.questions.clone().try_acquire_owned();
                let (Ok(permit), true) = (permit, *calls.borrow() > 0) else {
                    return reply(Ok(json!({ "action": "cancel" })));
                };
                let (host, server, params) = (self.host.clone(), self.server.clone(), params.clone());
                tokio::spawn(async move {
                    let result = tokio::select! {
                        result = ask(&*host, &server, &params) => result,
                        // The call for which it asked is over.
                        _ = calls.wait_for(|count| *count == 0) => Ok(json!({ "action": "cancel" })),
                    };
                    reply(result);
                    drop(permit);
                });
            }
            _ => reply(Err("this client does not offer that".to_owned())),
        }
    }
}
