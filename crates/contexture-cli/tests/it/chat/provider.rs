//! A server of chat completions that says what a test wants, over a real socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a reply that stalls waits.
const STALL: Duration = Duration::from_secs(600);

/// What the provider does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Says a text.
    Says(&'static str),
    /// Says a text piece by piece.
    Pieces(Vec<String>),
    /// Calls a tool.
    Calls(&'static str, Value),
    /// Calls several tools at once, each with an id.
    CallsAll(Vec<(String, &'static str, Value)>),
    /// Says the beginning of a text, and then nothing for ever.
    Stalls(&'static str),
    /// Says a text, and what it cost in tokens.
    Bills(&'static str),
    /// Is busy: the request may be sent again soon.
    Busy,
    /// Refuses the request with a message.
    Errs(&'static str),
    /// Refuses the request, and repeats the headers that it came with.
    Refuses,
}

/// What the provider says to the request of a number, counted from 0, with a body.
type Script = Arc<dyn Fn(usize, &Value) -> Reply + Send + Sync>;

/// The provider.
pub struct Provider {
    pub url: String,
    received: Arc<Mutex<Vec<Request>>>,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
struct Request {
    head: String,
    body: Value,
}

impl Provider {
    /// Says one thing after the other; the last reply is repeated.
    pub fn start(replies: Vec<Reply>) -> Self {
        Provider::answering(move |number, _| replies[number.min(replies.len() - 1)].clone())
    }

    /// Says what a function makes of the request.
    pub fn answering(script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, log) = (script.clone(), log.clone());
                std::thread::spawn(move || serve(stream, &script, &log));
            }
        });
        Self { url, received }
    }

    /// The bodies of all requests so far.
    pub fn received(&self) -> Vec<Value> {
        self.received.lock().expect("no test panics with it").iter().map(|request| request.body.clone()).collect()
    }

    /// The headers of all requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.received.lock().expect("no test panics with it").iter().map(|request| request.head.clone()).collect()
    }

    /// The messages of the last request, as text.
    pub fn last(&self) -> String {
        self.received().last().map(|body| body["messages"].to_string()).unwrap_or_default()
    }
}

fn serve(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<Request>>) {
    while let Some(request) = request(&mut stream) {
        let head = request.head.clone();
        if head.starts_with("GET ") {
            // As Ollama lists its models.
            let list = json!({ "object": "list", "data": [{ "id": "small-model" }, { "id": "other" }] }).to_string();
            let whole = format!("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{list}");
            let _ = stream.write_all(whole.as_bytes());
            return;
        }
        let reply = {
            let mut log = log.lock().expect("no test panics with it");
            let reply = script(log.len(), &request.body);
            log.push(request);
            reply
        };
        // A program that was killed does not listen any more.
        if respond(&mut stream, &reply, &head).is_err() {
            return;
        }
    }
}

fn request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65_536];
    let mut more = |bytes: &mut Vec<u8>| match stream.read(&mut buffer) {
        Ok(0) | Err(_) => None,
        Ok(count) => {
            bytes.extend_from_slice(&buffer[..count]);
            Some(())
        }
    };
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(&mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    if head.starts_with("GET ") {
        return Some(Request { head, body: Value::Null });
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok())?;
    while bytes.len() < end + length {
        more(&mut bytes)?;
    }
    let body = serde_json::from_slice(&bytes[end..]).ok()?;
    Some(Request { head, body })
}

fn respond(stream: &mut TcpStream, reply: &Reply, head: &str) -> std::io::Result<()> {
    if let Reply::Errs(message) = reply {
        let body = json!({ "error": { "message": message } }).to_string();
        let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n";
        return stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    if matches!(reply, Reply::Busy) {
        let head = "HTTP/1.1 503 Service Unavailable\r\nretry-after-ms: 10\r\ncontent-type: application/json\r\n";
        let body = json!({ "error": { "message": "come back later" } }).to_string();
        return stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    if matches!(reply, Reply::Refuses) {
        let body = json!({ "error": { "message": format!("not with these: {head}") } }).to_string();
        let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n";
        return stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let (delta, reason) = match reply {
        Reply::Says(text) | Reply::Bills(text) | Reply::Stalls(text) => {
            (json!({ "role": "assistant", "content": text }), "stop")
        }
        Reply::Pieces(pieces) => {
            for piece in &pieces[..pieces.len() - 1] {
                let delta = json!({ "role": "assistant", "content": piece });
                event(stream, &json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string())?;
            }
            (json!({ "content": pieces[pieces.len() - 1] }), "stop")
        }
        Reply::Calls(name, arguments) => (called(&[("call_1".to_owned(), name, arguments.clone())]), "tool_calls"),
        Reply::CallsAll(calls) => (called(calls), "tool_calls"),
        Reply::Busy | Reply::Refuses | Reply::Errs(_) => unreachable!("it was handled before"),
    };
    event(stream, &json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string())?;
    if matches!(reply, Reply::Stalls(_)) {
        std::thread::sleep(STALL);
    }
    event(stream, &json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }).to_string())?;
    if matches!(reply, Reply::Bills(_)) {
        let usage = json!({ "prompt_tokens": 12_000, "completion_tokens": 1_200, "prompt_tokens_details": { "cached_tokens": 6_000 } });
        event(stream, &json!({ "choices": [], "usage": usage }).to_string())?;
    }
    event(stream, "[DONE]")?;
    stream.write_all(b"0\r\n\r\n")
}

/// A message that calls tools.
fn called(calls: &[(String, &'static str, Value)]) -> Value {
    let call = |(index, (id, name, arguments)): (usize, &(String, &str, Value))| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "index": index, "id": id, "type": "function", "function": function })
    };
    json!({ "role": "assistant", "tool_calls": calls.iter().enumerate().map(call).collect::<Vec<_>>() })
}

fn event(stream: &mut TcpStream, data: &str) -> std::io::Result<()> {
    let data = format!("data: {data}\n\n");
    stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())?;
    stream.flush()
}
