//! Long conversations through the gateway.

use contexture::wire::Format;
use contexture_gateway::testing::rules;
use contexture_gateway::{Options, Receipt, References};
use serde_json::{Value, json};

use super::agent::{Agent, file_text, numbered};
use super::played::{digests, long, messages_of, play, play_some, records, small};
use super::provider::{Provider, path_of, post};

/// Whether signed and encrypted thoughts are as the agent had them.
fn has_whole_thoughts(body: &str) -> bool {
    let is_whole = |block: &Value| match block["type"].as_str() {
        Some("thinking") => {
            let sign = block["thinking"].as_str().unwrap().replace("thought ", "sig+") + "=";
            block["signature"] == sign.as_str()
        }
        Some("reasoning") => {
            let at = block["id"].as_str().unwrap().strip_prefix("rs_").unwrap();
            block["encrypted_content"] == format!("gAAAA{at}==").repeat(20).as_str()
        }
        _ => true,
    };
    let messages = messages_of(body);
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.chain(&messages).all(is_whole)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_valid_and_moves_only_with_a_fold() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = long(format, 16);
        agent.is_careless = true;
        let sent = play(&gateway, &provider, &agent).await;
        let records = records(&gateway, sent.len()).await;
        let mut folds = 0;
        for (n, body) in sent.iter().enumerate() {
            assert!(has_whole_thoughts(body), "request {n} in {format:?}: a thought was altered");
            rules::check(format, body).unwrap_or_else(|error| panic!("request {n} in {format:?}: {error}"));
            let has_folded = records[n].decided.iter().any(|note| note.is_fold());
            folds += usize::from(has_folded);
            if n > 0 && !has_folded {
                let (before, now) = (digests(format, &sent[n - 1]), digests(format, body));
                assert!(now.starts_with(&before), "request {n} in {format:?} moved without a fold");
            }
        }
        assert!(folds >= 1, "{format:?} folds: {folds}");
        let all = agent.request(agent.steps.len(), false).len();
        assert!(sent.last().unwrap().len() < all / 2, "{format:?}: {} of {all}", sent.last().unwrap().len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn system_messages_inside_a_conversation_stay_where_the_provider_accepts_them() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let mut agent = long(Format::Messages, 24);
    agent.has_reminders = true;
    let sent = play(&gateway, &provider, &agent).await;
    assert_eq!(provider.refused(), Vec::<String>::new());
    let records = records(&gateway, sent.len()).await;
    let folds = records.iter().filter(|record| record.decided.iter().any(|note| note.is_fold())).count();
    assert!(folds >= 2, "{folds} folds");
    for (n, body) in sent.iter().enumerate() {
        // What the client calls a reminder is still one, in one role or the other.
        let last = texts_of(body, "system").len()
            + texts_of(body, "user").iter().filter(|text| text.contains("Reminder ")).count();
        assert!(last > 0, "request {n}");
        if n > 0 && !records[n].decided.iter().any(|note| note.is_fold()) {
            let (before, now) = (digests(agent.format, &sent[n - 1]), digests(agent.format, body));
            assert!(now.starts_with(&before), "request {n} moved without a fold");
        }
    }
    let folded = sent.iter().filter(|body| body.contains("<system-reminder>\\nReminder")).count();
    assert!(folded > 0, "some of them lost the messages around them");
}

/// The tools that a request makes available, in the order in which it does.
fn added_tools(body: &str) -> Vec<String> {
    let messages = messages_of(body);
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let added = blocks.filter(|block| block["type"] == "tool_addition");
    added.map(|block| block["tool"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Without its addition a model lacks a tool that it has, and outside of system messages additions are refused.
/// <https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages>
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_were_added_inside_a_conversation_stay_after_folds() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let mut agent = long(Format::Messages, 24);
    (agent.has_reminders, agent.changes_tools) = (true, true);
    let sent = play(&gateway, &provider, &agent).await;
    assert_eq!(provider.refused(), Vec::<String>::new());
    let records = records(&gateway, sent.len()).await;
    let folds = records.iter().filter(|record| record.decided.iter().any(|note| note.is_fold())).count();
    assert!(folds >= 2, "{folds} folds");
    for (n, (at, body)) in agent.requests().iter().zip(&sent).enumerate() {
        assert_eq!(added_tools(body), added_tools(&agent.request(*at, false)), "request {n}");
        if n > 0 && !records[n].decided.iter().any(|note| note.is_fold()) {
            let (before, now) = (digests(agent.format, &sent[n - 1]), digests(agent.format, body));
            assert!(now.starts_with(&before), "request {n} moved without a fold");
        }
    }
}

/// Thoughts of newer models are bound to everything that was sent before them: after a change of it they are refused.
/// <https://platform.claude.com/docs/en/build-with-claude/preserved-thinking>
#[tokio::test(flavor = "multi_thread")]
async fn thoughts_that_are_bound_to_what_was_sent_before_them_are_left_out_after_a_fold() {
    check_bound(None).await;
}

/// Two of three requests are decided too late, so their folds take effect with another request.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: --features long-tests")]
async fn thoughts_that_are_bound_are_left_out_after_a_fold_that_was_decided_late() {
    check_bound(Some(std::sync::Arc::default())).await;
}

async fn check_bound(held: Option<std::sync::Arc<super::bills::Held>>) {
    let provider = Provider::start().await;
    let options = match &held {
        Some(counter) => {
            Options { counter: counter.clone(), own_work: std::time::Duration::from_millis(300), ..small() }
        }
        None => small(),
    };
    let gateway = provider.gateway(options).await;
    let mut agent = long(Format::Messages, 16);
    (agent.has_reminders, agent.model) = (true, Some("claude-opus-5-5"));
    let mut sent_before: std::collections::HashMap<String, Vec<_>> = std::collections::HashMap::new();
    let (mut thoughts, mut folds, mut before) = (0, 0, Vec::new());
    for (n, at) in agent.requests().into_iter().enumerate() {
        let hold = |is_held: bool| {
            held.iter().for_each(|held| held.0.store(is_held && n % 3 != 2, std::sync::atomic::Ordering::SeqCst));
        };
        hold(true);
        let (status, answer) = post(&gateway, agent.format, agent.request(at, false)).await;
        hold(false);
        assert_eq!(status, 200, "{answer}");
        if held.is_some() {
            // What came too late is decided before the next request.
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        }
        let body = provider.last().body;
        let now = digests(agent.format, &body);
        folds += usize::from(!now.starts_with(&before));
        for (index, message) in messages_of(&body).iter().enumerate() {
            for block in message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "thinking")
            {
                let prefix = &sent_before[block["signature"].as_str().unwrap()];
                assert!(*prefix == now[..index], "a thought of another conversation in the request after step {at}");
                thoughts += 1;
            }
        }
        // What the model says next is bound to this.
        sent_before.insert(format!("sig+{at}="), now.clone());
        before = now;
    }
    assert!(folds >= 2 && thoughts > 50, "{folds} folds, {thoughts} thoughts");
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_tools_options_and_what_is_kept_keep_their_bytes() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 16);
    let sent = play(&gateway, &provider, &agent).await;
    let came = agent.request(*agent.requests().last().unwrap(), false);
    let last = sent.last().unwrap();
    let split = |body: &str| {
        let at = body.find("\"messages\":[").unwrap();
        let end = body.find("],\"metadata\"").unwrap();
        (body[..at].to_owned(), body[end..].replace("\"stream\":true", "\"stream\":false"))
    };
    assert_eq!(split(last), split(&came));
    let kept = messages_of(last);
    let own: Vec<String> = messages_of(&came).iter().map(Value::to_string).collect();
    let newest: Vec<String> = kept.iter().rev().take(4).map(Value::to_string).collect();
    assert!(newest.iter().all(|message| own.contains(message)), "the newest messages are as they came");
    // One more stands at the end of what the next fold will leave.
    assert_eq!(last.matches("\"cache_control\"").count(), came.matches("\"cache_control\"").count() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_said_and_the_newest_state_of_files_are_sent() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Chat, 16);
    let sent = play(&gateway, &provider, &agent).await;
    let last = sent.last().unwrap();
    assert!(last.contains("Please bring all modules to the newest version."));
    for round in [7, 15] {
        assert!(last.contains(&format!("Now the next part, number {round}")), "what was said in round {round}");
    }
    // The last file was read in round 15 and changed after that.
    let line = format!("// version {} of this part, which concerns module {}", 15 / 7 + 1, 15 % 7);
    assert!(last.contains(&line), "{line}");
    assert!(file_text(15 % 7, 15 / 7 + 1, 160).contains(&line));
}

/// The texts of the messages of a role, in order.
fn texts_of(body: &str, role: &str) -> Vec<String> {
    // Gemini calls it by another name.
    let plain = |role| if role == "model" { "assistant" } else { role };
    let content = |message: &Value| message.get("parts").unwrap_or(&message["content"]).clone();
    let texts = |message: &Value| match &content(message) {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| Some(block.get("text")?.as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    };
    messages_of(body)
        .iter()
        .filter(|message| message["role"].as_str().map(plain) == Some(role))
        .flat_map(texts)
        .collect()
}

/// How every chapter of the account of the earlier conversation begins.
const ACCOUNT: &str = "[Contexture's account of the earlier conversation";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_said_is_sent_in_its_role_in_every_format() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let agent = long(format, 16);
        let sent = play(&gateway, &provider, &agent).await;
        let last = sent.last().unwrap();
        let told = texts_of(last, "assistant");
        let (accounts, said): (Vec<String>, Vec<String>) =
            texts_of(last, "user").into_iter().partition(|said| said.starts_with(ACCOUNT));
        for text in ["I change it.", "I run the tests."] {
            let own = told.iter().filter(|told| *told == text).count();
            // The account quotes what was said in steps that have left.
            let quoted: usize =
                accounts.iter().map(|account| account.matches(&format!("You:\n```\n{text}\n```\n")).count()).sum();
            assert_eq!(own + quoted, 16, "{text} in {format:?}");
            assert!(own > 3, "{own} times {text} in {format:?}");
        }
        assert!(!said.iter().any(|said| said.contains("I run the tests.")), "{format:?}");
        // What was called is still called by the agent, or has a line in the account.
        let noted = accounts.iter().map(|account| account.matches("- $ cargo test\n").count()).sum::<usize>();
        let called = last.replace('\\', "").matches(r#"{"command":"cargo test"}"#).count();
        assert_eq!(called, told.iter().filter(|told| *told == "I run the tests.").count(), "{format:?}");
        assert_eq!(called + noted, 16, "{format:?}");
        let outputs = last.matches("[… 61 lines left out …] test result: ok").count();
        assert!(outputs > 2 && last.matches("case_59 ... ok").count() + outputs == called, "{outputs} in {format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_output_of_one_line_and_a_line_of_the_account_name_can_be_shown() {
    let directory = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let provider = Provider::start().await;
        let store = directory.path().join(format!("{format:?}.db"));
        let gateway = provider.gateway(Options { store: Some(store.clone()), ..small() }).await;
        let mut agent = Agent::new(format, "Please run the tests of all modules.");
        let output = |n: usize| -> String { (0..60).map(|case| format!("test {n}::case_{case} ... ok\n")).collect() };
        for n in 0..80 {
            agent.call("I run them.", "Bash", json!({"command": format!("cargo test -p part_{n}")}), &output(n));
        }
        let sent = play(&gateway, &provider, &agent).await;
        gateway.stop().await;
        let store = contexture_gateway::open_store(&store).unwrap();
        let whole: Vec<String> = (0..80).map(output).collect();
        let last = sent.last().unwrap();
        for (before, after) in [(" lines, #", " left out"), (" (#", ")")] {
            let named = last.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(hash, _)| hash);
            let shown: Vec<String> = named.map(|hash| store.text(hash).unwrap().expect(hash).text).collect();
            assert!(shown.len() > 3, "{format:?}: {} are named as `{before}…{after}`", shown.len());
            assert!(shown.iter().all(|text| whole.contains(text)), "{format:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_same_bytes() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Responses, 8);
    for at in agent.requests() {
        post(&gateway, agent.format, agent.request(at, true)).await;
        let first = provider.last().body;
        post(&gateway, agent.format, agent.request(at, true)).await;
        assert_eq!(provider.last().body, first);
    }
}

/// It is the same route, and the provider is asked for what the client asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_with_a_slash_at_its_end_is_folded_alike() {
    for format in [Format::Messages, Format::Chat, Format::Responses] {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let agent = long(format, 16);
        let sent = play(&gateway, &provider, &agent).await;
        let url = format!("{}{}/", gateway.url(), path_of(format));
        let body = agent.request(*agent.requests().last().unwrap(), false);
        let response = reqwest::Client::new().post(url).body(body.clone()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{format:?}");
        let plain = |body: &str| body.replace("\"stream\":true", "\"stream\":false");
        let last = provider.last();
        assert!(last.path.ends_with('/') && last.body.len() < body.len(), "{format:?} {}", last.path);
        assert_eq!(plain(&last.body), plain(sent.last().unwrap()), "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_shares_what_was_decided_before_it() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 16);
    let requests = agent.requests();
    let sent = play(&gateway, &provider, &agent).await;
    let records = records(&gateway, sent.len()).await;
    let fold = records.iter().position(|record| record.decided.iter().any(|note| note.is_fold())).unwrap();
    // The user goes back to a request after the fold, and says something else.
    let at = fold + 1;
    let mut other = agent.clone();
    other.steps.truncate(requests[at]);
    other.say("No, do it in another way.");
    post(&gateway, agent.format, other.request(other.steps.len(), false)).await;
    let branched = provider.last().body;
    rules::check(agent.format, &branched).unwrap();
    assert!(
        digests(agent.format, &branched).starts_with(&digests(agent.format, &sent[at])),
        "the prefix is still cached"
    );
    // The conversation itself goes on as if nothing had happened.
    post(&gateway, agent.format, agent.request(*requests.last().unwrap(), false)).await;
    let again = provider.last().body.replace("\"stream\":false", "\"stream\":true");
    assert_eq!(again, sent.last().unwrap().replace("\"stream\":false", "\"stream\":true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_own_compaction_is_of_the_whole_and_counts_get_what_was_decided_and_change_nothing() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 16);
    let sent = play(&gateway, &provider, &agent).await;
    let mut compacting = agent.clone();
    compacting.say("Your task is to create a detailed summary of the conversation so far, paying attention.");
    let summary = compacting.request(compacting.steps.len(), false);
    post(&gateway, agent.format, summary.clone()).await;
    assert!(provider.last().body == summary, "a summary replaces everything, so it is one of everything");
    let count = reqwest::Client::new()
        .post(format!("{}/v1/messages/count_tokens", gateway.url()))
        .body(agent.request(agent.steps.len(), false))
        .send()
        .await
        .unwrap();
    assert_eq!(count.status().as_u16(), 200);
    let counted = provider.last();
    assert_eq!(counted.path, "/v1/messages/count_tokens");
    assert_eq!(digests(agent.format, &counted.body), digests(agent.format, sent.last().unwrap()));
    post(&gateway, agent.format, agent.request(agent.steps.len(), true)).await;
    let again = provider.last().body.replace("\"stream\":true", "\"stream\":false");
    assert_eq!(
        again,
        sent.last().unwrap().replace("\"stream\":true", "\"stream\":false"),
        "the conversation is as it was"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_summary_in_an_output_are_no_summary() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = Agent::new(format, "Please look at the prompt.");
        agent.call("I read.", "Bash", serde_json::json!({"command": "cat prompt"}), "Write <state_snapshot> tags.");
        play(&gateway, &provider, &agent).await;
        let records = records(&gateway, 2).await;
        assert_eq!(records.last().unwrap().passed, None, "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_a_summary_was_made_of_is_not_shortened_later() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = Agent::new(format, "Please run the tests.");
        let output: String = (0..3_000).map(|n| format!("a line of output with the number {n}\n")).collect();
        agent.call("I run them.", "Bash", serde_json::json!({"command": "cargo test"}), &output);
        post(&gateway, format, agent.request(1, false)).await;
        let mut compacting = agent.clone();
        compacting.say("Your task is to create a detailed summary of the conversation so far.");
        // The summary is the first request that has the output.
        compacting.steps.remove(compacting.steps.len() - 2);
        post(&gateway, format, compacting.request(compacting.steps.len(), false)).await;
        let summary = digests(format, &provider.last().body);
        // The client gives up, and goes on.
        post(&gateway, format, agent.request(agent.steps.len(), false)).await;
        let now = digests(format, &provider.last().body);
        assert_eq!(now, summary[..now.len()], "{format:?}");
        let records = records(&gateway, 3).await;
        assert_eq!(records[1].conversation, records[2].conversation);
    }
}

/// A user's message with an image, as each format writes it.
fn picture(format: Format, text: &str, data: &str) -> Value {
    use serde_json::json;
    let url = format!("data:image/png;base64,{data}");
    match format {
        Format::Messages => json!({"role": "user", "content": [{"type": "text", "text": text},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}),
        Format::Chat => json!({"role": "user", "content": [{"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": url}}]}),
        Format::Gemini => json!({"role": "user", "parts": [{"text": text},
            {"inlineData": {"mimeType": "image/png", "data": data}}]}),
        Format::Responses => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text},
            {"type": "input_image", "image_url": url}]})
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn images_that_do_not_fit_are_left_out_and_folding_goes_on() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(Options { budget: Some(10_000), ..small() }).await;
        let agent = long(format, 8);
        let list = match format {
            Format::Messages | Format::Chat => "messages",
            Format::Responses => "input",
            Format::Gemini => "contents",
        };
        for (n, at) in agent.requests().into_iter().enumerate() {
            let mut body: Value = serde_json::from_str(&agent.request(at, false)).unwrap();
            let messages = body[list].as_array_mut().unwrap();
            let first = usize::from(matches!(format, Format::Chat | Format::Responses));
            for picture_number in (0..6).rev() {
                let answer = match format {
                    Format::Responses => {
                        serde_json::json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I see."}]})
                    }
                    Format::Gemini => serde_json::json!({"role": "model", "parts": [{"text": "I see."}]}),
                    _ => serde_json::json!({"role": "assistant", "content": "I see."}),
                };
                let text = format!("Look at picture {picture_number}.");
                messages.splice(first..first, [picture(format, &text, &"QUJD".repeat(200)), answer]);
            }
            post(&gateway, format, body.to_string()).await;
            let sent = provider.last().body;
            rules::check(format, &sent).unwrap_or_else(|error| panic!("request {n} in {format:?}: {error}"));
        }
        let sent = provider.last().body;
        let records = records(&gateway, agent.requests().len()).await;
        let ended = records.iter().filter_map(|record| record.passed.as_deref()).find(|why| !why.is_empty());
        assert_eq!(ended, None, "{format:?}");
        assert!(records.iter().any(|record| record.decided.iter().any(|note| note.is_fold())));
        assert!(sent.contains("[Left out for lack of room: an image]"), "{format:?}");
        assert!((0..6).all(|n| sent.contains(&format!("Look at picture {n}."))), "{format:?}");
        let whole = sent.matches(&"QUJD".repeat(200)).count();
        assert_eq!(sent.matches("QUJD").count(), whole * 200, "{format:?}: an image is whole or not there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_conversations_do_not_mix() {
    let provider = Provider::start().await;
    let gateway = std::sync::Arc::new(provider.gateway(small()).await);
    let mut tasks = Vec::new();
    for number in 0..4 {
        let gateway = gateway.clone();
        tasks.push(tokio::spawn(async move {
            let mut agent = long(Format::Chat, 8);
            let own = format!("This is task number {number}, which no other has.");
            agent.steps[0] = super::agent::Step::User(own);
            for at in agent.requests() {
                post(&gateway, agent.format, agent.request(at, false)).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for got in provider.got() {
        rules::check(Format::Chat, &got.body).unwrap();
        assert_eq!(got.body.matches("which no other has").count(), 1, "each request has its own task, and only that");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_watched_or_held_out_is_sent_as_it_came() {
    for options in [Options { observe: true, ..small() }, Options { holdout: 1.1, ..small() }] {
        let is_watched = options.observe;
        let provider = Provider::start().await;
        let gateway = provider.gateway(options).await;
        let agent = long(Format::Messages, 8);
        for at in agent.requests() {
            let body = agent.request(at, false);
            post(&gateway, agent.format, body.clone()).await;
            assert_eq!(provider.last().body, body);
        }
        let records = records(&gateway, agent.requests().len()).await;
        let would: Vec<u64> = records.iter().filter_map(|record| record.would_send).collect();
        let has_folds = records.iter().any(|record| record.decided.iter().any(|note| note.is_fold()));
        assert_eq!((would.len() == records.len(), has_folds), (is_watched, is_watched));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_agent_calls_unchanged_is_visible() {
    let provider = Provider::start().await;
    // Not all files fit, so some are not visible after a fold.
    let gateway = provider.gateway(Options { budget: Some(20_000), ..small() }).await;
    let mut agent = Agent::new(Format::Messages, "Please look at all modules.");
    for file in 0..7 {
        let path = format!("/project/src/module_{file}.rs");
        agent.call("I read.", "Read", serde_json::json!({"file_path": path}), &file_text(file, 0, 160));
    }
    for round in 0..4 {
        agent.work(7 + round);
    }
    play(&gateway, &provider, &agent).await;
    // The agent has the earlier read in its own history, so it answers a second one with a note.
    let note = "File unchanged since last read. The content from the earlier Read tool_result in this conversation is \
                still current — refer to that instead of re-reading.";
    for file in [5, 6, 4] {
        let path = format!("/project/src/module_{file}.rs");
        agent.call("Again.", "Read", serde_json::json!({"file_path": path}), note);
        play_some(&gateway, &provider, &agent, &[agent.steps.len()]).await;
        let sent = provider.last().body;
        rules::check(agent.format, &sent).unwrap();
        let shown = (1..=160).filter(|n| sent.contains(&format!("part {n} of module {file}\\\""))).count();
        let all =
            (1..=160).filter(|n| file_text(file, 0, 160).contains(&format!("part {n} of module {file}\""))).count();
        assert_eq!(shown, all, "all lines of module {file} are visible");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_is_done_with_a_later_request() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { own_work: std::time::Duration::from_millis(1), ..small() }).await;
    let agent = long(Format::Chat, 12);
    let mut smallest = usize::MAX;
    for at in agent.requests() {
        let body = agent.request(at, false);
        post(&gateway, agent.format, body.clone()).await;
        let sent = provider.last().body;
        rules::check(agent.format, &sent).unwrap();
        smallest = smallest.min(sent.len() * 100 / body.len());
        // A person or a tool takes its time before the next one.
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    }
    assert!(smallest < 70, "a fold was made in the end: {smallest} %");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_the_user_names_are_sent_behind_the_message() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("src")).unwrap();
    std::fs::write(directory.path().join("src/main.rs"), "fn main() {\n    greet();\n}\n").unwrap();
    let base: std::sync::Arc<str> = directory.path().to_str().unwrap().into();
    let state = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let provider = Provider::start().await;
        let store = Some(state.path().join(format!("{format:?}.db")));
        let options = || Options {
            directory: Some(base.clone()),
            references: References::Typed,
            store: store.clone(),
            ..small()
        };
        let gateway = provider.gateway(options()).await;
        let mut agent = Agent::new(format, "Explain #src/main.rs:2 and #../secret.txt, please.");
        let sent = play(&gateway, &provider, &agent).await.remove(0);
        rules::check(format, &sent).unwrap();
        let messages = messages_of(&sent);
        let behind = messages.last().unwrap().to_string();
        assert!(
            behind.contains("lines 2-2") && behind.contains("    greet();") && !behind.contains("fn main"),
            "{behind}"
        );
        assert!(behind.contains("not shown"), "{behind}");
        // It is written once, whatever becomes of the file, and also after a restart.
        std::fs::write(directory.path().join("src/main.rs"), "changed").unwrap();
        gateway.stop().await;
        let gateway = provider.gateway(options()).await;
        agent.work(0);
        for body in play_some(&gateway, &provider, &agent, &agent.requests()[1..]).await {
            rules::check(format, &body).unwrap();
            assert!(digests(format, &body).starts_with(&digests(format, &sent)), "{format:?}");
        }
        std::fs::write(directory.path().join("src/main.rs"), "fn main() {\n    greet();\n}\n").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_shows_what_the_disk_holds_now() {
    let directory = tempfile::tempdir().unwrap();
    let base: std::sync::Arc<str> = directory.path().to_str().unwrap().into();
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { directory: Some(base.clone()), budget: Some(24_000), ..small() }).await;
    let mut agent = Agent::new(Format::Messages, "Please look at all modules.");
    let path = |file: usize| format!("{base}/module_{file}.rs");
    for file in 0..6 {
        std::fs::write(path(file), file_text(file, 0, 160)).unwrap();
        agent.call(
            "I read.",
            "Read",
            serde_json::json!({"file_path": path(file)}),
            &numbered(&file_text(file, 0, 160)),
        );
    }
    play(&gateway, &provider, &agent).await;
    assert!(!provider.last().body.contains("was altered by somebody"));
    // Somebody else works on the same files, and says nothing.
    for file in 0..6 {
        std::fs::write(path(file), file_text(file, 0, 160).replace("checked part 40", "was altered by somebody"))
            .unwrap();
    }
    for n in 6..10 {
        std::fs::write(path(n), file_text(n, 0, 160)).unwrap();
        agent.call("I read.", "Read", serde_json::json!({"file_path": path(n)}), &numbered(&file_text(n, 0, 160)));
    }
    let requests = agent.requests();
    play_some(&gateway, &provider, &agent, &requests[7..]).await;
    let sent = provider.last().body;
    rules::check(agent.format, &sent).unwrap();
    let records = records(&gateway, requests.len()).await;
    let decided: Vec<_> =
        records.iter().flat_map(|record| &record.decided).map(|note| (note.what.name(), &note.reason)).collect();
    assert!(decided.iter().any(|(what, _)| *what == "disk"), "{decided:?}");
    assert!(!sent.contains("was altered by somebody"), "the agent has not seen it: {decided:?}");
    assert!(sent.contains("changed on disk since you read it"), "{decided:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_was_decided_late_is_held_against_the_disk_when_it_takes_effect() {
    let directory = tempfile::tempdir().unwrap();
    let base: std::sync::Arc<str> = directory.path().to_str().unwrap().into();
    let provider = Provider::start().await;
    let counter = std::sync::Arc::new(super::bills::Held::default());
    let own_work = std::time::Duration::from_millis(500);
    let options =
        Options { directory: Some(base.clone()), budget: Some(24_000), counter: counter.clone(), own_work, ..small() };
    let gateway = provider.gateway(options).await;
    let mut agent = Agent::new(Format::Messages, "Please look at all modules.");
    let path = |file: usize| format!("{base}/module_{file}.rs");
    let read = |agent: &mut Agent, file: usize| {
        let text = file_text(file, 0, 160);
        std::fs::write(path(file), &text).unwrap();
        agent.call("I read.", "Read", serde_json::json!({"file_path": path(file)}), &numbered(&text));
    };
    for file in 0..8 {
        read(&mut agent, file);
        counter.0.store(true, std::sync::atomic::Ordering::SeqCst);
        play_some(&gateway, &provider, &agent, &[agent.steps.len()]).await;
        counter.0.store(false, std::sync::atomic::Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    assert_eq!(provider.last().body, agent.request(agent.steps.len(), true), "nothing is in effect yet");
    for file in 0..8 {
        let altered = file_text(file, 0, 160).replace("checked part 40", "was altered by somebody");
        std::fs::write(path(file), altered).unwrap();
    }
    for n in 8..14 {
        read(&mut agent, n);
        play_some(&gateway, &provider, &agent, &[agent.steps.len()]).await;
        let records = records(&gateway, n + 1).await;
        if records[n].decided.iter().any(|note| note.is_fold()) {
            let sent = provider.last().body;
            assert!(!sent.contains("was altered by somebody"), "{:?}", records[n].decided);
            assert!(sent.contains("changed on disk since you read it"), "{:?}", records[n].decided);
            return;
        }
    }
    panic!("nothing was folded");
}

/// Codex lets some models call its tools from scripts: what these print may be a file that the model has asked for.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_prints_is_sent_whole() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let check = async |name: &str, input: &str, is_whole: bool| {
        let said = serde_json::json!({"type": "message", "role": "user", "content": input});
        let call = serde_json::json!({"type": "custom_tool_call", "call_id": "c", "name": name, "input": input});
        let head =
            serde_json::json!({"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"});
        let text = serde_json::json!({"type": "input_text", "text": file_text(1, 1, 200)});
        let output = serde_json::json!({"type": "custom_tool_call_output", "call_id": "c", "output": [head, text]});
        let body = serde_json::json!({"model": "gpt-5", "store": false, "input": [said, call, output]}).to_string();
        let (status, answer) = post(&gateway, Format::Responses, body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(provider.last().body == body, is_whole, "{name}: {input}");
    };
    let cat = "const r = await tools.exec_command({cmd: \"cat src/a.rs\"});\ntext(r.output);\n";
    check("exec", cat, true).await;
    check("exec", "for (const f of files) text((await tools.exec_command({cmd: `cat ${f}`})).output)", true).await;
    check("query", "select everything", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_inside_a_conversation_are_sent_with_every_request() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Responses, 8);
    // As Codex sends it with a login.
    let settings = json!({"type": "configuration_update", "reasoning": {"effort": "low"}});
    for at in agent.requests() {
        let mut body: Value = serde_json::from_str(&agent.request(at, false)).unwrap();
        body["input"].as_array_mut().unwrap().insert(1, settings.clone());
        let (status, answer) = post(&gateway, Format::Responses, body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        let sent: Value = serde_json::from_str(&provider.last().body).unwrap();
        let count = sent["input"].as_array().unwrap().iter().filter(|item| **item == settings).count();
        assert_eq!(count, 1, "request {at}: {sent}");
    }
    let receipt = Receipt::of(&records(&gateway, agent.requests().len()).await);
    assert!(!receipt.folds.is_empty(), "nothing was folded");
}
