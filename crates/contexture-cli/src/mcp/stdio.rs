//! The server over standard input and output: one message a line, answered in their order.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Server;
use super::protocol::{ClientMessage, ClientRequest, INVALID_REQUEST, ProtocolError};
use crate::failure::Failure;
use crate::lines::{InputLine, next_line};

/// The longest line that is read.
pub(super) const MAX_LINE_BYTES: usize = 4 << 20;
/// The most lines that were read and not looked at.
const MAX_LINES: usize = 16;
/// The most requests that wait for their turn.
const MAX_WAITING: usize = 256;

/// Answers what comes until the input ends.
pub(super) async fn serve(server: Arc<Server>) -> Result<(), Failure> {
    let (sender, mut lines) = mpsc::channel(MAX_LINES);
    // A thread of its own: reading cannot be interrupted.
    std::thread::spawn(move || read(&mut io::stdin().lock(), &sender));
    let (mut waiting, mut working, mut is_ended) = (VecDeque::new(), None::<RequestTask>, false);
    loop {
        if working.is_none() {
            working = waiting.pop_front().map(|request| RequestTask::begin(server.clone(), request));
        }
        if is_ended && working.is_none() {
            return Ok(());
        }
        tokio::select! {
            line = lines.recv(), if !is_ended => match line {
                Some(line) => taken(line, &mut waiting, &mut working)?,
                None => is_ended = true,
            },
            response = RequestTask::end(&mut working) => {
                working = None;
                // Without a response it was cancelled.
                response.map(|response| write(&response)).transpose()?;
            }
        }
    }
}

/// The request that is worked on.
struct RequestTask {
    id: Value,
    task: JoinHandle<Value>,
}

impl RequestTask {
    fn begin(server: Arc<Server>, request: ClientRequest) -> Self {
        let id = request.id.clone();
        let tell = |notification: Value| {
            // If nobody reads any more, the response fails too.
            let _ = write(&notification);
        };
        Self { id, task: tokio::spawn(async move { server.response(&request, &tell).await }) }
    }

    async fn end(working: &mut Option<Self>) -> Option<Value> {
        match working {
            Some(work) => (&mut work.task).await.ok(),
            None => std::future::pending().await,
        }
    }
}

fn taken(line: InputLine, waiting: &mut VecDeque<ClientRequest>, working: &mut Option<RequestTask>) -> io::Result<()> {
    let bytes = match line {
        InputLine::Whole(bytes) if bytes.trim_ascii().is_empty() => return Ok(()),
        InputLine::Whole(bytes) => bytes,
        InputLine::TooLong(head) => {
            let message = format!("the message has more than {MAX_LINE_BYTES} bytes");
            let id = id_at_the_start(&head).unwrap_or_default();
            return write(&ProtocolError::new(INVALID_REQUEST, message).response(&id));
        }
    };
    match ClientMessage::read(&bytes) {
        ClientMessage::Request(request) if waiting.len() >= MAX_WAITING => {
            let message = format!("more than {MAX_WAITING} requests wait");
            write(&ProtocolError::new(INVALID_REQUEST, message).response(&request.id))
        }
        ClientMessage::Request(request) => {
            waiting.push_back(request);
            Ok(())
        }
        ClientMessage::Cancelled(id) => {
            waiting.retain(|request| request.id != id);
            if let Some(work) = working.as_ref().filter(|work| work.id == id) {
                work.task.abort();
            }
            Ok(())
        }
        ClientMessage::Other => Ok(()),
        ClientMessage::Refused(response) => write(&response),
    }
}

fn write(message: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(format!("{message}\n").as_bytes())?;
    output.flush()
}

/// Reads lines until the input ends or nobody wants them.
fn read(input: &mut impl BufRead, lines: &mpsc::Sender<InputLine>) {
    while let Ok(Some(line)) = next_line(input, MAX_LINE_BYTES) {
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// The id of a request that is too long to be read, if it comes before anything long: clients write it first.
fn id_at_the_start(head: &[u8]) -> Option<Value> {
    let mut rest = head.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (name, after) = first_value(rest)?;
        let after = after.trim_ascii_start().strip_prefix(b":")?;
        let (value, after) = first_value(after)?;
        if name == "id" {
            return Some(value).filter(|id| id.is_string() || id.is_number());
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The JSON value at the start of a text, and what is after it; `None` if it is not complete.
fn first_value(text: &[u8]) -> Option<(Value, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    // A number may go on after the end of the text.
    (end < text.len()).then(|| (value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cancelled_before_its_turn_is_not_done() {
        let request = |id: u64| serde_json::json!({ "id": id, "method": "ping" }).to_string();
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#.to_owned();
        let mut waiting = VecDeque::new();
        for line in [request(1), request(2), request(3), cancel] {
            taken(InputLine::Whole(line.into()), &mut waiting, &mut None).unwrap();
        }
        assert_eq!(waiting.iter().map(|request| request.id.as_u64()).collect::<Vec<_>>(), [Some(1), Some(3)]);
    }
}
