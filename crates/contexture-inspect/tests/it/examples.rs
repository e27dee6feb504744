//! The examples in `docs/reference/api.md` are what the API returns. `UPDATE_DOCS=1` writes them anew.

use serde_json::{Value, json};

use super::story::{first_fold, played, recording};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/api.md");

/// How an example begins; the route follows.
const START: &str = "<!-- example: GET ";

/// Most elements of a list that an example shows.
const SHOWN: usize = 2;

/// Cuts long lists, and what differs from run to run.
fn short(value: &mut Value) {
    match value {
        Value::Array(list) => {
            list.truncate(SHOWN);
            list.iter_mut().for_each(short);
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "own_us" => *value = json!(0),
                    "version" | "table" => *value = json!("…"),
                    _ => short(value),
                }
            }
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_are_what_the_api_returns() {
    let (_server, asking) = played(&recording(12), 8_000, Some("claude-sonnet-4-5")).await;
    let n = first_fold(&asking).await;
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (mut written, mut rest, mut count) = (String::new(), page.as_str(), 0);
    while let Some(at) = rest.find(START) {
        let (before, example) = rest.split_at(at);
        let (head, after) = example.split_once("-->\n").unwrap();
        let route = head[START.len()..].trim().replace("{n}", &n.to_string());
        let mut value = match route.as_str() {
            "conversations?limit=abc" => serde_json::from_str(&asking.status(&route).await.1).unwrap(),
            route => asking.get(route).await,
        };
        short(&mut value);
        let body = after.strip_prefix("```json\n").expect("an example is in a fence");
        let (_, after) = body.split_once("```\n").unwrap();
        let json = serde_json::to_string_pretty(&value).unwrap();
        written.push_str(&format!("{before}{head}-->\n```json\n{json}\n```\n"));
        (rest, count) = (after, count + 1);
    }
    written.push_str(rest);
    assert!(count >= 5, "the page has examples");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(PAGE, &written).unwrap();
    }
    let line = written.lines().zip(page.lines()).find(|(now, then)| now != then);
    assert!(written == page, "run it with UPDATE_DOCS=1; returned, and written on the page: {line:?}");
}
