//! What holds of every window of a folder, whatever the conversation, its budget and who counts.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use contexture::bpe::Bpe;
use contexture::fold::{FoldDecision, Folder, Policy, Slot};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::{Message, Role, ToolCall};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fold::{Step, answers, asks, conversation, message, render, windows};

static O200K: LazyLock<Arc<Bpe>> = LazyLock::new(|| Arc::new(Bpe::o200k()));

fn counters() -> [Arc<dyn TokenCounter>; 2] {
    [Arc::new(Estimate), O200K.clone()]
}

/// Steps that come back to the same few places, so that there is something to point to.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = (0..3_u8, prop_oneof![Just(1_usize), Just(40)], prop_oneof![Just(30_usize), Just(90)]);
    let step = prop_oneof![
        1 => (1..60_usize).prop_map(Step::Say),
        6 => place.prop_map(|(file, first, count)| Step::Read { file, first, count }),
        2 => (0..3_u8, 1..120_usize).prop_map(|(file, line)| Step::Edit { file, line }),
        1 => (0..3_u8, 1..80_usize).prop_map(|(file, count)| Step::Write { file, count }),
        1 => (0..200_usize).prop_map(|lines| Step::Run { lines }),
        1 => Just(Step::Unanswered),
        1 => Just(Step::Stray),
    ];
    prop::collection::vec(step, 4..28)
}

fn folder(budget: u64) -> Folder {
    Folder::new(Policy::new(budget), Arc::new(Estimate))
}

/// The position of the call that each answer answers: of calls with the same id, the newest before it.
fn pairs(messages: &[Arc<Message>]) -> Vec<(usize, usize)> {
    let mut made: HashMap<&str, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        made.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), at)));
        pairs.extend(message.tool_call_id.as_deref().and_then(|id| made.get(id)).map(|call| (*call, at)));
    }
    pairs
}

/// A text without the numbers that a read puts before lines.
fn plain(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| match line.split_once('\t') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => line,
        })
        .collect()
}

/// All texts in a call's arguments.
fn texts(arguments: &Value) -> Vec<&str> {
    match arguments {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Every line that the agent saw or wrote.
fn known_lines(messages: &[Arc<Message>]) -> HashSet<&str> {
    let said = messages.iter().flat_map(|message| plain(&message.text));
    let written = messages.iter().flat_map(|message| &message.tool_calls).flat_map(|call| texts(&call.arguments));
    said.chain(written.flat_map(str::lines)).collect()
}

/// Everything that a window says, calls and all.
fn all_text(messages: &[Arc<Message>], window: &[Slot]) -> String {
    let said = |message: Message| {
        let calls = message.tool_calls.iter().flat_map(|call| texts(&call.arguments)).collect::<Vec<_>>().join("\n");
        format!("{}\n{calls}\n", message.text)
    };
    render(messages, window).into_iter().map(said).collect()
}

fn sent_tokens(counter: &dyn TokenCounter, window: impl IntoIterator<Item = Message>) -> u64 {
    let arguments = |call: &ToolCall| counter.count(&call.arguments.to_string());
    let window = window.into_iter();
    window.map(|message| counter.count(&message.text) + message.tool_calls.iter().map(arguments).sum::<u64>()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_call_and_its_answer_stand_together_or_not_at_all(steps in steps()) {
        let messages = conversation(&steps);
        let pairs = pairs(&messages);
        let (windows, _) = windows(folder(2_000), &messages);
        let requests = messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
        for (window, (before, _)) in windows.iter().zip(requests) {
            let shown: Vec<usize> = window.iter().filter_map(Slot::position).collect();
            let place = |at: usize| shown.iter().position(|shown| *shown == at);
            for (call, answer) in pairs.iter().filter(|(_, answer)| *answer < before) {
                prop_assert_eq!(place(*call).is_some(), place(*answer).is_some(), "call {} and answer {}", call, answer);
                prop_assert!(place(*call) <= place(*answer));
            }
        }
    }

    #[test]
    fn a_pointer_names_a_known_file_and_what_it_points_to_stands_above_it(steps in steps()) {
        let messages = conversation(&steps);
        let mut folder = folder(4_000);
        for message in &messages {
            if message.role == Role::Assistant {
                let window = folder.request().to_vec();
                for (index, slot) in window.iter().enumerate() {
                    let Slot::Shortened(at, text) = slot else { continue };
                    let Some(rest) = text.strip_prefix("[Unchanged: the same ") else { continue };
                    let (_, rest) = rest.split_once(" lines of ").unwrap();
                    let path = rest.strip_suffix(" stand above]").unwrap();
                    prop_assert!(folder.model().get(path).is_some(), "{} is not a file", path);
                    let needed = plain(&messages[*at].text).join("\n");
                    let above = folder.render(&window[..index]).any(|shown| plain(&shown.text).join("\n").contains(&needed));
                    prop_assert!(above, "what the pointer at {} points to is gone", at);
                }
            }
            folder.push(message.clone());
        }
    }

    #[test]
    fn no_view_shows_a_line_that_the_agent_never_saw_or_wrote(steps in steps()) {
        let messages = conversation(&steps);
        let known = known_lines(&messages);
        let (windows, _) = windows(folder(3_000), &messages);
        let views = windows.iter().flatten().filter_map(|slot| match slot {
            Slot::Made(text) if text.contains("\n## ") => Some(text),
            _ => None,
        });
        for line in views.flat_map(|text| text.lines()).filter(|line| !line.starts_with(['#', '['])) {
            prop_assert!(known.contains(line), "{line:?} was never seen");
        }
        for (at, text) in windows.iter().flatten().filter_map(|slot| match slot {
            Slot::Shortened(at, text) if !text.starts_with("[Unchanged") => Some((*at, text)),
            _ => None,
        }) {
            let whole = &messages[at].text;
            for line in text.lines().filter(|line| !line.starts_with("[…")) {
                prop_assert!(whole.contains(line), "{line:?} does not stand in message {at}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_restart_at_any_position_gives_the_same_windows(steps in steps(), cold in 5..40_usize) {
        let messages = conversation(&steps);
        let play = |mut folder: Folder, messages: &[Arc<Message>]| {
            let mut windows = Vec::new();
            for message in messages {
                if message.role == Role::Assistant {
                    if folder.len().is_multiple_of(cold) {
                        folder.cache_is_cold();
                    }
                    let window = folder.request().to_vec();
                    windows.push(folder.render(&window).collect::<Vec<_>>());
                }
                folder.push(message.clone());
            }
            (windows, folder)
        };
        let (whole, first) = play(folder(2_000), &messages);
        for cut in 0..=messages.len() {
            let made = |decision: &&FoldDecision| match decision {
                FoldDecision::Fold(fold) => fold.at < cut,
                FoldDecision::Recall(recall) => recall.at < cut,
                FoldDecision::Cold { at } => *at < cut,
                FoldDecision::Shorten { position, .. } => *position < cut,
            };
            let stored = serde_json::to_string(&first.decisions().iter().take_while(made).collect::<Vec<_>>()).unwrap();
            let decisions: Vec<FoldDecision> = serde_json::from_str(&stored).unwrap();
            let resumed = folder(2_000).resume(messages[..cut].iter().cloned(), decisions);
            let (rest, second) = play(resumed, &messages[cut..]);
            let before = whole.len() - rest.len();
            prop_assert!(rest == whole[before..], "a restart before message {} changes a window", cut);
            prop_assert_eq!(second.account(), first.account(), "a restart before message {} changes the bill", cut);
        }
    }
}

/// One message that is larger than any window, in every way a message can be.
fn giants() -> Vec<(&'static str, Vec<Message>)> {
    let words = "some words and ünïcödé 字 ".repeat(4_000);
    let code: String = (0..4_000).map(|n| format!("let value_{n} = {n};\n")).collect();
    let many = (0..300).map(|n| ToolCall {
        id: format!("m{n}"),
        name: "Bash".into(),
        arguments: json!({"command": "make all"}),
    });
    let many = Message { tool_calls: many.collect(), ..message(Role::Assistant, "") };
    let replies = (0..300).map(|n| answers(format!("m{n}"), format!("reply {n} ").repeat(20)));
    vec![
        ("said by the user", vec![message(Role::User, words.clone())]),
        ("said by the agent", vec![message(Role::Assistant, words.clone())]),
        ("printed", vec![asks("p".into(), "Bash", json!({"command": "make"})), answers("p".into(), words.clone())]),
        ("read", vec![asks("r".into(), "Read", json!({"file_path": "/a.rs"})), answers("r".into(), code.clone())]),
        (
            "written",
            vec![asks("w".into(), "Write", json!({"file_path": "/a.rs", "content": code})), answers("w".into(), "ok")],
        ),
        ("one line", vec![asks("l".into(), "Bash", json!({"command": "x"})), answers("l".into(), "x".repeat(100_000))]),
        ("many calls", std::iter::once(many).chain(replies).collect()),
    ]
}

#[test]
fn no_message_is_too_large_for_a_window_whoever_counts() {
    for (kind, giant) in giants() {
        for counter in counters() {
            for budget in [1_000, 8_000] {
                let mut folder = Folder::new(Policy::new(budget), counter.clone());
                folder.push(Arc::new(message(Role::User, "Please go on.")));
                let rest =
                    [message(Role::User, "And now?"), message(Role::Assistant, "Done."), message(Role::User, "Good.")];
                for message in giant.iter().cloned().chain(rest) {
                    folder.push(Arc::new(message));
                    let window = folder.request().to_vec();
                    let tokens = sent_tokens(&*counter, folder.render(&window));
                    assert!(tokens <= budget, "{kind}: {tokens} of {budget} by {}", counter.name());
                    assert!(!window.is_empty(), "{kind}: nothing is sent");
                }
            }
        }
    }
}

#[test]
fn at_8000_tokens_work_goes_on_whoever_counts() {
    let mut steps = Vec::new();
    for round in 0..12_usize {
        let file = (round % 4) as u8;
        steps.push(Step::Read { file, first: 1, count: 60 });
        steps.push(Step::Edit { file, line: 5 + round });
        steps.push(Step::Run { lines: 40 });
    }
    let messages = conversation(&steps);
    for counter in counters() {
        let (windows, _) = windows(Folder::new(Policy::new(8_000), counter.clone()), &messages);
        for window in &windows {
            let tokens = sent_tokens(&*counter, render(&messages, window));
            assert!(tokens <= 8_000, "{tokens} by {}", counter.name());
        }
        let last = all_text(&messages, windows.last().unwrap());
        assert!(last.contains("Please fix the build."), "what was asked for is gone by {}", counter.name());
        assert!(last.contains("    // 34\n"), "the newest change is gone by {}: {last}", counter.name());
    }
}

#[test]
fn what_the_agent_wrote_stays_until_the_budget_itself_forces_it_out_and_that_is_said() {
    let write = |file: usize, lines: usize| {
        let content: String = (0..lines).map(|n| format!("let own_{file}_{n} = compute({n});\n")).collect();
        [
            asks(format!("w{file}"), "Write", json!({"file_path": format!("/src/own_{file}.rs"), "content": content})),
            answers(format!("w{file}"), "File created successfully."),
        ]
    };
    let play = |lines: usize| {
        let mut messages = vec![message(Role::User, "Please write it.")];
        messages.extend((0..6).flat_map(|file| write(file, lines)));
        messages.extend((0..30).flat_map(|n| {
            [
                asks(format!("b{n}"), "Bash", json!({"command": "make"})),
                answers(format!("b{n}"), "nothing new\n".repeat(120)),
            ]
        }));
        messages.push(message(Role::Assistant, "Done."));
        let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        let (windows, folder) = windows(folder(8_000), &messages);
        (all_text(&messages, windows.last().unwrap()), folder)
    };
    let folds = |folder: &Folder| -> Vec<(Vec<String>, String)> {
        let fold = |decision: &FoldDecision| match decision {
            FoldDecision::Fold(fold) => Some((fold.left_out.clone(), fold.reason.clone())),
            _ => None,
        };
        folder.decisions().iter().filter_map(fold).collect()
    };

    // Six files of 2 kB fit: every line stays, fold after fold.
    let (last, folder) = play(60);
    assert!(folds(&folder).len() > 1 && folds(&folder).iter().all(|(left_out, _)| left_out.is_empty()));
    for file in 0..6 {
        assert!((0..60).all(|n| last.contains(&format!("let own_{file}_{n} = compute({n});\n"))), "file {file}");
    }

    // Six files of 9 kB do not: the window, the decision and its reason say so.
    let (last, folder) = play(280);
    let (left_out, reason) = folds(&folder).pop().unwrap();
    assert!(!left_out.is_empty() && left_out.iter().all(|path| folder.model().get(path).is_some()), "{left_out:?}");
    assert!(reason.contains("the agent's own changes in ") && reason.contains(left_out.last().unwrap()), "{reason}");
    assert!(last.contains("Some of your own changes do not fit here"), "the model is not told");
}
