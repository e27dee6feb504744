//! A gateway that is killed at any moment goes on with the same bytes.

use std::collections::HashMap;
use std::env;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use contexture::wire::Format;
use contexture_gateway::{AccessKey, Gateway, Options, Upstreams};

use super::played::{long, small};
use super::provider::{Provider, path_of};

/// How often the gateway is killed; more with the variable `CONTEXTURE_TEST_KILLS`.
const KILLS: usize = 12;

/// The key that the gateway has whenever it starts.
const KEY: &str = "0123456789abcdef0123456789abcdef";

const UPSTREAM: &str = "CONTEXTURE_TEST_UPSTREAM";
const STORE: &str = "CONTEXTURE_TEST_STORE";
const LISTEN: &str = "CONTEXTURE_TEST_LISTEN";

/// The gateway as a process of its own. As a test it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_waits_to_be_killed() {
    let (Ok(upstream), Ok(store), Ok(listen)) = (env::var(UPSTREAM), env::var(STORE), env::var(LISTEN)) else { return };
    let keys = vec![AccessKey::new("own", KEY).unwrap()];
    let options = Options { upstreams: Upstreams::one(&upstream), keys, store: Some(store.into()), ..small() };
    let mut gateway = Gateway::start(&listen, options).await.unwrap();
    gateway.wait().await.unwrap();
}

struct Killed(Child);

impl Killed {
    async fn start(upstream: &str, store: &Path, listen: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "kills::a_gateway_that_waits_to_be_killed"]);
        command.env(UPSTREAM, upstream).env(STORE, store).env(LISTEN, listen);
        let killed = Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        for _ in 0..1_000 {
            if tokio::net::TcpStream::connect(listen).await.is_ok() {
                return killed;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the gateway does not listen");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_same_bytes_after_a_kill() {
    let kills = env::var("CONTEXTURE_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    contexture_gateway::prepare_tls();
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("gateway.db");
    let listen = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let agent = long(Format::Messages, 14);
    let requests = agent.requests();
    let mut gateway = Killed::start(&provider.url, &store, &listen).await;
    let client = reqwest::Client::new();
    let (mut killed, mut answered) = (0, 0);
    let mut at = 0;
    // What the provider first got for a request.
    let mut first: HashMap<usize, String> = HashMap::new();
    while at < requests.len() || killed < kills {
        let number = at % requests.len();
        let request = client.post(format!("http://{listen}/{KEY}{}", path_of(agent.format)));
        let request = request.body(agent.request(requests[number], false)).send();
        let before = provider.got().len();
        // Every third request is cut off by a kill, each a little later than the one before.
        let is_killed = killed < kills && at % 3 == 2;
        if is_killed {
            let patience = Duration::from_millis((killed as u64 * 7) % 60);
            let _ = tokio::time::timeout(patience, request).await;
            drop(gateway);
            killed += 1;
            gateway = Killed::start(&provider.url, &store, &listen).await;
        } else {
            assert_eq!(request.await.unwrap().status().as_u16(), 200);
            answered += 1;
            at += 1;
        }
        for got in &provider.got()[before..] {
            let sent = first.entry(number).or_insert_with(|| got.body.clone());
            assert_eq!(*sent, got.body, "request {number}, after {killed} kills");
        }
        if is_killed {
            // It is repeated with the next round of the loop.
            let request = client.post(format!("http://{listen}/{KEY}{}", path_of(agent.format)));
            let answer = request.body(agent.request(requests[number], false)).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 200);
            answered += 1;
            let got = provider.last().body;
            let sent = first.entry(number).or_insert_with(|| got.clone());
            assert_eq!(*sent, got, "request {number}, repeated after {killed} kills");
            at += 1;
        }
    }
    // Every request that was answered is on a receipt, also the one before the last kill.
    drop(gateway);
    let noted = contexture_gateway::open_store(&store).unwrap().requests(None).unwrap();
    let ended = noted.iter().filter(|record| !record.is_open).count();
    assert!(noted.len() >= answered, "{answered} were answered, {} noted, {ended} of them to the end", noted.len());
    assert!(ended > 0);
    assert!(first.values().any(|body| body.contains("[Contexture's note: `[")), "something was folded meanwhile");
}
