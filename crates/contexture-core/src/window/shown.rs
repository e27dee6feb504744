//! History as it would be shown if there were room for all of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::input::WindowInput;
use super::shorten::{Cut, cut_item};
use crate::history::{History, Part};
use crate::item::{Item, Role};
use crate::log::Entry;
use crate::tokens::{TokenCounter, count_item};

/// One item of history as it will be shown.
#[derive(Clone, Debug)]
pub(super) struct ProjectedItem {
    pub(super) item: Arc<Item>,
    pub(super) tokens: u64,
    /// Its position in the log; `None` for an item of a layer.
    pub(super) position: Option<usize>,
}

impl ProjectedItem {
    /// Whether it is a system message of the log, which is kept when the items around it are dropped.
    pub(super) fn is_system(&self) -> bool {
        self.position.is_some() && self.item.is_message_of(Role::System)
    }
}

/// A cache of the last window. Results do not depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownCache {
    /// Shortened items of the log, by position.
    shortened: HashMap<usize, (Cut, Arc<Item>)>,
    counts: ItemTokens,
}

/// Token counts of items that are not in the log, by address. The items are kept alive, so that an address is not
/// reused.
#[derive(Clone, Debug, Default)]
struct ItemTokens {
    /// Those of the last window.
    last: HashMap<usize, (Arc<Item>, u64)>,
    /// Those of the window that is being built.
    current: HashMap<usize, (Arc<Item>, u64)>,
}

impl ItemTokens {
    fn of(&mut self, counter: &dyn TokenCounter, item: &Arc<Item>) -> u64 {
        let address = Arc::as_ptr(item).addr();
        let last = &mut self.last;
        let count = || last.remove(&address).unwrap_or_else(|| (item.clone(), count_item(counter, item)));
        self.current.entry(address).or_insert_with(count).1
    }

    /// The window is complete: removes the counts of items that it did not show.
    fn next_window(&mut self) {
        self.last = std::mem::take(&mut self.current);
    }
}

impl ShownCache {
    /// History as it would be shown: with shortened items, without orphans, with the newest user message.
    pub(super) fn collect(&mut self, input: &WindowInput<'_>, cuts: &BTreeMap<usize, Cut>) -> Vec<ProjectedItem> {
        let mut shown = Vec::with_capacity(input.history.len() + 1);
        let is_plain = is_plain(input.history);
        for part in input.history.parts() {
            match part {
                Part::Log(range) => {
                    let log = input.history.log();
                    let mut cuts = cuts.range(range.clone()).peekable();
                    for (position, entry) in log.range(range.clone()) {
                        let cut = cuts.next_if(|(cut, _)| **cut == position).map(|(_, cut)| *cut);
                        if !is_plain || !log.is_orphan_since(position, entry, range.start) {
                            shown.push(self.logged(input, position, entry, cut));
                        }
                    }
                }
                Part::Item(item) => {
                    let tokens = self.counts.of(input.counter, item);
                    shown.push(ProjectedItem { item: item.clone(), tokens, position: None });
                }
            }
        }
        self.ensure_newest_user(input, cuts, &mut shown);
        self.counts.next_window();
        if is_plain { shown } else { without_orphans(shown) }
    }

    /// One item of the log, shortened if that was decided.
    fn logged(&mut self, input: &WindowInput<'_>, position: usize, entry: &Entry, cut: Option<Cut>) -> ProjectedItem {
        let Some(cut) = cut else {
            return ProjectedItem { item: entry.item.clone(), tokens: entry.tokens, position: Some(position) };
        };
        let shorten = || (cut, Arc::new(cut_item(&entry.item, cut)));
        let (known_cut, item) = self.shortened.entry(position).or_insert_with(shorten);
        if *known_cut != cut {
            (*known_cut, *item) = shorten();
        }
        ProjectedItem { tokens: self.counts.of(input.counter, item), item: item.clone(), position: Some(position) }
    }

    /// Puts the newest user message back in its place if a layer left it out.
    ///
    /// A layer may rewrite it: then the layer's item is the last user message.
    fn ensure_newest_user(
        &mut self,
        input: &WindowInput<'_>,
        cuts: &BTreeMap<usize, Cut>,
        shown: &mut Vec<ProjectedItem>,
    ) {
        let log = input.history.log();
        if newest_user(input.history, shown).is_some() {
            return;
        }
        let Some((position, entry)) = log.newest_user().and_then(|user| Some((user, log.get(user)?))) else { return };
        let user = self.logged(input, position, entry, cuts.get(&position).copied());
        let after = shown.iter().position(|shown| shown.position.is_some_and(|other| other > position));
        shown.insert(after.unwrap_or(shown.len()), user);
    }

    /// Removes items that are no longer shown shortened.
    pub(super) fn forget_all_but(&mut self, cuts: &BTreeMap<usize, Cut>) {
        self.shortened.retain(|position, _| cuts.contains_key(position));
    }
}

/// The index of the newest user message, or of the item that a layer shows instead.
pub(super) fn newest_user(history: &History, shown: &[ProjectedItem]) -> Option<usize> {
    let newest = history.log().newest_user()?;
    let itself = shown.iter().rposition(|shown| shown.position == Some(newest));
    itself.or_else(|| {
        let last = shown.iter().rposition(|shown| shown.item.is_message_of(Role::User))?;
        shown[last].position.is_none().then_some(last)
    })
}

/// Whether the pairs of calls and outputs in this history are those of the log: it ends with the log's end, and
/// nothing before that range is half of a pair.
fn is_plain(history: &History) -> bool {
    let Some((Part::Log(last), before)) = history.parts().split_last() else { return false };
    let whole = |part: &Part| match part {
        Part::Item(item) => !is_half(item),
        Part::Log(range) if range.len() == 1 => {
            history.log().get(range.start).is_none_or(|entry| !is_half(&entry.item))
        }
        Part::Log(range) => range.is_empty(),
    };
    last.end == history.log().len() && before.iter().all(whole)
}

/// Removes calls without an output and outputs without a call.
fn without_orphans(shown: Vec<ProjectedItem>) -> Vec<ProjectedItem> {
    let partners = partners(&shown);
    let kept = shown.into_iter().zip(partners).filter(|(shown, partner)| partner.is_some() || !is_half(&shown.item));
    kept.map(|(shown, _)| shown).collect()
}

fn is_half(item: &Item) -> bool {
    matches!(item, Item::FunctionCall(_) | Item::FunctionCallOutput(_))
}

/// For each call the index of its output and vice versa, by the same rule as in the log: an output belongs to the newest
/// call of its id, and an older one never gets an output.
pub(super) fn partners(shown: &[ProjectedItem]) -> Vec<Option<usize>> {
    let mut partners = vec![None; shown.len()];
    let mut open: HashMap<&str, usize> = HashMap::new();
    for (index, shown) in shown.iter().enumerate() {
        match &*shown.item {
            Item::FunctionCall(call) => {
                open.insert(&call.call_id, index);
            }
            Item::FunctionCallOutput(output) => {
                let Some(call) = open.remove(&*output.call_id) else { continue };
                partners[index] = Some(call);
                partners[call] = Some(index);
            }
            _ => {}
        }
    }
    partners
}
