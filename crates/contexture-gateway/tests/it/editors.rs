//! Providers that edit the window by themselves: two editors never work on one.

use contexture::wire::Format;
use contexture_gateway::{Options, Receipt, WindowEditor};
use serde_json::{Value, json};

use super::agent::Agent;
use super::played::{long, messages_of, records, small};
use super::provider::{Fault, Provider, post};

fn with_field(body: &str, field: &Value) -> String {
    let end = body.strip_suffix('}').unwrap();
    format!("{end},\"context_management\":{field}}}")
}

fn clearing(format: Format) -> Value {
    match format {
        Format::Responses => json!([{"type": "compaction", "compact_threshold": 100_000}]),
        _ => json!({"edits": [
            {"type": "clear_thinking_20251015", "keep": "all"},
            {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30_000}}]}),
    }
}

/// Plays a conversation in which every request has a field. Returns what came and what was sent.
async fn play(options: Options, agent: &Agent, field: &Value) -> (Vec<(String, String)>, Receipt) {
    let provider = Provider::start().await;
    let gateway = provider.gateway(options).await;
    let mut bodies = Vec::new();
    for at in agent.requests() {
        let came = with_field(&agent.request(at, false), field);
        assert_eq!(post(&gateway, agent.format, came.clone()).await.0, 200);
        bodies.push((came, provider.last().body));
    }
    records(&gateway, bodies.len()).await;
    (bodies, gateway.end().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_request_asks_the_provider_to_edit_nothing_is_folded_beside_it() {
    for format in [Format::Messages, Format::Responses] {
        let agent = long(format, 14);
        let (bodies, receipt) = play(small(), &agent, &clearing(format)).await;
        assert!(bodies.iter().all(|(came, sent)| came == sent), "{format:?}");
        assert!(receipt.folds.is_empty() && receipt.changed == 0);
        let why: Vec<&String> = receipt.passed.keys().collect();
        assert_eq!(why, ["the client asks the provider to edit the window, so nothing is folded beside it"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_that_a_client_keeps_or_clears_are_no_reason_not_to_fold() {
    let keep = json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]});
    let (bodies, receipt) = play(small(), &long(Format::Messages, 14), &keep).await;
    assert!(!receipt.folds.is_empty());
    assert!(bodies.iter().all(|(_, sent)| sent.ends_with(&format!(",\"context_management\":{keep}}}"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn as_ours_the_provider_is_not_asked_and_nothing_else_of_the_options_moves() {
    for format in [Format::Messages, Format::Responses] {
        let agent = long(format, 14);
        let options = Options { editor: WindowEditor::Ours, ..small() };
        let (bodies, receipt) = play(options.clone(), &agent, &clearing(format)).await;
        assert!(!receipt.folds.is_empty(), "{format:?}");
        let noted = receipt.decided.keys().any(|why| why.contains("gateway.context_management"));
        assert!(noted, "{:?}", receipt.decided);
        // What was sent is what a client sends that asks for nothing but to keep its thoughts.
        let kept = match format {
            Format::Responses => None,
            _ => Some(json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})),
        };
        for (came, sent) in &bodies {
            let (came, sent): (Value, Value) =
                (serde_json::from_str(came).unwrap(), serde_json::from_str(sent).unwrap());
            assert_eq!(sent.get("context_management"), kept.as_ref(), "{format:?}");
            for name in ["model", "tools", "system", "max_tokens", "metadata", "store"] {
                assert_eq!(came.get(name), sent.get(name), "{format:?} {name}");
            }
        }
        let Some(kept) = kept else { continue };
        let plain = play(options, &agent, &kept).await.0;
        for ((_, sent), (_, plain)) in bodies.iter().zip(&plain) {
            assert!(messages_of(sent) == messages_of(plain), "{format:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_out_is_sent_as_it_came_also_as_ours() {
    let options = Options { editor: WindowEditor::Ours, holdout: 1.0, ..small() };
    let (bodies, _) = play(options, &long(Format::Messages, 4), &clearing(Format::Messages)).await;
    assert!(bodies.iter().all(|(came, sent)| came == sent));
}

#[tokio::test(flavor = "multi_thread")]
async fn up_to_the_block_into_which_the_provider_compacted_the_past_nothing_changes_and_the_rest_is_folded() {
    for editor in [WindowEditor::Theirs, WindowEditor::Ours] {
        let provider = Provider::start().await;
        provider.be_kind();
        let gateway = provider.gateway(Options { editor, ..small() }).await;
        let agent = long(Format::Messages, 24);
        let compact = json!({"edits": [{"type": "compact_20260112"}]});
        let block = "{ \"type\" : \"compaction\", \"content\":\"All modules up to 9 are done.\\u00e4\" }";
        let mut has_folded = false;
        for at in agent.requests().into_iter().skip(20) {
            let body = with_field(&agent.request(at, false), &compact);
            // The response in which it was compacted is one of the model's in the middle, and has a call.
            let body = body.replacen("{\"signature\":\"sig+31=\"", &format!("{block},{{\"signature\":\"sig+31=\""), 1);
            assert_eq!(post(&gateway, Format::Messages, body.clone()).await.0, 200);
            let sent = provider.last().body;
            let Some(end) = body.find(block).map(|at| at + block.len()) else { continue };
            assert_eq!(sent[..end], body[..end], "{editor:?}: {at}");
            has_folded |= sent.len() < body.len() * 3 / 4;
        }
        let count = provider.got().len();
        let receipt = Receipt::of(&records(&gateway, count).await);
        let is_theirs = editor == WindowEditor::Theirs;
        assert_eq!(has_folded, !is_theirs, "{editor:?}: {:?}", receipt.passed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_did_is_on_the_receipt_and_paid_for() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let usage = r#"{"input_tokens":20000,"cache_read_input_tokens":0,"output_tokens":100,"iterations":[
        {"type":"compaction","input_tokens":120000,"output_tokens":4000},{"type":"message","input_tokens":20000,"output_tokens":100}]}"#;
    let edits =
        r#"{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":5000}]}"#;
    let body = format!("{{\"content\":[],\"usage\":{usage},\"context_management\":{edits}}}");
    let fault = Fault { status: 200, headers: Vec::new(), body: Box::leak(body.into_boxed_str()), only_with: None };
    provider.set_fault(Some(fault));
    let agent = long(Format::Messages, 1);
    post(&gateway, Format::Messages, agent.request(1, false)).await;
    records(&gateway, 1).await;
    let receipt = gateway.end().await;
    let seen: Vec<_> =
        receipt.provider_edits.iter().map(|(kind, edits)| (&**kind, edits.cleared, edits.cleared_tokens)).collect();
    assert_eq!(seen, [("clear_tool_uses_20250919", 8, 5_000), ("compaction", 0, 100_000)]);
    // Sonnet 4.5: 3 dollars for a million tokens of input and 15 of output; the compaction is paid as well.
    let (paid, through) = receipt.dollars.unwrap();
    let expected = (140_000.0 * 3.0 + 4_100.0 * 15.0) / 1e6;
    assert!((paid - expected).abs() < 1e-9 && (through - expected).abs() < 1e-9, "{paid} {through} {expected}");
    assert_eq!(receipt.sent, 20_000, "what was cleared is not counted as sent");
}
