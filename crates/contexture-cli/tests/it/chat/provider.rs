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
    /// Calls a tool.
    Calls(&'static str, Value),
    /// Says the beginning of a text, and then nothing for ever.
    Stalls(&'static str),
}

/// The provider; its last reply is repeated.
pub struct Provider {
    pub url: String,
    received: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    pub fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (replies, log) = (replies.clone(), log.clone());
                std::thread::spawn(move || serve(stream, &replies, &log));
            }
        });
        Self { url, received }
    }

    /// The bodies of all requests so far.
    pub fn received(&self) -> Vec<Value> {
        self.received.lock().expect("no test panics with it").clone()
    }

    /// The messages of the last request, as text.
    pub fn last(&self) -> String {
        self.received().last().map(|body| body["messages"].to_string()).unwrap_or_default()
    }
}

fn serve(mut stream: TcpStream, replies: &[Reply], log: &Mutex<Vec<Value>>) {
    while let Some(body) = request(&mut stream) {
        let number = {
            let mut log = log.lock().expect("no test panics with it");
            log.push(body);
            log.len() - 1
        };
        let Some(reply) = replies.get(number.min(replies.len() - 1)) else { return };
        // A program that was killed does not listen any more.
        if respond(&mut stream, reply).is_err() {
            return;
        }
    }
}

fn request(stream: &mut TcpStream) -> Option<Value> {
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
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok())?;
    while bytes.len() < end + length {
        more(&mut bytes)?;
    }
    serde_json::from_slice(&bytes[end..]).ok()
}

fn respond(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let (delta, reason) = match reply {
        Reply::Says(text) | Reply::Stalls(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Reply::Calls(name, arguments) => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
    };
    event(stream, &json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string())?;
    if matches!(reply, Reply::Stalls(_)) {
        std::thread::sleep(STALL);
    }
    event(stream, &json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }).to_string())?;
    event(stream, "[DONE]")?;
    stream.write_all(b"0\r\n\r\n")
}

fn event(stream: &mut TcpStream, data: &str) -> std::io::Result<()> {
    let data = format!("data: {data}\n\n");
    stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())?;
    stream.flush()
}
