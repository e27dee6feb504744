//! Making history fit: what is shortened, what is dropped, in which order.

use std::collections::HashMap;
use std::sync::Arc;

use super::text::{Cut, fit_item};
use crate::item::{Item, Role};
use crate::tokens::TokenCounter;

/// One item of history as it will be shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) item: Arc<Item>,
    pub(crate) tokens: u64,
    /// Its position in the log; `None` for what a layer put there.
    pub(crate) position: Option<usize>,
    /// If it is shown shortened: the item itself.
    pub(crate) whole: Option<Arc<Item>>,
}

/// What must give way, and to what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fitted {
    /// What is shown now.
    pub(crate) shown: Vec<Shown>,
    /// The first position of the log that is still shown, if that moved.
    pub(crate) start: Option<usize>,
    /// Log items that are shown shortened from now on.
    pub(crate) shortened: Vec<(usize, Cut)>,
}

/// Limits of one fitting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// What history may use.
    pub(crate) budget: u64,
    /// What it is brought down to once something must go, so that the next eviction is far away.
    pub(crate) target: u64,
    /// How many items of the log are kept once something must go.
    pub(crate) keep_items: usize,
    /// Whether large old items are shortened before any is dropped.
    pub(crate) shorten_first: bool,
}

/// An item can be shortened to this many tokens, but not further.
const LEAST_ITEM_TOKENS: u64 = 24;

/// Leaves out calls without an output and outputs without a call.
pub(crate) fn without_orphans(shown: Vec<Shown>) -> Vec<Shown> {
    let partners = partners(&shown);
    if shown.iter().zip(&partners).all(|(shown, partner)| partner.is_some() || !is_half(&shown.item)) {
        return shown;
    }
    let kept = shown.into_iter().zip(partners).filter(|(shown, partner)| partner.is_some() || !is_half(&shown.item));
    kept.map(|(shown, _)| shown).collect()
}

fn is_half(item: &Item) -> bool {
    matches!(item, Item::FunctionCall(_) | Item::FunctionCallOutput(_))
}

/// For each call the index of its output and the reverse, in the order in which they come.
fn partners(shown: &[Shown]) -> Vec<Option<usize>> {
    let mut partners = vec![None; shown.len()];
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, shown) in shown.iter().enumerate() {
        match &*shown.item {
            Item::FunctionCall(call) => open.entry(&call.call_id).or_default().push(index),
            Item::FunctionCallOutput(output) => {
                let Some(calls) = open.get_mut(&*output.call_id).filter(|calls| !calls.is_empty()) else { continue };
                let call = calls.remove(0);
                partners[index] = Some(call);
                partners[call] = Some(index);
            }
            _ => {}
        }
    }
    partners
}

/// Brings history down to its limits. `shown` has no orphans and is over the limits.
///
/// The newest user message always stays, shortened if it must be. Everything else goes in groups that no pair of
/// call and output crosses, oldest first; what layers put there goes last.
pub(crate) fn fit(counter: &dyn TokenCounter, mut shown: Vec<Shown>, limits: Limits) -> Fitted {
    let mut fitted = Fitted::default();
    let user = shown.iter().rposition(|shown| shown.item.is_message_of(Role::User));
    if limits.shorten_first {
        shorten_large(counter, &mut shown[..user.unwrap_or(0)], limits, &mut fitted.shortened);
    }
    let user_tokens = user.map_or(0, |user| keep_user(counter, &mut shown, user, limits.budget, &mut fitted.shortened));
    let goal = limits.target.max(user_tokens + (limits.budget - user_tokens) / 2).min(limits.budget);
    let groups = groups(&shown, user);
    let mut keep = vec![false; shown.len()];
    if let Some(user) = user {
        keep[user] = true;
    }
    let made_tokens = keep_made(&shown, &groups, limits.budget - user_tokens, goal - user_tokens, &mut keep);
    let room = Room { goal: goal - user_tokens - made_tokens, hard: limits.budget - user_tokens - made_tokens };
    keep_logged(counter, &mut shown, &groups, room, limits.keep_items, &mut keep, &mut fitted.shortened);

    let first_kept =
        (0..shown.len()).find(|index| keep[*index] && Some(*index) != user && shown[*index].position.is_some());
    let last_position = shown.iter().filter_map(|shown| shown.position).max();
    fitted.start = match first_kept {
        Some(index) => shown[index].position,
        None => last_position.map(|position| position + 1),
    };
    let kept = shown.into_iter().zip(keep).filter(|(_, keep)| *keep);
    fitted.shown = kept.map(|(shown, _)| shown).collect();
    fitted
}

/// Shortens large old items, oldest first, until the target is met.
fn shorten_large(counter: &dyn TokenCounter, old: &mut [Shown], limits: Limits, shortened: &mut Vec<(usize, Cut)>) {
    let large = (limits.budget / 16).max(256);
    let mut total: u64 = old.iter().map(|shown| shown.tokens).sum();
    for shown in old.iter_mut() {
        if total <= limits.target {
            return;
        }
        if shown.tokens <= large || shown.position.is_none() {
            continue;
        }
        let before = shown.tokens;
        shorten(counter, shown, large / 4, shortened);
        total -= before - shown.tokens;
    }
}

/// Shortens one item and notes it; leaves it alone if it cannot be.
fn shorten(counter: &dyn TokenCounter, shown: &mut Shown, tokens: u64, shortened: &mut Vec<(usize, Cut)>) {
    // Cuts are always of the item as it stands in the log, never of an earlier cut.
    let whole = shown.whole.clone().unwrap_or_else(|| shown.item.clone());
    let Some((cut, item, used)) = fit_item(counter, &whole, tokens) else { return };
    if used >= shown.tokens {
        return;
    }
    *shown = Shown { item: Arc::new(item), tokens: used, position: shown.position, whole: Some(whole) };
    if let Some(position) = shown.position {
        shortened.retain(|(other, _)| *other != position);
        shortened.push((position, cut));
    }
}

/// Keeps the newest user message within half the budget, or more if there is little else.
fn keep_user(
    counter: &dyn TokenCounter,
    shown: &mut [Shown],
    user: usize,
    budget: u64,
    shortened: &mut Vec<(usize, Cut)>,
) -> u64 {
    let others: u64 = shown.iter().map(|shown| shown.tokens).sum::<u64>() - shown[user].tokens;
    let room = budget - others.min(budget / 2);
    if shown[user].tokens > room {
        shorten(counter, &mut shown[user], room, shortened);
    }
    shown[user].tokens.min(budget)
}

/// Runs of items that no pair crosses, without the newest user message.
fn groups(shown: &[Shown], user: Option<usize>) -> Vec<Vec<usize>> {
    let partners = partners(shown);
    let mut groups = Vec::new();
    let mut group = Vec::new();
    let mut reach = 0;
    for index in 0..shown.len() {
        reach = reach.max(partners[index].unwrap_or(index)).max(index);
        if Some(index) != user {
            group.push(index);
        }
        if reach == index && !group.is_empty() {
            groups.push(std::mem::take(&mut group));
        }
    }
    groups
}

/// Keeps what layers put there, newest first, as far as there is room, and says what it takes.
fn keep_made(shown: &[Shown], groups: &[Vec<usize>], hard: u64, goal: u64, keep: &mut [bool]) -> u64 {
    let mut used = 0;
    for group in groups.iter().rev().filter(|group| group.iter().all(|index| shown[*index].position.is_none())) {
        let tokens: u64 = group.iter().map(|index| shown[*index].tokens).sum();
        if used + tokens > hard.min(goal) {
            break;
        }
        used += tokens;
        group.iter().for_each(|index| keep[*index] = true);
    }
    used
}

/// What is left for the log: the goal, and the limit for a newest group that is larger than the goal.
#[derive(Clone, Copy)]
struct Room {
    goal: u64,
    hard: u64,
}

/// Keeps groups of the log, newest first, until the goal is met; the newest one is shortened if it must be.
fn keep_logged(
    counter: &dyn TokenCounter,
    shown: &mut [Shown],
    groups: &[Vec<usize>],
    room: Room,
    keep_items: usize,
    keep: &mut [bool],
    shortened: &mut Vec<(usize, Cut)>,
) {
    let (mut used, mut items) = (0, 0);
    let logged = groups.iter().rev().filter(|group| group.iter().any(|index| shown[*index].position.is_some()));
    for group in logged.collect::<Vec<_>>() {
        let tokens: u64 = group.iter().map(|index| shown[*index].tokens).sum();
        let fits = used + tokens <= room.goal && items + group.len() <= keep_items;
        let newest = items == 0;
        if !fits && !(newest && (tokens <= room.hard || shrink_group(counter, shown, group, room.hard, shortened))) {
            return;
        }
        used += group.iter().map(|index| shown[*index].tokens).sum::<u64>();
        items += group.len();
        group.iter().for_each(|index| keep[*index] = true);
        if !fits {
            return;
        }
    }
}

/// Shortens the members of a group to a common length so that they fit; `false` if they cannot.
fn shrink_group(
    counter: &dyn TokenCounter,
    shown: &mut [Shown],
    group: &[usize],
    room: u64,
    shortened: &mut Vec<(usize, Cut)>,
) -> bool {
    if group.iter().map(|index| shown[*index].tokens.min(LEAST_ITEM_TOKENS)).sum::<u64>() > room {
        return false;
    }
    let total_at = |cap: u64| group.iter().map(|index| shown[*index].tokens.min(cap)).sum::<u64>();
    let (mut low, mut high) = (LEAST_ITEM_TOKENS, room);
    while low < high {
        let middle = high - (high - low) / 2;
        if total_at(middle) <= room { low = middle } else { high = middle - 1 }
    }
    let before = shortened.clone();
    let original: Vec<Shown> = group.iter().map(|index| shown[*index].clone()).collect();
    for index in group {
        if shown[*index].tokens > low {
            shorten(counter, &mut shown[*index], low, shortened);
        }
    }
    if group.iter().map(|index| shown[*index].tokens).sum::<u64>() <= room {
        return true;
    }
    // Something in it cannot be shortened; the group goes as a whole.
    *shortened = before;
    for (index, original) in group.iter().zip(original) {
        shown[*index] = original;
    }
    false
}
