//! A provider over a real socket that says what a test wants, byte by byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One response.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    /// Each is sent and flushed by itself.
    pieces: Vec<Vec<u8>>,
    /// How long is waited before each piece.
    pause: Duration,
    /// Whether the connection is closed without the end of the response.
    is_cut: bool,
}

impl Reply {
    /// A whole body of JSON.
    pub fn json(status: u16, body: Value) -> Self {
        Reply::text(status, "application/json", &body.to_string())
    }

    /// A whole body.
    pub fn text(status: u16, kind: &str, body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Self { status, headers, pieces: vec![body.into()], pause: Duration::ZERO, is_cut: false }
    }

    /// A message of chat completions.
    pub fn says(text: &str) -> Self {
        Reply::chat(serde_json::json!({ "role": "assistant", "content": text }))
    }

    /// Calls of chat completions, each with its id, the tool and its arguments.
    pub fn calls(calls: &[(&str, &str, Value)]) -> Self {
        let call = |(id, name, arguments): &(&str, &str, Value)| {
            let function = serde_json::json!({ "name": name, "arguments": arguments.to_string() });
            serde_json::json!({ "id": id, "type": "function", "function": function })
        };
        let calls: Vec<Value> = calls.iter().map(call).collect();
        Reply::chat(serde_json::json!({ "role": "assistant", "content": null, "tool_calls": calls }))
    }

    fn chat(message: Value) -> Self {
        let usage = serde_json::json!({ "prompt_tokens": 9, "completion_tokens": 1 });
        Reply::json(200, serde_json::json!({ "choices": [{ "message": message }], "usage": usage }))
    }

    /// A stream of events, one piece each.
    pub fn events(events: &[Value]) -> Self {
        let pieces = events.iter().map(|event| {
            let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
            format!("{name}data: {event}\n\n").into_bytes()
        });
        let headers = vec![("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned())];
        Self { status: 200, headers, pieces: pieces.collect(), pause: Duration::ZERO, is_cut: false }
    }

    pub fn then(mut self, bytes: &str) -> Self {
        self.pieces.push(bytes.into());
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, one byte at a time.
    pub fn split(mut self) -> Self {
        self.pieces = self.pieces.concat().into_iter().map(|byte| vec![byte]).collect();
        self
    }

    pub fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Only the first pieces, and then nothing.
    pub fn cut_after(mut self, pieces: usize) -> Self {
        self.pieces.truncate(pieces);
        self.cut()
    }

    pub fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: String,
    pub body: Value,
}

/// The provider.
pub struct Provider {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
    /// How many connections the client closed before its response was complete.
    left: Arc<Mutex<usize>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the provider says to the request of a number, counted from 0, with a body.
type Script = Arc<dyn Fn(usize, &Value) -> Reply + Send + Sync>;

impl Provider {
    /// Says one thing after the other; the last reply is repeated.
    pub async fn start(replies: Vec<Reply>) -> Self {
        Provider::answering(move |number, _| replies[number.min(replies.len() - 1)].clone()).await
    }

    /// Says what a function makes of the request.
    pub async fn answering(script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (received, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (log, gone) = (received.clone(), left.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script.clone(), log.clone(), gone.clone()));
            }
        });
        Self { url, received, left, task }
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub fn bodies(&self) -> Vec<Value> {
        self.received().into_iter().map(|request| request.body).collect()
    }

    pub fn left(&self) -> usize {
        *self.left.lock().unwrap()
    }
}

async fn serve(mut stream: TcpStream, script: Script, log: Arc<Mutex<Vec<Received>>>, left: Arc<Mutex<usize>>) {
    while let Some(request) = read_request(&mut stream).await {
        let reply = {
            let mut log = log.lock().unwrap();
            let reply = script(log.len(), &request.body);
            log.push(request);
            reply
        };
        if write_reply(&mut stream, &reply).await.is_err() {
            *left.lock().unwrap() += 1;
            return;
        }
        if reply.is_cut {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[end + 4..]).ok()?;
    let path = head.split_whitespace().nth(1)?.to_owned();
    Some(Received { path, headers: head, body })
}

async fn write_reply(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Whatever\r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for piece in &reply.pieces {
        if !reply.pause.is_zero() {
            tokio::time::sleep(reply.pause).await;
        }
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await?;
        stream.flush().await?;
    }
    match reply.is_cut {
        true => stream.shutdown().await,
        false => stream.write_all(b"0\r\n\r\n").await,
    }
}
