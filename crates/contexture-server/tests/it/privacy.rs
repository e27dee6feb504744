//! Keys are nowhere, and strangers are refused.

use std::sync::Arc;

use contexture::tokens::{Estimate, TokenCounter};
use contexture::wire::Format;
use contexture_server::otlp::Exporter;
use contexture_server::{Gateway, Key, Options, Upstreams, Watcher};

use super::agent::Agent;
use super::folding::{long, play_some, records, small};
use super::provider::{Fault, Provider};

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
    let (receiver, received) = super::spans::receiver().await;
    let exporter = Arc::new(Exporter::start(receiver).unwrap());
    let provider = Provider::start().await;
    let store = Some(std::path::PathBuf::from(directory).join("gateway.db"));
    // The gateway's own key is as secret as the provider's.
    let keys = vec![Key::new("own", "very-secret-key-of-this-gateway-4711").unwrap()];
    let (watcher, counter) = (Some(exporter.clone() as Arc<dyn Watcher>), Arc::new(Breaking));
    let options = Options { store, keys, watcher, counter, diagnose: true, inspect: true, ..small() };
    let gateway = provider.gateway(options).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let client = reqwest::Client::new();
    let url = format!("{}/v1/messages", gateway.url());
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example"), ("origin", "null")] {
        let answer = client.post(&url).header(name, value).body("{}").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 403, "{name}: {value}");
    }
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_routes_ask_for_the_token() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Chat, 2);
    play_some(&gateway, &provider, &agent, &agent.requests()).await;
    records(&gateway, agent.requests().len()).await;
    let client = reqwest::Client::new();
    for route in ["contexture/status", "contexture/requests", "metrics", "contexture/other"] {
        for base in [gateway.url(), format!("http://{}", gateway.address())] {
            let url = format!("{base}/{route}");
            assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 401, "{route}");
            assert_eq!(client.get(&url).bearer_auth("wrong").send().await.unwrap().status().as_u16(), 401, "{route}");
            let in_query = client.get(format!("{url}?token={}", gateway.token())).send().await.unwrap();
            assert_eq!(in_query.status().as_u16(), 401, "{route}");
        }
    }
    let own = |route: &str| client.get(format!("http://{}{route}", gateway.address())).bearer_auth(gateway.token());
    assert_eq!(own("/v1/models").send().await.unwrap().status().as_u16(), 404, "the token is for nothing else");
    let metrics = own("/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    assert!(
        text.contains(&format!("contexture_requests_total{{mode=\"sent\"}} {}\n", agent.requests().len())),
        "{text}"
    );
}

/// Whether a text is what Prometheus reads: for each name a help, a type and then its samples.
#[track_caller]
fn check_metrics(text: &str) {
    let is_name = |name: &str| {
        name.starts_with("contexture_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_".contains(&byte))
    };
    let mut lines = text.lines();
    let mut names = std::collections::HashSet::new();
    while let Some(help) = lines.next() {
        let (name, words) = help.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
        assert!(is_name(name) && words.ends_with('.') && names.insert(name.to_owned()), "{help}");
        assert!(name.ends_with("_total"), "a counter's name ends so: {name}");
        assert_eq!(lines.next().unwrap(), format!("# TYPE {name} counter"));
        let (sample, value) = lines.next().unwrap().rsplit_once(' ').unwrap();
        assert_eq!(sample, format!("{name}{{mode=\"sent\"}}"));
        assert!(value.parse::<f64>().unwrap() >= 0.0, "{sample} {value}");
    }
    assert!(text.ends_with('\n') && names.len() >= 9, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_what_prometheus_reads() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 10);
    play_some(&gateway, &provider, &agent, &agent.requests()).await;
    records(&gateway, agent.requests().len()).await;
    let request =
        reqwest::Client::new().get(format!("http://{}/metrics", gateway.address())).bearer_auth(gateway.token());
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4");
    check_metrics(&answer.text().await.unwrap());
}
