//! A gateway that is paused and goes on.

use contexture::wire::Format;
use contexture_gateway::Gateway;
use contexture_gateway::remote::{set_paused, status_of};

use super::played::{digests, long, play, play_some, records, small};
use super::provider::Provider;

async fn pause(gateway: &Gateway, is_paused: bool) {
    let address = gateway.address().to_string();
    let status = set_paused(&address, gateway.token(), is_paused).await.unwrap();
    assert_eq!(status.is_paused, is_paused);
    assert_eq!(status_of(&address, gateway.token()).await.unwrap(), status);
}

/// How many messages two requests have in common at the start.
fn shared(format: Format, one: &str, other: &str) -> usize {
    let (one, other) = (digests(format, one), digests(format, other));
    one.iter().zip(&other).take_while(|(one, other)| one == other).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_untouched_while_it_is_paused_and_folds_apply_again_afterwards() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let agent = long(format, 11);
        let requests = agent.requests();
        let (before, rest) = requests.split_at(requests.len() - 12);
        let (during, after) = rest.split_at(4);
        let folded = play_some(&gateway, &provider, &agent, before).await;
        let changed = records(&gateway, before.len()).await.iter().filter(|record| record.is_changed).count();
        assert!(changed > 0, "{format:?}: something is folded");
        // What it does at this point is no pause's business.
        provider.be_kind();
        pause(&gateway, true).await;
        let raw = play_some(&gateway, &provider, &agent, during).await;
        for (n, (at, sent)) in during.iter().zip(&raw).enumerate() {
            assert_eq!(*sent, agent.request(*at, n % 2 == 0), "{format:?}: as it came");
        }
        pause(&gateway, false).await;
        let again = play_some(&gateway, &provider, &agent, after).await;
        let last = folded.last().unwrap();
        let first = agent.request(after[0], true);
        assert!(
            shared(format, last, &again[0]) > shared(format, last, &first),
            "{format:?}: what was folded before is sent as before"
        );
        assert!(again[0].len() < first.len(), "{format:?}");
        let all = records(&gateway, requests.len()).await;
        let paused = all.iter().filter(|record| record.passed.as_deref() == Some("the gateway is paused"));
        assert_eq!(paused.count(), during.len(), "{format:?}");
        let conversations: std::collections::HashSet<_> = all.iter().map(|record| &record.conversation).collect();
        assert_eq!(conversations.len(), 1, "{format:?}: it is one conversation throughout");
        assert!(provider.refused().is_empty(), "{format:?}: {:?}", provider.refused());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_before_anything_was_folded_leaves_what_was_sent_as_it_is() {
    let format = Format::Messages;
    let agent = long(format, 14);
    let requests = agent.requests();
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    pause(&gateway, true).await;
    let raw = play_some(&gateway, &provider, &agent, &requests[..3]).await;
    pause(&gateway, false).await;
    let after = play_some(&gateway, &provider, &agent, &requests[3..5]).await;
    // The provider has it in its cache: nothing of it may be shortened as if it were new.
    let sent = digests(format, &raw[2]).len();
    assert!(shared(format, &raw[2], &after[0]) >= sent.min(3), "what was sent stays");
    assert_eq!(shared(format, &agent.request(requests[3], true), &after[0]).min(sent), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_needs_the_token_and_the_right_method() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let client = reqwest::Client::new();
    let plain = format!("http://{}/contexture/pause", gateway.address());
    let keyed = format!("{}/contexture/pause", gateway.url());
    for url in [&plain, &keyed] {
        assert_eq!(client.post(url).send().await.unwrap().status().as_u16(), 401, "{url}");
    }
    assert_eq!(client.get(&plain).bearer_auth(gateway.token()).send().await.unwrap().status().as_u16(), 404);
    let status = status_of(&gateway.address().to_string(), gateway.token()).await.unwrap();
    assert!(!status.is_paused);
    assert!(set_paused(&gateway.address().to_string(), "wrong", true).await.is_none());
    let agent = long(Format::Chat, 12);
    play(&gateway, &provider, &agent).await;
    assert!(records(&gateway, agent.requests().len()).await.iter().any(|record| record.is_changed));
}
