//! Makes history fit: which items are shortened or dropped, and in which order.

use std::sync::Arc;

use super::shorten::{Cut, fit_item};
use super::shown::{ProjectedItem, partners};
use crate::item::{Item, Role};
use crate::log::ItemLog;
use crate::tokens::TokenCounter;

/// The minimum size of a shortened item, in tokens.
const LEAST_ITEM_TOKENS: u64 = 24;
/// An item is large if it takes more than this share of the room, and more than [`LARGE_TOKENS`].
const LARGE_SHARE: u64 = 16;
const LARGE_TOKENS: u64 = 256;
/// The task may take this share of the room; if it is longer, it is shortened.
const TASK_SHARE: u64 = 8;
/// A large item is shortened to this share of the threshold.
const SHORTENED_PART: u64 = 4;

/// The sizes that history is reduced to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The target size, low enough that the next eviction is far away.
    pub(super) goal: WindowRoom,
    /// The largest size, if a single step or the newest user message is larger than the goal.
    pub(super) most: WindowRoom,
    /// The largest size of the newest user message.
    pub(super) room: u64,
    /// Whether large old items are shortened before any item is dropped.
    pub(super) shorten_first: bool,
    /// The position in the log of the task, which is kept.
    pub(super) task: Option<usize>,
}

/// A size in tokens and items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WindowRoom {
    pub(super) tokens: u64,
    pub(super) items: usize,
}

impl WindowRoom {
    fn has(self, used: WindowRoom) -> bool {
        used.tokens <= self.tokens && used.items <= self.items
    }

    fn and(self, other: WindowRoom) -> WindowRoom {
        WindowRoom { tokens: self.tokens + other.tokens, items: self.items + other.items }
    }

    fn without(self, used: WindowRoom) -> WindowRoom {
        WindowRoom { tokens: self.tokens.saturating_sub(used.tokens), items: self.items.saturating_sub(used.items) }
    }
}

/// What is still shown.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    pub(super) shown: Vec<ProjectedItem>,
    /// The first position of the log that is still shown, except for the newest user message.
    pub(super) start: usize,
    /// The position of the task, if it is kept as such.
    pub(super) task: Option<usize>,
    /// Log items that are newly shortened.
    pub(super) shortened: Vec<(usize, Cut)>,
}

/// History while it is cut.
struct Cutting<'a> {
    counter: &'a dyn TokenCounter,
    log: &'a ItemLog,
    shown: Vec<ProjectedItem>,
    user: Option<usize>,
    task: Option<usize>,
    /// The indices of system messages that are kept, in order.
    system: Vec<usize>,
    shortened: Vec<(usize, Cut)>,
}

/// Reduces history to its limits. `shown` has no orphans; `user` is the index of the newest user message.
///
/// That message is always kept, shortened if necessary, and so are system messages and the task. Items that layers put
/// before everything else are kept as long as the goal has room for them. Of the rest, the newest steps are kept: the dropped part is always the older one, so that
/// one position in the log describes it, and a call is dropped together with its output.
pub(super) fn fit(
    counter: &dyn TokenCounter,
    log: &ItemLog,
    shown: Vec<ProjectedItem>,
    user: Option<usize>,
    limits: Limits,
) -> Fitted {
    let system = (0..shown.len()).filter(|index| shown[*index].is_system() && Some(*index) != user).collect();
    let task = shown.iter().position(|shown| shown.position.is_some() && shown.position == limits.task);
    let task = task.filter(|task| Some(*task) != user);
    let mut cutting = Cutting { counter, log, shown, user, task, system, shortened: Vec::new() };
    if limits.shorten_first {
        cutting.shorten_large(limits);
    }
    let user_used = cutting.keep_user(limits).and(cutting.keep_task(limits));
    let system_used = cutting.keep_system(limits.most.without(user_used).tokens / 2);
    let goal_tokens =
        limits.goal.tokens.max(user_used.tokens + limits.most.tokens.saturating_sub(user_used.tokens) / 2);
    let goal = WindowRoom { tokens: goal_tokens, ..limits.goal }.without(user_used).without(system_used);
    let (preface, preface_end, preface_used) = cutting.keep_preface(goal);
    let most = limits.most.without(user_used).without(system_used).without(preface_used);
    let first = cutting.keep_newest(preface_end, goal.without(preface_used), most);
    cutting.finish(preface..preface_end, first)
}

impl Cutting<'_> {
    fn tokens(&self) -> u64 {
        self.shown.iter().map(|shown| shown.tokens).sum()
    }

    /// Shortens large items, oldest first, until the goal is met.
    ///
    /// The newest half of the goal is not shortened, nor are outputs that the model has not responded to yet.
    fn shorten_large(&mut self, limits: Limits) {
        let large = (limits.room / LARGE_SHARE).max(LARGE_TOKENS);
        let unanswered = self.shown.iter().rev().take_while(|shown| shown.item.as_output().is_some()).count().max(1);
        let mut old = self.shown.len().saturating_sub(unanswered);
        let mut recent: u64 = self.shown[old..].iter().map(|shown| shown.tokens).sum();
        while old > 0 && recent + self.shown[old - 1].tokens <= limits.goal.tokens / 2 {
            old -= 1;
            recent += self.shown[old].tokens;
        }
        let mut total = self.tokens();
        for index in 0..old {
            let ProjectedItem { tokens, position, .. } = self.shown[index];
            if total <= limits.goal.tokens {
                return;
            }
            if tokens > large && position.is_some() && !self.is_kept(index) {
                self.shorten(index, large / SHORTENED_PART);
                total -= tokens - self.shown[index].tokens;
            }
        }
    }

    /// Shortens one item and records it; does nothing if it cannot be shortened.
    fn shorten(&mut self, index: usize, tokens: u64) {
        let shown = &mut self.shown[index];
        // Always cut the item as it is in the log, never the result of an earlier cut.
        let whole = shown.position.and_then(|position| self.log.get(position)).map_or(&shown.item, |entry| &entry.item);
        let Some((cut, item, used)) = fit_item(self.counter, whole, tokens) else { return };
        if used >= shown.tokens {
            return;
        }
        *shown = ProjectedItem { item: Arc::new(item), tokens: used, position: shown.position };
        if let Some(position) = shown.position {
            self.shortened.retain(|(other, _)| *other != position);
            self.shortened.push((position, cut));
        }
    }

    /// Reduces the newest user message to half of the maximum, or more if there is little else.
    fn keep_user(&mut self, limits: Limits) -> WindowRoom {
        let Some(user) = self.user else { return WindowRoom { tokens: 0, items: 0 } };
        let most = limits.most.tokens;
        let others = self.tokens() - self.shown[user].tokens;
        let room = (most - others.min(most / 2)).max(LEAST_ITEM_TOKENS).min(limits.room);
        if self.shown[user].tokens > room {
            self.shorten(user, room);
        }
        WindowRoom { tokens: self.shown[user].tokens, items: 1 }
    }

    /// Reduces the task to its share.
    fn keep_task(&mut self, limits: Limits) -> WindowRoom {
        let Some(task) = self.task else { return WindowRoom { tokens: 0, items: 0 } };
        let room = limits.most.tokens / TASK_SHARE;
        if self.shown[task].tokens > room {
            self.shorten(task, room);
        }
        if self.shown[task].tokens > room {
            self.task = None;
            return WindowRoom { tokens: 0, items: 0 };
        }
        WindowRoom { tokens: self.shown[task].tokens, items: 1 }
    }

    /// Whether it is kept wherever it is: the newest user message, the task, or a system message.
    fn is_kept(&self, index: usize) -> bool {
        Some(index) == self.user || Some(index) == self.task || self.system.binary_search(&index).is_ok()
    }

    /// Reduces system messages to a size, all to a common length. If that is impossible, the oldest become items like
    /// any other. They do not count as items.
    fn keep_system(&mut self, tokens: u64) -> WindowRoom {
        let sizes =
            |cutting: &Self| cutting.system.iter().map(|index| cutting.shown[*index].tokens).collect::<Vec<_>>();
        let most = usize::try_from(tokens / LEAST_ITEM_TOKENS).unwrap_or(usize::MAX);
        if sizes(self).iter().sum::<u64>() > tokens {
            self.system.drain(..self.system.len().saturating_sub(most));
            let length = common_length(&sizes(self), tokens).unwrap_or(LEAST_ITEM_TOKENS);
            for index in self.system.clone() {
                if self.shown[index].tokens > length {
                    self.shorten(index, length);
                }
            }
        }
        while sizes(self).iter().sum::<u64>() > tokens {
            // Something in it cannot be shortened.
            self.system.remove(0);
        }
        WindowRoom { tokens: sizes(self).iter().sum(), items: 0 }
    }

    /// Items that layers put before everything else: the index of the first that is kept, their end, their size.
    fn keep_preface(&self, goal: WindowRoom) -> (usize, usize, WindowRoom) {
        let is_preface = |(index, shown): &(usize, &ProjectedItem)| {
            shown.position.is_none() && Some(*index) != self.user && !matches!(&*shown.item, Item::FunctionCall(_))
        };
        let end = self.shown.iter().enumerate().take_while(is_preface).count();
        let mut used = WindowRoom { tokens: 0, items: 0 };
        for index in (0..end).rev() {
            let more = WindowRoom { tokens: used.tokens + self.shown[index].tokens, items: used.items + 1 };
            if !goal.has(more) {
                return (index + 1, end, used);
            }
            used = more;
        }
        (0, end, used)
    }

    /// The first index from which everything is kept, calls with their outputs.
    ///
    /// If the newest step alone is larger than the goal it may use more, and is shortened if necessary.
    fn keep_newest(&mut self, preface_end: usize, goal: WindowRoom, most: WindowRoom) -> usize {
        let partners = partners(&self.shown);
        let divisible = divisible(&self.shown);
        let mut first = self.shown.len();
        let (mut used, mut kept_items) = (WindowRoom { tokens: 0, items: 0 }, 0);
        for index in (preface_end..self.shown.len()).rev() {
            let own = self.shown[index].tokens;
            match partners[index] {
                _ if self.is_kept(index) => {}
                // An output is kept or dropped with its call.
                Some(call) if call < index => {}
                Some(output) => {
                    used = WindowRoom { tokens: used.tokens + own + self.shown[output].tokens, items: used.items + 2 };
                }
                None => used = WindowRoom { tokens: used.tokens + own, items: used.items + 1 },
            }
            if !divisible[index] && index > preface_end {
                continue;
            }
            // Items are kept until there are enough of them, and as long as their tokens fit.
            let wanted = kept_items < goal.items && used.items <= most.items && used.tokens <= goal.tokens;
            if wanted || goal.has(used) {
                (first, kept_items) = (index, used.items);
                continue;
            }
            if kept_items == 0 && (most.has(used) || self.shrink(index, &partners, used, most)) {
                first = index;
            }
            break;
        }
        first
    }

    /// Shortens everything from an index on to a common length so that it fits; `false` if that is impossible.
    fn shrink(&mut self, first: usize, partners: &[Option<usize>], used: WindowRoom, most: WindowRoom) -> bool {
        let stays = |index: &usize| !self.is_kept(*index) && partners[*index].is_none_or(|other| other >= first);
        let members: Vec<usize> = (first..self.shown.len()).filter(stays).collect();
        let sizes: Vec<u64> = members.iter().map(|index| self.shown[*index].tokens).collect();
        let Some(length) = common_length(&sizes, most.tokens).filter(|_| used.items <= most.items) else {
            return false;
        };
        let before = (self.shown.clone(), self.shortened.clone());
        for index in &members {
            if self.shown[*index].tokens > length {
                self.shorten(*index, length);
            }
        }
        let fits = members.iter().map(|index| self.shown[*index].tokens).sum::<u64>() <= most.tokens;
        if !fits {
            // Something in it cannot be shortened, so all of it is dropped.
            (self.shown, self.shortened) = before;
        }
        fits
    }

    /// Removes everything that is not kept.
    fn finish(self, preface: std::ops::Range<usize>, first: usize) -> Fitted {
        let partners = partners(&self.shown);
        let stays = |index: usize| {
            preface.contains(&index)
                || self.is_kept(index)
                || index >= first && partners[index].is_none_or(|other| other >= first)
        };
        let end = self.shown.iter().filter_map(|shown| shown.position).max().map_or(0, |last| last + 1);
        let task = self.task.and_then(|task| self.shown[task].position);
        let stays: Vec<bool> = (0..self.shown.len()).map(stays).collect();
        let kept = self.shown.into_iter().enumerate().filter(|(index, _)| stays[*index]);
        let (indices, shown): (Vec<usize>, Vec<ProjectedItem>) = kept.unzip();
        let logged = indices.iter().zip(&shown).filter(|(index, _)| **index >= first && Some(**index) != self.user);
        let start = logged.filter_map(|(_, shown)| shown.position).next().unwrap_or(end);
        Fitted { shown, start, task, shortened: self.shortened }
    }
}

/// The length to which items are cut so that together they have at most so many tokens; `None` if that is impossible.
fn common_length(sizes: &[u64], tokens: u64) -> Option<u64> {
    let total_at = |length: u64| sizes.iter().map(|size| (*size).min(length)).sum::<u64>();
    if total_at(LEAST_ITEM_TOKENS) > tokens {
        return None;
    }
    let (mut low, mut high) = (LEAST_ITEM_TOKENS, tokens.max(LEAST_ITEM_TOKENS));
    while low < high {
        let middle = high - (high - low) / 2;
        if total_at(middle) <= tokens { low = middle } else { high = middle - 1 }
    }
    Some(low)
}

/// The items before which history may be cut: not between reasoning and the message or call directly after it, since
/// providers reject one without the other.
fn divisible(shown: &[ProjectedItem]) -> Vec<bool> {
    let mut thinking = false;
    let before = |shown: &ProjectedItem| {
        let by_model = match &*shown.item {
            Item::FunctionCall(_) | Item::Reasoning(_) => true,
            item => item.is_message_of(Role::Assistant),
        };
        let divisible = !(by_model && thinking);
        thinking = by_model && (thinking || matches!(&*shown.item, Item::Reasoning(_)));
        divisible
    };
    shown.iter().map(before).collect()
}
