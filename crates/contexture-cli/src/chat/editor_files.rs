//! Files as the editor has them, for tools, which run in other tasks than the protocol.

use std::path::Path;
use std::time::Duration;

use contexture::BoxFuture;
use contexture::tools::OpenFiles;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::editor_call::{AcpEditor, EditorReply};

/// How long the editor may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that the editor is asked for.
pub(super) struct FileRequest {
    method: &'static str,
    params: Value,
    reply: oneshot::Sender<EditorReply>,
}

/// What an editor does with files, by what it says of itself.
pub(super) struct EditorFiles {
    reads: bool,
    writes: bool,
    requests: mpsc::UnboundedSender<FileRequest>,
}

impl EditorFiles {
    /// The files of an editor with these capabilities, if it has any to do with files.
    pub(super) fn of(capabilities: &Value) -> Option<(Self, mpsc::UnboundedReceiver<FileRequest>)> {
        let can = |name: &str| capabilities["fs"][name] == true;
        let (reads, writes) = (can("readTextFile"), can("writeTextFile"));
        let (requests, asked) = mpsc::unbounded_channel();
        (reads || writes).then_some((Self { reads, writes, requests }, asked))
    }

    async fn ask(&self, method: &'static str, params: Value) -> EditorReply {
        let (reply, replied) = oneshot::channel();
        // If nobody passes it on any more, nobody replies either.
        let _ = self.requests.send(FileRequest { method, params, reply });
        let replied = tokio::time::timeout(PATIENCE, replied).await;
        replied.ok().and_then(Result::ok).unwrap_or_else(|| Err("it did not reply".to_owned()))
    }
}

impl OpenFiles for EditorFiles {
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let params = json!({ "path": path.to_str().filter(|_| self.reads)? });
            self.ask("fs/read_text_file", params).await.ok()?["content"].as_str().map(str::to_owned)
        })
    }

    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Option<Result<(), String>>> {
        Box::pin(async move {
            let params = json!({ "path": path.to_str().filter(|_| self.writes)?, "content": text });
            Some(self.ask("fs/write_text_file", params).await.map(drop))
        })
    }
}

/// Passes on what tools ask the editor of a session for, until the session ends.
pub(super) async fn pass_on(editor: AcpEditor, session: String, mut asked: mpsc::UnboundedReceiver<FileRequest>) {
    while let Some(FileRequest { method, mut params, reply }) = asked.recv().await {
        params["sessionId"] = session.as_str().into();
        let replied = editor.request(method, params);
        tokio::task::spawn_local(async move {
            // If the tool does not wait any more, the turn was cancelled.
            let _ = replied.await.map(|result| reply.send(result));
        });
    }
}
