//! What only Google's format has: the key in the address, counts in two forms, paths of Vertex AI, contents that the
//! provider keeps, and a client that takes outputs away itself.

use contexture::wire::Format;
use contexture_gateway::Options;
use serde_json::{Value, json};

use super::agent::Step;
use super::played::{digests, long, messages_of, play, records, small};
use super::provider::{Provider, post};

const KEY: &str = "AIza-made-up-4711";

const VERTEX: &str = "/v1beta1/projects/p/locations/europe-west4/publishers/google/models/gemini-3.1-pro-preview";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_address_reaches_the_provider_and_nothing_else() {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("gateway.db");
    let gateway = provider.gateway(Options { store: Some(store), ..small() }).await;
    let agent = long(Format::Gemini, 2);
    for path in ["/v1beta/models/gemini-3.1-pro-preview", VERTEX] {
        let url = format!("{}{path}:generateContent?key={KEY}", gateway.url());
        let answer = reqwest::Client::new().post(url).body(agent.request(1, false)).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(provider.last().path, format!("{path}:generateContent?key={KEY}"));
    }
    let records = records(&gateway, 2).await;
    assert!(records.iter().all(|record| record.model == "gemini-3.1-pro-preview"), "{records:?}");
    assert!(!serde_json::to_string(&records).unwrap().contains(KEY));
    gateway.stop().await;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_of_what_would_be_sent_in_both_forms() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Gemini, 12);
    let sent = play(&gateway, &provider, &agent).await;
    let body: Value = serde_json::from_str(&agent.request(*agent.requests().last().unwrap(), false)).unwrap();
    let plain = json!({"contents": body["contents"]});
    let wrapped =
        json!({"generateContentRequest": {"model": "models/gemini-3.1-pro-preview", "contents": body["contents"]}});
    for (asked, place) in [(plain, ""), (wrapped, "/generateContentRequest")] {
        let url = format!("{}/v1beta/models/gemini-3.1-pro-preview:countTokens", gateway.url());
        reqwest::Client::new().post(url).body(asked.to_string()).send().await.unwrap();
        let counted: Value = serde_json::from_str(&provider.last().body).unwrap();
        let counted = counted.pointer(place).unwrap().to_string();
        assert_eq!(digests(Format::Gemini, &counted), digests(Format::Gemini, sent.last().unwrap()), "{place}");
    }
}

/// Gemini CLI with a Google login: its requests have Gemini's format inside another object.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_code_assist_are_folded_inside_what_is_around_them() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Gemini, 12);
    let client = reqwest::Client::new();
    let requests = agent.requests();
    let send = |method: &str, body: String| {
        let url = format!("{}/google/v1internal:{method}", gateway.url());
        client.post(url).header("authorization", "Bearer made-up-token-4711").body(body).send()
    };
    let around = |inner: &str| {
        let (before, after) =
            (r#"{"model":"gemini-3.1-pro-preview","project":"p", "user_prompt_id":"u","request": "#, "}");
        format!("{before}{inner}{after}")
    };
    let loaded = send("loadCodeAssist", json!({"metadata": {}}).to_string()).await.unwrap();
    assert_eq!((loaded.status().as_u16(), provider.last().path.as_str()), (200, "/v1internal:loadCodeAssist"));
    for at in &requests {
        let came = around(&agent.request(*at, false));
        let answer = send("streamGenerateContent?alt=sse", came.clone()).await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        let sent = provider.last();
        assert_eq!(sent.path, "/v1internal:streamGenerateContent?alt=sse");
        assert_eq!(sent.headers["authorization"], "Bearer made-up-token-4711");
        let start = r#"{"model":"gemini-3.1-pro-preview","project":"p", "user_prompt_id":"u","request": {"#;
        assert!(sent.body.starts_with(start), "{}", &sent.body[..200]);
        assert!(sent.body.len() <= came.len());
    }
    assert_eq!(provider.refused(), Vec::<String>::new());
    let records = records(&gateway, requests.len() + 1).await;
    assert!(records.iter().any(|record| record.decided.iter().any(|note| note.is_fold())));
    let billed = records.iter().filter(|record| record.bill.is_some_and(|bill| bill.sent > 0)).count();
    assert_eq!(billed, requests.len(), "what it took is read inside another object too");
    assert!(records[1..].iter().all(|record| record.model == "gemini-3.1-pro-preview"), "{records:?}");
    let all = around(&agent.request(requests[requests.len() - 1], false)).len();
    assert!(provider.last().body.len() < all / 2, "{} of {all}", provider.last().body.len());
}

/// An agent that masks its old outputs goes on in a branch, and no fold shows what it took away.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_has_masked_is_not_shown_as_known() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let mut agent = long(Format::Gemini, 3);
    play(&gateway, &provider, &agent).await;
    for step in &mut agent.steps {
        if let Step::Outputs(outputs) = step {
            outputs[0].1 = "<tool_output_masked>\n     1→let old_secret = 1;\n\nOutput too large. Full output available at: /tmp/x.txt\n</tool_output_masked>".to_owned();
        }
    }
    for round in 3..14 {
        agent.work(round);
    }
    let sent = play(&gateway, &provider, &agent).await;
    let records = records(&gateway, 1).await;
    assert!(records.iter().any(|record| record.decided.iter().any(|note| note.is_fold())));
    let made = |text: &str| text.starts_with("# Files as you know them") && text.contains("old_secret");
    let texts = messages_of(sent.last().unwrap());
    let texts =
        texts.iter().flat_map(|content| content["parts"].as_array().unwrap()).filter_map(|part| part["text"].as_str());
    assert!(!texts.into_iter().any(made));
    assert_eq!(provider.refused(), Vec::<String>::new());
}

/// What the provider keeps under a name is in its count and not in ours: without care every fold would be forced.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_content_is_neither_folded_nor_taken_for_growth() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Gemini, 2);
    for at in agent.requests() {
        let mut body: Value = serde_json::from_str(&agent.request(at, false)).unwrap();
        let fields = body.as_object_mut().unwrap();
        fields.remove("tools");
        fields.remove("systemInstruction");
        fields.insert("cachedContent".to_owned(), "cachedContents/manual".into());
        let (status, answer) = post(&gateway, Format::Gemini, body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(
            serde_json::from_str::<Value>(&provider.last().body).unwrap()["cachedContent"],
            "cachedContents/manual"
        );
    }
    assert_eq!(provider.refused(), Vec::<String>::new());
}
