//! A longer past never shows less of what people said: in every overflow mode, with and without layers.

use std::collections::HashSet;

use contexture::layers::{FileHistory, HistoryWindow, Plan, Reminder, ToolMemory, WorkingMemory};
use contexture::memory::Layers;
use contexture::prelude::*;
use contexture::testing::{ScriptedModel, engine};
use proptest::prelude::*;
use proptest::sample::select;

const BUDGET: u64 = 6_000;
/// What a window shows after an eviction at least, of what any earlier window showed: evictions are large, so that the
/// prompt stays in the provider's cache, and a message is shown whole or not at all.
const LEAST_SHARE: f64 = 0.4;

/// What the person says in a turn: words that nobody said before.
fn said(turn: usize, words: usize) -> String {
    let words = (0..words).map(|word| format!("w{}", (turn * 7919 + word * 104_729) % 1_000_003));
    format!("Message {turn}: {}.", words.collect::<Vec<_>>().join(" "))
}

/// How many words of people a window shows.
fn shown_words(texts: &[String]) -> usize {
    let is_word =
        |word: &&str| word.strip_prefix('w').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let words = texts.iter().flat_map(|text| text.split(|character: char| !character.is_alphanumeric()));
    words.filter(is_word).collect::<HashSet<_>>().len()
}

/// Whether the first message is shown in every window.
#[derive(Clone, Copy, PartialEq)]
enum Task {
    Stays,
    /// Only the newest items are shown, whatever they are: so many messages of people after an eviction at least, if the
    /// budget has room for them.
    Leaves(usize),
}

/// How many words the newest messages have that are shown for their number alone.
fn words_of_newest(task: Task, lengths: &[usize]) -> usize {
    match task {
        Task::Stays => usize::MAX,
        Task::Leaves(newest) => lengths.iter().rev().take(newest).sum(),
    }
}

async fn check<Ls: Layers>(layers: Ls, overflow: Overflow, task: Task, lengths: &[usize]) {
    let model = ScriptedModel::new();
    let policy = ProjectionPolicy { window_size: Some(60), ..ProjectionPolicy::new(BUDGET).with_overflow(overflow) };
    let engine = engine(memory(layers)).model(model.clone()).policy(policy).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let mut most = 0;
    for (turn, length) in lengths.iter().enumerate() {
        execution.turn(said(turn, *length)).await.unwrap();
        let texts = model.last_texts();
        let words = shown_words(&texts);
        most = most.max(words);
        let expected = most.min(words_of_newest(task, &lengths[..=turn]));
        assert!(words as f64 >= expected as f64 * LEAST_SHARE, "turn {turn}: {words} words are shown, and were {most}");
        assert!(texts.iter().any(|text| text.contains(&said(turn, *length))), "turn {turn} is not shown whole");
        let has_task = texts.iter().any(|text| text.contains("Message 0:"));
        assert!(task != Task::Stays || has_task, "the task is not shown in turn {turn}");
    }
}

/// Many short messages, many long ones, or both.
fn any_lengths() -> impl Strategy<Value = Vec<usize>> {
    let lengths = select(vec![vec![12], vec![300], vec![12, 12, 12, 300], vec![4, 40, 120, 250]]);
    (lengths, 40..110_usize).prop_flat_map(|(lengths, turns)| prop::collection::vec(select(lengths), turns))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_longer_past_never_shows_less_of_what_people_said(lengths in any_lengths()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for overflow in [Overflow::Truncate, Overflow::Summarize] {
                check((), overflow, Task::Stays, &lengths).await;
                check((FileHistory::default(),), overflow, Task::Stays, &lengths).await;
            }
            check((), Overflow::SlidingWindow, Task::Leaves(30), &lengths).await;
            check((HistoryWindow::new(80),), Overflow::Truncate, Task::Leaves(20), &lengths).await;
            let others = (Reminder::new(), WorkingMemory::new(), Plan::new(), ToolMemory::new(), FileHistory::default());
            check(others, Overflow::Truncate, Task::Stays, &lengths).await;
        });
    }
}

/// A conversation that is imported at once is shown like one that grew.
#[tokio::test]
async fn an_imported_past_shows_no_less_than_a_shorter_one() {
    for length in [12, 300] {
        let mut most = 0;
        for turns in [50, 100, 300, 700, 1_500] {
            let model = ScriptedModel::new();
            let builder = engine(memory((FileHistory::default(),))).model(model.clone());
            let engine = builder.policy(ProjectionPolicy::new(32_000)).build().unwrap();
            let mut execution = engine.execution("thread").start().await.unwrap();
            let past = (0..turns).flat_map(|turn| [Item::user(said(turn, length)), Item::assistant("I see.")]);
            execution.import(past).await.unwrap();
            execution.turn("Go on.").await.unwrap();
            let texts = model.last_texts();
            let words = shown_words(&texts);
            most = most.max(words);
            assert!(words as f64 >= most as f64 * LEAST_SHARE, "{turns} × {length}: {words} words, and were {most}");
            assert!(texts.iter().any(|text| text.contains("Message 0:")));
            assert!(texts.iter().any(|text| text.contains(&said(turns - 1, length))));
        }
    }
}
