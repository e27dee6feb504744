//! RecordedSession work as a client would have sent it, through the gateway.

use contexture::item::FunctionCall;
use contexture::item::Item;
use contexture::transcript::Record;
use contexture::wire::Format;
use contexture_gateway::testing::recorded::RecordedSession;
use contexture_gateway::testing::rules;

use super::agent::file_text;
use super::played::small;
use super::provider::{Provider, post};

/// A recording with what real ones have: several calls at once, ids that come again, calls without outputs, empty
/// texts, and outputs that come late.
fn records(format: Format) -> Vec<Record> {
    // Anthropic wants ids that are unique in a request.
    let again = |round: usize| if format == Format::Messages { round } else { round % 3 };
    let mut records = vec![
        Item::message(contexture::Role::System, "You are an agent.").into(),
        Item::user("Bring the modules up to date.").into(),
    ];
    for round in 0..14 {
        let file = round % 5;
        let path = format!("src/module_{file}.rs");
        let read = format!("{{\"file_path\":\"{path}\"}}");
        let calls = [
            FunctionCall::new(&format!("r{round}"), "Read", read),
            FunctionCall::new(&format!("b{}", again(round)), "Bash", "{\"command\":\"git status\"}"),
            FunctionCall::new(&format!("lost{round}"), "Bash", "{\"command\":\"sleep\"}"),
        ];
        records.push(Record::response(if round % 2 == 0 { "" } else { "I look." }, calls));
        records.push(Item::output(&format!("r{round}"), file_text(file, round, 120)).into());
        records.push(Item::error_output(&format!("b{}", again(round)), "fatal: not a git repository").into());
        if round % 4 == 3 {
            records.push(Record::response("Done so far.", []));
            records.push(Item::user("").into());
        }
    }
    records.push(Record::response("All done.", []));
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_work_is_sent_within_the_rules_in_every_format() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let recorded = RecordedSession::new(format, &records(format));
        assert_eq!(recorded.len(), 18, "{format:?}");
        for number in 0..recorded.len() {
            let body = recorded.request(number);
            rules::check(format, &body).unwrap_or_else(|error| panic!("{format:?} as recorded, {number}: {error}"));
            let (status, answer) = post(&gateway, format, body).await;
            assert_eq!(status, 200, "{answer}");
            rules::check(format, &provider.last().body).unwrap_or_else(|error| panic!("{format:?}, {number}: {error}"));
        }
        let whole = recorded.request(recorded.len() - 1).len();
        assert!(provider.last().body.len() < whole, "{format:?}");
    }
}
