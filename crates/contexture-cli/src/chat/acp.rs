//! `contexture chat --acp`: conversations for an editor that speaks the Agent Client Protocol, over standard input and
//! output.

mod relay;
mod updates;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use contexture::engine::AbortHandle;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, LocalSet};

use super::editor_call::AcpEditor;
use super::editor_files::{self, EditorFiles};
use super::session::{SessionOpener, SessionRequest, ThreadChoice};
use crate::failure::Failure;
use crate::lines::{InputLine, next_line};
use crate::settings::keys::McpEntry;

/// The version of the protocol.
const VERSION: u64 = 1;

/// The longest message that is read: editors send files in them.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The most messages that were read and not looked at.
const MAX_LINES: usize = 16;

/// The most sessions at once.
const MAX_SESSIONS: usize = 16;

const INVALID_REQUEST: i64 = -32600;
const NO_SUCH_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const FAILED: i64 = -32603;

/// An error of the protocol: its code and message.
type AcpError = (i64, String);

/// A session, as the rest of the program knows it.
struct Handle {
    prompts: mpsc::Sender<Prompt>,
    /// Ends the turn that runs.
    running: Rc<RefCell<Option<AbortHandle>>>,
    task: JoinHandle<()>,
}

/// A message of the person, and where its outcome goes.
struct Prompt {
    text: String,
    done: oneshot::Sender<Result<&'static str, String>>,
}

/// Serves an editor until it ends.
pub(super) async fn serve(open: impl SessionOpener + 'static) -> Result<(), Failure> {
    let (sender, mut lines) = mpsc::channel(MAX_LINES);
    // A thread of its own: reading cannot be interrupted.
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input, MAX_LINE_BYTES) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let (capabilities, sessions, opening) = Default::default();
    let agent = Rc::new(AcpAgent { open, editor: AcpEditor::new(), capabilities, sessions, opening });
    LocalSet::new()
        .run_until(async move {
            while let Some(line) = lines.recv().await {
                agent.clone().take(line);
            }
            // Turns that run are interrupted, and go on when their thread is loaded.
            agent.sessions.borrow().values().for_each(Handle::cancel);
        })
        .await;
    Ok(())
}

impl Handle {
    fn cancel(&self) {
        if let Some(abort) = self.running.borrow().as_ref() {
            abort.abort();
        }
    }
}

struct AcpAgent<O> {
    open: O,
    editor: AcpEditor,
    /// What the editor says that it can do.
    capabilities: RefCell<Value>,
    sessions: RefCell<HashMap<String, Handle>>,
    /// How many sessions are being opened.
    opening: Cell<usize>,
}

/// A session that is being opened, which counts as one.
struct OpeningSession<'a>(&'a Cell<usize>);

impl<'a> OpeningSession<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for OpeningSession<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl<O: SessionOpener + 'static> AcpAgent<O> {
    /// A message of the editor.
    fn take(self: Rc<Self>, line: InputLine) {
        let refused = |id: &Value, code: i64, message: &str| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
        let message = match line {
            InputLine::Whole(bytes) if bytes.trim_ascii().is_empty() => return,
            InputLine::Whole(bytes) => serde_json::from_slice::<Value>(&bytes).unwrap_or_default(),
            InputLine::TooLong(_) => Value::Null,
        };
        if !message.is_object() {
            return self.editor.write(&refused(&Value::Null, INVALID_REQUEST, "the message is no request"));
        }
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        match (message["method"].as_str().map(str::to_owned), id) {
            (None, _) => self.editor.replied(&message),
            (Some(method), None) => {
                if method == "session/cancel" {
                    let sessions = self.sessions.borrow();
                    let session = message["params"]["sessionId"].as_str().and_then(|id| sessions.get(id));
                    session.into_iter().for_each(Handle::cancel);
                }
            }
            (Some(method), Some(id)) => {
                tokio::task::spawn_local(async move {
                    let response = match self.clone().respond(&method, &message["params"]).await {
                        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                        Err((code, text)) => refused(&id, code, &text),
                    };
                    self.editor.write(&response);
                });
            }
        }
    }

    async fn respond(self: Rc<Self>, method: &str, params: &Value) -> Result<Value, AcpError> {
        match method {
            "initialize" => {
                *self.capabilities.borrow_mut() = params["clientCapabilities"].clone();
                Ok(json!({
                    "protocolVersion": VERSION,
                    "agentCapabilities": {
                        "loadSession": true,
                        "promptCapabilities": { "embeddedContext": true },
                        "mcpCapabilities": { "http": true, "sse": false },
                    },
                    "agentInfo": { "name": "contexture", "title": "Contexture", "version": env!("CARGO_PKG_VERSION") },
                    "authMethods": [],
                }))
            }
            "session/new" => self.begin(params, None).await.map(|id| json!({ "sessionId": id })),
            "session/load" => {
                let id = text_of(params, "sessionId")?;
                self.begin(params, Some(id)).await.map(|_| json!({}))
            }
            "session/prompt" => self.prompt(params).await,
            _ => Err((NO_SUCH_METHOD, format!("there is no method `{method}`"))),
        }
    }

    /// Opens a session; of one that goes on the editor is told what was said.
    async fn begin(&self, params: &Value, thread: Option<String>) -> Result<String, AcpError> {
        let _opening = OpeningSession::new(&self.opening);
        if self.sessions.borrow().len() + self.opening.get() > MAX_SESSIONS {
            return Err((INVALID_REQUEST, format!("there are {MAX_SESSIONS} sessions")));
        }
        if let Some(handle) = thread.as_ref().and_then(|thread| self.sessions.borrow_mut().remove(thread)) {
            // It is loaded again: the old one ends first.
            handle.cancel();
            drop(handle.prompts);
            // Whether it ended well is not known to the editor either.
            let _ = handle.task.await;
        }
        let directory = PathBuf::from(text_of(params, "cwd")?);
        if !directory.is_absolute() {
            return Err((INVALID_PARAMS, "`cwd` must be an absolute path".to_owned()));
        }
        let is_loaded = thread.is_some();
        let (files, asked) = EditorFiles::of(&self.capabilities.borrow()).unzip();
        let thread = thread.map_or(ThreadChoice::New, ThreadChoice::Named);
        let wanted = SessionRequest { directory, thread, model: None, servers: servers(&params["mcpServers"])?, files };
        let session = self.open.open(wanted).await.map_err(|failure| (FAILED, failure.sentence().to_owned()))?;
        let id = session.thread();
        let running = Rc::default();
        if let Some(asked) = asked {
            tokio::task::spawn_local(editor_files::pass_on(self.editor.clone(), id.clone(), asked));
        }
        let (prompts, prompted) = mpsc::channel(1);
        if is_loaded {
            updates::replay(session.execution.log().iter(), &id, &self.editor);
            updates::plan(&session, &id, &self.editor);
        }
        let task = tokio::task::spawn_local(relay::run(session, self.editor.clone(), prompted, Rc::clone(&running)));
        self.sessions.borrow_mut().insert(id.clone(), Handle { prompts, running, task });
        Ok(id)
    }

    async fn prompt(&self, params: &Value) -> Result<Value, AcpError> {
        let id = text_of(params, "sessionId")?;
        let text = updates::prompt_text(&params["prompt"]);
        if text.trim().is_empty() {
            return Err((INVALID_PARAMS, "the prompt has no text".to_owned()));
        }
        let unknown = || (INVALID_PARAMS, "there is no such session".to_owned());
        let prompts = self.sessions.borrow().get(&id).map(|handle| handle.prompts.clone()).ok_or_else(unknown)?;
        let (done, outcome) = oneshot::channel();
        let is_sent = prompts.try_send(Prompt { text, done }).is_ok();
        drop(prompts);
        if !is_sent {
            return Err((INVALID_REQUEST, "another prompt of this session waits".to_owned()));
        }
        match outcome.await {
            Ok(Ok(reason)) => Ok(json!({ "stopReason": reason })),
            Ok(Err(message)) => Err((FAILED, message)),
            Err(_) => Ok(json!({ "stopReason": "cancelled" })),
        }
    }
}

fn text_of(params: &Value, name: &str) -> Result<String, AcpError> {
    let text = params[name].as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| (INVALID_PARAMS, format!("`{name}` is missing")))
}

/// The servers that an editor brings: programs, and those over HTTP.
fn servers(list: &Value) -> Result<Vec<McpEntry>, AcpError> {
    let pairs = |list: &Value| -> Vec<(String, String)> {
        let pair = |one: &Value| Some((one["name"].as_str()?.to_owned(), one["value"].as_str()?.to_owned()));
        list.as_array().into_iter().flatten().filter_map(pair).collect()
    };
    let server = |server: &Value| {
        let name = text_of(server, "name")?;
        if server["type"] == "http" {
            let (url, headers) = (Some(text_of(server, "url")?), pairs(&server["headers"]));
            return Ok(McpEntry { name, url, headers, ..McpEntry::default() });
        }
        let Some(command) = server["command"].as_str().map(str::to_owned) else {
            return Err((INVALID_PARAMS, format!("the MCP server `{name}` is neither a program nor over HTTP")));
        };
        let texts = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let args = texts.map(str::to_owned).collect();
        let env = pairs(&server["env"]).iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(McpEntry { name, command, args, env, ..McpEntry::default() })
    };
    list.as_array().into_iter().flatten().map(server).collect()
}
