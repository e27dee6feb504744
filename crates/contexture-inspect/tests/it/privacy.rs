//! Keys are nowhere, whatever is switched on.

use std::sync::Arc;

use contexture::tokens::{Estimate, TokenCounter};
use contexture::wire::Format;
use contexture_gateway::otlp::Exporter;
use contexture_gateway::{AccessKey, Gateway, Options, Upstreams, Watcher};

use super::agent::Agent;
use super::inspected::inspected;
use super::played::{long, records, small};
use super::provider::{Fault, Provider};
use super::receiver::receiver;

const KEY: &str = "sk-ant-very-secret-0815";

/// Where the work with a key keeps its store.
const DIRECTORY: &str = "CONTEXTURE_TEST_KEY_DIRECTORY";

/// A counter that breaks at a text of its own, so that there is a panic to look into.
struct Breaking;

impl TokenCounter for Breaking {
    fn name(&self) -> &str {
        "breaking"
    }

    fn count(&self, text: &str) -> u64 {
        assert!(!text.contains("break now"), "the counter was told to break");
        Estimate.count(text)
    }
}

/// Sends requests with a key wherever clients put one: in two headers and in the query.
async fn ask(gateway: &Gateway, agent: &Agent, provider: &Provider) {
    let client = reqwest::Client::new();
    for (n, at) in agent.requests().into_iter().enumerate() {
        let faults = (n == 3).then_some(Fault { status: 500, headers: Vec::new(), body: "", only_with: None });
        provider.set_fault(faults);
        let request = client.post(format!("{}/v1/messages?key={KEY}", gateway.url()));
        let request = request.header("x-api-key", KEY).header("authorization", format!("Bearer {KEY}"));
        request.body(agent.request(at, true)).send().await.unwrap().text().await.unwrap();
    }
}

/// The work of the test below, as a process of its own whose output can be looked into. As a test it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn work_with_a_key() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let (receiver, received) = receiver().await;
    let exporter = Arc::new(Exporter::start(receiver).unwrap());
    let provider = Provider::start().await;
    let store = Some(std::path::PathBuf::from(directory).join("gateway.db"));
    // The gateway's own key is as secret as the provider's.
    let keys = vec![AccessKey::new("own", "very-secret-key-of-this-gateway-4711").unwrap()];
    let (watchers, counter) = (vec![exporter.clone() as Arc<dyn Watcher>], Arc::new(Breaking));
    let options = Options { store, keys, watchers, counter, diagnose: true, ..small() };
    let (gateway, _inspector) = inspected(&provider, options).await;
    let agent = long(Format::Messages, 12);
    ask(&gateway, &agent, &provider).await;
    assert_eq!(provider.last().headers["x-api-key"], KEY);
    let mut breaking = Agent::new(Format::Messages, "please break now");
    breaking.work(0);
    ask(&gateway, &breaking, &provider).await;
    let count = agent.requests().len() + breaking.requests().len();
    let mut texts = vec![format!("{:?}", records(&gateway, count).await)];
    let client = reqwest::Client::new();
    for route in ["contexture/requests", "contexture/status", "metrics"] {
        let request = client.get(format!("http://{}/{route}", gateway.address())).bearer_auth(gateway.token());
        texts.push(request.send().await.unwrap().text().await.unwrap());
    }
    gateway.stop().await;
    exporter.finish().await;
    texts.extend(received.lock().unwrap().iter().map(|(_, body)| body.to_string()));
    // A provider that is gone is told of, and its address carries the key.
    let gone = Options { upstreams: Upstreams::one("http://user:very-secret@127.0.0.1:1"), ..small() };
    let gone = Gateway::start("127.0.0.1:0", gone).await.unwrap();
    let request = client.post(format!("{}/v1/messages?key={KEY}", gone.url())).body(agent.request(1, true));
    texts.push(request.send().await.unwrap().text().await.unwrap());
    texts.push(format!("{:?}", gone.stop().await));
    println!("{}", texts.join("\n"));
    assert!(texts.iter().any(|text| text.contains("went wrong")), "there was a panic");
}

#[test]
fn a_key_is_found_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "privacy::work_with_a_key", "--nocapture"]).env(DIRECTORY, directory.path());
    let output = command.env("RUST_BACKTRACE", "1").env("RUST_LOG", "trace").output().unwrap();
    let (told, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{complained}");
    assert!(complained.contains("the counter was told to break"), "the panic is in what was looked into");
    assert!(told.contains("resourceSpans") && told.contains("contexture_requests_total"), "so are spans and metrics");
    assert!(!told.contains("very-secret") && !complained.contains("very-secret"));
    let mut bytes = 0;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = std::fs::read(file.unwrap().path()).unwrap();
        bytes += file.len();
        assert!(!String::from_utf8_lossy(&file).contains("very-secret"));
    }
    assert!(bytes > 10_000, "there is a store to look into");
}
