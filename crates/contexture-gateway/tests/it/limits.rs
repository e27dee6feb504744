//! The provider's limit, the agent's own summaries, and what cannot be folded.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use contexture::wire::Format;
use contexture_gateway::models::{ModelEntry, Models, Source};
use contexture_gateway::testing::cache::{Cache, Took};
use contexture_gateway::{Options, Receipt};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::agent::Agent;
use super::bills::Held;
use super::played::{long, records};
use super::provider::{Provider, patient, post};

const WINDOW: u64 = 24_000;

/// Options with models that take so many tokens.
fn narrow(window: u64) -> Options {
    let entry = |name: &str| ModelEntry { name: name.to_owned(), context: Some(window), ..ModelEntry::default() };
    Options { models: Models::builtin().knowing([entry("claude"), entry("gpt"), entry("gemini")]), ..patient() }
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_providers_limit_a_decision_is_waited_for() {
    join_all(Format::ALL.map(|format| async move {
        let provider = Provider::start().await;
        provider.set_window(WINDOW);
        let counter = Arc::new(Held::default());
        let own_work = Duration::from_millis(1);
        let gateway = provider.gateway(Options { counter: counter.clone(), own_work, ..narrow(WINDOW) }).await;
        let agent = long(format, 16);
        for at in agent.requests() {
            // Every decision takes much longer than there is time for.
            counter.0.store(true, Ordering::SeqCst);
            let release = tokio::spawn({
                let counter = counter.clone();
                async move {
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    counter.0.store(false, Ordering::SeqCst);
                }
            });
            let (status, answer) = post(&gateway, format, agent.request(at, false)).await;
            assert_eq!(status, 200, "{format:?}: {answer}");
            release.await.unwrap();
        }
        assert_eq!(provider.refused(), Vec::<String>::new(), "{format:?}");
    }))
    .await;
}

/// What does not fit cannot be sent without the gateway either: a client would ask for a summary of what it sent last,
/// and what it would do after that is not known, so its cost is nobody's saving.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_counts_as_saved_once_a_request_would_not_fit() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(Options { budget: Some(16_000), ..narrow(WINDOW) }).await;
        let agent = long(format, 16);
        let mut through = Cache::with_life(300_000);
        let (mut passed, mut beyond, mut before) = (0.0, 0, 0);
        for at in agent.requests() {
            let body = agent.request(at, false);
            let took = through.serve(format, &body, 0);
            let (status, answer) = post(&gateway, format, body).await;
            assert_eq!(status, 200, "{format:?}: {answer}");
            let fits = took.total() <= WINDOW;
            if !fits && beyond == 0 {
                passed += Took { read: before, ..Took::default() }.bill(format);
            }
            (beyond, before) = (beyond + usize::from(!fits), took.total());
            passed += if fits { took } else { provider.last().took }.bill(format);
        }
        assert!(beyond > 12, "{format:?}: {beyond}");
        let receipt = Receipt::of(&records(&gateway, agent.requests().len()).await);
        let off = (receipt.passed_through - passed).abs() / passed;
        assert!(off < 0.02, "{format:?}: it is {passed}, the receipt says {}", receipt.passed_through);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_a_refusal_names_is_kept_and_the_repetition_is_decided_anew() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        // The gateway believes in a larger window.
        let gateway = provider.gateway(Options { budget: Some(1_000_000), ..patient() }).await;
        provider.set_window(WINDOW);
        let agent = long(format, 16);
        let mut refused = 0;
        for at in agent.requests() {
            let body = agent.request(at, false);
            let (mut status, mut answer) = post(&gateway, format, body.clone()).await;
            if status == 400 {
                refused += 1;
                (status, answer) = post(&gateway, format, body).await;
            }
            assert_eq!(status, 200, "{format:?}: {answer}");
        }
        assert_eq!(refused, 1, "{format:?}: the first refusal tells the window");
        let count = agent.requests().len() + 1;
        let receipt = Receipt::of(&records(&gateway, count).await);
        let model = receipt.models.values().next().unwrap();
        assert_eq!((model.context, &model.context_from), (WINDOW, &Source::Provider), "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_models_tells_windows() {
    let provider = Provider::start().await;
    let list = r#"{"data":[{"id":"claude-sonnet-4-5","max_input_tokens":77000},{"id":"x","context_length":"odd"}]}"#;
    provider.set_list(list);
    let gateway = provider.gateway(patient()).await;
    let answer = reqwest::get(format!("{}/anthropic/v1/models", gateway.url())).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), list);
    let agent = Agent::new(Format::Messages, "hello");
    post(&gateway, agent.format, agent.request(1, false)).await;
    let receipt = Receipt::of(&records(&gateway, 2).await);
    let model = &receipt.models["claude-sonnet-4-5"];
    assert_eq!((model.context, &model.context_from), (77_000, &Source::Provider));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_own_summary_fits() {
    let provider = Provider::start().await;
    provider.set_window(WINDOW);
    let gateway = provider.gateway(narrow(WINDOW)).await;
    let agent = long(Format::Messages, 16);
    let mut compacting = agent.clone();
    compacting.say("Your task is to create a detailed summary of the conversation so far, paying attention.");
    // The first request that the gateway sees is far too large.
    let (status, answer) = post(&gateway, agent.format, compacting.request(compacting.steps.len(), false)).await;
    assert_eq!(status, 200, "{answer}");
    assert!(provider.last().body.contains("Your task is to create a detailed summary"));
}

/// The words by which an agent asks for a summary, beside an output and before a reminder, as Claude Code writes them.
fn asking(agent: &Agent) -> String {
    let mut body: Value = serde_json::from_str(&agent.request(agent.steps.len(), false)).unwrap();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.pop_if(|last| last["role"] == "system");
    let last = messages.last_mut().unwrap();
    let prompt = "Your task is to create a detailed summary of the conversation so far, paying attention.";
    last["content"].as_array_mut().unwrap().push(json!({"type": "text", "text": prompt}));
    messages.push(json!({"role": "system", "content": "The date has changed."}));
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_recognised_beside_an_output_and_before_a_reminder() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { budget: Some(16_000), ..patient() }).await;
    let mut agent = long(Format::Messages, 6);
    agent.has_reminders = true;
    for at in agent.requests() {
        post(&gateway, agent.format, agent.request(at, false)).await;
    }
    agent.call("I look once more.", "Bash", json!({"command": "ls"}), &"a line of output\n".repeat(2_000));
    let (status, answer) = post(&gateway, agent.format, asking(&agent)).await;
    assert_eq!(status, 200, "{answer}");
    let sent = provider.last().body;
    assert!(sent.contains("Your task is to create") && sent.contains("The date has changed."));
    assert_eq!(sent.matches("a line of output").count(), 2_000, "what the summary is made of is whole");
    assert_eq!(sent, asking(&agent), "it is one of everything");
    let records = records(&gateway, agent.requests().len()).await;
    let last = records.last().unwrap();
    assert_eq!(last.passed.as_deref(), Some("the client sums up the conversation by itself"));
    assert!(last.decided.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_content_are_the_clients_own_affair() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let bodies = [
        json!({"model": "claude-opus-4-8", "max_tokens": 10, "messages": [{"role": "user", "content": "a"},
            {"role": "assistant", "content": []}, {"role": "user", "content": "b"}]}),
        json!({"model": "claude-opus-4-8", "max_tokens": 10, "messages": [{"role": "user", "content": []}]}),
        json!({"model": "claude-opus-4-8", "max_tokens": 10, "messages": [{"role": "user", "content": "a"},
            {"role": "assistant", "content": ""}]}),
    ];
    for body in bodies {
        let body = body.to_string();
        post(&gateway, Format::Messages, body.clone()).await;
        assert_eq!(provider.last().body, body, "it is passed on as it came");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_with_the_provider_is_one_conversation_and_says_why_nothing_is_saved() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let ask = |text: &str, previous: Option<&str>| {
        let mut body = json!({"model": "gpt-6.1-sol", "input": [{"role": "user", "content": text}]});
        if let Some(previous) = previous {
            body["previous_response_id"] = previous.into();
        }
        body.to_string()
    };
    post(&gateway, Format::Responses, ask("one", None)).await;
    for text in ["two", "three"] {
        // The provider of the tests gives all its responses this id.
        records(&gateway, 1).await;
        post(&gateway, Format::Responses, ask(text, Some("m1"))).await;
    }
    let records = records(&gateway, 3).await;
    let why =
        "its history is with the provider (`previous_response_id` or `conversation`), so there is nothing to fold";
    assert_eq!(records[1].passed.as_deref(), Some(why));
    assert!(records[0].conversation.is_some());
    assert_eq!(
        (&records[1].conversation, &records[2].conversation),
        (&records[0].conversation, &records[0].conversation)
    );
    assert_eq!(Receipt::of(&records).conversations, 1);
}
