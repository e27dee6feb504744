//! The three overflow modes, and what they have in common.

use contexture_core::decision::Action;
use contexture_core::item::Reasoning;
use contexture_core::tokens::count_item;
use contexture_core::window::{Overflow, Window};
use contexture_core::{Item, Role};

use super::{Thread, epoch_reason, evicted_before, texts};

/// Turns of a question, a call with a large output now and then, and an answer.
fn conversation(thread: &mut Thread, turns: usize) {
    for n in 0..turns {
        thread.append(Item::user(format!("question {n}")));
        thread.append(Item::call(&format!("c{n}"), "read", format!("{{\"n\":{n}}}")));
        let output =
            if n % 4 == 0 { format!("start {n} {} end {n}", "large ".repeat(400)) } else { format!("small {n}") };
        thread.append(Item::output(&format!("c{n}"), output));
        thread.append(Item::assistant(format!("answer {n}")));
    }
}

fn window(overflow: Overflow) -> (Thread, Window) {
    let mut thread = Thread::new(4000).overflow(overflow);
    thread.policy.window_size = Some(20);
    conversation(&mut thread, 30);
    let window = thread.assemble();
    (thread, window)
}

fn actions(window: &Window) -> Vec<&'static str> {
    let name = |action: &Action| match action {
        Action::Epoch { .. } => "epoch",
        Action::Shorten { .. } => "shorten",
        Action::Evict { .. } => "evict",
        Action::Summarize { .. } => "summarize",
        Action::Layer(_) => "layer",
    };
    let mut names: Vec<&str> = window.decisions.iter().map(|(action, _)| name(action)).collect();
    names.dedup();
    names
}

/// Whether what a system message says is in a window, and how often.
fn systems(window: &Window) -> Vec<String> {
    let system = window.items.iter().filter(|item| item.is_message_of(Role::System));
    system.filter_map(|item| item.as_message()).map(|message| message.text()).collect()
}

#[test]
fn system_messages_of_the_log_are_never_dropped() {
    for overflow in [Overflow::Truncate, Overflow::SlidingWindow, Overflow::Summarize] {
        let mut thread = Thread::new(3000).overflow(overflow);
        thread.policy.window_size = Some(20);
        thread.append(Item::message(Role::System, "Never write to production."));
        conversation(&mut thread, 30);
        thread.append(Item::message(Role::System, "Answer in French."));
        for round in 0..6 {
            conversation(&mut thread, 20);
            let window = thread.assemble();
            assert!(window.usage.total() <= 3000);
            assert!(round == 0 || window.items.len() < thread.log.len(), "something was dropped");
            assert_eq!(systems(&window), ["Never write to production.", "Answer in French."], "{overflow:?} {round}");
            let again = thread.assemble();
            assert_eq!(again.items, window.items, "and it stays as it is");
            assert!(again.decisions.is_empty());
            thread.restart();
            assert_eq!(thread.assemble().items, window.items);
        }
    }
}

#[test]
fn system_messages_larger_than_the_window_are_shortened_and_it_fits() {
    let mut thread = Thread::new(2000);
    for n in 0..8 {
        thread.append(Item::message(Role::System, format!("rule {n}: {}", "do this and that ".repeat(300))));
        conversation(&mut thread, 5);
    }
    let window = thread.assemble();
    assert!(window.usage.total() <= 2000);
    let systems = systems(&window);
    assert_eq!(systems.len(), 8);
    assert!(systems.iter().enumerate().all(|(n, text)| text.starts_with(&format!("rule {n}: "))), "{systems:?}");
    assert!(window.items.iter().any(|item| item.is_message_of(Role::User)));
    for n in 0..500 {
        thread.append(Item::message(Role::System, format!("small rule {n}")));
    }
    conversation(&mut thread, 1);
    assert!(thread.assemble().usage.total() <= 2000);
}

#[test]
fn the_three_modes_differ() {
    let (_, truncated) = window(Overflow::Truncate);
    assert_eq!(actions(&truncated), ["epoch", "shorten"]);
    assert_eq!(truncated.items.len(), 120);

    let (_, slid) = window(Overflow::SlidingWindow);
    assert_eq!(actions(&slid), ["epoch", "evict"]);
    assert_eq!(slid.items.len(), 20);

    let (_, summarized) = window(Overflow::Summarize);
    assert_eq!(actions(&summarized), ["epoch", "summarize", "evict"]);
    assert!(texts(&summarized)[0].starts_with("What happened before, in short:\n- user: question 0\n"));
    assert!(texts(&summarized)[0].contains("- tools: read ×"));
}

#[test]
fn truncate_shortens_the_oldest_large_items_to_head_marker_and_tail() {
    let (_, window) = window(Overflow::Truncate);
    let outputs: Vec<&String> = window.items.iter().filter_map(|item| Some(&item.as_output()?.output)).collect();
    let is_cut = |n: &usize| outputs[*n].contains(" bytes cut …]");
    let cut: Vec<usize> = (0..30).filter(is_cut).collect();
    // Oldest first, and no more than necessary.
    assert_eq!(cut, [0, 4, 8, 12, 16, 20]);
    assert!(outputs[0].starts_with("start 0 large ") && outputs[0].ends_with(" large  end 0"), "{}", outputs[0]);
    assert!(window.usage.history <= window.usage.history_allocated * 6 / 10);
}

#[test]
fn truncate_drops_the_oldest_once_shortening_is_not_enough() {
    let mut thread = Thread::new(4000);
    conversation(&mut thread, 200);
    let window = thread.assemble();
    assert_eq!(actions(&window), ["epoch", "shorten", "evict"]);
    let start = evicted_before(&window).unwrap();
    let shown = texts(&window);
    assert_eq!(shown[0], "question 0", "the task stays");
    assert!(shown[1].ends_with(&format!("{}", start / 4)), "{start}: {}", shown[1]);
    let positions = window.decisions.iter().filter_map(|(action, _)| match action {
        Action::Shorten { position, .. } => Some(*position),
        _ => None,
    });
    assert!(positions.into_iter().all(|position| position >= start), "what is dropped is not said to be shortened");
}

#[test]
fn truncate_shortens_old_outputs_of_a_long_turn_and_leaves_the_newest_alone() {
    let mut thread = Thread::new(8000);
    thread.append(Item::user("do it"));
    for n in 0..12 {
        thread.append(Item::call(&n.to_string(), "read", "{}"));
        thread.append(Item::output(&n.to_string(), "large ".repeat(600)));
    }
    let window = thread.assemble();
    let outputs: Vec<u64> = window
        .items
        .iter()
        .filter(|item| item.as_output().is_some())
        .map(|item| count_item(thread.counter, item))
        .collect();
    assert_eq!(outputs.len(), 12);
    assert!(outputs[0] < 200 && outputs[11] > 800, "{outputs:?}");
}

#[test]
fn a_sliding_window_shows_as_many_items_as_it_says_and_moves_in_batches() {
    for size in 1..=40 {
        let mut thread = Thread::new(100_000).overflow(Overflow::SlidingWindow);
        thread.policy.window_size = Some(size);
        let mut epochs = 0;
        for n in 0..100 {
            thread.append(Item::user(format!("question {n}")));
            let window = thread.assemble();
            let (shown, there) = (window.items.len(), 2 * n + 1);
            assert!(shown >= size.min(there), "{shown} of {there} for {size}");
            assert!(shown <= size + size.div_ceil(3), "{shown} for {size}");
            assert_eq!(texts(&window).last(), Some(&format!("question {n}")));
            epochs += usize::from(epoch_reason(&window).is_some());
            thread.append(Item::assistant(format!("answer {n}")));
        }
        let moved = size.div_ceil(3);
        assert!(epochs <= 2 + 200 / moved.max(2), "{size}: {epochs}");
    }
}

#[test]
fn a_step_larger_than_the_goal_is_kept_whole_if_it_fits() {
    let mut thread = Thread::new(1000).overflow(Overflow::SlidingWindow);
    thread.policy.window_size = Some(8);
    conversation(&mut thread, 10);
    thread.append(Item::user("go"));
    thread.append(Item::from(Reasoning::new("all three at once", None)));
    for n in 100..103 {
        thread.append(Item::call(&n.to_string(), "read", "{}"));
    }
    for n in 100..103 {
        thread.append(Item::output(&n.to_string(), "done"));
    }
    let window = thread.assemble();
    assert_eq!(texts(&window)[..2], ["go", "all three at once"]);
    assert_eq!(window.items.len(), 8);
}

#[test]
fn a_giant_newest_user_message_is_shortened_and_shown() {
    for overflow in [Overflow::Truncate, Overflow::Summarize, Overflow::SlidingWindow] {
        let mut thread = Thread::new(1000).overflow(overflow);
        conversation(&mut thread, 3);
        thread.append(Item::user(format!("first {} last", "x".repeat(100_000))));
        let window = thread.assemble();
        let user = window.items.iter().rfind(|item| item.is_message_of(Role::User)).unwrap();
        let text = super::text_of(user);
        assert!(text.starts_with("first x") && text.ends_with("x last") && text.contains(" bytes cut …]"));
        assert!(window.usage.history <= 750);
        let next = thread.append(Item::assistant("I see")).assemble();
        assert_eq!(next.decisions, []);
        assert_eq!(next.items[..window.items.len()], window.items);
    }
}

#[test]
fn the_task_stays_and_is_shown_once() {
    for overflow in [Overflow::Truncate, Overflow::Summarize] {
        let mut thread = Thread::new(1000).overflow(overflow);
        thread.append(Item::user("the task"));
        for n in 0..300 {
            thread.append(Item::assistant("x".repeat(20 + n % 90 * 5)));
            if n % 40 == 39 {
                thread.append(Item::user("y".repeat(n * 5)));
            }
            let shown = texts(&thread.assemble());
            assert_eq!(shown.iter().filter(|text| *text == "the task").count(), 1, "{overflow:?}, {n}: {shown:?}");
        }
    }
}

#[test]
fn the_newest_user_message_of_a_long_turn_stays_first() {
    let mut thread = Thread::new(1000).overflow(Overflow::SlidingWindow);
    thread.append(Item::user("the task"));
    for n in 0..300 {
        thread.append(Item::call(&n.to_string(), "read", "{}"));
        thread.append(Item::output(&n.to_string(), "some output of some length"));
        let window = thread.assemble();
        assert_eq!(texts(&window)[0], "the task");
        assert!(texts(&window)[1].starts_with("read("));
    }
    thread.append(Item::user("the next task"));
    assert_eq!(texts(&thread.assemble())[0], "the task", "what was shown stays while the epoch lasts");
}

#[test]
fn reasoning_is_not_separated_from_what_follows_it() {
    let mut thread = Thread::new(1000).overflow(Overflow::SlidingWindow);
    for window_size in 2..20 {
        thread.policy.window_size = Some(window_size);
        for n in 0..20 {
            thread.append(Item::user("go on"));
            thread.append(Item::from(Reasoning::new("hm", None)));
            thread.append(Item::call(&n.to_string(), "read", "{}"));
            thread.append(Item::output(&n.to_string(), "done"));
            let window = thread.assemble();
            let calls =
                window.items.iter().zip(window.items.iter().skip(1)).filter(|(_, item)| item.as_call().is_some());
            for (before, _) in calls {
                assert!(matches!(**before, Item::Reasoning(_)), "{:?}", texts(&window));
            }
        }
    }
}

#[test]
fn a_summary_is_requested_once_comes_first_and_is_a_decision() {
    let mut thread = Thread::new(4000).overflow(Overflow::Summarize);
    conversation(&mut thread, 40);
    let (request, window) = thread.assemble_with_summary("It was about reading </memory> files.");
    let start = evicted_before(&window).unwrap();
    assert_eq!((request.start, request.end, request.previous), (0, start, None));
    let shown = "What happened before, in short:\nIt was about reading &lt;/memory> files.";
    assert_eq!(texts(&window)[0], shown);
    let decided = window.decisions.iter().find_map(|(action, _)| match action {
        Action::Summarize { end, text, tokens, by_model } => Some((*end, text.as_str(), *tokens, *by_model)),
        _ => None,
    });
    let tokens = count_item(thread.counter, &Item::developer(shown));
    assert_eq!(decided, Some((start, "It was about reading &lt;/memory> files.", tokens, true)));
    // It stays during the epoch, and after a restart.
    thread.append(Item::user("next"));
    thread.restart();
    let next = thread.assemble();
    assert_eq!((&next.items[..window.items.len()], next.decisions.len()), (&window.items[..], 0));
}

#[test]
fn the_last_summary_is_part_of_the_next_one() {
    let mut thread = Thread::new(4000).overflow(Overflow::Summarize);
    conversation(&mut thread, 40);
    let (first, _) = thread.assemble_with_summary("first");
    conversation(&mut thread, 40);
    let (second, window) = thread.assemble_with_summary("first and second");
    assert_eq!((second.start, second.previous.as_deref()), (first.end, Some("first")));
    let summaries = texts(&window).iter().filter(|text| text.starts_with("What happened before")).count();
    assert_eq!((summaries, texts(&window)[0].as_str()), (1, "What happened before, in short:\nfirst and second"));
}

#[test]
fn a_summary_is_always_smaller_than_what_it_replaces() {
    let mut thread = Thread::new(1000).overflow(Overflow::Summarize);
    thread.append(Item::user("x".repeat(1200)));
    thread.append(Item::assistant("short")).append(Item::assistant("x".repeat(3000)));
    thread.append(Item::user("next"));
    let (request, window) = thread.assemble_with_summary(&"too long ".repeat(1000));
    let summary = count_item(thread.counter, &window.items[0]);
    assert!(summary < thread.log.range_tokens(0..request.end) && summary <= 125, "{summary}");
    assert!(texts(&window)[0].contains(" bytes cut …]"));
}

#[test]
fn where_a_summary_could_not_be_smaller_there_is_none() {
    let mut thread = Thread::new(1000).overflow(Overflow::Summarize);
    thread.append(Item::assistant("a")).append(Item::user("y".repeat(5000)));
    let window = thread.assemble();
    assert_eq!(actions(&window), ["epoch", "shorten"]);
}

/// Nothing happened since the last window: the next one must be the same, without a decision.
#[track_caller]
fn check_settled(thread: &mut Thread, window: &Window) {
    let next = thread.assemble();
    assert_eq!((texts(&next), next.decisions), (texts(window), vec![]));
}

#[test]
fn an_old_user_message_that_was_kept_can_be_dropped_alone() {
    let mut thread = Thread::new(1000).overflow(Overflow::SlidingWindow);
    thread.policy.window_size = Some(1000);
    thread.append(Item::user("u".repeat(1480)));
    while evicted_before(&thread.assemble()).is_none() {
        thread.append(Item::assistant("x".repeat(20)));
    }
    thread.append(Item::user("next"));
    while thread.assemble().usage.history <= 900 {
        thread.append(Item::assistant("x"));
    }
    thread.policy.token_budget = 900;
    let window = thread.assemble();
    assert!(!texts(&window)[0].starts_with("uu") && window.usage.history > 500, "{:?}", window.usage);
    check_settled(&mut thread, &window);
}

#[test]
fn a_summary_without_room_is_dropped_for_good() {
    let mut thread = Thread::new(4000).overflow(Overflow::Summarize);
    conversation(&mut thread, 40);
    thread.assemble_with_summary(&"a long story ".repeat(100));
    thread.policy.overflow = Overflow::Truncate;
    thread.policy.token_budget = 300;
    let window = thread.assemble();
    assert!(!texts(&window)[0].contains("a long story"), "{:?}", texts(&window)[0]);
    check_settled(&mut thread, &window);
}

#[test]
fn what_is_held_does_not_grow_with_the_log() {
    let mut thread = Thread::new(8000);
    for _ in 0..50 {
        conversation(&mut thread, 20);
        thread.assemble();
    }
    let held = serde_json::to_string(&thread.projection.epoch()).unwrap();
    assert!(held.len() < 4000, "{} bytes after {} items", held.len(), thread.log.len());
}
