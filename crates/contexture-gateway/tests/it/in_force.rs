//! What newer agents send, built from the types of the providers' SDKs: is it accepted after a fold, and is it still in
//! force?

use contexture::wire::Format;
use contexture_gateway::testing::in_force::in_force;
use contexture_gateway::{Options, Receipt};
use serde_json::{Value, json};

use super::agent::{Agent, file_text};
use super::played::{long, messages_of, records, small};
use super::provider::{Provider, post};

/// A conversation in which something is set early, by a change of its requests.
async fn play(options: Options, agent: &Agent, change: impl Fn(&mut Value)) -> (Vec<(String, String)>, Receipt) {
    let provider = Provider::start().await;
    let gateway = provider.gateway(options).await;
    let mut bodies = Vec::new();
    let requests = agent.requests();
    for at in requests.iter().copied().filter(|at| at % 4 == 1 || at + 4 > agent.steps.len()) {
        let mut came: Value = serde_json::from_str(&agent.request(at, false)).unwrap();
        change(&mut came);
        let came = came.to_string();
        let (status, answer) = post(&gateway, agent.format, came.clone()).await;
        assert_eq!(status, 200, "{answer}");
        bodies.push((came, provider.last().body));
    }
    assert_eq!(provider.refused(), Vec::<String>::new());
    let count = bodies.len();
    (bodies, Receipt::of(&records(&gateway, count).await))
}

/// Checks that what is set stays in force in every request of a conversation in which something is folded.
async fn check(name: &str, format: Format, change: impl Fn(&mut Value)) -> Vec<(String, String)> {
    let (bodies, receipt) = play(small(), &long(format, 12), change).await;
    assert!(receipt.folds.len() > 1, "{name}: {} folds, {:?}", receipt.folds.len(), receipt.passed);
    for (n, (came, sent)) in bodies.iter().enumerate() {
        let (came_set, sent_set) = (in_force(format, came), in_force(format, sent));
        let told = || sent.chars().take(600).collect::<String>();
        assert_eq!(came_set, sent_set, "{name}, request {n}: {}", told());
    }
    let (came, sent) = bodies.last().unwrap();
    assert!(sent.len() < came.len() / 2, "{name}: {} of {} bytes", sent.len(), came.len());
    bodies
}

/// Inserts messages at a position once the conversation is as long.
fn insert(body: &mut Value, list: &str, at: usize, new: &[Value]) {
    let messages = body[list].as_array_mut().unwrap();
    if messages.len() >= at {
        messages.splice(at..at, new.iter().cloned());
    }
}

fn deferred(body: &mut Value, names: &[&str]) {
    let tool = |name: &&str| json!({"name": name, "description": "d", "input_schema": {"type": "object"}, "defer_loading": true});
    body["tools"].as_array_mut().unwrap().extend(names.iter().map(tool));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_were_loaded_stay_loaded() {
    check("a search of the client", Format::Messages, |body| {
        deferred(body, &["mcp__docs__search", "mcp__docs__fetch"]);
        let reference = |name: &str| json!({"type": "tool_reference", "tool_name": name});
        let call = |id: &str| {
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "ToolSearch", "input": {"query": "docs", "max_results": 5}}]})
        };
        let found = |id: &str, name: &str| {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": [reference(name)]}]})
        };
        let one = [call("s1"), found("s1", "mcp__docs__search"), call("s2"), found("s2", "mcp__docs__fetch")];
        insert(body, "messages", 3, &one);
    })
    .await;
    check("a search of the provider", Format::Messages, |body| {
        deferred(body, &["search_docs"]);
        let found = json!({"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_regex", "input": {"query": "docs"}},
            {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "search_docs"}]}},
            {"type": "tool_use", "id": "c9", "name": "search_docs", "input": {}}]});
        let output = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c9", "content": "found"}]});
        insert(body, "messages", 5, &[found, output]);
    })
    .await;
    check("a search of Codex", Format::Responses, |body| {
        let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
        let call = json!({"type": "tool_search_call", "call_id": "ts1", "execution": "client", "arguments": {"query": "docs"}});
        let found = json!({"type": "tool_search_output", "call_id": "ts1", "execution": "client", "tools": [tool("docs_search")]});
        let more = json!({"type": "additional_tools", "role": "developer", "tools": [tool("late_one"), tool("late_two")]});
        insert(body, "input", 6, &[call, found, more]);
    })
    .await;
    check("tools of a server", Format::Responses, |body| {
        let tools = json!([{"name": "ask", "input_schema": {"type": "object"}}]);
        insert(
            body,
            "input",
            6,
            &[json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "docs", "tools": tools})],
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effort_that_was_set_stays_until_it_is_set_again() {
    let effort = |effort: &str| json!({"role": "system", "content": [], "output_config": {"effort": effort}});
    check("once", Format::Messages, |body| insert(body, "messages", 5, &[effort("high")])).await;
    check("twice, and with a budget", Format::Messages, |body| {
        insert(body, "messages", 23, &[json!({"role": "system", "output_config": {"effort": "low"}})]);
        let budget = json!({"task_budget": {"type": "tokens", "total": 90_000}, "effort": "max"});
        insert(body, "messages", 5, &[json!({"role": "system", "content": "Take care.", "output_config": budget})]);
    })
    .await;
    check("settings of Codex", Format::Responses, |body| {
        insert(body, "input", 6, &[json!({"type": "configuration_update", "reasoning": {"effort": "high"}})]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_leaves_at_the_next_message_leaves_and_folding_goes_on() {
    let note = |text: &str| json!({"role": "system", "content": [{"type": "text", "text": text}], "clear_at": "next_user_message"});
    let bodies = check("notes", Format::Messages, |body| {
        // After every result, as Claude Code does; the positions are those before anything was inserted.
        let count = body["messages"].as_array().unwrap().len();
        for at in (0..count).rev().filter(|at| at % 4 == 2) {
            insert(body, "messages", at + 1, &[note(&format!("A passing note, number {at}."))]);
        }
    })
    .await;
    for (came, sent) in &bodies {
        let count = came.matches("A passing note").count();
        assert!(count == 0 || sent.matches("A passing note").count() <= count);
        for message in messages_of(sent).iter().filter(|message| message["role"] == "user") {
            assert!(!message.to_string().contains("A passing note"), "{message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_marks_alone_something_is_cached_after_folds_too() {
    for format in [Format::Chat, Format::Responses] {
        let bodies = check("explicit caching", format, |body| {
            body["prompt_cache_options"] = json!({"mode": "explicit", "ttl": "30m"});
            let (list, kind) = if format == Format::Chat { ("messages", "text") } else { ("input", "input_text") };
            let mark = json!({"mode": "explicit"});
            let part = json!({"type": kind, "text": "Keep to the rules.", "prompt_cache_breakpoint": mark});
            let said = match format {
                Format::Chat => json!({"role": "user", "content": [part]}),
                _ => json!({"type": "message", "role": "user", "content": [part]}),
            };
            insert(body, list, 20, &[said]);
        })
        .await;
        let (_, sent) = bodies.last().unwrap();
        let places: Vec<usize> = sent.match_indices("prompt_cache_breakpoint\"").map(|(at, _)| at).collect();
        assert_eq!(places.len(), 1, "{sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_says_in_thoughts_is_kept_word_by_word() {
    for (model, thinking) in [
        ("claude-opus-4-8", json!({"type": "adaptive", "display": "updates"})),
        ("claude-opus-5-5", json!({"type": "between_tools"})),
    ] {
        let mut agent = long(Format::Messages, 12);
        agent.model = Some(model);
        let words = |at: usize| format!("Now I see why part {at} of this module fails, and mend that.");
        let (bodies, receipt) = play(small(), &agent, |body| {
            body["thinking"] = thinking.clone();
            for (at, message) in body["messages"].as_array_mut().unwrap().iter_mut().enumerate() {
                if message["role"] == "assistant" {
                    message["content"][0]["thinking"] = words(at).into();
                    message["content"].as_array_mut().unwrap().retain(|block| block["type"] != "text");
                    if message["content"].as_array().unwrap().len() == 1 {
                        let text = json!({"type": "text", "text": "Done."});
                        message["content"].as_array_mut().unwrap().push(text);
                    }
                }
            }
        })
        .await;
        assert!(!receipt.folds.is_empty());
        let (came, sent) = bodies.last().unwrap();
        let said = (0..messages_of(came).len()).map(words).filter(|words| came.contains(words.as_str()));
        let lost: Vec<String> = said.filter(|words| !sent.contains(words.as_str())).collect();
        assert_eq!(lost, Vec::<String>::new(), "{model}");
        assert!(sent.len() < came.len() / 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_referred_to_or_not_known_ends_no_folding() {
    check("references", Format::Responses, |body| {
        body["store"] = true.into();
        for (at, item) in body["input"].as_array_mut().unwrap().iter_mut().enumerate() {
            let is_of_model = item["role"] == "assistant" || item["type"] == "reasoning";
            if is_of_model {
                *item = json!({"type": "item_reference", "id": format!("msg_{at}")});
            }
        }
    })
    .await;
    check("calls by reference", Format::Responses, |body| {
        for (at, item) in body["input"].as_array_mut().unwrap().iter_mut().enumerate() {
            if at < 40
                && (item["role"] == "assistant" || item["type"] == "reasoning" || item["type"] == "function_call")
            {
                *item = json!({"id": format!("fc_{at}")});
            }
        }
        body["input"].as_array_mut().unwrap().iter_mut().filter(|item| item.get("type").is_none()).for_each(|item| {
            item["type"] = "item_reference".into();
        });
    })
    .await;
    check("unknown items", Format::Responses, |body| {
        let call = json!({"type": "apply_patch_call", "call_id": "ap1", "status": "completed",
            "operation": {"type": "update_file", "path": "a.rs", "diff": "@@\n-a\n+b\n".repeat(80)}});
        let output = json!({"type": "apply_patch_call_output", "call_id": "ap1", "status": "completed", "output": "ok"});
        let shot = json!({"type": "computer_call", "id": "cu1", "call_id": "cc1", "action": {"type": "screenshot"}, "pending_safety_checks": []});
        let seen = json!({"type": "computer_call_output", "call_id": "cc1", "output": {"type": "computer_screenshot", "image_url": "data:,"}});
        let other = json!({"type": "of_the_future", "id": "f1"});
        insert(body, "input", 6, &[call, shot, output, seen, other]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_scripts_of_the_provider_called_stays_with_them() {
    check("programs", Format::Responses, |body| {
        let caller = json!({"type": "program", "caller_id": "p1"});
        let call = |n: usize| {
            json!({"type": "function_call", "id": format!("fc_p{n}"), "call_id": format!("pc{n}"), "name": "Read",
                "arguments": "{\"file_path\":\"a.rs\"}", "caller": caller})
        };
        let output = |n: usize| {
            json!({"type": "function_call_output", "call_id": format!("pc{n}"), "caller": caller,
                "output": "a line of this part\n".repeat(300)})
        };
        let code = "for (const n of [0, 1, 2]) await tools.Read({file_path: 'a.rs'});";
        let program = json!({"type": "program", "id": "prog_1", "call_id": "p1", "code": code, "fingerprint": "fp"});
        let ended =
            json!({"type": "program_output", "id": "po_1", "call_id": "p1", "result": "3 read", "status": "completed"});
        let mut items = vec![program];
        items.extend((0..3).flat_map(|n| [call(n), output(n)]));
        items.push(ended);
        insert(body, "input", 6, &items);
    })
    .await;
    check("code that runs at the provider", Format::Messages, |body| {
        let caller = json!({"type": "code_execution_20260120", "tool_id": "srvtoolu_7"});
        let call = |n: usize| json!({"type": "tool_use", "id": format!("pc{n}"), "name": "Read", "input": {"file_path": "a.rs"}, "caller": caller});
        let output = |n: usize| {
            let text = "a line of this part\n".repeat(300);
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("pc{n}"), "content": text}]})
        };
        let begun = json!({"type": "server_tool_use", "id": "srvtoolu_7", "name": "code_execution", "input": {"code": "read()"}});
        let ended = json!({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_7",
            "content": {"type": "code_execution_result", "stdout": "3 read", "stderr": "", "return_code": 0, "content": []}});
        let messages = [
            json!({"role": "assistant", "content": [begun, call(0)]}), output(0),
            json!({"role": "assistant", "content": [call(1)]}), output(1),
            json!({"role": "assistant", "content": [call(2)]}), output(2),
            json!({"role": "assistant", "content": [ended, {"type": "text", "text": "All are read."}]}),
            json!({"role": "user", "content": "Good. Go on."}),
        ];
        // Behind the first result, so that roles still alternate.
        insert(body, "messages", 3, &messages);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_newer_sdks_have_are_accepted_after_folds() {
    check("a change of the model, pages and listings", Format::Messages, |body| {
        body["mcp_servers"] = json!([{"type": "url", "name": "docs", "url": "https://docs.example"}]);
        let listing = json!({"type": "mcp_tool_listing", "mcp_server_name": "docs", "tools": [{"name": "find", "input_schema": {"type": "object"}}]});
        let asked = json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "docs", "input": {"for": "x"}});
        let found = json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false, "content": [{"type": "text", "text": "y"}]});
        let fallback = json!({"type": "fallback", "from": {"model": "claude-opus-5-5"}, "to": {"model": "claude-sonnet-5-5"}});
        let call = json!({"type": "tool_use", "id": "b1", "name": "navigate", "toolset_name": "browser", "input": {"url": "https://x"}});
        let state = json!({"type": "browser_state", "tabs": [{"id": 1, "url": "https://x", "active": true}]});
        let result = json!({"type": "tool_result", "tool_use_id": "b1", "toolset_name": "browser", "content": [{"type": "text", "text": "seen"}, state]});
        let messages = [
            json!({"role": "assistant", "content": [listing, asked, found, fallback, {"type": "text", "text": "I look there."}, call]}),
            json!({"role": "user", "content": [result]}),
        ];
        insert(body, "messages", 3, &messages);
    })
    .await;
    check("parts of the provider's own tools", Format::Gemini, |body| {
        let asked = json!({"toolCall": {"id": "g1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}, "thoughtSignature": "c2ln"});
        let found = json!({"toolResponse": {"id": "g1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"search_suggestions": "y"}}});
        let ran = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
        let result = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
        let messages = [
            json!({"role": "model", "parts": [asked, found, ran, result, {"text": "I have looked."}]}),
            json!({"role": "user", "parts": [{"text": "Good. Go on."}]}),
        ];
        insert(body, "contents", 1, &messages);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_the_provider_keeps_passes() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    for (n, kept) in [json!("conv_1"), json!({"id": "conv_1"})].into_iter().enumerate() {
        let item = json!({"type": "message", "role": "user", "content": "x\n".repeat(100_000)});
        let body = json!({"model": "gpt-6.1-sol", "conversation": kept, "input": [item]}).to_string();
        assert_eq!(post(&gateway, Format::Responses, body.clone()).await.0, 200);
        assert_eq!(provider.last().body, body);
        let record = records(&gateway, n + 1).await.pop().unwrap();
        assert!(record.passed.as_deref().is_some_and(|why| why.contains("history")), "{record:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_summary_of_the_providers_folding_begins_anew() {
    let block = json!({"type": "compaction", "content": "All modules were looked at.", "signature": "c2ln"});
    let bodies = check("a signed summary", Format::Messages, |body| {
        let summary = json!({"role": "assistant", "content": [block]});
        insert(body, "messages", 0, &[summary]);
    })
    .await;
    assert!(bodies.iter().all(|(_, sent)| messages_of(sent)[0]["content"][0] == block));
    check("a summary of Codex", Format::Responses, |body| {
        insert(
            body,
            "input",
            2,
            &[json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA".repeat(40)})],
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_one_of_the_whole_conversation() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 12);
    let requests = agent.requests();
    for at in &requests {
        post(&gateway, agent.format, agent.request(*at, false)).await;
    }
    assert!(provider.last().body.len() < agent.request(agent.steps.len(), false).len() / 2);
    let mut body: Value = serde_json::from_str(&agent.request(agent.steps.len(), false)).unwrap();
    body["compaction"] = json!({"type": "summarize"});
    let body = body.to_string();
    assert_eq!(post(&gateway, agent.format, body.clone()).await.0, 200);
    assert!(provider.last().body == body, "the summary replaces everything");
    let last = records(&gateway, requests.len() + 1).await.pop().unwrap();
    assert_eq!(last.passed.as_deref(), Some("the client sums up the conversation by itself"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_one_conversation_and_passes_untouched() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let mut first: Value = serde_json::from_str(&long(Format::Messages, 6).request(3, false)).unwrap();
    first["thread"] = json!({"type": "create"});
    let mut bodies = vec![first.to_string()];
    let result =
        |n: usize| json!({"type": "tool_result", "tool_use_id": format!("c{n}"), "content": "x\n".repeat(40_000)});
    bodies.extend((0..3).map(|n| {
        let thread = json!({"type": "continue", "previous_message_id": "m1"});
        json!({"model": "claude-opus-5-5", "max_tokens": 10, "thread": thread, "messages": [{"role": "user", "content": [result(n)]}]})
            .to_string()
    }));
    for (n, body) in bodies.iter().enumerate() {
        assert_eq!(post(&gateway, Format::Messages, body.clone()).await.0, 200);
        assert_eq!(provider.last().body, *body);
        records(&gateway, n + 1).await;
    }
    let records = records(&gateway, bodies.len()).await;
    assert!(records.iter().all(|record| record.passed.as_deref().is_some_and(|why| why.contains("`thread`"))));
    assert_eq!(Receipt::of(&records).conversations, 1);
}

/// A conversation of Codex with a model that calls its tools from scripts, as its newest version writes it.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_script_read_are_in_view_after_folds() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let files: Vec<(String, String)> = (0..2).map(|n| (format!("src/part_{n}.rs"), file_text(n, 1, 101))).collect();
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let head = text("Script completed\nWall time 0.1 seconds\nOutput:\n");
    let mut input = vec![json!({"type": "message", "role": "user", "content": [text("Mend the parts.")]})];
    let run = |input: &mut Vec<Value>, script: &str, printed: &[&str]| {
        let id = format!("call_{}", input.len());
        let output: Vec<Value> =
            std::iter::once(head.clone()).chain(printed.iter().map(|printed| text(printed))).collect();
        input.push(json!({"type": "custom_tool_call", "call_id": id, "name": "exec", "input": script}));
        input.push(json!({"type": "custom_tool_call_output", "call_id": id, "output": output}));
    };
    let cat = |path: &str| format!("tools.exec_command({{cmd: \"cat {path}\", max_output_tokens: 6000}})");
    let (mut folds, both) = (0, format!("{}, {}", cat(&files[0].0), cat(&files[1].0)));
    for round in 0..5 {
        let contents: Vec<String> = files.iter().map(|(_, content)| format!("{content}\n")).collect();
        match round {
            0 => run(
                &mut input,
                &format!("const all = await Promise.all([{both}]);\nfor (const r of all) text(r.output);\n"),
                &[&contents[0], &contents[1]],
            ),
            _ => run(&mut input, &format!("const r = await {};\ntext(r.output);\n", cat(&files[0].0)), &[&contents[0]]),
        }
        for n in 0..6 {
            let listed: String = (0..120).map(|line| format!("{round} {n} a line of a log, number {line}\n")).collect();
            run(
                &mut input,
                &format!("const r = await tools.exec_command({{cmd: \"tail -n 120 log.{n}\"}});\ntext(r.output);\n"),
                &[&listed],
            );
            let body = json!({"model": "gpt-6.1-sol", "store": false, "input": input}).to_string();
            let (status, answer) = post(&gateway, Format::Responses, body).await;
            assert_eq!(status, 200, "{answer}");
            let sent: Value = serde_json::from_str(&provider.last().body).unwrap();
            let texts: String = sent["input"].to_string();
            for line in files[0].1.lines() {
                let quoted = json!(line).to_string();
                assert!(texts.contains(quoted.trim_matches('"')), "round {round}, log {n}: {line}");
            }
        }
        folds = records(&gateway, 6 * (round + 1))
            .await
            .iter()
            .flat_map(|record| &record.decided)
            .filter(|note| note.is_fold())
            .count();
    }
    assert!(folds > 1, "{folds} folds");
}
