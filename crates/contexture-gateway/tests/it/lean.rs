//! Requests without the declarations of tools that nobody calls.

use contexture::wire::Format;
use contexture_gateway::{Gateway, LEAST_CONVERSATIONS, LeanTools, Options, Receipt};
use serde_json::{Value, json};

use super::played::{records, small};
use super::provider::{Provider, post};

/// Declarations of two servers' tools, among others, as they are in the requests.
const UNUSED: &str = r#"{"name": "mcp__docs__search", "input_schema": {"type": "object"}}, {"name": "mcp__docs__fetch",  "input_schema": {}}, "#;

/// A request after some calls of the tool that reads.
fn body(task: &str, calls: usize) -> String {
    let mut messages = vec![json!({"role": "user", "content": task})];
    for n in 0..calls {
        let id = format!("c{n}");
        let call = json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "a.rs"}});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "1"}]}));
    }
    let messages = Value::from(messages);
    format!(
        r#"{{"model":"claude-sonnet-4-5", "max_tokens": 100, "tools": [ {UNUSED}{{"name":"Read","input_schema":{{}}}} ], "system":"Work.", "messages":{messages}}}"#
    )
}

async fn gateway(provider: &Provider, store: &std::path::Path) -> Gateway {
    let lean_tools = Some(LeanTools { needed: &[], of_servers: ("mcp__", "__"), named_in: "".into() });
    let (directory, store) = (Some("/project".into()), Some(store.to_owned()));
    provider.gateway(Options { lean_tools, directory, store, ..small() }).await
}

/// Sends a request; returns what the provider got.
async fn send(provider: &Provider, gateway: &Gateway, body: String) -> String {
    let (status, answer) = post(gateway, Format::Messages, body).await;
    assert_eq!(status, 200, "{answer}");
    provider.last().body
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_nobody_calls_leave_and_everything_else_keeps_its_bytes() {
    let (provider, directory) = (Provider::start().await, tempfile::tempdir().unwrap());
    let store = directory.path().join("gateway.db");
    let first = gateway(&provider, &store).await;
    for n in 0..LEAST_CONVERSATIONS {
        for calls in 0..2 {
            let body = body(&format!("Task {n}."), calls);
            assert_eq!(send(&provider, &first, body.clone()).await, body);
        }
    }
    records(&first, 2 * LEAST_CONVERSATIONS).await;
    first.stop().await;
    let second = gateway(&provider, &store).await;
    // What is under way keeps its tools.
    let going_on = body("Task 3.", 2);
    assert_eq!(send(&provider, &second, going_on.clone()).await, going_on);
    for calls in 0..3 {
        let body = body("One more.", calls);
        assert_eq!(send(&provider, &second, body.clone()).await, body.replace(UNUSED, ""));
    }
    let receipt = Receipt::of(&records(&second, 4).await);
    assert_eq!((receipt.lean.conversations, receipt.lean.tools), (1, 2));
    assert_eq!(receipt.lean.tokens, 3 * (UNUSED.len() as u64 / 4));
    // The conversation goes on as it began, also elsewhere.
    second.stop().await;
    let third = gateway(&provider, &store).await;
    let going_on = body("One more.", 3);
    assert_eq!(send(&provider, &third, going_on.clone()).await, going_on.replace(UNUSED, ""));
    // A provider that wants them gets them, from then on too.
    provider.require("mcp__docs__search");
    for calls in 4..6 {
        let all = body("One more.", calls);
        assert_eq!(send(&provider, &third, all.clone()).await, all);
    }
    assert_eq!(provider.refused().len(), 1);
    assert_eq!(Receipt::of(&records(&third, 3).await).lean.whole, 1);
}
