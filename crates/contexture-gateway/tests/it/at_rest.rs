//! What a gateway keeps in memory of conversations that nobody goes on with.
#![cfg(target_os = "linux")]

use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use contexture_gateway::{AccessKey, Gateway, Options, Upstreams};
use serde_json::{Value, json};

use super::played::small;
use super::provider::Provider;

/// The most bytes of memory that a conversation at rest takes, all that it needs included.
const MOST_BYTES: usize = 8_192;

const KEY: &str = "0123456789abcdef0123456789abcdef";

const UPSTREAM: &str = "CONTEXTURE_TEST_RESTING_UPSTREAM";
const STORE: &str = "CONTEXTURE_TEST_RESTING_STORE";
const LISTEN: &str = "CONTEXTURE_TEST_RESTING_LISTEN";

/// The gateway as a process of its own. As a test it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_conversations_rest() {
    let (Ok(upstream), Ok(store), Ok(listen)) = (env::var(UPSTREAM), env::var(STORE), env::var(LISTEN)) else { return };
    let keys = vec![AccessKey::new("own", KEY).unwrap()];
    let options = Options { upstreams: Upstreams::one(&upstream), keys, store: Some(store.into()), ..small() };
    let mut gateway = Gateway::start(&listen, options).await.unwrap();
    gateway.wait().await.unwrap();
}

struct Resting(Child);

impl Resting {
    /// How many bytes of memory it takes.
    fn bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The requests of a conversation: a person's words, and two steps of an agent.
fn requests(number: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": format!("Please look at case {number}.")})];
    let mut requests = Vec::new();
    for step in 0..3 {
        requests.push(json!({"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": messages.clone()}));
        let id = format!("toolu_{number}_{step}");
        let call =
            json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("cat {step}.log")}});
        messages.push(json!({"role": "assistant", "content": [call]}));
        let output = format!("{number} {step}: nothing was found in this line\n").repeat(40);
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": output});
        messages.push(json!({"role": "user", "content": [result]}));
    }
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_at_rest_take_little_memory() {
    let count = 10_000;
    contexture_gateway::prepare_tls();
    let provider = Provider::start().await;
    provider.be_kind();
    let directory = tempfile::tempdir().unwrap();
    let listen = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "at_rest::a_gateway_whose_conversations_rest"]);
    command.env(UPSTREAM, &provider.url).env(STORE, directory.path().join("gateway.db")).env(LISTEN, &listen);
    let resting = Resting(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    for _ in 0..1_000 {
        if tokio::net::TcpStream::connect(&listen).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let client = reqwest::Client::new();
    let play = async |numbers: std::ops::Range<usize>| {
        for number in numbers {
            for request in requests(number) {
                let url = format!("http://{listen}/{KEY}/v1/messages");
                let answer = client.post(url).body(request.to_string()).send().await.unwrap();
                assert_eq!(answer.status().as_u16(), 200);
            }
        }
    };
    // What it takes by itself, with as many conversations in use as have their folders in memory.
    play(0..600).await;
    let before = resting.bytes();
    play(600..600 + count).await;
    let each = resting.bytes().saturating_sub(before) / count;
    println!("{each} bytes for each of {count} conversations; {before} bytes before");
    assert!(each <= MOST_BYTES, "{each} bytes for each conversation");
}
