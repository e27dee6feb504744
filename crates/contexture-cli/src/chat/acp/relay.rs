//! A session of an editor: runs its prompts one after the other, and tells the editor what happens.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use contexture::engine::AbortHandle;
use contexture::error::Error;
use contexture::layer::TokenUsage;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Prompt;
use super::updates;
use crate::chat::editor_call::AcpEditor;
use crate::chat::happening::{AgentCall, Happening, PermissionQuestion, PermissionReply, SHORTENED};
use crate::chat::live::MAX_PRINTED;
use crate::chat::session::{ChatSession, chain};
use crate::chat::spent;

/// What the person may say to a question: the id, the text and the kind of each.
const OPTIONS: [(&str, &str, &str); 3] =
    [("once", "Allow", "allow_once"), ("always", "Always allow", "allow_always"), ("no", "Do not", "reject_once")];

/// Runs prompts until the session is closed.
pub(super) async fn run(
    mut session: ChatSession,
    editor: AcpEditor,
    mut prompts: mpsc::Receiver<Prompt>,
    running: Rc<RefCell<Option<AbortHandle>>>,
) {
    let mut requests = 0;
    while let Some(prompt) = prompts.recv().await {
        let outcome = turn(&mut session, &editor, prompt.text, &running, &mut requests).await;
        *running.borrow_mut() = None;
        // If the editor does not wait any more, it is about to end.
        let _ = prompt.done.send(outcome);
    }
    // A thread that cannot be ended properly now is when it is opened again.
    let _ = session.execution.complete().await;
}

/// Runs a turn; why it stopped.
async fn turn(
    session: &mut ChatSession,
    editor: &AcpEditor,
    mut text: String,
    running: &RefCell<Option<AbortHandle>>,
    requests: &mut u64,
) -> Result<&'static str, String> {
    let abort = session.begin(Some(&mut text)).await.map_err(|failure| failure.sentence().to_owned())?;
    *running.borrow_mut() = Some(abort);
    let id = session.thread();
    let before = session.execution.token_usage();
    let mut relay = Relay {
        editor: editor.clone(),
        session: id.clone(),
        directory: session.workspace.directory().to_owned(),
        requests: *requests,
        called: None,
        printed: VecDeque::new(),
        window: None,
        shortened: Vec::new(),
    };
    let ChatSession { execution, happenings, .. } = session;
    let outcome = {
        let mut turn = std::pin::pin!(execution.turn(text));
        loop {
            tokio::select! {
                biased;
                Some(happening) = happenings.recv() => relay.tell(happening),
                outcome = &mut turn => break outcome,
            }
        }
    };
    while let Ok(happening) = happenings.try_recv() {
        relay.tell(happening);
    }
    *requests = relay.requests;
    if session.has_shortened_message(&relay.shortened) {
        relay.note(SHORTENED);
    }
    updates::plan(session, &id, editor);
    relay.usage(&session.model, before, session.execution.token_usage());
    match outcome {
        Ok(_) => Ok("end_turn"),
        Err(Error::Aborted) => Ok("cancelled"),
        Err(error) => Err(chain(&error)),
    }
}

/// Tells the editor what happens in a turn.
struct Relay {
    editor: AcpEditor,
    session: String,
    directory: PathBuf,
    /// How many requests were sent: ids of calls are only known to differ within a response.
    requests: u64,
    /// The call that began last.
    called: Option<String>,
    /// The last lines that its command printed.
    printed: VecDeque<String>,
    /// The tokens of the last request, and of the largest that is possible.
    window: Option<(u64, u64)>,
    /// Items of which only a part was sent.
    shortened: Vec<usize>,
}

impl Relay {
    fn update(&self, update: Value) {
        self.editor.update(&self.session, update);
    }

    /// Says something that is not of the model.
    fn note(&self, text: &str) {
        self.update(updates::chunk("agent_thought_chunk", &format!("{text}\n")));
    }

    /// A call whose id is that of no other.
    fn own(&self, call: AgentCall) -> AgentCall {
        AgentCall { id: format!("{}-{}", self.requests, call.id), ..call }
    }

    fn tell(&mut self, happening: Happening) {
        match happening {
            Happening::Text(text) => self.update(updates::chunk("agent_message_chunk", &text)),
            Happening::Thought(text) => self.update(updates::chunk("agent_thought_chunk", &text)),
            Happening::Called(call) => {
                let call = self.own(call);
                self.called = Some(call.id.clone());
                self.printed.clear();
                self.update(updates::call(&call, &self.directory));
            }
            Happening::Failed(call, why) => {
                let call = self.own(call);
                if self.called.as_ref() != Some(&call.id) {
                    self.update(updates::call(&call, &self.directory));
                }
                self.update(updates::returned(&call, &why, true));
            }
            Happening::Returned(call, text) => self.update(updates::returned(&self.own(call), &text, false)),
            Happening::Ran(ran) => {
                let text = format!("{}\n{}", ran.lines.join("\n"), ran.ending);
                self.update(updates::returned(&self.own(ran.call), text.trim_start(), ran.failure.is_some()));
            }
            Happening::Printed(tail) => {
                self.printed.extend(tail.take());
                let over = self.printed.len().saturating_sub(MAX_PRINTED);
                self.printed.drain(..over);
                if let Some(id) = &self.called {
                    let lines: Vec<&str> = self.printed.iter().map(String::as_str).collect();
                    self.update(updates::printed(id, &lines.join("\n")));
                }
            }
            Happening::Edited(edit) => {
                if let Some(id) = &self.called {
                    let content = [updates::diff(&edit, &self.directory)];
                    let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "content": content });
                    self.update(update);
                }
            }
            Happening::Asked(question) => self.ask(question),
            Happening::Window { used, size } => self.window = Some((used, size)),
            Happening::Retried(line) | Happening::Cut(line) => self.note(&line),
            Happening::Progressed(tail) => tail.take().last().into_iter().for_each(|line| self.note(line)),
            Happening::Fault(line) => self.note(&line),
            Happening::Shortened(positions) => self.shortened.extend(positions),
            // Servers are told that nobody answers: dropping the question cancels it.
            Happening::Elicited(_) => {}
            Happening::Requested => self.requests += 1,
        }
    }

    /// Asks whether something may be done.
    fn ask(&self, question: PermissionQuestion) {
        let id = self.called.clone().unwrap_or_else(|| "question".to_owned());
        let option = |(id, name, kind): (&str, &str, &str)| json!({ "optionId": id, "name": name, "kind": kind });
        let options: Vec<Value> = OPTIONS.into_iter().map(option).collect();
        let call = updates::intent(&id, &question.intent, &self.directory);
        let params = json!({ "sessionId": self.session, "toolCall": call, "options": options });
        let replied = self.editor.request("session/request_permission", params);
        tokio::task::spawn_local(async move {
            let result = replied.await.ok().and_then(Result::ok).unwrap_or_default();
            let outcome = &result["outcome"];
            let reply = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
                (Some("selected"), Some("once")) => PermissionReply::Yes,
                (Some("selected"), Some("always")) => PermissionReply::Always,
                (Some("cancelled"), _) => PermissionReply::Interrupt,
                _ => PermissionReply::No,
            };
            // If the tool does not wait any more, the turn was cancelled.
            let _ = question.reply.send(reply);
        });
    }

    /// How full the window is, and what the turn cost.
    fn usage(&self, model: &str, before: TokenUsage, after: TokenUsage) {
        let Some((used, size)) = self.window else { return };
        let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if let Some(amount) = spent::dollars(model, spent::between(before, after), used) {
            update["cost"] = json!({ "amount": amount, "currency": "USD" });
        }
        self.update(update);
    }
}
