//! `history-window`: shows only the newest items of the past.
//!
//! | | |
//! | --- | --- |
//! | slot | 275 |
//! | scope | execution |
//! | budget | none: it shows nothing of its own |
//! | hooks | `project_history` |
//!
//! The plainest way to bound the past: at most so many items of it are shown. A call and its output are shown both or not
//! at all, and so are a thought and what the model said or called right after it. There is always a user message: if
//! the newest one is older than the window, it is shown before it.
//!
//! The window does not slide with every item, since each step would change the prefix that the provider has cached. It
//! moves by half of its length at a time: of at most 200 items, between 100 and 200 are shown. A single exchange that
//! is longer than the window is shown whole, from its user message on.
//!
//! What is left out is not summarised and not gone: the log has it. An agent that works on files is better served by
//! `file-history`. Two layers that say what of the past is shown would undo each other, so an engine with this layer and
//! one that folds is refused when it is built, and so is the policy `sliding_window` beside it. It has no state, so
//! spawning, clearing and restarting change nothing.
//!
//! ```
//! use contexture::layers::{FileHistory, HistoryWindow};
//! use contexture::prelude::*;
//!
//! let engine = contexture::in_memory(memory((HistoryWindow::new(200),))).build();
//! assert!(engine.is_ok());
//! let both = contexture::in_memory(memory((FileHistory::default(), HistoryWindow::new(200)))).build();
//! assert!(both.is_err(), "the fold would be cut again");
//! ```

use std::collections::HashMap;

use contexture_core::history::{History, Part};
use contexture_core::item::{Item, Role};
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot};

/// The id of the layer.
pub const ID: &str = "history-window";
/// The default limit of items; [`HistoryWindow::new`] sets another one.
pub const MAX_ITEMS: usize = 200;

const SLOT: Slot = Slot(275);

/// The layer `history-window`: see [the module](self).
#[derive(Clone, Debug)]
pub struct HistoryWindow {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    max_items: usize,
}

impl HistoryWindow {
    /// Creates the layer with a limit of items, at least 2. With less, building an engine fails.
    pub fn new(max_items: usize) -> Self {
        Self { id: None, max_items }
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// The part of the history that is shown.
    fn shown(&self, history: History) -> History {
        let len = history.len();
        if len <= self.max_items {
            return history;
        }
        let step = self.max_items / 2;
        let start = (len - self.max_items).div_ceil(step) * step;
        let newest = history.clone().keep_last(len - start);
        let skipped = first_whole(&newest, is_thought_before(&history, start));
        let kept = match len - start - skipped {
            // Nothing in it can be shown alone, so the exchange it belongs to is shown.
            0 => return since_newest_user(history),
            kept => newest.keep_last(kept),
        };
        with_user_message(kept)
    }
}

/// Whether the item before an index is reasoning, which belongs to the item after it.
fn is_thought_before(history: &History, index: usize) -> bool {
    let until = history.clone().keep_last(history.len() - index + 1);
    until.iter().next().is_some_and(|projected| matches!(&**projected.item, Item::Reasoning(_)))
}

/// How many leading items to remove, so that every call has its output, every output its call, and every model item the
/// reasoning before it.
fn first_whole(history: &History, mut after_thought: bool) -> usize {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut first = 0;
    for (index, projected) in history.iter().enumerate() {
        let item = &**projected.item;
        if after_thought && first == index && item.is_of_model() {
            first = index + 1;
            continue;
        }
        after_thought = false;
        match item {
            Item::FunctionCall(call) => drop(calls.insert(&call.call_id, index)),
            Item::FunctionCallOutput(output) if calls.get(&*output.call_id).is_none_or(|call| *call < first) => {
                first = index + 1;
            }
            _ => {}
        }
    }
    first
}

/// Everything from the newest user message, or from the earliest call whose output comes after it; everything if there
/// is no user message.
fn since_newest_user(history: History) -> History {
    let items: Vec<_> = history.iter().map(|projected| projected.item.clone()).collect();
    let Some(mut start) = items.iter().rposition(|item| item.is_message_of(Role::User)) else { return history };
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut calls_of_outputs = vec![None; items.len()];
    for (index, item) in items.iter().enumerate() {
        match &**item {
            Item::FunctionCall(call) => drop(calls.insert(&call.call_id, index)),
            Item::FunctionCallOutput(output) => calls_of_outputs[index] = calls.get(&*output.call_id).copied(),
            _ => {}
        }
    }
    // Going back to a call may include outputs of earlier calls.
    while let Some(earlier) = calls_of_outputs[start..].iter().flatten().min().copied().filter(|call| *call < start) {
        start = earlier;
    }
    history.keep_last(items.len() - start)
}

/// Adds the newest user message before it, if it has none.
fn with_user_message(history: History) -> History {
    if history.iter().any(|projected| projected.item.is_message_of(Role::User)) {
        return history;
    }
    let Some(user) = history.log().newest_user() else { return history };
    let parts = std::iter::once(Part::Log(user..user + 1)).chain(history.parts().iter().cloned()).collect();
    history.with_parts(parts)
}

impl MemoryLayer for HistoryWindow {
    type State = ();

    fn spec(&self) -> LayerSpec {
        let spec = LayerSpec::new(self.id(), SLOT, MemoryScope::Execution)
            .with_name("History window")
            .with_budget(BudgetConfig::Cap(0))
            .owning_history();
        match self.max_items {
            0 | 1 => spec.refused("max_items", format!("is {}; at least 2 items are shown", self.max_items)),
            _ => spec,
        }
    }

    async fn project_history(&self, params: ProjectHistoryParams<()>) -> HookResult<ProjectHistoryResult> {
        Ok(self.shown(params.history).into())
    }
}

impl Default for HistoryWindow {
    fn default() -> Self {
        Self::new(MAX_ITEMS)
    }
}

#[cfg(test)]
mod tests {
    use contexture_core::item::Reasoning;
    use contexture_core::log::ItemLog;
    use contexture_core::testing::layer_conformance;
    use proptest::prelude::*;

    use super::*;

    /// Builds a conversation from letters: `u`ser, `a`ssistant, `t`hought, `c`all, `C` for two calls at once, `o`utput
    /// of the oldest open call.
    fn log(letters: &str) -> ItemLog {
        let (mut log, mut open, mut calls) = (ItemLog::new(), std::collections::VecDeque::new(), 0);
        for letter in letters.chars() {
            let mut call = || {
                calls += 1;
                open.push_back(calls.to_string());
                Item::call(&calls.to_string(), "tool", "{}")
            };
            let items = match letter {
                'u' => vec![Item::user("hello")],
                't' => vec![Reasoning::new("hm", None).into()],
                'c' => vec![call()],
                'C' => vec![call(), call()],
                'o' => open.pop_front().map(|id| Item::output(&id, "")).into_iter().collect(),
                _ => vec![Item::assistant("hi")],
            };
            for item in items {
                log.append(item, 5);
            }
        }
        log
    }

    fn letters(history: &History) -> String {
        let letter = |item: &Item| match item {
            Item::Message(message) if message.role == Role::User => 'u',
            Item::Message(_) => 'a',
            Item::FunctionCall(_) => 'c',
            Item::FunctionCallOutput(_) => 'o',
            Item::Reasoning(_) => 't',
            Item::Opaque(_) => '?',
        };
        history.iter().map(|projected| letter(projected.item)).collect()
    }

    #[track_caller]
    fn check(max_items: usize, past: &str, expected: &str) {
        let shown = HistoryWindow::new(max_items).shown(History::of(&log(past)));
        assert_eq!(letters(&shown), expected, "{past}");
    }

    #[tokio::test]
    async fn conforms() {
        layer_conformance(HistoryWindow::default).await;
        layer_conformance(|| HistoryWindow::new(2)).await;
    }

    #[test]
    fn the_newest_items_are_shown_and_nothing_is_split() {
        check(4, "uaua", "uaua");
        check(4, "uauau", "uau");
        check(4, "uauaua", "uaua");
        check(4, "ucoaua", "aua");
        check(4, "ucoaucoa", "ucoa");
        check(4, "uaaaaaaa", "uaaaa");
        check(4, "uaCooaa", "uaa");
        check(4, "uatcoa", "utcoa");
        check(4, "uuatcoa", "ua");
        check(4, "uCCCCoooooooo", "uccccccccoooooooo");
        check(2, "tttttt", "tttttt");
    }

    #[test]
    fn a_window_without_room_is_refused() {
        for max_items in [0, 1] {
            let layers = contexture_core::memory((HistoryWindow::new(max_items),));
            let error = contexture_core::testing::engine(layers).build().err().map(|error| error.to_string());
            let expected = format!("layer `history-window`: `max_items` is {max_items}; at least 2 items are shown");
            assert_eq!(error, Some(expected));
        }
    }

    #[test]
    fn it_moves_in_large_steps() {
        let mut starts = Vec::new();
        for len in 1..=400 {
            let shown = HistoryWindow::new(100).shown(History::of(&log(&"ua".repeat(len / 2))));
            starts.push(shown.iter().next().and_then(|projected| projected.position));
        }
        starts.dedup();
        assert_eq!(starts.len(), 8, "{starts:?}");
    }

    proptest! {
        #[test]
        fn whatever_the_past_pairs_stay_whole_and_a_user_message_is_there(
            past in "u[uatcCo]{0,80}", max_items in 2_usize..20,
        ) {
            let shown = HistoryWindow::new(max_items).shown(History::of(&log(&past)));
            let items: Vec<&Item> = shown.iter().map(|projected| &**projected.item).collect();
            prop_assert!(items.iter().any(|item| item.is_message_of(Role::User)));
            for (index, item) in items.iter().enumerate() {
                if let Some(output) = item.as_output() {
                    let call = items[..index].iter().filter_map(|item| item.as_call()).find(|call| call.call_id == output.call_id);
                    prop_assert!(call.is_some());
                }
            }
        }
    }
}
