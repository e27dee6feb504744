//! Models that think with a budget: they begin a turn with it, and the turn goes on through results.

use contexture::wire::Format;
use serde_json::{Value, json};

use super::played::{long, records, small};
use super::provider::{Provider, post};

/// The request of a client that gives thinking a budget. The model thinks when somebody has said something, and before
/// every so many of its other responses.
fn with_budget(body: &str, every: usize) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let messages = body["messages"].as_array_mut().unwrap();
    let (mut is_new, mut responses) = (false, 0);
    for message in messages {
        let is_said = message["role"] == "user";
        let blocks = message["content"].as_array_mut().unwrap();
        let is_result = |block: &Value| block["type"] == "tool_result";
        if is_said {
            is_new = !blocks.iter().any(is_result);
            continue;
        }
        responses += 1;
        if !is_new && responses % every != 0 {
            blocks.retain(|block| block["type"] != "thinking");
        }
    }
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_waits_while_it_would_leave_a_turn_without_the_thinking_that_begins_it() {
    for (every, is_one_turn) in [(3, false), (usize::MAX, true)] {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = long(Format::Messages, if is_one_turn { 0 } else { 20 });
        if is_one_turn {
            for round in 0..60 {
                agent.work(round);
            }
        }
        let requests = agent.requests();
        for at in &requests {
            let (status, answer) = post(&gateway, agent.format, with_budget(&agent.request(*at, false), every)).await;
            assert_eq!(status, 200, "{answer}");
        }
        assert_eq!(provider.refused(), Vec::<String>::new(), "thinking before every {every}. response");
        let records = records(&gateway, requests.len()).await;
        let folds = records.iter().filter(|record| record.decided.iter().any(|note| note.is_fold())).count();
        let why = "does not begin with thinking";
        let waits = records.iter().filter(|record| record.passed.as_deref().is_some_and(|passed| passed.contains(why)));
        println!("thinking before every {every}. response: {folds} folds, {} wait", waits.clone().count());
        assert!(folds >= 1, "nothing was folded although somebody spoke");
        // Only the account takes messages of a turn away, and in a long turn those at its beginning.
        assert_eq!(waits.count() > 0, is_one_turn, "whether a fold would have cut a turn");
        let all = with_budget(&agent.request(requests[requests.len() - 1], false), every).len();
        assert!(provider.last().body.len() < all, "{every}");
    }
}
