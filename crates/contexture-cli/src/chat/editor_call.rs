//! What is sent to the editor: responses, notifications, and requests that it replies to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::happening::one_line;

/// The editor at the other end. Cheap to clone.
#[derive(Clone)]
pub(super) struct AcpEditor(Rc<RefCell<EditorRequests>>);

/// The requests that the editor has not replied to.
#[derive(Default)]
struct EditorRequests {
    last_id: u64,
    open: HashMap<u64, oneshot::Sender<EditorReply>>,
}

/// What the editor says to a request: the result, or why it refuses.
pub(super) type EditorReply = Result<Value, String>;

impl AcpEditor {
    pub(super) fn new() -> Self {
        Self(Rc::default())
    }

    pub(super) fn write(&self, message: &Value) {
        let mut output = io::stdout().lock();
        // An editor that does not read any more closes the input too.
        let _ = output.write_all(format!("{message}\n").as_bytes()).and_then(|()| output.flush());
    }

    /// Tells the editor something about a session.
    pub(super) fn update(&self, session: &str, update: Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    /// Asks the editor for something.
    pub(super) fn request(&self, method: &str, params: Value) -> oneshot::Receiver<EditorReply> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut asked = self.0.borrow_mut();
            asked.last_id += 1;
            let id = asked.last_id;
            asked.open.insert(id, sender);
            id
        };
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        receiver
    }

    /// The editor replied.
    pub(super) fn replied(&self, message: &Value) {
        let open = message["id"].as_u64().and_then(|id| self.0.borrow_mut().open.remove(&id));
        let reply = match message.get("error") {
            Some(error) => Err(one_line(error["message"].as_str().unwrap_or("it did not say why"), 200)),
            None => Ok(message["result"].clone()),
        };
        // What asked may be over.
        let _ = open.map(|sender| sender.send(reply));
    }
}
