//! Models that bind their thoughts to everything that was sent before them: a thought that came after a fold is refused
//! in the request as it came.

use contexture::wire::Format;
use contexture_gateway::remote::set_paused;
use contexture_gateway::{Gateway, Options};

use super::agent::Agent;
use super::played::{long, records, small};
use super::provider::{Fault, Provider, post};

fn agent() -> Agent {
    let mut agent = long(Format::Messages, 16);
    (agent.has_reminders, agent.model) = (true, Some("claude-opus-5-5"));
    agent
}

async fn binding() -> Provider {
    let provider = Provider::start().await;
    provider.bind_thoughts();
    provider
}

/// Sends requests, none of which the client sees refused.
async fn play(provider: &Provider, gateway: &Gateway, agent: &Agent, requests: &[usize]) {
    for at in requests {
        let (status, answer) = post(gateway, agent.format, agent.request(*at, false)).await;
        assert_eq!(status, 200, "after step {at}: {answer}");
        provider.has_thought(format!("sig+{at}="));
    }
}

/// The first requests until something was folded, and some more, and the others.
async fn folded<'r>(provider: &Provider, gateway: &Gateway, agent: &Agent, requests: &'r [usize]) -> &'r [usize] {
    let (first, rest) = requests.split_at(requests.len() - 16);
    play(provider, gateway, agent, first).await;
    let folds = records(gateway, first.len()).await.iter().filter(|record| record.is_changed).count();
    assert!(folds > 4, "{folds} requests were changed");
    rest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_not_sent_as_it_came_because_its_conversation_was_found_late() {
    let (provider, directory, agent) = (binding().await, tempfile::tempdir().unwrap(), agent());
    let options = || Options { store: Some(directory.path().join("gateway.db")), ..small() };
    let gateway = provider.gateway(options()).await;
    let requests = agent.requests();
    let rest = folded(&provider, &gateway, &agent, &requests).await;
    gateway.stop().await;
    // Nothing is ever in time in this one, and it has to read the conversation first.
    let gateway = provider.gateway(Options { own_work: std::time::Duration::ZERO, ..options() }).await;
    play(&provider, &gateway, &agent, rest).await;
    assert_eq!(provider.refused(), Vec::<String>::new());
    let records = records(&gateway, rest.len()).await;
    assert!(records.iter().all(|record| record.is_changed), "{:?}", records.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_of_before_a_refusal_are_left_out_after_it() {
    let (provider, agent) = (binding().await, agent());
    let gateway = provider.gateway(small()).await;
    let requests = agent.requests();
    let rest = folded(&provider, &gateway, &agent, &requests).await;
    // What was folded is refused, for whatever reason, and nothing else.
    let fault = Fault { status: 400, headers: Vec::new(), body: "{}", only_with: Some("as you know them") };
    provider.set_fault(Some(fault));
    play(&provider, &gateway, &agent, &rest[..2]).await;
    provider.set_fault(None);
    play(&provider, &gateway, &agent, &rest[2..]).await;
    assert_eq!(provider.refused(), Vec::<String>::new());
    // Those of after it are sent.
    let last = provider.last().body;
    assert!(last.matches("\"thinking\"").count() > 8, "{}", last.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_does_not_bring_thoughts_back_that_are_refused() {
    let (provider, agent) = (binding().await, agent());
    let gateway = provider.gateway(small()).await;
    let requests = agent.requests();
    let rest = folded(&provider, &gateway, &agent, &requests).await;
    let pause = async |is_paused| set_paused(&gateway.address().to_string(), gateway.token(), is_paused).await.unwrap();
    pause(true).await;
    play(&provider, &gateway, &agent, &rest[..4]).await;
    assert_eq!(provider.refused(), Vec::<String>::new());
    pause(false).await;
    // One of these may be refused as it was before the pause; the client does not notice.
    play(&provider, &gateway, &agent, &rest[4..]).await;
    assert!(provider.refused().len() <= 1, "{:?}", provider.refused());
}
