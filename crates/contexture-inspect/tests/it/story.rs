//! What the API tells of a request: views with grades and causes, what was taken away, the answer, and the price.

use std::collections::HashSet;

use contexture::item::{FunctionCall, Item, Role};
use contexture::transcript::Record;
use contexture_gateway::simulate::played::Played;
use contexture_inspect::view::About;
use contexture_inspect::{AnnouncedRecording, Archive, InspectServer, playing};
use serde_json::{Value, json};

use super::api::Asking;

/// An agent that reads files, runs a script that may change them, and goes on for a while.
pub fn recording(rounds: usize) -> Vec<Record> {
    let mut records = vec![Record::from(Item::user(
        "<current_datetime>2026-01-01T00:00:00Z</current_datetime>\n\nPlease bring the parser up to date.",
    ))];
    for number in 0..rounds {
        let path = format!("/project/src/part_{}.rs", number % 3);
        let lines: String = (1..50).map(|line| format!("{line:6}\tfn part_{number}_{line}() {{}}\n")).collect();
        let script = json!({"command": format!("./scripts/migrate.sh {number}")});
        for (name, arguments, output) in
            [("Read", json!({"file_path": path}), lines), ("Bash", script, "done\n".repeat(60))]
        {
            let id = format!("call_{number}_{name}");
            let call = FunctionCall::new(&id, name, arguments.to_string());
            records.push(Record::response(format!("Step {number}: {name}."), [call]));
            records.push(Record::from(Item::output(&id, output)));
        }
    }
    records.push(Record::from(Item::user("")));
    records.push(Record::response("It is up to date.", []));
    records
}

/// An inspector with one recording, played to its end.
pub async fn played(records: &[Record], budget: u64, model: Option<&str>) -> (InspectServer, Asking) {
    let about = About { kind: "recordings", ..About::default() };
    let server = InspectServer::start("127.0.0.1:0", Archive::temporary().unwrap(), about).await.unwrap();
    let recording = AnnouncedRecording { id: "r1", name: "parser.jsonl", ..AnnouncedRecording::default() };
    server.inspector().archive().announce(&recording).unwrap();
    let played = Played::new(Some(budget)).with_model(model.map(str::to_owned));
    playing::play(server.inspector(), &played, "r1", records).unwrap();
    server.inspector().is_read("r1");
    let asking = Asking::new(&server.inspector().url());
    (server, asking)
}

/// The number of the first request with a fold.
pub async fn first_fold(asking: &Asking) -> u64 {
    let lines = asking.get("conversations/r1/requests?limit=500").await;
    let lines = lines["items"].as_array().unwrap().clone();
    let is_fold = |line: &&Value| line["verdicts"].to_string().contains("\"fold\"");
    lines.iter().find(is_fold).expect("something was folded")["n"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_tells_what_the_model_knows_of_files() {
    let (_server, asking) = played(&recording(30), 8_000, None).await;
    let n = first_fold(&asking).await;
    let story = asking.get(&format!("conversations/r1/requests/{n}/story")).await;
    let files = story["files"].as_array().unwrap();
    let shown = files.iter().find(|file| file["messages"].is_array()).expect("a fold shows files");
    assert!(shown["path"].as_str().unwrap().ends_with(".rs") && shown["lines"].as_u64() > Some(0), "{shown}");
    // One row for each file, those that changed since first.
    let paths: HashSet<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths.len(), files.len(), "{files:?}");
    let changed: Vec<u64> = files.iter().map(|file| file["changed"].as_u64().unwrap()).collect();
    assert!(changed.is_sorted_by(|one, other| one >= other), "{changed:?}");
    // The block says the same, and is named by what it holds.
    let window = asking.window("r1", n, "sent").await;
    let block = window.iter().find(|block| block["id"] == shown["block"]).unwrap();
    assert_eq!((&block["source"], &block["made"]), (&json!("made"), &json!("views")), "{block}");
    let view = block["views"].as_array().unwrap().iter().find(|view| view["path"] == shown["path"]).unwrap();
    assert_eq!((&view["grade"], view["moments"].is_array()), (&json!("seen"), true), "{view}");
    assert!(block["name"].as_str().unwrap().contains("part_"), "{block}");
    // What the model is told is in the text itself.
    let text = asking.text("r1", block).await;
    assert!(text.contains("as you saw or wrote it at message"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_away_is_what_is_gone() {
    let (_server, asking) = played(&recording(30), 8_000, None).await;
    let n = first_fold(&asking).await;
    let story = asking.get(&format!("conversations/r1/requests/{n}/story")).await;
    let gone: Vec<Value> = asking.window("r1", n, "before").await;
    let gone: Vec<&Value> = gone.iter().filter(|block| block["state"] == "gone").collect();
    let tokens = |list: &[&Value]| list.iter().map(|block| block["tokens"].as_u64().unwrap()).sum::<u64>();
    let removed: Vec<&Value> = story["removed"].as_array().unwrap().iter().collect();
    assert_eq!(tokens(&removed), tokens(&gone));
    let count: u64 = removed.iter().map(|kind| kind["count"].as_u64().unwrap()).sum();
    assert_eq!(count, gone.len() as u64);
    // The window is told whole, to the token.
    let parts: Vec<&Value> = story["parts"].as_array().unwrap().iter().collect();
    let usage = &story["line"]["record"]["usage"];
    let counted = ["input", "cache_read", "cache_write"].map(|kind| usage[kind].as_u64().unwrap()).iter().sum::<u64>();
    assert_eq!(tokens(&parts), counted, "in the tokens that the provider counts");
    assert_eq!(json!(counted), story["line"]["sent_tokens"]);
    // The budget is the one that was asked for.
    assert_eq!(story["line"]["record"]["budget"], 8_000, "{story:#}");
    // Everything that left is named, and leads to its block.
    assert!(removed.iter().all(|kind| kind["largest"][0]["block"].is_number()), "{removed:#?}");
    let fold = &story["fold"];
    assert!(fold["estimated"]["dollars"].is_number() && fold["cost"]["dollars"].is_number(), "{fold:#}");
    if let Some(paid) = fold["paid_back"].as_u64() {
        let line = asking.get(&format!("conversations/r1/requests/{paid}")).await;
        assert_eq!(line["record"]["bill"]["has_paid_back"], true, "{line:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cut_is_a_call_shown_shorter() {
    let mut records = vec![Record::from(Item::user("Please note down what you find."))];
    for number in 0..30 {
        let id = format!("call_{number}");
        let content = format!("note {number}: something that was found\n").repeat(40);
        let arguments = json!({"content": content, "file_path": format!("/project/notes_{number}.md")});
        records.push(Record::response(
            format!("Note {number}."),
            [FunctionCall::new(&id, "Write", arguments.to_string())],
        ));
        records
            .push(Record::from(Item::output(&id, format!("File created successfully at: /project/notes_{number}.md"))));
    }
    records.push(Record::response("Done.", []));
    let (_server, asking) = played(&records, 8_000, None).await;
    let n = first_fold(&asking).await;
    let [sent, came] = [asking.window("r1", n, "sent").await, asking.window("r1", n, "came").await];
    let cut = |blocks: &[Value]| -> Vec<Value> {
        blocks.iter().filter(|block| block["kind"] == "call" && block["state"] == "shortened").cloned().collect()
    };
    let (cut_calls, whole_calls) = (cut(&sent), cut(&came));
    assert!(!cut_calls.is_empty(), "{sent:#?}");
    assert_eq!(cut_calls.len(), whole_calls.len());
    for (call, whole) in cut_calls.iter().zip(&whole_calls) {
        assert_eq!((&call["source"], &call["name"], &call["made"]), (&json!("model"), &json!("Write"), &json!("cut")));
        assert_eq!((&call["other"], &whole["other"]), (&whole["id"], &call["id"]));
        let text = asking.text("r1", call).await;
        assert!(text.contains("left out …]") && text.len() < asking.text("r1", whole).await.len(), "{text}");
    }
    let tools = asking.get("conversations/r1/tools").await;
    assert_eq!(tools["items"][0]["calls"], 30, "{tools:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_recording() {
    let (_server, asking) = played(&recording(6), 60_000, None).await;
    let first = asking.get("conversations/r1/requests/1/story").await;
    let answer = first["answer"].as_array().unwrap();
    assert_eq!((&answer[0]["preview"], &answer[1]["name"]), (&json!("Step 0: Read."), &json!("Read")), "{answer:?}");
    let count = asking.get("conversations/r1").await["requests"].as_u64().unwrap();
    let last = asking.get(&format!("conversations/r1/requests/{count}/story")).await;
    assert_eq!(last["answer"][0]["preview"], "It is up to date.", "{last:#}");
    let text = asking.get(&format!("conversations/r1/blocks/{}", last["answer"][0]["id"])).await;
    assert_eq!(text["text"], "It is up to date.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_has_its_own_model_and_its_own_dates_or_none() {
    let (_server, asking) = played(&recording(30), 8_000, Some("gpt-5")).await;
    let conversation = asking.get("conversations/r1").await;
    assert_eq!((&conversation["model"], &conversation["last_ms"]), (&json!("gpt-5"), &json!(0)), "{conversation}");
    assert_eq!(conversation["title"], "Please bring the parser up to date.");
    // Nothing was said in the last message, so it begins no turn.
    assert_eq!(conversation["turns"], 1, "{conversation}");
    assert_eq!(conversation["simulated"], conversation["requests"], "{conversation}");
    let days = asking.get("bill?by=day").await;
    assert_eq!(days["items"][0]["name"], "no date", "{days}");
    let (_server, asking) = played(&recording(3), 8_000, None).await;
    assert_eq!(asking.get("conversations/r1").await["model"], "claude-sonnet-4-5 (assumed)");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_after_which_an_agent_would_have_summarised_are_told() {
    let (_server, asking) = played(&recording(30), 8_000, None).await;
    assert_eq!(asking.get("conversations/r1").await["beyond"], 0);
    let mut records = recording(4);
    let huge = FunctionCall::new("huge", "Bash", r#"{"command":"cat all"}"#);
    records.push(Record::response("", [huge]));
    records.push(Record::from(Item::output("huge", "some words of a very long text\n".repeat(40_000))));
    records.push(Record::response("Done.", []));
    let (_server, asking) = played(&records, 100_000, Some("claude-sonnet-4-5")).await;
    let conversation = asking.get("conversations/r1").await;
    assert_eq!(conversation["beyond"], 1, "{conversation}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameters_are_refused_with_a_sentence() {
    let (_server, asking) = played(&recording(2), 8_000, None).await;
    for (path, word) in [
        ("conversations?limit=abc", "`limit` is a whole number"),
        ("conversations?limit=0", "`limit` is a whole number, at least 1"),
        ("conversations/r1/overview?columns=0", "`columns` is a whole number, at least 1"),
        ("conversations/r1/requests?from=-1", "`from` is a whole number"),
        ("conversations/r1/requests/1/window?form=other", "`form` is sent, came or before"),
        ("conversations/r1/requests/1/window?order=other", "`order` is place or size"),
        ("conversations/r1/requests/1/window?block=x", "`block` is a whole number"),
        ("conversations/r1/overview?columns=many", "`columns` is a whole number"),
        ("conversations/r1/history", "`path` is missing"),
        ("search?q=x", "`q` needs at least two letters"),
        ("bill?by=moon", "`by` is conversation, day or model"),
    ] {
        let (status, text) = asking.status(path).await;
        assert_eq!(status, 400, "{path}: {text}");
        assert!(text.contains(word), "{path}: {text}");
    }
    assert_eq!(asking.status("search?q=step&conversation=r1").await.0, 200);
    assert_eq!(asking.status("search?q=step&conversation=r2").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_program_of_an_agent_says_is_no_turn_of_a_person() {
    let said = |text: &str| Record::from(Item::user(text));
    let own = |text: &str| Record::from(Item::message(Role::System, text));
    let records = [
        said("fix the colours"),
        own("- gstack: a browser for tests"),
        Record::response("I look.", []),
        own("1\tpackage color\n2\tfunc mix() {}"),
        Record::response("I see.", []),
        said("now the tests"),
        Record::response("Done.", []),
    ];
    let (_server, asking) = played(&records, 8_000, None).await;
    let events = asking.get("conversations/r1/events").await;
    let said: Vec<&str> = events["items"].as_array().unwrap().iter().filter_map(|turn| turn["said"].as_str()).collect();
    assert_eq!(said, ["fix the colours", "now the tests"]);
    let last = asking.get("conversations/r1/requests/3").await;
    assert!(last["parts"]["instructions"].as_u64() > Some(0) && last["turn"] == 2, "{last}");
    // A conversation that begins with a command has the title of what is said first.
    let records = [
        Record::from(Item::user("<command-message>log</command-message>\n<command-name>/log</command-name>")),
        own("Base directory for this skill: /skills/log"),
        Record::response("It is written.", []),
        Record::from(Item::user("now the tests")),
        own("- a reminder"),
        Record::response("Done.", []),
    ];
    let (_server, asking) = played(&records, 8_000, None).await;
    let events = asking.get("conversations/r1/events").await;
    let turns = events["items"].as_array().unwrap().iter().filter(|event| event["said"].is_string());
    let turns: Vec<(&Value, &Value)> = turns.map(|turn| (&turn["range"][0], &turn["said"])).collect();
    assert_eq!(turns, [(&json!(2), &json!("now the tests"))]);
    assert_eq!(asking.get("conversations/r1").await["title"], "now the tests");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_of_a_conversation_does_not_grow_with_it() {
    let (_server, asking) = played(&recording(30), 8_000, None).await;
    let requests = asking.get("conversations/r1").await["requests"].as_u64().unwrap();
    for columns in [1, 7, 500] {
        let overview = asking.get(&format!("conversations/r1/overview?columns={columns}")).await;
        let list = overview["columns"].as_array().unwrap();
        assert!(list.len() as u64 <= columns, "{columns}");
        let (mut next, mut folds) = (1, 0);
        for column in list {
            assert_eq!(column["range"][0].as_u64().unwrap(), next, "{column}");
            next = column["range"][1].as_u64().unwrap() + 1;
            folds += column["folds"].as_u64().unwrap();
        }
        assert_eq!(next, requests + 1);
        assert_eq!(json!(folds), asking.get("conversations/r1").await["folds"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_course_of_a_conversation_has_all_requests_and_all_dollars() {
    let (_server, asking) = played(&recording(30), 8_000, Some("claude-sonnet-4-5")).await;
    let events = asking.get("conversations/r1/events").await;
    let (turns, others): (Vec<&Value>, Vec<&Value>) =
        events["items"].as_array().unwrap().iter().partition(|event| event["said"].is_string());
    let mut next = 1;
    for event in &others {
        assert_eq!(event["range"][0], next, "{event}");
        next = event["range"][1].as_u64().unwrap() + 1;
    }
    let conversation = asking.get("conversations/r1").await;
    assert_eq!(json!(next - 1), conversation["requests"]);
    let folds = others.iter().filter(|event| event["verdict"]["kind"] == "fold").count();
    assert_eq!(json!(folds), conversation["folds"]);
    // The same account everywhere: of turns, of events, of the picture, of the list and of the bill.
    let paid = conversation["dollars"][0].as_f64().unwrap();
    let sum = |events: &[&Value]| events.iter().map(|event| event["cost"]["dollars"].as_f64().unwrap()).sum::<f64>();
    let overview = asking.get("conversations/r1/overview").await;
    let bill = asking.get("bill").await;
    for other in [
        sum(&turns),
        sum(&others),
        overview["cost"]["dollars"].as_f64().unwrap(),
        bill["items"][0]["receipt"]["dollars"][0].as_f64().unwrap(),
    ] {
        assert!((other - paid).abs() < 1e-9, "{other} of {paid}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_counted_with_what_they_fill() {
    let (_server, asking) = played(&recording(10), 60_000, None).await;
    let tools = asking.get("conversations/r1/tools").await;
    let tools = tools["items"].as_array().unwrap().clone();
    assert_eq!((&tools[0]["name"], &tools[0]["calls"]), (&json!("Read"), &json!(10)), "{tools:#?}");
    assert!(tools[0]["output_tokens"].as_u64() > tools[1]["output_tokens"].as_u64(), "{tools:#?}");
    // Nothing was folded, so each output is in every later request.
    assert!(tools[0]["carried"].as_u64().unwrap() > 3 * tools[0]["output_tokens"].as_u64().unwrap(), "{tools:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_read_when_it_is_opened() {
    let about = About { kind: "recordings", ..About::default() };
    let server = InspectServer::start("127.0.0.1:0", Archive::temporary().unwrap(), about).await.unwrap();
    let inspector = server.inspector().clone();
    for (id, modified_ms) in [("old", 1), ("new", 3), ("dated", 0)] {
        let time_ms = (id == "dated").then_some(2);
        let recording = AnnouncedRecording { id, name: id, title: id, modified_ms, time_ms, ..Default::default() };
        inspector.archive().announce(&recording).unwrap();
    }
    let (opened, asked) = std::sync::mpsc::channel::<String>();
    inspector.on_open(move |id| opened.send(id.to_owned()).unwrap());
    let asking = Asking::new(&inspector.url());
    let list = asking.get("conversations").await;
    let ids: Vec<&str> = list["items"].as_array().unwrap().iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &list["total"]), (vec!["new", "dated", "old"], &json!(3)));
    assert_eq!(list["items"][0]["is_unread"], true);
    assert!(asked.try_recv().is_err(), "listing reads nothing");
    // Opening twice reads once.
    assert_eq!(asking.get("conversations/old").await["is_reading"], true);
    asking.get("conversations/old").await;
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["old"]);
    playing::play(&inspector, &Played::new(None), "old", &recording(1)).unwrap();
    inspector.is_read("old");
    let old = asking.get("conversations/old").await;
    assert_eq!((&old["is_reading"], &old["is_unread"]), (&json!(false), &json!(false)), "{old}");
    let (status, answer) = asking.act(reqwest::Method::POST, "open", json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["new", "dated"]);
}
