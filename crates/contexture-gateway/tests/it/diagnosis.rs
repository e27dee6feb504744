//! Providers that are asked for their own view of their cache.

use std::sync::{Arc, Mutex};

use axum::extract::Request;
use contexture::wire::Format;
use contexture_gateway::{Gateway, Options, Receipt, Upstreams};
use serde_json::{Value, json};

use super::agent::Agent;
use super::played::{records, small};
use super::provider::post;

/// A provider that compares requests, or does not know what that is.
async fn provider(knows: bool) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let got = Arc::new(Mutex::new(Vec::new()));
    let app = axum::Router::new().fallback({
        let got = got.clone();
        move |request: Request| async move {
            let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let is_asked = body.get("diagnostics").is_some() || body.get("prompt_cache_options").is_some();
            got.lock().unwrap().push(body.clone());
            let n = got.lock().unwrap().len();
            if is_asked && !knows {
                return (axum::http::StatusCode::BAD_REQUEST, "unknown field".to_owned());
            }
            let usage = json!({"input_tokens": 10, "output_tokens": 1});
            let answer = match body.get("messages").is_some() {
                true => json!({"id": format!("msg_{n}"), "usage": usage,
                    "diagnostics": {"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 3}}}),
                false => json!({"id": format!("resp_{n}"), "usage": usage,
                    "prompt_cache_diagnostics": {"type": "cache_miss", "reason": "tools_changed"}}),
            };
            (axum::http::StatusCode::OK, answer.to_string())
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, got)
}

async fn gateway(url: &str, diagnose: bool) -> Gateway {
    let options = Options { upstreams: Upstreams::one(url), diagnose, ..small() };
    Gateway::start("127.0.0.1:0", options).await.unwrap()
}

fn agent(format: Format) -> Agent {
    let mut agent = Agent::new(format, "please begin");
    agent.work(0);
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_names_the_answer_before_and_the_receipt_says_what_was_found() {
    let expected = [
        (Format::Messages, "messages_changed", ["/diagnostics/previous_message_id"; 1], "msg_1"),
        (Format::Responses, "tools_changed", ["/prompt_cache_options/comparison_response_id"; 1], "resp_1"),
    ];
    for (format, word, [place], id) in expected {
        let (url, got) = provider(true).await;
        let gateway = gateway(&url, true).await;
        let agent = agent(format);
        for (n, at) in agent.requests().into_iter().enumerate() {
            assert_eq!(post(&gateway, format, agent.request(at, false)).await.0, 200);
            records(&gateway, n + 1).await;
        }
        let got = got.lock().unwrap().clone();
        assert_eq!(got[1].pointer(place), Some(&json!(id)), "{format:?}");
        let receipt = Receipt::of(&gateway.records());
        assert_eq!(receipt.diagnosed.get(word), Some(&got.len()), "{:?}", receipt.diagnosed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_not_know_the_question_is_asked_once() {
    let (url, got) = provider(false).await;
    let gateway = gateway(&url, true).await;
    let agent = agent(Format::Messages);
    let requests = agent.requests();
    for at in &requests {
        assert_eq!(post(&gateway, agent.format, agent.request(*at, false)).await.0, 200);
    }
    assert_eq!(got.lock().unwrap().len(), requests.len() + 1, "only the first request was sent twice");
    assert!(records(&gateway, requests.len()).await.iter().all(|record| record.passed.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_unless_it_is_wanted() {
    let (url, got) = provider(true).await;
    let gateway = gateway(&url, false).await;
    let body = agent(Format::Messages).request(1, false);
    assert_eq!(post(&gateway, Format::Messages, body.clone()).await.0, 200);
    assert_eq!(got.lock().unwrap()[0], serde_json::from_str::<Value>(&body).unwrap());
}
