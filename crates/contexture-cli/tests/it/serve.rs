//! `contexture serve` as a service: what it prints, how it is supervised, and how it stops.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const BEGINNING: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"two\"}}]}\n\ndata: [DONE]\n\n";

/// A running `contexture serve --quiet`.
struct Service {
    child: Child,
    address: String,
    output: BufReader<ChildStdout>,
    state: TempDir,
}

impl Service {
    fn start(upstream: &str) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--upstream", upstream])
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Self { child, address, output, state }
    }

    /// The key that it made on its first start.
    fn key(&self) -> String {
        let text = std::fs::read_to_string(self.state.path().join("contexture/gateway-keys.toml")).unwrap();
        text.split('"').nth(1).unwrap().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// What it printed until it ended: exit code, output, errors.
    fn ended(mut self) -> (Option<i32>, String, String) {
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        let ended = self.child.wait_with_output().unwrap();
        (ended.status.code(), output, String::from_utf8(ended.stderr).unwrap())
    }
}

/// Sends a request and returns the connection, after the response has begun.
fn begun(service: &Service) -> BufReader<TcpStream> {
    let body = r#"{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
    let mut stream = TcpStream::connect(&service.address).unwrap();
    write!(
        stream,
        "POST /{}/openai/chat/completions HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        service.key(),
        service.address,
        body.len()
    )
    .unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("one") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the response ended");
    }
    stream
}

/// A provider that begins one response, and ends it when it is told to.
struct Provider {
    url: String,
    serving: JoinHandle<TcpStream>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            write!(stream, "{head}{:x}\r\n{BEGINNING}\r\n", BEGINNING.len()).unwrap();
            stream
        });
        Self { url, serving }
    }

    fn end_response(self) {
        let mut stream = self.serving.join().unwrap();
        write!(stream, "{:x}\r\n{END}\r\n0\r\n\r\n", END.len()).unwrap();
    }
}

#[test]
fn asked_to_stop_it_finishes_the_response_and_prints_a_receipt() {
    for signal in [Signal::TERM, Signal::INT] {
        let provider = Provider::start();
        let service = Service::start(&provider.url);
        let mut response = begun(&service);
        service.signal(signal);
        // Nothing new is accepted, which is how a client sees that the signal has arrived.
        while TcpStream::connect(&service.address).is_ok() {
            std::thread::yield_now();
        }
        provider.end_response();
        let mut rest = String::new();
        response.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("two") && rest.contains("[DONE]"), "{rest}");
        let key = service.key();
        let (code, output, errors) = service.ended();
        assert_eq!(code, Some(0), "{errors}");
        assert!(errors.contains("stopping; responses in progress have 120 s"), "{errors}");
        assert!(errors.contains("1 request, 1 conversation"), "{errors}");
        assert!(!output.contains(&key) && !errors.contains(&key), "no key is in the log: {output}{errors}");
        assert!(!output.to_lowercase().contains("token"), "{output}");
    }
}

#[test]
fn asked_twice_it_does_not_wait() {
    let provider = Provider::start();
    let service = Service::start(&provider.url);
    let _response = begun(&service);
    service.signal(Signal::TERM);
    while TcpStream::connect(&service.address).is_ok() {
        std::thread::yield_now();
    }
    service.signal(Signal::TERM);
    let (code, _, errors) = service.ended();
    assert_eq!(code, Some(0), "{errors}");
    // The provider's connection is open until here: nobody ended the response.
    drop(provider.serving.join().unwrap());
}
