//! The layer `file-history` projects a log within its budget and the same way after a restart.

use contexture::decision::{Action, Decision};
use contexture::layer::{CacheState, ProjectHistoryResult};
use contexture::layers::file_history::FileHistory;
use contexture::tokens::{Estimate, count_item};
use contexture::{History, Item, ItemLog, ThreadId};

const BUDGET: u64 = 4_000;

fn append(log: &mut ItemLog, item: Item) {
    let tokens = count_item(&Estimate, &item);
    log.append(item, tokens);
}

fn commit(decisions: &mut Vec<Decision>, result: &ProjectHistoryResult, at: usize) {
    for new in &result.decisions {
        decisions.push(Decision {
            number: decisions.len() as u64,
            at,
            layer: Some(FileHistory::ID.into()),
            action: Action::Layer(new.what.clone()),
            reason: new.reason.clone(),
            price: new.price,
        });
    }
}

fn shown(result: &ProjectHistoryResult) -> Vec<Item> {
    result.history.iter().map(|projected| (**projected.item).clone()).collect()
}

/// Forty steps: `restart_at` drops the layer and makes another, before the steps in `cold` the cache expires.
#[derive(Clone, Copy, Debug)]
struct Play {
    budget: u64,
    restart_at: Option<usize>,
    cold: &'static [usize],
}

const WARM: Play = Play { budget: BUDGET, restart_at: None, cold: &[] };

/// All windows of the steps, and what was decided.
fn play(play: Play) -> (Vec<Vec<Item>>, Vec<Decision>) {
    let thread = ThreadId::from("thread");
    let mut layer = FileHistory::default();
    let mut log = ItemLog::new();
    let mut decisions: Vec<Decision> = Vec::new();
    append(&mut log, Item::user("Please fix the build."));
    let mut windows = Vec::new();
    for step in 0..40 {
        if play.restart_at == Some(step) {
            layer = FileHistory::default();
        }
        let cache = if play.cold.contains(&step) { CacheState::Cold } else { CacheState::Warm };
        let result = layer.project(&thread, &History::of(&log), &decisions, play.budget, cache);
        commit(&mut decisions, &result, log.len());
        windows.push(shown(&result));
        let id = format!("call-{step}");
        append(&mut log, Item::assistant("Let me see."));
        append(&mut log, Item::call(&id, "Read", format!(r#"{{"file_path": "/src/file_{}.rs"}}"#, step % 7)));
        let text: String = (1..40).map(|n| format!("{n}\tlet value_{step}_{n} = {n};\n")).collect();
        append(&mut log, Item::output(&id, text));
    }
    (windows, decisions)
}

#[test]
fn every_projection_is_within_its_budget() {
    for window in play(WARM).0 {
        assert!(window.iter().map(|item| count_item(&Estimate, item)).sum::<u64>() <= BUDGET);
    }
}

#[test]
fn a_restart_changes_no_byte() {
    // With 20 000 tokens nothing is full, so the first fold is made because the cache was cold.
    for whole in [WARM, Play { cold: &[7, 20, 21], ..WARM }, Play { budget: 20_000, cold: &[3, 25], ..WARM }] {
        let expected = play(whole);
        for restart_at in 0..40 {
            let restarted = play(Play { restart_at: Some(restart_at), ..whole });
            assert!(restarted == expected, "a restart at {restart_at} makes {whole:?} another");
        }
    }
}

#[test]
fn a_cold_cache_makes_a_fold_free() {
    // What the numbers of lines take is saved all along; it has nothing to do with the cache.
    let play = |cold| {
        let decisions = play(Play { budget: 20_000, cold, ..WARM }).1;
        decisions.into_iter().filter(|decision| decision.reason != "the same in fewer words").collect::<Vec<_>>()
    };
    let decisions = play(&[25]);
    let reasons: Vec<&str> = decisions.iter().map(|decision| decision.reason.as_str()).take(2).collect();
    assert_eq!(reasons, ["the provider's cache is cold", "the cache is cold, so rewriting is free"]);
    assert_eq!(decisions[1].price.unwrap().cost, 0.0);
    assert!(decisions[1].price.unwrap().saves_per_request > 0.0);
    let warm = play(&[]);
    assert!(warm.iter().all(|decision| decision.at > decisions[1].at), "without a cold cache it waits");
}

#[test]
fn items_that_another_process_put_in_between_are_taken_in() {
    let thread = ThreadId::from("thread");
    let (ours, fresh) = (FileHistory::default(), FileHistory::default());
    let mut before = ItemLog::new();
    append(&mut before, Item::user("Please fix the build."));
    let mut merged = before.clone();
    append(&mut before, Item::user("Ours."));
    ours.project(&thread, &History::of(&before), &[], BUDGET, CacheState::Warm);
    append(&mut merged, Item::user("Theirs."));
    append(&mut merged, Item::assistant("An answer to theirs."));
    append(&mut merged, Item::user("Ours."));
    let window = |layer: &FileHistory| {
        layer.project(&thread, &History::of(&merged), &[], BUDGET, CacheState::Warm);
        append(&mut merged.clone(), Item::user("More."));
        shown(&layer.project(&thread, &History::of(&merged), &[], BUDGET, CacheState::Warm))
    };
    assert_eq!(window(&ours), window(&fresh));
}
