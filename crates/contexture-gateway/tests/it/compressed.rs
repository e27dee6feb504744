//! Requests whose bodies come as zstd.

use contexture::wire::Format;
use contexture_gateway::{Gateway, Options};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::played::{long, play, records, small};
use super::provider::{Provider, path_of, unpacked};
use contexture_gateway::testing::rules;

/// `{"model":"gpt-5","input":[…]}` as the program `zstd` writes it with its level 19 and a checksum.
const FOREIGN: &[u8] = include_bytes!("request.zst");

async fn post(gateway: &Gateway, format: Format, coding: &str, body: Vec<u8>) -> u16 {
    let request = reqwest::Client::new().post(format!("{}{}", gateway.url(), path_of(format)));
    let request = request.header("content-encoding", coding).header("chatgpt-account-id", "account-1");
    request.body(body).send().await.unwrap().status().as_u16()
}

fn packed(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_requests_are_folded_and_sent_compressed() {
    let agent = long(Format::Responses, 14);
    let plain = Provider::start().await;
    let expected = play(&plain.gateway(small()).await, &plain, &agent).await;
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    for (n, at) in agent.requests().into_iter().enumerate() {
        let status = post(&gateway, agent.format, "zstd", packed(&agent.request(at, n % 2 == 0))).await;
        let got = provider.last();
        assert_eq!((status, &got.headers["content-encoding"]), (200, &"zstd".parse().unwrap()));
        assert_eq!(got.headers["chatgpt-account-id"], "account-1");
        assert!(unpacked(&got.raw).is_some(), "request {n} is zstd");
        assert!(got.raw.len() < got.body.len() / 2, "request {n} is smaller for it: {}", got.raw.len());
        assert_eq!(got.body, expected[n], "request {n} says the same as without compression");
        rules::check(agent.format, &got.body).unwrap();
    }
    let records = records(&gateway, expected.len()).await;
    assert!(records.iter().any(|record| record.decided.iter().any(|note| note.is_fold())));
    assert!(records.last().unwrap().is_changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_changed_keeps_its_compressed_bytes() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let status = post(&gateway, Format::Responses, "zstd", FOREIGN.to_vec()).await;
    assert_eq!((status, provider.last().raw), (200, FOREIGN.to_vec()));
    assert!(provider.last().body.starts_with(r#"{"model":"gpt-5","input":["#), "{}", provider.last().body);
    let record = &records(&gateway, 1).await[0];
    assert_eq!((record.model.as_str(), &record.passed), ("gpt-5", &None));
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_bombs_and_unknown_codings_pass_unchanged_and_say_why() {
    let provider = Provider::start().await;
    provider.be_kind();
    let options = Options { read_bytes: 1 << 20, ..small() };
    let gateway = provider.gateway(options).await;
    let bomb = packed(&"0".repeat(50 << 20));
    assert!(bomb.len() < 1 << 20, "a bomb is small: {}", bomb.len());
    let mut cut = FOREIGN.to_vec();
    cut.truncate(FOREIGN.len() - 7);
    let cases = [
        ("zstd", bomb, "too large"),
        ("zstd", cut, "its compression is broken"),
        ("zstd", b"{\"input\":[]}".to_vec(), "its compression is broken"),
        ("gzip", vec![0x1f, 0x8b, 8, 0], "compressed in a way that is not known"),
        ("zstd, gzip", FOREIGN.to_vec(), "compressed in a way that is not known"),
    ];
    for (n, (coding, body, why)) in cases.into_iter().enumerate() {
        assert_eq!(post(&gateway, Format::Responses, coding, body.clone()).await, 200, "{why}");
        let got = provider.last();
        assert_eq!((&got.raw, &got.headers["content-encoding"]), (&body, &coding.parse().unwrap()));
        let passed = records(&gateway, n + 1).await[n].passed.clone().unwrap_or_default();
        assert!(passed.contains(why), "{passed:?} does not say {why:?}");
    }
}
