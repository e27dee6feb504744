//! Epochs: why they begin, what is held during them, and how changes are shown.

use contexture_core::decision::EpochReason::{self, *};
use contexture_core::layer::Placement::{Anchor, Auto, Live};
use contexture_core::usage::{Band, Served};
use contexture_core::window::{Overflow, Window};
use contexture_core::{Error, Item};

use super::{Thread, epoch_reason, layer_usage, texts};

/// A thread with one anchored layer after its first request.
fn begun() -> Thread {
    let mut thread = Thread::new(10_000);
    thread.layer("facts", Anchor, "the sky is blue");
    assert_eq!(epoch_reason(&thread.turn("hello")), Some(ColdStart));
    thread
}

#[track_caller]
fn check_reason(thread: &mut Thread, expected: Option<EpochReason>) -> Window {
    let number = thread.projection.epoch().map_or(0, |epoch| epoch.number);
    let window = thread.assemble();
    assert_eq!(epoch_reason(&window), expected);
    assert_eq!(window.usage.epoch, number + u64::from(expected.is_some_and(|reason| reason != ColdStart)));
    window
}

#[test]
fn an_epoch_continues_when_nothing_happens() {
    let mut thread = begun();
    let before = thread.assemble();
    thread.append(Item::assistant("hi"));
    let window = check_reason(&mut thread, None);
    assert_eq!(window.items[..before.items.len()], before.items);
    assert_eq!(window.usage.kept_items, 2);
    assert_eq!(window.decisions, []);
}

#[test]
fn a_changed_system_prompt_begins_an_epoch() {
    let mut thread = begun();
    thread.system_fingerprint = 1;
    let window = check_reason(&mut thread, Some(SystemChanged));
    assert_eq!(window.usage.kept_tokens, 0);
    check_reason(&mut thread, None);
}

#[test]
fn another_counter_begins_an_epoch_since_pins_are_counted_anew() {
    let mut thread = begun();
    thread.counter = &super::Bytes;
    thread.layer("facts", Anchor, "the sky is blue");
    check_reason(&mut thread, Some(SystemChanged));
}

#[test]
fn a_lost_cache_begins_an_epoch_for_the_reason_that_was_given() {
    for reason in [ProviderMiss, CacheExpired, LogMerged] {
        let mut thread = begun();
        thread.cache_lost = Some(reason);
        check_reason(&mut thread, Some(reason));
        thread.cache_lost = None;
        check_reason(&mut thread, None);
    }
}

#[test]
fn corrections_of_more_than_a_tenth_of_the_room_begin_an_epoch() {
    let mut thread = begun();
    thread.policy.token_budget = 1000;
    thread.layer("facts", Anchor, &"red ".repeat(60));
    check_reason(&mut thread, None);
    thread.blocks[0].allocated = 500;
    thread.blocks[0].items = vec![std::sync::Arc::new(Item::developer("red ".repeat(120)))].into();
    let window = check_reason(&mut thread, Some(UpdatesOutgrew));
    assert_eq!((window.usage.updates, window.items.len()), (0, 2));
}

#[test]
fn a_pin_above_its_budget_or_without_its_layer_begins_an_epoch() {
    let mut thread = begun();
    thread.layer("facts", Anchor, "short");
    thread.blocks[0].allocated = 12;
    check_reason(&mut thread, Some(AnchorsOutgrew));
    thread.blocks.clear();
    let window = check_reason(&mut thread, Some(AnchorsOutgrew));
    assert_eq!(texts(&window), ["hello"]);
    check_reason(&mut thread, None);
}

#[test]
fn anchors_that_leave_no_room_for_the_newest_user_message_begin_an_epoch_without_the_last_of_them() {
    let mut thread = Thread::new(400);
    for layer in ["a", "b", "c"] {
        thread.layer(layer, Anchor, &"w".repeat(360));
        thread.blocks.last_mut().unwrap().allocated = 130;
    }
    thread.turn("hi");
    thread.append(Item::user("x".repeat(800)));
    let window = check_reason(&mut thread, Some(AnchorsOutgrew));
    assert_eq!((layer_usage(&window, "a").used > 0, layer_usage(&window, "c").used), (true, 0));
    // It stays left out until an epoch begins.
    thread.append(Item::user("short"));
    let window = check_reason(&mut thread, None);
    assert_eq!(layer_usage(&window, "c").used, 0);
    thread.cache_lost = Some(CacheExpired);
    let window = check_reason(&mut thread, Some(CacheExpired));
    assert!(layer_usage(&window, "c").used > 0);
}

#[test]
fn history_that_is_folded_begins_an_epoch_with_fresh_anchors() {
    let mut thread = begun();
    thread.layer("facts", Anchor, "the sky is red");
    for _ in 0..60 {
        thread.append(Item::assistant("x".repeat(1000)));
    }
    let window = check_reason(&mut thread, Some(HistoryFolded));
    assert!(texts(&window)[0].contains("red"));
    assert_eq!(window.usage.updates, 0);
    check_reason(&mut thread, None);
}

#[test]
fn history_that_has_room_once_corrections_are_gone_is_not_cut() {
    let mut thread = Thread::new(1000);
    thread.layer("facts", Anchor, &"blue ".repeat(60));
    thread.turn("hello");
    thread.layer("facts", Anchor, &"red ".repeat(60));
    while thread.log.total_tokens() < 860 {
        thread.append(Item::assistant("x".repeat(40)));
    }
    let window = check_reason(&mut thread, Some(UpdatesOutgrew));
    assert_eq!(window.items.len(), 1 + thread.log.len());
}

/// One layer pinned as the first text and then as the second.
#[track_caller]
fn check_correction(first: &str, then: &str, expected: &str, band: Band, served: Served) {
    let mut thread = Thread::new(10_000);
    thread.layer("facts", Anchor, first).layer("other", Anchor, "still");
    let pinned = thread.turn("hello").usage.layers[0].used;
    thread.layer("facts", Anchor, then);
    let window = check_reason(&mut thread, None);
    let updates = texts(&window).pop().unwrap();
    assert_eq!(
        updates,
        format!(
            "<updates>\nThese blocks changed since they were shown. This is their current text.\n{expected}\n</updates>"
        )
    );
    let usage = layer_usage(&window, "facts");
    let correction = thread.counter.count(&format!("{expected}\n"));
    assert_eq!((usage.band, usage.served, usage.used), (band, served, pinned + correction));
    assert_eq!(usage.yielded, usage.allocated - usage.used);
    let other = layer_usage(&window, "other");
    assert_eq!((other.band, other.served), (Band::Anchor, Served::Pinned));
}

#[test]
fn updates_replace_retract_and_add() {
    let replaced = "<replace layer=\"facts\">\nnew\n</replace>";
    check_correction("old", "new", replaced, Band::Anchor, Served::Pinned);
    check_correction("old", "", "<retract layer=\"facts\"/>", Band::Anchor, Served::Pinned);
    check_correction("", "new", "<add layer=\"facts\">\nnew\n</add>", Band::Updates, Served::Fresh);
}

#[test]
fn a_layer_that_renders_a_delta_is_corrected_by_it() {
    let mut thread = begun();
    thread.delta = |pinned, current| Some(format!("{} to {} item, </change>", pinned.len(), current.len()));
    thread.layer("facts", Anchor, "the sky is red");
    let window = check_reason(&mut thread, None);
    let updates = texts(&window).pop().unwrap();
    assert!(updates.contains("<change layer=\"facts\">\n1 to 1 item, &lt;/change>\n</change>\n"), "{updates}");
}

#[test]
fn a_block_that_is_again_what_was_pinned_needs_no_correction() {
    let mut thread = begun();
    thread.layer("facts", Anchor, "the sky is red");
    assert!(check_reason(&mut thread, None).usage.updates > 0);
    thread.layer("facts", Anchor, "the sky is blue");
    assert_eq!(check_reason(&mut thread, None).usage.updates, 0);
}

#[test]
fn updates_name_only_what_differs_now() {
    let mut thread = begun();
    thread.layer("more", Anchor, "one");
    thread.cache_lost = Some(CacheExpired);
    thread.assemble();
    thread.cache_lost = None;
    thread.layer("facts", Anchor, "the sky is red").layer("more", Anchor, "two");
    assert!(texts(&thread.assemble()).pop().unwrap().contains("two"));
    thread.layer("more", Anchor, "one");
    let updates = texts(&thread.assemble()).pop().unwrap();
    assert!(updates.contains("red") && !updates.contains("two"), "{updates}");
}

#[test]
fn a_layer_added_within_an_epoch_is_shown_in_the_updates() {
    let mut thread = begun();
    thread.layer("late", Anchor, "here I am").layer("clock", Live, "noon");
    let window = check_reason(&mut thread, None);
    let texts = texts(&window);
    assert!(texts[2].contains("noon") && texts[3].contains("<add layer=\"late\">\nhere I am\n</add>"), "{texts:?}");
    assert_eq!(layer_usage(&window, "late").band, Band::Updates);
    assert_eq!(layer_usage(&window, "clock").band, Band::Live);
}

#[test]
fn bands_are_in_order_with_breakpoints_at_their_ends() {
    let mut thread = Thread::new(10_000);
    thread.layer("facts", Anchor, "old").layer("clock", Live, "one");
    let window = thread.turn("hello");
    assert_eq!((texts(&window)[1].as_str(), window.breakpoints), ("hello", vec![0, 1, 2]));
    thread.append(Item::assistant("hi")).append(Item::user("more"));
    thread.layer("facts", Anchor, "new").layer("clock", Live, "two");
    thread.guidance = vec!["be brief".into(), "no <updates>".into()];
    let window = thread.assemble();
    let texts = texts(&window);
    assert!(texts[0].contains("old") && texts[4].contains("two") && texts[5].contains("<updates>"), "{texts:?}");
    assert_eq!(texts[1..4], ["hello", "hi", "more"]);
    assert_eq!(texts[6..], ["Guidance for your next response:\nbe brief\nno &lt;updates>"]);
    assert_eq!(window.breakpoints, [0, 1, 2, 4]);
    let clock = layer_usage(&window, "clock");
    assert_eq!((clock.band, clock.served, clock.used), (Band::Live, Served::Fresh, thread.blocks[1].tokens));
}

#[test]
fn an_auto_layer_moves_by_its_churn_and_only_when_an_epoch_begins() {
    let mut thread = Thread::new(10_000);
    let band = |window: &Window| layer_usage(window, "auto").band;
    for turn in 0..6 {
        thread.layer("auto", Auto, &format!("turn {turn}"));
        assert_eq!(band(&thread.turn("and now?")), Band::Anchor, "turn {turn}");
    }
    thread.cache_lost = Some(CacheExpired);
    assert_eq!(band(&thread.turn("and now?")), Band::Live);
    thread.cache_lost = None;
    for turn in 0..30 {
        assert_eq!(band(&thread.turn("and now?")), Band::Live, "turn {turn}");
    }
    thread.cache_lost = Some(CacheExpired);
    assert_eq!(band(&thread.turn("and now?")), Band::Anchor, "it has calmed down");
}

#[test]
fn an_auto_layer_that_rarely_changes_stays_anchored() {
    let mut thread = Thread::new(10_000);
    for turn in 0..12 {
        thread.layer("auto", Auto, &format!("turn {}", turn / 3));
        thread.turn("and now?");
    }
    thread.cache_lost = Some(CacheExpired);
    assert_eq!(layer_usage(&thread.turn("and now?"), "auto").band, Band::Anchor);
}

#[test]
fn what_is_held_survives_a_restart_in_the_middle_of_an_epoch() {
    let mut thread = Thread::new(2000).overflow(Overflow::Truncate);
    thread.layer("facts", Anchor, "old");
    for n in 0..40 {
        thread.append(Item::user(format!("question {n}")));
        thread.append(Item::assistant("x".repeat(if n % 10 == 0 { 2400 } else { 100 })));
    }
    assert_eq!(epoch_reason(&thread.assemble()), Some(ColdStart));
    thread.layer("facts", Anchor, "new");
    let before = thread.assemble();
    thread.restart();
    let after = thread.assemble();
    assert_eq!((&after.items, &after.decisions), (&before.items, &before.decisions));
}

#[test]
fn too_small_a_budget_is_refused_by_the_field_that_takes_too_much() {
    let check = |budget: u64, reserve: u64, system: u64, tools: u64, field: &str, left: u64| {
        let mut thread = Thread::new(budget);
        thread.policy.response_reserve = reserve;
        (thread.system_tokens, thread.tools_tokens) = (system, tools);
        let history = thread.projection.history(&thread.log);
        match thread.try_assemble(&history, None) {
            Err(Error::NoRoom { field: refused, available, needed: 96, .. }) => {
                assert_eq!((refused, available), (field, left))
            }
            other => panic!("{other:?}"),
        }
    };
    check(95, 0, 0, 0, "token_budget", 95);
    check(1000, 905, 0, 0, "response_reserve", 95);
    check(1000, 800, 105, 0, "system", 95);
    check(1000, 800, 104, 1, "tools", 95);
    let mut thread = Thread::new(2000);
    thread.tools_tokens = 4056;
    let history = thread.projection.history(&thread.log);
    let error = thread.try_assemble(&history, None).unwrap_err().to_string();
    let expected = "`tools` is 4056 tokens, which leaves 0 for the window, and at least 96 are needed";
    assert_eq!(error, expected);
    check(1000, u64::MAX, u64::MAX, u64::MAX, "response_reserve", 0);
    let mut thread = Thread::new(1000);
    (thread.system_tokens, thread.tools_tokens) = (500, 404);
    assert_eq!(texts(&thread.turn(&"x".repeat(2000))).len(), 1);
}
