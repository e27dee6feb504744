//! What a folder sends, whatever the conversation.

use std::collections::HashSet;
use std::sync::Arc;

use contexture_core::Item;
use contexture_core::item::{Content, Message, Role};
use contexture_core::tokens::Estimate;
use contexture_files::numbering::numbered;
use contexture_fold::{FoldDecision, FoldWhen, Policy, Prices, ShownItem};
use contexture_wire::transcript::Record;
use proptest::prelude::*;
use serde_json::json;

use crate::records::{
    Counted, Sent, answers, asks, call, counted, folder, folder_of, folds, items, made, push, resume, said, says, sent,
    stored, text, tokens, windows,
};
use crate::steps::{Step, conversation, line, path, step, until_it_folds};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_window_is_within_its_budget(steps in prop::collection::vec(step(), 1..60), budget in prop_oneof![Just(2_000), Just(8_000), Just(32_000_u64)]) {
        let (windows, folder) = windows(folder(budget), &conversation(&until_it_folds(steps, budget)));
        prop_assert!(folds(folder.decisions()) > 0);
        for window in &windows {
            prop_assert!(tokens(window) <= budget);
        }
    }

    #[test]
    fn answers_never_stand_without_their_calls(steps in prop::collection::vec(step(), 1..60)) {
        let (windows, folder) = windows(folder(8_000), &conversation(&until_it_folds(steps, 8_000)));
        prop_assert!(folds(folder.decisions()) > 0);
        for window in &windows {
            let mut open = HashSet::new();
            for shown in window {
                open.extend(shown.item.as_call().map(|call| &call.call_id));
                if let Some(output) = shown.item.as_output().filter(|output| !output.call_id.starts_with("stray")) {
                    prop_assert!(open.contains(&output.call_id), "{} is answered but not called", output.call_id);
                }
            }
        }
    }

    #[test]
    fn a_restart_in_the_middle_gives_the_same_windows(steps in prop::collection::vec(step(), 5..50), cut in 0.0..1.0_f64) {
        let records = conversation(&until_it_folds(steps, 8_000));
        let all = |windows: &[Vec<ShownItem>]| windows.iter().map(|window| sent(window)).collect::<Vec<_>>();
        let (whole, end) = windows(folder(8_000), &records);
        prop_assert!(folds(end.decisions()) > 0);
        let cut = (records.len() as f64 * cut) as usize;
        let (mut first, before) = windows(folder(8_000), &records[..cut]);
        let messages: Vec<Counted> = records[..cut].iter().map(|record| counted(&Estimate, record)).collect();
        let resumed = resume(folder(8_000), &messages, stored(before.decisions()));
        let (second, _) = windows(resumed, &records[cut..]);
        first.extend(second);
        prop_assert_eq!(all(&first), all(&whole));
    }

    #[test]
    fn between_folds_the_window_only_grows(steps in prop::collection::vec(step(), 5..50)) {
        let mut folder = folder(8_000);
        let mut before: Vec<Sent> = Vec::new();
        let mut done = 0;
        for record in conversation(&until_it_folds(steps, 8_000)) {
            if record.is_response() {
                let window = sent(folder.request());
                let now = folds(folder.decisions());
                if now == done {
                    prop_assert_eq!(&window[..before.len()], &before[..]);
                }
                (before, done) = (window, now);
            }
            push(&mut folder, &record);
        }
        prop_assert!(done > 0);
    }

    #[test]
    fn a_view_shows_only_lines_that_the_agent_saw_or_made(steps in prop::collection::vec(step(), 5..50)) {
        let records = conversation(&until_it_folds(steps, 8_000));
        let (windows, folder) = windows(folder(8_000), &records);
        prop_assert!(folds(folder.decisions()) > 0);
        let known = items(&records).into_iter().map(|item| {
            let arguments = item.as_call().map(|call| call.arguments.replace("\\n", "\n"));
            format!("{}\n{}\n", text(item), arguments.unwrap_or_default())
        });
        let known = known.collect::<String>();
        let lines: HashSet<&str> = known.lines().filter_map(|line| Some(&line[line.find("    let value_")?..])).collect();
        // Most of what is made is in many windows.
        let views: HashSet<String> = windows.iter().flatten().filter_map(made).collect();
        for made in views {
            for line in made.lines().filter(|line| line.starts_with("    let value_")) {
                prop_assert!(lines.contains(line) || known.contains(line), "{line} was never seen");
            }
            for path in made.lines().filter_map(|line| line.strip_prefix("## ")) {
                let path = path.split('`').nth(1).unwrap_or_default();
                prop_assert!(folder.model().get(path).is_some(), "{path} is not a file");
            }
        }
    }
}

#[test]
fn what_is_edited_is_shown_as_it_is_now() {
    let read = |id: &str, file: u8| {
        let text: String = (1..120).map(|n| format!("{n}\t{}\n", line(file, n))).collect();
        [asks(id, "Read", json!({"file_path": path(file)})), answers(id, text)]
    };
    let mut records = vec![said(Role::User, "Please fix the build.")];
    records.extend(read("r0", 0));
    records.push(asks(
        "e0",
        "Edit",
        json!({"file_path": path(0), "old_string": line(0, 60), "new_string": "    changed();"}),
    ));
    records.push(answers("e0", "The file has been updated successfully."));
    for n in 1..40 {
        records.push(asks(&format!("b{n}"), "Bash", json!({"command": "cargo build"})));
        records.push(answers(&format!("b{n}"), "a line of output of no interest\n".repeat(40)));
    }
    records.push(said(Role::Assistant, "Done."));
    let (windows, _) = windows(folder(8_000), &records);
    let last = windows.last().unwrap();
    assert!(says(last, &format!("{}\n    changed();\n{}", line(0, 59), line(0, 61))));
    assert!(!says(last, &line(0, 60)));
}

#[test]
fn one_message_larger_than_the_budget_is_cut() {
    let records = [said(Role::User, "words ".repeat(50_000)), said(Role::Assistant, "ok")];
    let (windows, _) = windows(folder(8_000), &records);
    assert!(tokens(&windows[0]) <= 8_000);
    assert!(!windows[0].is_empty());
}

#[test]
fn what_is_said_again_after_something_else_has_the_last_word() {
    let again = format!("Please do the task as it is written here. {}", "And so on. ".repeat(60));
    let mut records = vec![said(Role::User, "Begin.")];
    let turns = [again.clone(), again.clone(), "No, do the opposite.".to_owned(), again.clone()];
    for (turn, text) in turns.into_iter().enumerate() {
        records.push(said(Role::Assistant, "Yes."));
        records.push(said(Role::User, text));
        for n in 0..12 {
            let id = format!("{turn}-{n}");
            let body: String = (1..90).map(|n| format!("{n}\t{}\n", line(n as u8 % 5, n))).collect();
            records.push(asks(&id, "Read", json!({"file_path": path(n)})));
            records.push(answers(&id, body));
        }
    }
    records.push(said(Role::Assistant, "Done."));
    let (windows, folder) = windows(folder(8_000), &records);
    assert!(folds(folder.decisions()) > 1);
    let people: Vec<String> = windows
        .last()
        .unwrap()
        .iter()
        .filter_map(|shown| {
            let position = shown.position?;
            (items(&records)[position].as_message()?.role == Role::User).then(|| text(&shown.item))
        })
        .collect();
    // Each time something else was said in between, so the last word stays the last.
    let note = "[The user said again, as above: «Please do the task as it is written here. And so on. And so on. And so on. And s…»]";
    assert_eq!(people, ["Begin.", &again, note, "No, do the opposite.", note]);
}

#[test]
fn an_image_that_does_not_fit_is_left_out_and_never_cut() {
    let image = json!({"type": "image", "source": {"type": "base64", "data": "AAAA"}});
    let picture = |text: &str| {
        let mut content = vec![Content::Opaque(image.clone())];
        content.extend((!text.is_empty()).then(|| Content::Text { text: text.to_owned() }));
        Item::from(Message::new(Role::User, content))
    };
    let mut folder = folder(8_000);
    push(&mut folder, &said(Role::User, "Begin."));
    for text in ["", "Look at this."] {
        folder.push([(Arc::new(picture(text)), 6_000)]);
        push(&mut folder, &said(Role::Assistant, "I see."));
        folder.request();
    }
    let shown: Vec<Item> = folder.window().iter().map(|shown| (*shown.item).clone()).collect();
    let note = "[Left out for lack of room: an image]";
    assert!(shown.contains(&Item::user(note)), "{shown:?}");
    // The first one is before the first response; the others are quoted.
    let quote = format!("User:\n```\nLook at this.\n{note}\n```\n");
    assert!(folder.window().iter().filter_map(made).any(|text| text.contains(&quote)), "{shown:?}");
}

#[test]
fn a_cold_request_is_billed_in_full_and_so_is_pass_through() {
    let prices = Prices::ANTHROPIC;
    let mut folder = folder(32_000);
    push(&mut folder, &said(Role::User, "a".repeat(400)));
    folder.request();
    push(&mut folder, &said(Role::Assistant, "b".repeat(400)));
    push(&mut folder, &said(Role::User, "c".repeat(400)));
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
    push(&mut folder, &said(Role::User, "Please fix the build. ".repeat(300)));
    for _ in 0..4 {
        folder.request();
        push(&mut folder, &said(Role::Assistant, "I am thinking about it. ".repeat(20)));
        folder.cache_is_cold();
    }
    folder.request();
    assert!(folder.decisions().iter().all(|decision| matches!(decision, FoldDecision::Cold { .. })));
}

#[test]
fn an_answer_that_comes_after_its_call_was_folded_away_does_not_stand_as_one() {
    let mut records =
        vec![said(Role::User, "Please fix the build."), asks("late", "Bash", json!({"command": "sleep 100"}))];
    for n in 0..30 {
        records.push(said(Role::User, "and this ".repeat(60)));
        records.push(said(Role::Assistant, format!("Yes, {n}.")));
    }
    records.push(answers("late", "slept well"));
    records.push(said(Role::Assistant, "Done."));
    let (windows, _) = windows(folder(2_000), &records);
    let last = windows.last().unwrap();
    assert!(last.iter().all(|shown| shown.item.as_output().is_none()), "its call is not in the window");
    let message = last.last().unwrap().item.as_message().unwrap();
    assert_eq!((message.role, message.text().lines().rev().nth(1)), (Role::Developer, Some("slept well")));
}

#[test]
fn windows_keep_to_the_smallest_budgets_too() {
    let steps: Vec<Step> = (0..30)
        .flat_map(|n| [Step::Write { file: n % 6, count: 20 }, Step::Edit { file: n % 6, line: 3 }, Step::Say(5)])
        .collect();
    for budget in [1, 10, 50, 100, 300, 1_000] {
        let (windows, _) = windows(folder(budget), &conversation(&steps));
        let largest = windows.iter().map(|window| tokens(window)).max();
        assert!(largest <= Some(budget), "{largest:?} of {budget} tokens");
    }
}

#[test]
fn an_answer_keeps_to_its_own_call_when_a_later_call_has_the_same_id() {
    // Everything but the first call fits the tail, so a window would like to begin right behind that.
    let first = asks("same", "Bash", json!({"command": "first ".repeat(80)}));
    let mut records = vec![said(Role::User, "Go."), first.clone()];
    records.extend((0..8).map(|_| said(Role::Assistant, "")));
    records.push(answers("same", "the first answer"));
    records.push(Record::response("", [call("same", "Bash", &json!({}))]));
    records.extend((0..40).map(|_| said(Role::Assistant, "")));
    let (windows, _) = windows(folder(1_000), &records);
    for window in &windows {
        let is_answered = window.iter().any(|shown| shown.item.as_output().is_some());
        let is_called = first.items().iter().all(|item| window.iter().any(|shown| *shown.item == *item));
        assert!(!is_answered || is_called, "{window:?}");
    }
    // The first call is the third item.
    let shows_first = |window: &Vec<ShownItem>| window.iter().any(|shown| shown.position == Some(2) && shown.is_logged);
    assert!(windows.iter().any(|window| !shows_first(window)), "the first call is folded away");
}

#[test]
fn outputs_are_sent_in_fewer_words_unless_they_are_asked_for_verbatim() {
    let records = conversation(&[Step::Read { file: 1, first: 8, count: 40 }]);
    let read = |policy: Policy| {
        let (windows, _) = windows(folder_of(policy), &records);
        text(&windows[1].iter().find(|shown| shown.position == Some(3)).unwrap().item)
    };
    let (compact, verbatim) = (read(Policy::new(8_000)), read(Policy::new(8_000).verbatim()));
    assert_eq!(verbatim, records[2].text());
    assert!(compact.starts_with(&format!("8\t{}\n{}\n10\t{}\n", line(1, 8), line(1, 9), line(1, 10))), "{compact}");
    let plain: Vec<&str> = compact.lines().map(|line| line.split_once('\t').map_or(line, |(_, text)| text)).collect();
    assert_eq!(plain, numbered(&verbatim).unwrap()[0].lines);
}

#[test]
fn a_file_that_is_named_again_is_shown_again() {
    const BUDGET: u64 = 40_000;
    let reads = (0..39).map(|file| Step::Read { file, first: 1, count: 120 });
    let (_, mut folder) = windows(folder(BUDGET), &conversation(&reads.collect::<Vec<_>>()));
    let window = folder.request().to_vec();
    let first = line(0, 5);
    assert!(!says(&window, &first), "it was read first, and there is no room for all that was read");
    let sent = tokens(&window);
    assert!(sent < BUDGET * 4 / 5, "{sent}");
    push(&mut folder, &said(Role::User, "What does file_0.rs do?"));
    let window = folder.request().to_vec();
    assert!(says(&window, &first), "{:?}", folder.decisions().last());
    assert!(tokens(&window) <= BUDGET);
}

#[test]
fn a_file_that_a_task_or_a_plan_names_stays_until_it_is_changed() {
    let reads: Vec<Step> = (0..39).map(|file| Step::Read { file, first: 1, count: 120 }).collect();
    let plan = asks("plan", "TodoWrite", json!({"todos": [{"content": "Then change file_0.rs."}]}));
    let edit = Step::Edit { file: 0, line: 60 };
    let shown_lines = |task: &str, plan: Option<&Record>, early: &[Step]| {
        let mut records = conversation(&[early, &reads].concat());
        records[0] = said(Role::User, task);
        records.splice(1..1, plan.cloned());
        let (windows, _) = windows(folder(40_000), &records);
        let last = windows.last().unwrap();
        (1..=120).filter(|number| says(last, &line(0, *number))).count()
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
    let brought_back = |records: &[Record], room: Option<u64>| -> Option<String> {
        let (_, mut folder) = windows(folder(BUDGET), &conversation(&reads));
        folder.request();
        records.iter().for_each(|record| push(&mut folder, record));
        if let Some(room) = room {
            folder.set_policy(Policy::new(folder.tokens() + room).when(FoldWhen::Forced));
        }
        folder.request();
        match folder.decisions().last() {
            Some(FoldDecision::BringBack(brought)) => Some(brought.text.to_string()),
            _ => None,
        }
    };
    let shows = |text: &str, number: usize| text.contains(&line(0, number));

    let question = said(Role::User, "What does file_0.rs:90 do?");
    let asked = brought_back(&[question], Some(300)).expect("room for some");
    assert!(shows(&asked, 90) && !shows(&asked, 10), "{asked}");

    let failed = |output: &str| {
        let test = asks("test", "Bash", json!({"command": "cargo test"}));
        brought_back(&[test, answers("test", output)], None)
    };
    let failure = failed("thread 'main' panicked at src/file_0.rs:90:5:").expect("the line is known and not shown");
    assert!(shows(&failure, 90) && !shows(&failure, 10), "{failure}");
    assert_eq!(failed("thread 'main' panicked at src/file_0.rs:990:5:"), None, "that line is not known");
}

#[test]
fn what_was_folded_away_is_let_go() {
    let reads: Vec<Step> = (0..30).map(|file| Step::Read { file, first: 1, count: 60 }).collect();
    let messages: Vec<Counted> = conversation(&reads).iter().map(|record| counted(&Estimate, record)).collect();
    let mut folder = folder(4_000);
    let mut decided = Vec::new();
    for message in &messages {
        if message[0].0.is_of_model() {
            folder.request();
            decided.extend(folder.take_decisions());
        }
        folder.push(message.iter().cloned());
    }
    let window = sent(folder.request());
    let shown: HashSet<usize> = window.iter().filter_map(|(position, ..)| *position).collect();
    let outputs = window.iter().filter(|(_, is_logged, item)| *is_logged && item.as_output().is_some()).count();
    assert!(outputs < 5, "{outputs} outputs");
    // The folder holds the items of its window, and of those that are shown otherwise what stands in the log.
    let held: HashSet<usize> = window.iter().filter(|(_, is_logged, _)| *is_logged).filter_map(|sent| sent.0).collect();
    let log: Vec<Arc<Item>> = messages.iter().flatten().map(|(item, _)| item.clone()).collect();
    let others = |at: usize| 2 + usize::from(held.contains(&at));
    for (at, item) in log.iter().enumerate().filter(|(_, item)| item.as_message().is_none()) {
        let is_held = Arc::strong_count(item) > others(at);
        assert_eq!(is_held, shown.contains(&at), "item {at}");
    }
    for (at, is_logged, item) in window.iter().filter_map(|(at, is_logged, item)| Some(((*at)?, is_logged, item))) {
        let mut expected = (*log[at]).clone();
        if let Item::FunctionCallOutput(output) = &mut expected
            && !is_logged
        {
            output.output = text(item);
        }
        assert_eq!(**item, expected, "item {at} is shown as it is, or with another text and nothing else");
    }
    assert!(folder.decisions().len() < 3 && decided.len() > 30, "they were taken");
    let again = sent(resume(self::folder(4_000), &messages, decided).request());
    assert_eq!(again, window, "what was taken is enough to go on");
}

#[test]
fn a_table_keeps_its_first_column() {
    let table: String = (1..40).map(|n| format!("{n}\tvalue {n}\n")).collect();
    let shown = |command: &str| {
        let mut folder = folder(8_000);
        push(&mut folder, &said(Role::User, "Show me."));
        push(&mut folder, &asks("call-1", "Bash", json!({ "command": command })));
        push(&mut folder, &answers("call-1", table.clone()));
        text(&folder.request()[3].item)
    };
    assert_eq!(shown("cat table.tsv"), table, "the numbers are the file's own");
    assert!(shown("cat -n values.txt").starts_with("1\tvalue 1\nvalue 2\n"), "the numbers are the command's");
}
