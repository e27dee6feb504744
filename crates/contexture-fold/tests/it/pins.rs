//! What a user pins is never folded.

use contexture_core::Item;
use contexture_core::item::Role;
use contexture_core::tokens::Estimate;
use contexture_fold::{FoldDecision, Pins, Policy, ShownItem};
use contexture_wire::transcript::Record;
use proptest::prelude::*;
use serde_json::json;

use crate::records::{
    Counted, answers, asks, call, counted, folder_of, folds, items, resume, said, says, sent, stored, text, tokens,
    windows,
};
use crate::steps::{conversation, line, path, step};

fn pinned(budget: u64, pins: Pins) -> Policy {
    Policy::new(budget).with_pins(pins)
}

/// A skill that was opened, with a text of some size.
fn skill(id: &str, lines: usize) -> [Record; 2] {
    let body: String = (0..lines).map(|n| format!("{id}: step {n} of the skill is to be followed\n")).collect();
    [asks(id, "Skill", json!({"skill": id})), answers(id, body)]
}

/// Enough reading to have everything before it folded.
fn work(rounds: usize) -> Vec<Record> {
    let read = |round: usize| {
        let id = format!("read-{round}");
        let text: String = (1..200).map(|n| format!("{n}\t{}\n", line((round % 5) as u8, n))).collect();
        [asks(&id, "Read", json!({"file_path": path((round % 5) as u8)})), answers(&id, text)]
    };
    (0..rounds).flat_map(read).collect()
}

fn logged(window: &[ShownItem], at: usize) -> bool {
    window.iter().any(|shown| shown.position == Some(at) && shown.is_logged)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn pinned_calls_stay_whole_in_every_window_and_after_a_restart(
        steps in prop::collection::vec(step(), 10..50),
        places in prop::collection::vec(0.0..1.0_f64, 1..4),
        cut in 0.0..1.0_f64,
    ) {
        let mut records = conversation(&steps);
        for (index, place) in places.iter().enumerate() {
            // Not between a call and its output.
            let mut at = 1 + ((records.len() - 1) as f64 * place) as usize;
            while records[at..].first().is_some_and(|record| record.items()[0].as_output().is_some()) {
                at += 1;
            }
            records.splice(at..at, skill(&format!("skill-{index}"), 20));
        }
        // Without a fold there would be nothing to see.
        records.extend(work(20));
        let policy = || pinned(8_000, Pins::new().tool("Skill"));
        let (whole, folder) = windows(folder_of(policy()), &records);
        prop_assert!(folds(folder.decisions()) > 0);
        let skills: Vec<usize> = items(&records).iter().enumerate().filter(|(_, item)| is_of_skill(item)).map(|(at, _)| at).collect();
        prop_assert_eq!(skills.len(), places.len() * 2);
        for at in &skills {
            prop_assert!(logged(folder.window(), *at), "item {} is gone after {} folds", at, folds(folder.decisions()));
        }
        for window in &whole {
            prop_assert!(tokens(window) <= 8_000);
        }
        let cut = (records.len() as f64 * cut) as usize;
        let (mut first, before) = windows(folder_of(policy()), &records[..cut]);
        let messages: Vec<Counted> = records[..cut].iter().map(|record| counted(&Estimate, record)).collect();
        let (second, _) = windows(resume(folder_of(policy()), &messages, stored(before.decisions())), &records[cut..]);
        first.extend(second);
        let all = |windows: &[Vec<ShownItem>]| windows.iter().map(|window| sent(window)).collect::<Vec<_>>();
        prop_assert_eq!(all(&first), all(&whole));
    }
}

fn is_of_skill(item: &Item) -> bool {
    let id = item.as_call().map(|call| &call.call_id).or(item.as_output().map(|output| &output.call_id));
    id.is_some_and(|id| id.starts_with("skill-"))
}

#[test]
fn without_a_pin_the_same_call_is_folded() {
    let records: Vec<Record> =
        [said(Role::User, "go")].into_iter().chain(skill("skill-0", 20)).chain(work(150)).collect();
    let (_, plain) = windows(folder_of(Policy::new(8_000)), &records);
    assert!(!logged(plain.window(), 3) && folds(plain.decisions()) > 1);
    let (_, kept) = windows(folder_of(pinned(8_000, Pins::new().tool("Skill"))), &records);
    assert!(logged(kept.window(), 3) && folds(kept.decisions()) > 1);
}

#[test]
fn reasoning_stays_with_the_call_it_led_to_and_other_calls_of_the_response_go() {
    let reasoning = Item::Reasoning(serde_json::from_value(json!({"text": "hm", "encrypted_content": "abc"})).unwrap());
    let calls = [call("skill-0", "Skill", &json!({})), call("other", "Bash", &json!({"command": "true"}))];
    let response = Record::from_items([reasoning].into_iter().chain(calls.map(Item::FunctionCall)).collect());
    let records: Vec<Record> =
        [said(Role::User, "go"), response, answers("skill-0", "do so"), answers("other", "done")]
            .into_iter()
            // The step of the newest call of a tool stays anyway.
            .chain([asks("newer", "Bash", json!({"command": "true"})), answers("newer", "done")])
            .chain(skill("skill-1", 2))
            .chain(work(150))
            .collect();
    let (_, folder) = windows(folder_of(pinned(8_000, Pins::new().tool("Skill"))), &records);
    assert!(folds(folder.decisions()) > 1);
    let stays = (1..=4).map(|at| logged(folder.window(), at)).collect::<Vec<_>>();
    assert_eq!(stays, [true, true, false, true], "reasoning, call, other call, output");
}

#[test]
fn pinned_files_stay_in_view_and_pinned_roles_keep_their_words() {
    let plan: String =
        (1..60).map(|n| format!("{n}\t{n}. a step of the plan that is older than everything\n")).collect();
    let mut records = vec![said(Role::User, "go"), said(Role::Assistant, "I will keep to the plan, whatever comes.")];
    records.extend([asks("plan", "Read", json!({"file_path": "/project/docs/PLAN.md"})), answers("plan", plan)]);
    records.extend(work(40));
    let shows = |pins: Pins| {
        let (_, folder) = windows(folder_of(pinned(6_000, pins)), &records);
        let window = folder.window();
        assert!(folds(folder.decisions()) > 1);
        let last = says(window, "59. a step of the plan") && says(window, "1. a step of the plan");
        (last, says(window, "I will keep to the plan"))
    };
    assert_eq!(shows(Pins::new()), (false, true));
    assert_eq!(shows(Pins::new().path("docs/*.md")), (true, true));
    assert!(shows(Pins::new().role(Role::Assistant)).1);
}

#[test]
fn pins_that_do_not_fit_go_oldest_first_and_the_decision_says_so() {
    let mut records = vec![said(Role::User, "go")];
    (0..12).for_each(|n| records.extend(skill(&format!("skill-{n}"), 40)));
    records.extend(work(3));
    let (windows, folder) = windows(folder_of(pinned(4_000, Pins::new().tool("Skill"))), &records);
    assert!(windows.iter().all(|window| tokens(window) <= 4_000));
    let is_cut = |decision: &FoldDecision| matches!(decision, FoldDecision::Fold(fold) if !fold.cut_said.is_empty());
    assert!(folder.decisions().iter().any(is_cut));
    let outputs = folder.window().iter().filter_map(|shown| shown.item.as_output());
    let shown: Vec<&str> = outputs.map(|output| &*output.call_id).filter(|id| id.starts_with("skill")).collect();
    assert_eq!(shown.last(), Some(&"skill-11"), "{shown:?}");
    assert!(!shown.contains(&"skill-0"));
    let texts: Vec<String> = folder.window().iter().map(|shown| text(&shown.item)).collect();
    assert!(texts.iter().any(|text| text == "go"), "what the user said is there too");
}

#[test]
fn decisions_of_a_time_with_pins_can_be_gone_through_without_them() {
    let records: Vec<Record> =
        [said(Role::User, "go")].into_iter().chain(skill("skill-0", 20)).chain(work(40)).collect();
    let (_, folder) = windows(folder_of(pinned(8_000, Pins::new().tool("Skill"))), &records);
    let messages: Vec<Counted> = records.iter().map(|record| counted(&Estimate, record)).collect();
    let resumed = resume(folder_of(Policy::new(8_000)), &messages, stored(folder.decisions()));
    assert_eq!(resumed.window().len(), folder.window().len());
}
