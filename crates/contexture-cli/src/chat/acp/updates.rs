//! Messages, calls and plans as the protocol writes them.

use std::path::Path;

use contexture::item::{Item, Role};
use contexture::layers::Plan;
use contexture::layers::plan::Status;
use serde_json::{Value, json};

use crate::chat::editor_call::AcpEditor;
use crate::chat::happening::{AgentCall, FileEdit, Intent};
use crate::chat::session::ChatSession;

/// The most bytes of an embedded file that are put into a message.
const MAX_EMBEDDED_BYTES: usize = 256 * 1024;

/// The text of a prompt: what was written, files that are named, and texts that the editor embeds.
pub(super) fn prompt_text(prompt: &Value) -> String {
    let part = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].as_str().map(str::to_owned),
        Some("resource_link") => block["uri"].as_str().map(|uri| format!(" {} ", uri.trim_start_matches("file://"))),
        Some("resource") => {
            let (uri, text) = (block["resource"]["uri"].as_str()?, block["resource"]["text"].as_str()?);
            let cut = &text[..text.floor_char_boundary(MAX_EMBEDDED_BYTES)];
            let more = if cut.len() < text.len() { "\n[… the rest is left out …]" } else { "" };
            Some(format!("\n<file path=\"{}\">\n{cut}{more}\n</file>\n", uri.trim_start_matches("file://")))
        }
        _ => None,
    };
    prompt.as_array().into_iter().flatten().filter_map(part).collect()
}

/// A piece of a message.
pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

/// A call that begins.
pub(super) fn call(call: &AgentCall, directory: &Path) -> Value {
    let mut update = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call.id,
        "title": call.line,
        "kind": kind(&call.name),
        "status": "in_progress",
        "rawInput": call.arguments,
    });
    if let Some(path) = call.arguments["path"].as_str() {
        update["locations"] = json!([{ "path": directory.join(path) }]);
    }
    update
}

/// A call that has ended, with what it returned.
pub(super) fn returned(call: &AgentCall, text: &str, is_error: bool) -> Value {
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": call.id,
        "status": if is_error { "failed" } else { "completed" },
        "content": [content(text)],
    })
}

/// More of what a command prints.
pub(super) fn printed(id: &str, text: &str) -> Value {
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "content": [content(text)] })
}

fn content(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// What is about to be done, for who decides about it.
pub(super) fn intent(id: &str, intent: &Intent, directory: &Path) -> Value {
    let (title, kind, content) = match intent {
        Intent::Write(edit) => (format!("write {}", edit.path), "edit", diff(edit, directory)),
        Intent::Run(command) => (command.clone(), "execute", content(command)),
        Intent::Call(tool, arguments) => (format!("call {tool}"), "other", content(arguments)),
    };
    json!({ "toolCallId": id, "title": title, "kind": kind, "status": "pending", "content": [content] })
}

/// A change of a file.
pub(super) fn diff(edit: &FileEdit, directory: &Path) -> Value {
    json!({ "type": "diff", "path": directory.join(&edit.path), "oldText": edit.before, "newText": edit.after })
}

fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "list_files" => "read",
        "search_files" => "search",
        "write_file" | "edit_file" => "edit",
        "execute_bash" => "execute",
        tool if tool.starts_with("plan") => "think",
        _ => "other",
    }
}

/// What was said before, for an editor that loads a session.
pub(super) fn replay<'a>(log: impl Iterator<Item = &'a Item>, session: &str, editor: &AcpEditor) {
    for (at, item) in log.enumerate() {
        if let Some(called) = item.as_call() {
            let id = format!("past-{at}-{}", called.call_id);
            let past = AgentCall::new(&id, &called.name, &called.parsed_arguments());
            let mut update = call(&past, Path::new("/"));
            update["status"] = "completed".into();
            editor.update(session, update);
        }
        let Some(message) = item.as_message() else { continue };
        match message.role {
            Role::User => editor.update(session, chunk("user_message_chunk", &message.text())),
            Role::Assistant => editor.update(session, chunk("agent_message_chunk", &message.text())),
            _ => {}
        }
    }
}

/// The plan of a session, if the model has one.
pub(super) fn plan(session: &ChatSession, id: &str, editor: &AcpEditor) {
    let plan = session.execution.memory().state::<Plan, _>();
    if plan.steps().is_empty() {
        return;
    }
    let next = plan.next().map(|step| step.id.clone());
    let entry = |step: &contexture::layers::plan::Step| {
        let status = match step.status {
            Status::Done | Status::Skipped | Status::Failed => "completed",
            _ if next.as_ref() == Some(&step.id) => "in_progress",
            _ => "pending",
        };
        json!({ "content": step.text, "priority": "medium", "status": status })
    };
    let entries: Vec<Value> = plan.steps().iter().map(entry).collect();
    editor.update(id, json!({ "sessionUpdate": "plan", "entries": entries }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_what_was_written_and_what_it_names() {
        let prompt = json!([
            { "type": "text", "text": "explain" },
            { "type": "resource_link", "uri": "file:///a/b.rs", "name": "b.rs" },
            { "type": "resource", "resource": { "uri": "file:///c", "text": "x" } },
            { "type": "image", "data": "AAAA" },
            7,
        ]);
        assert_eq!(prompt_text(&prompt), "explain /a/b.rs \n<file path=\"/c\">\nx\n</file>\n");
        assert_eq!(prompt_text(&json!("text")), "");
    }
}
