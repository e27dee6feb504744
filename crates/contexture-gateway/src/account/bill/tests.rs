use contexture::fold::Prices;
use contexture::wire::Usage;

use super::{Account, SentRequest};
use crate::account::growth::BodyBytes;
use crate::account::models::{Caching, Model};

fn model() -> Model {
    Model {
        name: "m".to_owned(),
        context: 272_000,
        input: None,
        output: None,
        above: None,
        read: 0.1,
        write: 1.25,
        write_hour: 2.5,
        least: 1_024,
        life: 1_800,
    }
}

/// A request of so many tokens, with as many as that read from the cache and nothing said about what was written.
fn note(account: &mut Account, prices: &Prices, (total, read): (u64, u64), is_changed: bool, n: u64) -> f64 {
    let bytes = BodyBytes { text: total * 4, pieces: total * 100, opaque: 0 };
    let sent = SentRequest {
        sent_tokens: total,
        came_tokens: total,
        is_counted: true,
        came_bytes: bytes,
        sent_bytes: bytes,
        is_changed,
        has_moved: false,
        folded: None,
        has_apart: false,
        rewritten: None,
        window: None,
        time_ms: n * 1_000,
    };
    let usage = Usage { input: total - read, cache_read: read, ..Usage::default() };
    account.note(&model(), prices, sent, &usage, n * 1_000).passed_through
}

/// What is written to the cache has a price on newer models of OpenAI, but requests with a login are told of none.
#[test]
fn what_a_provider_holds_without_a_word_is_found_again_without_the_gateway_too() {
    let (mut account, prices) = (Account::default(), model().prices(Caching::Minutes));
    for (n, took) in [(10_000, 0), (11_000, 10_000), (12_000, 11_000)].into_iter().enumerate() {
        note(&mut account, &prices, took, false, n as u64 + 1);
    }
    let passed_through = note(&mut account, &prices, (13_000, 12_000), true, 4);
    assert!((passed_through - (0.1 * 12_000.0 + 1_000.0)).abs() < 1.0, "{passed_through}");
}

/// Where a client marks what is to be cached, the rest is sent in full again each time, with the gateway or without it.
#[test]
fn what_is_never_read_is_not_held() {
    let (mut account, prices) = (Account::default(), model().prices(Caching::Minutes));
    for (n, took) in [(10_000, 8_000), (11_000, 8_000), (12_000, 8_000)].into_iter().enumerate() {
        note(&mut account, &prices, took, false, n as u64 + 1);
    }
    let passed_through = note(&mut account, &prices, (13_000, 8_000), true, 4);
    assert!((passed_through - (0.1 * 8_000.0 + 5_000.0)).abs() < 1.0, "{passed_through}");
}
