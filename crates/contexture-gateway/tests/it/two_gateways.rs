//! Two gateways that share a store: a file of one machine, or a database.

#[cfg(unix)]
#[path = "../../../contexture-store/tests/it/postgres/server.rs"]
pub mod server;

use std::path::{Path, PathBuf};

use contexture::wire::Format;
use contexture_gateway::Options;

use super::played::{digests, long, records, small};
use super::provider::{Provider, post};

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_moves_between_two_gateways_goes_on() {
    for format in [Format::Messages, Format::Responses] {
        let directory = tempfile::tempdir().unwrap();
        goes_on(format, &directory.path().join("gateway.db")).await;
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_moves_between_two_machines_goes_on() {
    let Some(server) = server::Server::start() else { return };
    goes_on(Format::Messages, &PathBuf::from(server.url(&server.make_database()))).await;
}

async fn goes_on(format: Format, store: &Path) {
    {
        let agent = long(format, 14);
        let provider = Provider::start().await;
        let options = || Options { store: Some(store.to_owned()), ..small() };
        let gateways = [provider.gateway(options()).await, provider.gateway(options()).await];
        let (mut asked, mut before, mut folds) = ([0, 0], String::new(), 0);
        for (n, at) in agent.requests().into_iter().enumerate() {
            // Three requests here, two there, and each is repeated at the other one.
            let first = usize::from(n % 5 >= 3);
            let mut sent = Vec::new();
            let mut has_folded = false;
            for which in [first, 1 - first] {
                let (status, _) = post(&gateways[which], format, agent.request(at, false)).await;
                assert_eq!(status, 200);
                asked[which] += 1;
                let records = records(&gateways[which], asked[which]).await;
                has_folded |= records.last().unwrap().decided.iter().any(|note| note.is_fold());
                sent.push(provider.last().body);
            }
            assert_eq!(sent[0], sent[1], "request {n} in {format:?}, repeated at the other gateway");
            folds += usize::from(has_folded);
            if n > 0 && !has_folded {
                let is_longer = digests(format, &sent[0]).starts_with(&digests(format, &before));
                assert!(is_longer, "request {n} in {format:?} moved without a fold");
            }
            before = sent.swap_remove(0);
        }
        assert!(folds > 0, "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_at_once_stay_valid_and_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    lose_nothing(&directory.path().join("gateway.db")).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn gateways_on_two_machines_stay_valid_and_lose_nothing() {
    let Some(server) = server::Server::start() else { return };
    lose_nothing(&PathBuf::from(server.url(&server.make_database()))).await;
}

async fn lose_nothing(store: &Path) {
    let provider = Provider::start().await;
    let options = || Options { store: Some(store.to_owned()), ..small() };
    let gateways = [provider.gateway(options()).await, provider.gateway(options()).await];
    let agent = long(Format::Messages, 12);
    for at in agent.requests() {
        let body = agent.request(at, false);
        let (one, two) = tokio::join!(
            post(&gateways[0], agent.format, body.clone()),
            post(&gateways[1], agent.format, body.clone())
        );
        assert_eq!((one.0, two.0), (200, 200));
    }
    for got in provider.got() {
        contexture_gateway::testing::rules::check(agent.format, &got.body).unwrap();
    }
    let mut seen = 0;
    for gateway in gateways {
        seen += gateway.stop().await.len();
    }
    let kept = contexture_gateway::open_store(store).unwrap().requests(None).unwrap();
    assert_eq!((seen, kept.len()), (agent.requests().len() * 2, agent.requests().len() * 2));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn repeats_are_the_same_while_the_database_is_slow_and_after_it_was_restarted() {
    let Some(mut server) = server::Server::start() else { return };
    let store = PathBuf::from(server.url(&server.make_database()));
    let provider = Provider::start().await;
    let options = || Options { store: Some(store.clone()), ..small() };
    let gateways = [provider.gateway(options()).await, provider.gateway(options()).await];
    let agent = long(Format::Messages, 8);
    let requests = agent.requests();
    for (n, at) in requests.iter().enumerate() {
        let body = agent.request(*at, false);
        match n % 4 {
            1 => server.pause(),
            3 => server.restart_hard(),
            _ => {}
        }
        let first = post(&gateways[n % 2], agent.format, body.clone());
        let ((status, answer), ()) = tokio::join!(first, async {
            if n % 4 == 1 {
                tokio::time::sleep(std::time::Duration::from_millis(700)).await;
                server.go_on();
            }
        });
        assert_eq!(status, 200, "{answer}");
        let sent = provider.last().body;
        post(&gateways[1 - n % 2], agent.format, body).await;
        if provider.last().body != sent {
            let [first, second] = [n % 2, 1 - n % 2].map(|which| records(&gateways[which], n + 1));
            let newest = [first.await.pop().unwrap(), second.await.pop().unwrap()];
            panic!("request {n} is repeated with other bytes: {newest:#?}");
        }
    }
    for gateway in gateways {
        let receipt = gateway.end().await;
        assert_eq!(receipt.requests, requests.len());
        // What could not be looked for while the server was gone is not written, and is named.
        assert_eq!(receipt.unsaved, receipt.unsaved_requests.len());
        assert!(receipt.unsaved_requests.len() <= requests.len() / 4, "{:?}", receipt.unsaved_requests);
    }
}

#[cfg(all(unix, feature = "long-tests"))]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_while_the_database_was_away_joins_what_others_went_on_with() {
    let Some(mut server) = server::Server::start() else { return };
    let store = PathBuf::from(server.url(&server.make_database()));
    let provider = Provider::start().await;
    let options = || Options { store: Some(store.clone()), ..small() };
    let [known, late] = [provider.gateway(options()).await, provider.gateway(options()).await];
    let agent = long(Format::Messages, 8);
    let requests = agent.requests();
    let (before, after) = requests.split_at(requests.len() / 2);
    for at in before {
        assert_eq!(post(&known, agent.format, agent.request(*at, false)).await.0, 200);
    }
    server.pause();
    // It has seen nothing of the conversation, and cannot look it up.
    assert_eq!(post(&late, agent.format, agent.request(*before.last().unwrap(), false)).await.0, 200);
    server.go_on();
    let question =
        r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Is it back?"}]}"#;
    for asked in 2.. {
        post(&late, agent.format, question.to_owned()).await;
        if !records(&late, asked).await.last().unwrap().is_unsaved {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    for (n, at) in after.iter().enumerate() {
        let body = agent.request(*at, false);
        let mut sent = Vec::new();
        for gateway in if n % 2 == 0 { [&known, &late] } else { [&late, &known] } {
            post(gateway, agent.format, body.clone()).await;
            sent.push(provider.last().body);
        }
        assert_eq!(sent[0], sent[1], "request {n} after the database was back");
    }
    assert_eq!(known.end().await.unsaved, 0);
    let receipt = late.end().await;
    assert!(receipt.unsaved > 0, "what was sent without the database is named");
}
