//! Keys are nowhere, and strangers are refused.

use contexture::wire::Format;
use contexture_server::Options;

use super::folding::{long, play_some, records, small};
use super::provider::{Fault, Provider};

const KEY: &str = "sk-ant-very-secret-0815";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_found_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(directory.path().join("gateway.db")), ..small() }).await;
    let agent = long(Format::Messages, 12);
    let client = reqwest::Client::new();
    for (n, at) in agent.requests().into_iter().enumerate() {
        let faults = (n == 3).then_some(Fault { status: 500, headers: Vec::new(), body: "", only_with: None });
        provider.set_fault(faults);
        let request = client.post(format!("{}/v1/messages?key={KEY}", gateway.url()));
        let request = request.header("x-api-key", KEY).header("authorization", format!("Bearer {KEY}"));
        request.body(agent.request(at, true)).send().await.unwrap().text().await.unwrap();
    }
    assert_eq!(provider.last().headers["x-api-key"], KEY);
    let records = records(&gateway, agent.requests().len()).await;
    assert!(!serde_json::to_string(&records).unwrap().contains(KEY));
    let status = client.get(format!("{}/contexture/requests", gateway.url())).bearer_auth(gateway.token());
    assert!(!status.send().await.unwrap().text().await.unwrap().contains(KEY));
    gateway.stop().await;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("very-secret"));
    }
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
        let url = format!("{}/{route}", gateway.url());
        assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 401, "{route}");
        assert_eq!(client.get(format!("{url}?token=wrong")).send().await.unwrap().status().as_u16(), 401);
    }
    let metrics = client.get(format!("{}/metrics?token={}", gateway.url(), gateway.token())).send().await.unwrap();
    let text = metrics.text().await.unwrap();
    assert!(
        text.contains(&format!("contexture_requests_total{{mode=\"sent\"}} {}\n", agent.requests().len())),
        "{text}"
    );
}
