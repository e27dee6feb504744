//! Messages of the protocol, whatever carries them: what is asked, in which revision, and what is replied.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Server, offered};

/// The revision without a handshake: every request says by itself which revision it is of.
pub(super) const STATELESS: &str = "2026-07-28";
/// The revisions that begin with a handshake, newest first.
pub(super) const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The longest token of a request for progress.
const MAX_PROGRESS_TOKEN_BYTES: usize = 256;
/// How long clients may keep the list of tools, which changes with the program alone.
const LIST_MS: u64 = 3_600_000;

/// Where a request of [`STATELESS`] says its revision.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Where it says what the client can do.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Where a response says whose it is.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const NO_SUCH_METHOD: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// An error of the protocol.
#[derive(Debug, PartialEq)]
pub(super) struct ProtocolError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl ProtocolError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The revision is not spoken here.
    pub(super) fn of_version(asked: &str) -> Self {
        let data = json!({ "supported": [STATELESS], "requested": asked });
        let message = format!("revision `{asked}` is not spoken here");
        Self { code: UNSUPPORTED_VERSION, message, data: Some(data) }
    }

    /// The response to a request.
    pub(super) fn response(self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// A request that waits for its response.
#[derive(Debug, PartialEq)]
pub(super) struct ClientRequest {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

/// What a client sends.
#[derive(Debug, PartialEq)]
pub(super) enum ClientMessage {
    Request(ClientRequest),
    /// The response to this request is not wanted any more.
    Cancelled(Value),
    /// Another notification, or a response that nobody asked for.
    Other,
    /// It is none of these; the response says why.
    Refused(Value),
}

impl ClientMessage {
    /// Reads a message.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let refused = |code, message: &str| Self::Refused(ProtocolError::new(code, message).response(&Value::Null));
        let Ok(mut message) = serde_json::from_slice::<Value>(bytes) else {
            return refused(PARSE_ERROR, "the message is not JSON");
        };
        if !message.is_object() {
            return refused(INVALID_REQUEST, "the message is no request");
        }
        let method = message["method"].as_str().map(str::to_owned);
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        match (id, method) {
            (None, Some(method)) if method == "notifications/cancelled" => {
                // What is no object has nothing to take.
                message.pointer_mut("/params/requestId").map_or(Self::Other, |id| Self::Cancelled(id.take()))
            }
            (None, _) => Self::Other,
            (_, None) if message.get("result").or(message.get("error")).is_some() => Self::Other,
            (Some(id), _) if !id.is_string() && !id.is_number() => {
                refused(INVALID_REQUEST, "an id is a text or a number")
            }
            (Some(id), None) => Self::Refused(ProtocolError::new(INVALID_REQUEST, "`method` is no text").response(&id)),
            (Some(id), Some(method)) => Self::Request(ClientRequest { id, method, params: message["params"].take() }),
        }
    }
}

/// How a request says what it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// There was a handshake before it, or should have been.
    Handshake,
    /// It needs none: the request says everything.
    Stateless,
}

impl Era {
    /// That of a request. A handshake is always one, whatever else it carries.
    pub(super) fn of(request: &ClientRequest) -> Result<Self, ProtocolError> {
        if request.method == "initialize" {
            return Ok(Era::Handshake);
        }
        let meta = &request.params["_meta"];
        let Some(version) = meta.get(VERSION_KEY) else {
            return match request.method.as_str() {
                "server/discover" => Err(ProtocolError::new(INVALID_PARAMS, format!("`_meta` has no `{VERSION_KEY}`"))),
                _ => Ok(Era::Handshake),
            };
        };
        let Some(version) = version.as_str() else {
            return Err(ProtocolError::new(INVALID_PARAMS, format!("`{VERSION_KEY}` is no text")));
        };
        if !meta[CAPABILITIES_KEY].is_object() {
            return Err(ProtocolError::new(INVALID_PARAMS, format!("`_meta` has no `{CAPABILITIES_KEY}`")));
        }
        match version {
            STATELESS => Ok(Era::Stateless),
            other => Err(ProtocolError::of_version(other)),
        }
    }

    /// The revision that a stateless request says it is of, as it is.
    pub(super) fn version_in(request: &ClientRequest) -> Option<&str> {
        request.params["_meta"][VERSION_KEY].as_str()
    }
}

/// Sends a notification about a request while it is worked on.
pub(super) type Tell<'a> = &'a (dyn Fn(Value) + Send + Sync);

impl Server {
    /// The response to a request.
    pub(super) async fn response(self: &Arc<Self>, request: &ClientRequest, tell: Tell<'_>) -> Value {
        match self.result(request, tell).await {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": request.id, "result": result }),
            Err(refusal) => refusal.response(&request.id),
        }
    }

    async fn result(self: &Arc<Self>, request: &ClientRequest, tell: Tell<'_>) -> Result<Value, ProtocolError> {
        let era = Era::of(request)?;
        if !request.params.is_object() && !request.params.is_null() {
            return Err(ProtocolError::new(INVALID_PARAMS, "`params` must be an object"));
        }
        let mut result = match (request.method.as_str(), era) {
            ("initialize", _) => handshake(&request.params),
            ("ping", Era::Handshake) => json!({}),
            ("server/discover", Era::Stateless) => json!({
                "supportedVersions": [STATELESS],
                "capabilities": { "tools": {} },
                "ttlMs": LIST_MS,
                "cacheScope": "public",
            }),
            ("tools/list", _) if !request.params["cursor"].is_null() => {
                return Err(ProtocolError::new(INVALID_PARAMS, "there is no such page of tools"));
            }
            ("tools/list", Era::Handshake) => json!({ "tools": offered::tools() }),
            ("tools/list", Era::Stateless) => {
                json!({ "tools": offered::tools(), "ttlMs": LIST_MS, "cacheScope": "public" })
            }
            ("tools/call", _) => self.called(&request.params, tell).await?,
            (method, _) => return Err(ProtocolError::new(NO_SUCH_METHOD, format!("there is no method `{method}`"))),
        };
        if era == Era::Stateless {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({ SERVER_KEY: about() });
        }
        Ok(result)
    }

    async fn called(self: &Arc<Self>, params: &Value, tell: Tell<'_>) -> Result<Value, ProtocolError> {
        let invalid = |message: String| ProtocolError::new(INVALID_PARAMS, message);
        let name = params["name"].as_str().ok_or_else(|| invalid("`name` is missing".to_owned()))?;
        let input = params.get("arguments").filter(|input| !input.is_null()).cloned().unwrap_or(json!({}));
        if !offered::tools().iter().any(|tool| tool["name"] == name) {
            return Err(invalid(format!("there is no tool `{name}`")));
        }
        if let Some(token) = progress_token(params)? {
            let progress = json!({ "progressToken": token, "progress": 0, "total": 1, "message": name });
            tell(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
        }
        let (said, is_error) = match self.call(name, input).await {
            Ok(said) => (said, false),
            Err(message) => (message.into(), true),
        };
        let mut result = json!({ "content": [{ "type": "text", "text": said.text }], "isError": is_error });
        if let Some(structured) = said.structured {
            result["structuredContent"] = structured;
        }
        Ok(result)
    }
}

/// What a client that begins with a handshake is told: the revision that it asks for, or the newest of this kind.
fn handshake(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str();
    let version = HANDSHAKE.into_iter().find(|version| Some(*version) == asked).unwrap_or(HANDSHAKE[0]);
    json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": about() })
}

fn about() -> Value {
    json!({ "name": "contexture", "title": "Contexture", "version": env!("CARGO_PKG_VERSION") })
}

/// What notifications of progress are marked with, if the client wants them.
fn progress_token(params: &Value) -> Result<Option<&Value>, ProtocolError> {
    match params["_meta"].get("progressToken") {
        None | Some(Value::Null) => Ok(None),
        Some(token @ Value::String(text)) if text.len() <= MAX_PROGRESS_TOKEN_BYTES => Ok(Some(token)),
        Some(token) if token.is_i64() || token.is_u64() => Ok(Some(token)),
        Some(_) => Err(ProtocolError::new(INVALID_PARAMS, "`progressToken` is a short text or a whole number")),
    }
}

/// Whether a request wants to hear of its progress.
pub(super) fn wants_progress(request: &ClientRequest) -> bool {
    request.method == "tools/call" && matches!(progress_token(&request.params), Ok(Some(_)))
}
