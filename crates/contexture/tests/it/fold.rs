//! What a folder sends, whatever the conversation.

use std::collections::HashSet;
use std::sync::Arc;

use contexture::files::numbering::numbered;
use contexture::fold::{FoldDecision, Folder, Policy, Prices, Slot};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::{Message, Role, ToolCall};
use proptest::prelude::*;
use serde_json::json;

pub(crate) fn message(role: Role, text: impl Into<String>) -> Message {
    Message::said(role, text)
}

pub(crate) fn asks(id: String, name: &str, arguments: serde_json::Value) -> Message {
    Message {
        tool_calls: vec![ToolCall { id, name: name.into(), arguments }],
        ..message(Role::Assistant, "Let me see.")
    }
}

pub(crate) fn answers(id: String, text: impl Into<String>) -> Message {
    Message { tool_call_id: Some(id), ..message(Role::Tool, text) }
}

/// What one step of a conversation does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Say(usize),
    Read { file: u8, first: usize, count: usize },
    Edit { file: u8, line: usize },
    Write { file: u8, count: usize },
    Run { lines: usize },
    Unanswered,
    Stray,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1..400_usize).prop_map(Step::Say),
        5 => (0..6_u8, 1..200_usize, 1..300_usize).prop_map(|(file, first, count)| Step::Read { file, first, count }),
        3 => (0..6_u8, 1..200_usize).prop_map(|(file, line)| Step::Edit { file, line }),
        1 => (0..6_u8, 1..300_usize).prop_map(|(file, count)| Step::Write { file, count }),
        2 => (0..2000_usize).prop_map(|lines| Step::Run { lines }),
        1 => Just(Step::Unanswered),
        1 => Just(Step::Stray),
    ]
}

pub(crate) fn line(file: u8, number: usize) -> String {
    format!("    let value_{file}_{number} = compute({number});")
}

pub(crate) fn path(file: u8) -> String {
    format!("/project/src/file_{file}.rs")
}

pub(crate) fn conversation(steps: &[Step]) -> Vec<Arc<Message>> {
    let mut messages = vec![message(Role::User, "Please fix the build.")];
    for (index, step) in steps.iter().enumerate() {
        // Ids repeat on purpose: some agents count from one in every session.
        let id = format!("call-{}", index % 40);
        match step {
            Step::Say(words) => messages.push(message(Role::User, "please ".repeat(*words))),
            Step::Read { file, first, count } => {
                let text: String = (*first..first + count).map(|n| format!("{n}\t{}\n", line(*file, n))).collect();
                messages.push(asks(
                    id.clone(),
                    "Read",
                    json!({"file_path": path(*file), "offset": first, "limit": count}),
                ));
                messages.push(answers(id, text));
            }
            Step::Edit { file, line: number } => {
                let arguments = json!({"file_path": path(*file), "old_string": line(*file, *number), "new_string": format!("    // {index}\n{}", line(*file, *number))});
                messages.push(asks(id.clone(), "Edit", arguments));
                messages.push(answers(id, "The file has been updated successfully."));
            }
            Step::Write { file, count } => {
                let content: String = (1..*count).map(|n| line(*file, n) + "\n").collect();
                messages.push(asks(id.clone(), "Write", json!({"file_path": path(*file), "content": content})));
                messages.push(answers(id, "File created successfully."));
            }
            Step::Run { lines } => {
                messages.push(asks(id.clone(), "Bash", json!({"command": "cargo build"})));
                let warning =
                    |n: usize| format!("warning: unused variable at {}:{}:5\n", path((n % 7) as u8), 1 + n * 5);
                messages.push(answers(id, (0..*lines).map(warning).collect::<String>()));
            }
            Step::Unanswered => messages.push(asks(id, "Bash", json!({"command": "sleep 1"}))),
            Step::Stray => messages.push(answers(format!("stray-{index}"), "an answer to nothing")),
        }
    }
    messages.push(message(Role::Assistant, "Done."));
    messages.into_iter().map(Arc::new).collect()
}

pub(crate) fn folder(budget: u64) -> Folder {
    Folder::new(Policy::new(budget), Arc::new(Estimate))
}

/// All windows of a conversation.
pub(crate) fn windows(mut folder: Folder, messages: &[Arc<Message>]) -> (Vec<Vec<Slot>>, Folder) {
    let mut windows = Vec::new();
    for message in messages {
        if message.role == Role::Assistant {
            windows.push(folder.request().to_vec());
        }
        folder.push(message.clone());
    }
    (windows, folder)
}

/// What a window of a conversation shows; a folder holds the messages of its last window only.
pub(crate) fn render(messages: &[Arc<Message>], window: &[Slot]) -> Vec<Message> {
    window.iter().map(|slot| slot.render(|at| &messages[at])).collect()
}

fn tokens(shown: impl IntoIterator<Item = Message>) -> u64 {
    let arguments = |message: &Message| {
        message.tool_calls.iter().map(|call| Estimate.count(&call.arguments.to_string())).sum::<u64>()
    };
    shown.into_iter().map(|message| Estimate.count(&message.text) + arguments(&message)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_window_is_within_its_budget(steps in prop::collection::vec(step(), 1..60), budget in prop_oneof![Just(2_000), Just(8_000), Just(32_000_u64)]) {
        let messages = conversation(&steps);
        let (windows, _) = windows(folder(budget), &messages);
        for window in &windows {
            prop_assert!(tokens(render(&messages, window)) <= budget);
        }
    }

    #[test]
    fn answers_never_stand_without_their_calls(steps in prop::collection::vec(step(), 1..60)) {
        let messages = conversation(&steps);
        let (windows, _) = windows(folder(8_000), &messages);
        for window in &windows {
            let mut open = HashSet::new();
            for shown in render(&messages, window) {
                open.extend(shown.tool_calls.iter().map(|call| call.id.clone()));
                if let Some(id) = shown.tool_call_id.filter(|id| !id.starts_with("stray")) {
                    prop_assert!(open.contains(&id), "{id} is answered but not called");
                }
            }
        }
    }

    #[test]
    fn a_restart_in_the_middle_gives_the_same_windows(steps in prop::collection::vec(step(), 5..50), cut in 0.0..1.0_f64) {
        let messages = conversation(&steps);
        let (whole, _) = windows(folder(8_000), &messages);
        let cut = (messages.len() as f64 * cut) as usize;
        let (mut first, before) = windows(folder(8_000), &messages[..cut]);
        let saved = serde_json::to_string(before.decisions()).unwrap();
        let decisions: Vec<FoldDecision> = serde_json::from_str(&saved).unwrap();
        let resumed = folder(8_000).resume(messages[..cut].iter().cloned(), decisions);
        let (second, _) = windows(resumed, &messages[cut..]);
        first.extend(second);
        prop_assert_eq!(first, whole);
    }

    #[test]
    fn between_folds_the_window_only_grows(steps in prop::collection::vec(step(), 5..50)) {
        let messages = conversation(&steps);
        let mut folder = folder(8_000);
        let mut before: Vec<Slot> = Vec::new();
        let mut folds = 0;
        for message in &messages {
            if message.role == Role::Assistant {
                let window = folder.request().to_vec();
                let now = folder.decisions().iter().filter(|decision| matches!(decision, FoldDecision::Fold(_))).count();
                if now == folds {
                    prop_assert_eq!(&window[..before.len()], &before[..]);
                }
                (before, folds) = (window, now);
            }
            folder.push(message.clone());
        }
    }

    #[test]
    fn a_view_shows_only_lines_that_the_agent_saw_or_made(steps in prop::collection::vec(step(), 5..50)) {
        let messages = conversation(&steps);
        let (windows, folder) = windows(folder(8_000), &messages);
        let mut known = String::new();
        for message in &messages {
            known.push_str(&message.text);
            known.push('\n');
            for call in &message.tool_calls {
                known.push_str(&call.arguments.to_string().replace("\\n", "\n"));
                known.push('\n');
            }
        }
        for made in windows.iter().flatten().filter_map(|slot| match slot { Slot::Made(text) => Some(text), _ => None }) {
            for line in made.lines().filter(|line| line.starts_with("    let value_")) {
                prop_assert!(known.contains(line), "{line} was never seen");
            }
            for path in made.lines().filter_map(|line| line.strip_prefix("## ")) {
                let path = path.split(" (").next().unwrap_or_default();
                prop_assert!(folder.model().get(path).is_some(), "{path} is not a file");
            }
        }
    }
}

#[test]
fn what_is_edited_is_shown_as_it_is_now() {
    let read = |id: &str, file: u8| {
        let text: String = (1..120).map(|n| format!("{n}\t{}\n", line(file, n))).collect();
        [asks(id.into(), "Read", json!({"file_path": path(file)})), answers(id.into(), text)]
    };
    let mut messages = vec![message(Role::User, "Please fix the build.")];
    messages.extend(read("r0", 0));
    messages.push(asks(
        "e0".into(),
        "Edit",
        json!({"file_path": path(0), "old_string": line(0, 60), "new_string": "    changed();"}),
    ));
    messages.push(answers("e0".into(), "The file has been updated successfully."));
    for n in 1..40 {
        messages.push(asks(format!("b{n}"), "Bash", json!({"command": "cargo build"})));
        messages.push(answers(format!("b{n}"), "a line of output of no interest\n".repeat(40)));
    }
    messages.push(message(Role::Assistant, "Done."));
    let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
    let (windows, _) = windows(folder(8_000), &messages);
    let last = render(&messages, windows.last().unwrap());
    let around = format!("{}\n    changed();\n{}", line(0, 59), line(0, 61));
    assert!(last.iter().any(|message| message.text.contains(&around)));
    assert!(!last.iter().any(|message| message.text.contains(&line(0, 60))));
}

#[test]
fn one_message_larger_than_the_budget_is_cut() {
    let messages =
        vec![Arc::new(message(Role::User, "words ".repeat(50_000))), Arc::new(message(Role::Assistant, "ok"))];
    let (windows, _) = windows(folder(8_000), &messages);
    assert!(tokens(render(&messages, &windows[0])) <= 8_000);
    assert!(!windows[0].is_empty());
}

#[test]
fn a_cold_request_is_billed_in_full_and_so_is_pass_through() {
    let prices = Prices::ANTHROPIC;
    let mut folder = folder(32_000);
    folder.push(Arc::new(message(Role::User, "a".repeat(400))));
    folder.request();
    folder.push(Arc::new(message(Role::Assistant, "b".repeat(400))));
    folder.push(Arc::new(message(Role::User, "c".repeat(400))));
    folder.cache_is_cold();
    folder.request();
    let (first, cold) = (100.0 * prices.write, 300.0 * prices.write);
    assert_eq!((folder.account().billed, folder.account().passed_through), (first + cold, first + cold));
    assert_eq!(folder.decisions(), [FoldDecision::Cold { at: 3 }]);
    // Once sent, it is in the cache again.
    folder.request();
    let warm = 300.0 * prices.read;
    assert_eq!((folder.account().billed, folder.account().passed_through), (first + cold + warm, first + cold + warm));
}

#[test]
fn a_free_fold_that_would_save_little_is_not_made() {
    let mut folder = folder(32_000);
    folder.push(Arc::new(message(Role::User, "Please fix the build. ".repeat(300))));
    for _ in 0..4 {
        folder.request();
        folder.push(Arc::new(message(Role::Assistant, "I am thinking about it. ".repeat(20))));
        folder.cache_is_cold();
    }
    folder.request();
    assert!(folder.decisions().iter().all(|decision| matches!(decision, FoldDecision::Cold { .. })));
}

#[test]
fn an_answer_that_comes_after_its_call_was_folded_away_does_not_stand_as_one() {
    let mut messages = vec![
        message(Role::User, "Please fix the build."),
        asks("late".into(), "Bash", json!({"command": "sleep 100"})),
    ];
    for n in 0..30 {
        messages.push(message(Role::User, "and this ".repeat(60)));
        messages.push(message(Role::Assistant, format!("Yes, {n}.")));
    }
    messages.push(answers("late".into(), "slept well"));
    messages.push(message(Role::Assistant, "Done."));
    let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
    let (windows, _) = windows(folder(2_000), &messages);
    let last = render(&messages, windows.last().unwrap());
    assert!(last.iter().all(|message| message.tool_call_id.is_none()), "its call is not in the window");
    let said = last.last().unwrap();
    assert_eq!((said.role, said.text.lines().last()), (Role::User, Some("slept well")));
}

#[test]
fn windows_keep_to_the_smallest_budgets_too() {
    let steps: Vec<Step> = (0..30)
        .flat_map(|n| [Step::Write { file: n % 6, count: 20 }, Step::Edit { file: n % 6, line: 3 }, Step::Say(5)])
        .collect();
    for budget in [1, 10, 50, 100, 300, 1_000] {
        let messages = conversation(&steps);
        let (windows, _) = windows(folder(budget), &messages);
        let largest = windows.iter().map(|window| tokens(render(&messages, window))).max();
        assert!(largest <= Some(budget), "{largest:?} of {budget} tokens");
    }
}

#[test]
fn an_answer_keeps_to_its_own_call_when_a_later_call_has_the_same_id() {
    // Everything but the first call fits the tail, so a window would like to begin right behind that.
    let first = asks("same".into(), "Bash", json!({"command": "first ".repeat(80)}));
    let mut messages = vec![message(Role::User, "Go."), first.clone()];
    messages.extend((0..8).map(|_| message(Role::Assistant, "")));
    messages.push(answers("same".into(), "the first answer"));
    messages.push(Message { text: String::new(), ..asks("same".into(), "Bash", json!({})) });
    messages.extend((0..40).map(|_| message(Role::Assistant, "")));
    let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
    let (windows, _) = windows(folder(1_000), &messages);
    for window in &windows {
        let shown = render(&messages, window);
        let is_answered = shown.iter().any(|message| message.tool_call_id.is_some());
        assert!(!is_answered || shown.contains(&first), "{shown:?}");
    }
    assert!(windows.iter().any(|window| !window.contains(&Slot::Logged(1))), "the first call is folded away");
}

#[test]
fn outputs_are_sent_in_fewer_words_unless_they_are_asked_for_verbatim() {
    let messages = conversation(&[Step::Read { file: 1, first: 8, count: 40 }]);
    let read = |policy: Policy| {
        let (windows, _) = windows(Folder::new(policy, Arc::new(Estimate)), &messages);
        render(&messages, &windows[1])[2].text.clone()
    };
    let (terse, verbatim) = (read(Policy::new(8_000)), read(Policy::new(8_000).verbatim()));
    assert_eq!(verbatim, messages[2].text);
    assert!(terse.starts_with(&format!("8\t{}\n{}\n10\t{}\n", line(1, 8), line(1, 9), line(1, 10))), "{terse}");
    let plain: Vec<&str> = terse.lines().map(|line| line.split_once('\t').map_or(line, |(_, text)| text)).collect();
    assert_eq!(plain, numbered(&verbatim).unwrap()[0].lines);
}

#[test]
fn a_file_that_is_named_again_is_shown_again() {
    const BUDGET: u64 = 40_000;
    let reads = (0..39).map(|file| Step::Read { file, first: 1, count: 120 });
    let (_, mut folder) = windows(folder(BUDGET), &conversation(&reads.collect::<Vec<_>>()));
    let shows =
        |folder: &Folder, window: &[Slot]| folder.render(window).any(|message| message.text.contains(" let value_0_"));
    let window = folder.request().to_vec();
    assert!(!shows(&folder, &window), "it was read first, and there is no room for all that was read");
    let sent = tokens(folder.render(&window));
    assert!(sent < BUDGET * 4 / 5, "{sent}");
    folder.push(Arc::new(message(Role::User, "What does file_0.rs do?")));
    let window = folder.request().to_vec();
    assert!(shows(&folder, &window), "{:?}", folder.decisions().last());
    assert!(tokens(folder.render(&window)) <= BUDGET);
}

#[test]
fn a_file_that_a_task_or_a_plan_names_stays_until_it_is_changed() {
    let reads: Vec<Step> = (0..39).map(|file| Step::Read { file, first: 1, count: 120 }).collect();
    let plan = asks("plan".into(), "TodoWrite", json!({"todos": [{"content": "Then change file_0.rs."}]}));
    let edit = Step::Edit { file: 0, line: 60 };
    let shown_lines = |task: &str, plan: Option<&Message>, early: &[Step]| {
        let mut messages = conversation(&[early, &reads].concat());
        messages[0] = Arc::new(message(Role::User, task));
        messages.splice(1..1, plan.map(|plan| Arc::new(plan.clone())));
        let (windows, _) = windows(folder(40_000), &messages);
        let shown = render(&messages, windows.last().unwrap());
        (1..=120).filter(|number| shown.iter().any(|message| message.text.contains(&line(0, *number)))).count()
    };
    assert!(shown_lines("Go on.", None, &[]) < 20);
    assert!(shown_lines("Change file_0.rs at last.", None, &[]) > 100);
    assert!(shown_lines("Go on.", Some(&plan), &[]) > 100);
    let changed = shown_lines("Change file_0.rs at last.", None, &[edit]);
    assert!((1..100).contains(&changed), "only what stands around the change: {changed} lines");
}

#[test]
fn lines_that_are_named_come_back_first() {
    const BUDGET: u64 = 40_000;
    let reads: Vec<Step> = (0..39).map(|file| Step::Read { file, first: 1, count: 120 }).collect();
    let brought_back = |messages: Vec<Message>, touch_tokens: u64| -> Option<String> {
        let policy = Policy { touch_tokens, ..Policy::new(BUDGET) };
        let (_, mut folder) = windows(Folder::new(policy, Arc::new(Estimate)), &conversation(&reads));
        folder.request();
        messages.into_iter().for_each(|message| folder.push(Arc::new(message)));
        folder.request();
        match folder.decisions().last() {
            Some(FoldDecision::Recall(recall)) => Some(recall.text.to_string()),
            _ => None,
        }
    };
    let shows = |text: &str, number: usize| text.contains(&line(0, number));

    let asked = brought_back(vec![message(Role::User, "What does file_0.rs:90 do?")], 300).expect("room for some");
    assert!(shows(&asked, 90) && !shows(&asked, 10), "{asked}");

    let failed = |output: &str| {
        let test = asks("test".into(), "Bash", json!({"command": "cargo test"}));
        brought_back(vec![test, answers("test".into(), output)], 4_000)
    };
    let failure = failed("thread 'main' panicked at src/file_0.rs:90:5:").expect("the line is known and not shown");
    assert!(shows(&failure, 90) && !shows(&failure, 10), "{failure}");
    assert_eq!(failed("thread 'main' panicked at src/file_0.rs:990:5:"), None, "that line is not known");
}

#[test]
fn what_was_folded_away_is_let_go() {
    let reads: Vec<Step> = (0..30).map(|file| Step::Read { file, first: 1, count: 60 }).collect();
    let messages = conversation(&reads);
    let mut folder = folder(4_000);
    let mut decided = Vec::new();
    for message in &messages {
        if message.role == Role::Assistant {
            folder.request();
            decided.extend(folder.take_decisions());
        }
        folder.push(message.clone());
    }
    let window = folder.request().to_vec();
    let shown: HashSet<usize> = window.iter().filter_map(Slot::position).collect();
    assert!(shown.len() < 10, "{shown:?}");
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message.role != Role::User) {
        let is_held = Arc::strong_count(message) > 1;
        assert_eq!(is_held, shown.contains(&at), "message {at}");
    }
    assert_eq!(folder.render(&window).collect::<Vec<_>>(), render(&messages, &window));
    assert!(folder.decisions().len() < 3 && decided.len() > 30, "they were taken");
    let again = self::folder(4_000).resume(messages.iter().cloned(), decided).request().to_vec();
    assert_eq!(again, window, "what was taken is enough to go on");
}

#[test]
fn a_table_keeps_its_first_column() {
    let table: String = (1..40).map(|n| format!("{n}\tvalue {n}\n")).collect();
    let shown = |command: &str| {
        let mut folder = folder(8_000);
        folder.push(Arc::new(message(Role::User, "Show me.")));
        folder.push(Arc::new(asks("call-1".into(), "Bash", json!({ "command": command }))));
        folder.push(Arc::new(answers("call-1".into(), table.clone())));
        let window = folder.request().to_vec();
        folder.render_slot(&window[2]).text
    };
    assert_eq!(shown("cat table.tsv"), table, "the numbers are the file's own");
    assert!(shown("cat -n values.txt").starts_with("1\tvalue 1\nvalue 2\n"), "the numbers are the command's");
}
