//! The layer `file-history` projects a log within its budget and the same way after a restart.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use contexture::decision::{Action, Decision};
use contexture::files::dialect::Dialects;
use contexture::files::model::FileModel;
use contexture::files::tracker::{FileTracker, TruncationPriority};
use contexture::fold::{FoldDecision, Folder, Meter, Policy};
use contexture::layer::{CacheState, ProjectHistoryResult};
use contexture::layers::file_history::FileHistory;
use contexture::tokens::{Estimate, TokenCounter, count_item};
use contexture::transcript::Record;
use contexture::{History, Item, ItemLog, ThreadId};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::steps::{Step, conversation, until_it_folds};

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
        tell_step(&mut log, step);
    }
    (windows, decisions)
}

/// What happens in one step.
fn tell_step(log: &mut ItemLog, step: usize) {
    let id = format!("call-{step}");
    append(log, Item::assistant("Let me see."));
    append(log, Item::call(&id, "Read", format!(r#"{{"file_path": "/src/file_{}.rs"}}"#, step % 7)));
    let text: String = (1..40).map(|n| format!("{n}\tlet value_{step}_{n} = {n};\n")).collect();
    append(log, Item::output(&id, text));
}

#[test]
fn every_projection_is_within_its_budget() {
    for window in play(WARM).0 {
        assert!(window.iter().map(|item| count_item(&Estimate, item)).sum::<u64>() <= BUDGET);
    }
}

#[test]
fn a_restart_changes_no_byte() {
    // With 12 000 tokens nothing is full, so the first fold is made because the cache was cold.
    for whole in [WARM, Play { cold: &[7, 20, 21], ..WARM }, Play { budget: 12_000, cold: &[3, 30], ..WARM }] {
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
        let decisions = play(Play { budget: 12_000, cold, ..WARM }).1;
        decisions.into_iter().filter(|decision| decision.reason != "the same in fewer words").collect::<Vec<_>>()
    };
    let decisions = play(&[30]);
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
        let mut longer = merged.clone();
        append(&mut longer, Item::user("More."));
        shown(&layer.project(&thread, &History::of(&longer), &[], BUDGET, CacheState::Warm))
    };
    let last = window(&ours);
    assert_eq!(last, window(&fresh));
    for said in ["Theirs.", "An answer to theirs.", "Ours.", "More."] {
        let is_said = |item: &&Item| item.as_message().is_some_and(|message| message.text() == said);
        assert_eq!(last.iter().filter(is_said).count(), 1, "{said} in {last:?}");
    }
}

/// A conversation that goes on through a layer, as the engine would drive it.
#[derive(Clone)]
struct Driven {
    log: ItemLog,
    decisions: Vec<Decision>,
    /// The cache is cold whenever the number of items is a multiple of this.
    cold_every: usize,
}

/// The most tokens of a window of what is driven: little, so that much is folded.
const DRIVEN_BUDGET: u64 = 2_000;

impl Driven {
    fn new(cold_every: usize) -> Self {
        Self { log: ItemLog::new(), decisions: Vec::new(), cold_every }
    }

    /// The window of a request.
    fn request(&mut self, layer: &FileHistory) -> Vec<Item> {
        let is_cold = self.log.len().is_multiple_of(self.cold_every);
        let cache = if is_cold { CacheState::Cold } else { CacheState::Warm };
        let history = History::of(&self.log);
        let result = layer.project(&ThreadId::from("thread"), &history, &self.decisions, DRIVEN_BUDGET, cache);
        commit(&mut self.decisions, &result, self.log.len());
        shown(&result)
    }

    fn append(&mut self, record: &Record) {
        record.items().iter().for_each(|item| append(&mut self.log, item.clone()));
    }
}

/// Goes through records; returns every window, with what there was before its request and which record follows it.
fn drive(mut driven: Driven, layer: &FileHistory, records: &[Record]) -> (Vec<(usize, Driven, Vec<Item>)>, Driven) {
    let mut requests = Vec::new();
    for (next, record) in records.iter().enumerate() {
        if record.is_response() {
            let before = driven.clone();
            requests.push((next, before, driven.request(layer)));
        }
        driven.append(record);
    }
    (requests, driven)
}

/// Steps that come back to the same few places.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = (0..3_u8, prop_oneof![Just(1_usize), Just(40)], prop_oneof![Just(30_usize), Just(90)]);
    let step = prop_oneof![
        1 => (1..60_usize).prop_map(Step::Say),
        6 => place.prop_map(|(file, first, count)| Step::Read { file, first, count }),
        2 => (0..3_u8, 1..120_usize).prop_map(|(file, line)| Step::Edit { file, line }),
        1 => (0..3_u8, 1..80_usize).prop_map(|(file, count)| Step::Write { file, count }),
        1 => (0..200_usize).prop_map(|lines| Step::Run { lines }),
        1 => Just(Step::Stray),
        2 => Just(Step::Unanswered),
    ];
    prop::collection::vec(step, 4..24)
}

/// Those in which every call is answered, as an engine takes care of: no response follows another.
fn answered_steps() -> impl Strategy<Value = Vec<Step>> {
    steps().prop_map(|steps| steps.into_iter().filter(|step| !matches!(step, Step::Unanswered)).collect())
}

/// Checks that a restart before any request gives the windows and decisions that there are without it.
fn check_restarts(records: &[Record], cold_every: usize) -> Result<(), TestCaseError> {
    let (live, end) = drive(Driven::new(cold_every), &FileHistory::default(), records);
    prop_assert!(end.decisions.iter().any(is_fold), "nothing was folded");
    for (request, (next, before, _)) in live.iter().enumerate() {
        let (again, end_again) = drive(before.clone(), &FileHistory::default(), &records[*next..]);
        for ((.., window), (.., expected)) in again.iter().zip(&live[request..]) {
            prop_assert!(window == expected, "a restart before record {} changes a window", next);
        }
        prop_assert!(end_again.decisions == end.decisions, "a restart before record {} decides otherwise", next);
    }
    Ok(())
}

fn tokens(window: &[Item]) -> u64 {
    window.iter().map(|item| count_item(&Estimate, item)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_restart_at_any_request_gives_the_same_windows(steps in answered_steps(), cold_every in 5..40_usize) {
        check_restarts(&conversation(&until_it_folds(steps, DRIVEN_BUDGET)), cold_every)?;
    }

    // Where one response follows another, only a decision tells that there was a request between them.
    #[test]
    fn responses_in_a_row_are_told_apart_by_what_was_decided_between_them(steps in steps()) {
        check_restarts(&conversation(&until_it_folds(steps, DRIVEN_BUDGET)), 1)?;
    }

    #[test]
    fn an_unreadable_decision_does_no_harm_to_the_budget(steps in steps(), spoilt in any::<prop::sample::Index>()) {
        let records = conversation(&until_it_folds(steps, DRIVEN_BUDGET));
        let (_, mut driven) = drive(Driven::new(7), &FileHistory::default(), &records);
        prop_assert!(driven.decisions.iter().any(is_fold), "nothing was folded");
        let spoilt = spoilt.index(driven.decisions.len());
        spoil(&mut driven.decisions[spoilt]);
        let layer = FileHistory::default();
        driven.append(&Item::user("Go on.").into());
        let window = driven.request(&layer);
        prop_assert!(tokens(&window) <= DRIVEN_BUDGET, "{} tokens", tokens(&window));
        let (later, _) = drive(driven, &layer, &records[1..]);
        for (.., window) in later {
            prop_assert!(tokens(&window) <= DRIVEN_BUDGET, "{} tokens", tokens(&window));
        }
    }
}

/// Whether a decision is a fold.
fn is_fold(decision: &Decision) -> bool {
    let Action::Layer(what) = &decision.action else { return false };
    matches!(FoldDecision::from_stored(what), Ok(FoldDecision::Fold(_)))
}

/// Makes a decision one that a newer version of the program stored.
fn spoil(decision: &mut Decision) {
    let Action::Layer(what) = &mut decision.action else { panic!("a decision of the engine") };
    what["version"] = 99.into();
}

/// A call that reads a numbered file, and what it returned: it is shown in fewer words.
fn read(number: usize) -> [Item; 2] {
    let id = format!("read-{number}");
    let text: String = (1..40).map(|line| format!("{line}\tlet value_{number}_{line} = {line};\n")).collect();
    let arguments = json!({"file_path": format!("/src/file_{number}.rs")}).to_string();
    [Item::call(&id, "Read", arguments), Item::output(&id, text)]
}

fn reasons(result: &ProjectHistoryResult) -> Vec<&str> {
    result.decisions.iter().map(|decision| decision.reason.as_str()).collect()
}

#[test]
fn an_unreadable_decision_costs_no_new_one() {
    let thread = ThreadId::from("thread");
    let project = |layer: &FileHistory, log: &ItemLog, decisions: &[Decision]| {
        layer.project(&thread, &History::of(log), decisions, 20_000, CacheState::Warm)
    };
    let layer = FileHistory::default();
    let (mut log, mut decisions) = (ItemLog::new(), Vec::new());
    append(&mut log, Item::user("Please fix the build."));
    read(0).into_iter().for_each(|item| append(&mut log, item));
    let first = project(&layer, &log, &decisions);
    assert_eq!(reasons(&first), ["the same in fewer words"]);
    commit(&mut decisions, &first, log.len());
    spoil(&mut decisions[0]);

    // Another process: what it decides about the second read is new, whatever it makes of the first decision.
    let layer = FileHistory::default();
    read(1).into_iter().for_each(|item| append(&mut log, item));
    let second = project(&layer, &log, &decisions);
    assert_eq!(reasons(&second), ["the same in fewer words"]);
    assert_eq!(second.decisions[0].what["position"], 4);
    commit(&mut decisions, &second, log.len());

    // The same process goes on, and nothing is decided twice.
    let third = project(&layer, &log, &decisions);
    assert_eq!((reasons(&third), shown(&third)), (vec![], shown(&second)));
    let again = project(&FileHistory::default(), &log, &decisions);
    assert_eq!((reasons(&again), shown(&again)), (vec![], shown(&second)));
}

/// Counts how often it is asked.
#[derive(Default)]
struct Asked(AtomicUsize);

impl TokenCounter for Asked {
    fn name(&self) -> &str {
        "asked"
    }

    fn count(&self, text: &str) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        Estimate.count(text)
    }
}

/// Folders that are held awake in memory.
const MAX_AWAKE: usize = 32;

#[test]
fn of_many_threads_those_used_longest_ago_rest_and_none_is_rebuilt() {
    let counter = Arc::new(Asked::default());
    let layer = FileHistory::new(counter.clone());
    let mut log = ItemLog::new();
    append(&mut log, Item::user("Please fix the build."));
    read(0).into_iter().for_each(|item| append(&mut log, item));
    let mut decisions: Vec<Vec<Decision>> = vec![Vec::new(); 3 * MAX_AWAKE];
    // A folder that is held has nothing to count when nothing happened since its last request.
    let mut is_held = |thread: usize| {
        let before = counter.0.load(Ordering::Relaxed);
        let id = ThreadId::from(format!("thread-{thread}").as_str());
        let result = layer.project(&id, &History::of(&log), &decisions[thread], BUDGET, CacheState::Warm);
        commit(&mut decisions[thread], &result, log.len());
        counter.0.load(Ordering::Relaxed) == before
    };
    assert!((0..3 * MAX_AWAKE).all(|thread| !is_held(thread)), "all of them are new");
    assert!((0..3 * MAX_AWAKE).all(&mut is_held), "none is gone through again");
    assert!((0..3 * MAX_AWAKE).rev().all(&mut is_held), "neither those that are awake nor those that woke");
}

#[test]
fn threads_that_rest_in_between_get_the_windows_of_threads_that_stay_awake() {
    let (alone, _) = play(WARM);
    let layer = FileHistory::default();
    let mut threads: Vec<(ThreadId, ItemLog, Vec<Decision>)> = (0..MAX_AWAKE + 3)
        .map(|number| (ThreadId::from(format!("thread-{number}").as_str()), ItemLog::new(), Vec::new()))
        .collect();
    for (_, log, _) in &mut threads {
        append(log, Item::user("Please fix the build."));
    }
    for (step, window) in alone.iter().enumerate().take(25) {
        for (thread, log, decisions) in &mut threads {
            let result = layer.project(thread, &History::of(log), decisions, BUDGET, CacheState::Warm);
            commit(decisions, &result, log.len());
            assert_eq!(shown(&result), *window, "step {step}");
            tell_step(log, step);
        }
    }
}

/// Waits in the middle of counting one text until it is told to go on.
struct Waiting {
    has_begun: mpsc::Sender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
    /// How often it was told in time.
    told: AtomicUsize,
}

/// What makes it wait.
const SLOW: &str = "value_7_";

impl TokenCounter for Waiting {
    fn name(&self) -> &str {
        "waiting"
    }

    fn count(&self, text: &str) -> u64 {
        if text.contains(SLOW) && self.told.load(Ordering::Relaxed) == 0 {
            self.has_begun.send(()).unwrap();
            // Only a test that fails waits so long.
            if self.go_on.lock().unwrap().recv_timeout(Duration::from_secs(20)).is_ok() {
                self.told.fetch_add(1, Ordering::Relaxed);
            }
        }
        Estimate.count(text)
    }
}

#[test]
fn one_thread_does_not_wait_for_another() {
    let (has_begun, begun) = mpsc::channel();
    let (tell, go_on) = mpsc::channel();
    let counter = Arc::new(Waiting { has_begun, go_on: Mutex::new(go_on), told: AtomicUsize::new(0) });
    let layer = FileHistory::new(counter.clone());
    let project = |thread: &str, number: usize| {
        let mut log = ItemLog::new();
        append(&mut log, Item::user("Please fix the build."));
        read(number).into_iter().for_each(|item| append(&mut log, item));
        shown(&layer.project(&ThreadId::from(thread), &History::of(&log), &[], BUDGET, CacheState::Warm)).len()
    };
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| project("slow", 7));
        begun.recv().unwrap();
        assert_eq!(project("fast", 1), 3);
        tell.send(()).unwrap();
        assert_eq!(slow.join().unwrap(), 3);
    });
    assert_eq!(counter.told.load(Ordering::Relaxed), 1, "the fast thread came through while the slow one waited");
}

/// `FileTracker` and `file-history` have one model of files.
#[test]
fn a_tracker_knows_what_a_fold_knows() {
    let mut items = vec![Item::user("Fix the port in src/config.ts, see docs/ports.md")];
    let mut run = |id: &str, name: &str, arguments: Value, output: &str| {
        items.push(Item::call(id, name, arguments.to_string()));
        items.push(Item::output(id, output));
    };
    run("1", "Read", json!({"file_path": "/app/src/config.ts"}), "1\tconst port = 80;\n2\texport default port;\n");
    run("2", "Bash", json!({"command": "cd /app && sed -i 's/80/8080/' src/config.ts"}), "");
    run("3", "Edit", json!({"file_path": "/app/src/config.ts", "old_string": "export", "new_string": "module"}), "ok");
    run("4", "Bash", json!({"command": "cat /app/docs/ports.md"}), "Ports\n");
    run("5", "Grep", json!({"pattern": "port", "path": "/app"}), "/app/a.ts:3:port\n");
    items.push(Item::assistant("Done, see src/config.ts."));
    let tracker = FileTracker::of_items(&items, &Dialects::builtin());
    let mut folder = Folder::new(Policy::new(100_000), Meter::new(Arc::new(Estimate)));
    for item in items {
        folder.push([(Arc::new(item), 10)]);
    }
    let known = |model: &FileModel| {
        let files = model.files().iter();
        files.map(|file| (file.path.clone(), file.text(), file.edits, file.reads, file.named > 0)).collect::<Vec<_>>()
    };
    assert_eq!(known(tracker.model()), known(folder.model()));
    assert_eq!(tracker.priority("/app/src/config.ts"), TruncationPriority::Never);
    let layer = FileHistory::default();
    assert!(layer.files(&ItemLog::new()).recent_files(0, 0).is_empty());
    let recent: Vec<(String, u64)> =
        tracker.recent_files(5, 2).into_iter().map(|file| (file.path, file.last_access_step)).collect();
    assert_eq!(recent, [("/app/docs/ports.md".to_owned(), 4), ("/app/src/config.ts".to_owned(), 3)]);
}
