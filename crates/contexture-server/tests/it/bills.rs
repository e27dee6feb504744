//! What is billed, against a provider that simulates its cache exactly.

use contexture::wire::Format;
use contexture_server::testing::cache::Cache;
use contexture_server::{Options, Receipt};

use super::agent::Agent;
use super::folding::{long, records, small};
use super::provider::{Provider, post};

/// How far the bill may be above pass-through's at any moment.
const EXCESS: f64 = 0.10;

async fn check(format: Format, agent: &Agent) {
    let provider = Provider::start().await;
    // Wide enough that nothing is forced.
    let gateway = provider.gateway(Options { budget: Some(60_000), ..small() }).await;
    let mut through = Cache::with_life(300_000);
    let (mut billed, mut passed) = (0.0, 0.0);
    for (n, at) in agent.requests().into_iter().enumerate() {
        let body = agent.request(at, n % 2 == 1);
        passed += through.serve(format, &body, 0).bill(format);
        post(&gateway, format, body).await;
        billed += provider.last().took.bill(format);
        assert!(billed <= passed * (1.0 + EXCESS) + 1.0, "{format:?}, request {n}: {billed} against {passed}");
    }
    let records = records(&gateway, agent.requests().len()).await;
    let receipt = Receipt::of(&records);
    assert!(!receipt.folds.is_empty());
    assert!(billed < passed, "{format:?}: {billed} against {passed}");
    assert!((receipt.billed - billed).abs() < 1.0, "{format:?}: the receipt says {}, it was {billed}", receipt.billed);
    let off = (receipt.passed_through - passed).abs() / passed;
    assert!(off < 0.05, "{format:?}: pass-through is {passed}, the receipt says {}", receipt.passed_through);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_cheaper_and_never_much_dearer() {
    for format in Format::ALL {
        check(format, &long(format, 32)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_conversation_costs_what_it_would_have_cost() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = Agent::new(format, "Look at one file.");
        agent.work(0);
        let mut through = Cache::with_life(300_000);
        for at in agent.requests() {
            let body = agent.request(at, false);
            let took = through.serve(format, &body, 0);
            post(&gateway, format, body).await;
            let got = provider.last().took;
            // Automatic caches hold whole pieces of 128 tokens.
            assert!(got.bill(format) <= took.bill(format) + 128.0, "{format:?}");
        }
        let receipt = Receipt::of(&records(&gateway, agent.requests().len()).await);
        assert!(receipt.billed <= receipt.passed_through + 128.0 * receipt.requests as f64);
        assert_eq!(receipt.with_usage, agent.requests().len());
    }
}
