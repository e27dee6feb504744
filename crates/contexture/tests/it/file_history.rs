//! The layer `file-history` projects a log within its budget and the same way after a restart.

use contexture::decision::{Action, Decision};
use contexture::layer::ProjectHistoryResult;
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

/// Plays forty steps; `restart_at` drops the layer and makes another.
fn play(restart_at: Option<usize>) -> Vec<Vec<Item>> {
    let thread = ThreadId::from("thread");
    let mut layer = FileHistory::default();
    let mut log = ItemLog::new();
    let mut decisions: Vec<Decision> = Vec::new();
    append(&mut log, Item::user("Please fix the build."));
    let mut windows = Vec::new();
    for step in 0..40 {
        if restart_at == Some(step) {
            layer = FileHistory::default();
        }
        let result = layer.project(&thread, &History::of(&log), &decisions, BUDGET);
        commit(&mut decisions, &result, log.len());
        windows.push(shown(&result));
        let id = format!("call-{step}");
        append(&mut log, Item::assistant("Let me see."));
        append(&mut log, Item::call(&id, "Read", format!(r#"{{"file_path": "/src/file_{}.rs"}}"#, step % 7)));
        let text: String = (1..40).map(|n| format!("{n}\tlet value_{step}_{n} = {n};\n")).collect();
        append(&mut log, Item::output(&id, text));
    }
    windows
}

#[test]
fn every_projection_is_within_its_budget() {
    for window in play(None) {
        assert!(window.iter().map(|item| count_item(&Estimate, item)).sum::<u64>() <= BUDGET);
    }
}

#[test]
fn a_restart_changes_no_byte() {
    let whole = play(None);
    for restart_at in [1, 9, 20, 39] {
        assert_eq!(play(Some(restart_at)), whole);
    }
}
