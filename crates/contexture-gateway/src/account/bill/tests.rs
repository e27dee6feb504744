//! Accounts: what they are told, and how they are stored.

use contexture::fold::Prices;
use contexture::wire::Usage;
use serde_json::{Value, json};

use super::Account;
use crate::account::cap::Spent;
use crate::account::growth::BodyBytes;
use crate::account::sent_request::SentRequest;
use crate::models::{Caching, Model};

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
        most: None,
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

/// An account as it has been stored since before it was made of several values.
fn stored() -> Value {
    json!({
        "billed": 1_234.5, "passed_through": 2_000.25, "is_changed": true, "last_changed": true,
        "last_came": 900, "last_sent": 700, "last_own": [650, 850], "grown": [300.5, 310.0],
        "growth": {"text_text": 90_000.0, "text_opaque": 0.5, "opaque_opaque": 0.25, "text_counted": 22_000.0,
            "opaque_counted": 0.125, "counted_counted": 5_500.0},
        "growth_of_pieces": {"text_text": 1.0, "text_opaque": 0.0, "opaque_opaque": 0.0, "text_counted": 2.0,
            "opaque_counted": 0.0, "counted_counted": 3.0},
        "last_pieces": [41, 31], "last_bytes": 3_600, "last_sent_bytes": 2_800, "last_opaque": [7, 5],
        "last_plain": 11, "missed": 3, "owed": 0.75, "unfolded": 880, "billed_since": 1_000.5, "was_owed": true, "last_ms": 1_700_000_000_000_u64,
        "ratio": 1.07, "apart": 2, "last_held": 689, "found": 0.995, "holds_untold": true,
        "spent": serde_json::to_value(Spent::default()).unwrap(),
    })
}

#[test]
fn a_stored_account_is_read_and_written_as_ever() {
    let account: Account = serde_json::from_value(stored()).unwrap();
    assert_eq!(serde_json::to_value(account).unwrap(), stored());
}

#[test]
fn an_account_of_the_first_version_is_read() {
    let first = json!({
        "billed": 10.0, "passed_through": 10.0, "sent": 9, "came": 9, "output": 1, "requests": 1,
        "is_changed": false, "last_came": 9, "last_ms": 5, "ratio": 1.0, "last_held": 9,
    });
    let account: Account = serde_json::from_value(first).unwrap();
    assert_eq!((account.bills(), account.last_sent(), account.last.came()), ((10.0, 10.0), 0, 9));
}
