//! What happens when history outgrows its room.

use std::sync::Arc;

use super::epoch::Epoch;
use super::fit::{self, Fitted, Limits, WindowRoom};
use super::input::WindowInput;
use super::output::SummaryRequest;
use super::policy::{Overflow, ProjectionPolicy};
use super::shown::{ProjectedItem, newest_user};
use super::summary::{self, SummaryChange};
use crate::decision::Action;
use crate::item::Role;
use crate::log::ItemLog;

/// After an eviction history fills this much of its room, in tenths.
const EVICT_TO_TENTHS: u64 = 6;
/// If a single step or the newest user message is larger than that, it may fill this much, in quarters.
const KEEP_AT_MOST_QUARTERS: u64 = 3;

/// History that was cut down, with what was decided about it.
pub(super) struct CutHistory {
    fitted: Fitted,
    summary: SummaryChange,
}

/// Whether history can be shown as it is.
pub(super) fn fits(policy: &ProjectionPolicy, shown: &[ProjectedItem], room: u64) -> bool {
    let items = shown.iter().filter(|shown| !shown.is_system()).count();
    items <= most_items(policy) && shown.iter().map(|shown| shown.tokens).sum::<u64>() <= room
}

/// How many items of history are shown at least, once there are so many.
fn window_size(policy: &ProjectionPolicy) -> usize {
    match policy.overflow {
        Overflow::SlidingWindow => policy.window_size.unwrap_or(ProjectionPolicy::DEFAULT_WINDOW_SIZE).max(1),
        Overflow::Truncate | Overflow::Summarize => usize::MAX,
    }
}

/// How many are shown at most: a third more, so that the prefix does not move with every request.
fn most_items(policy: &ProjectionPolicy) -> usize {
    let window_size = window_size(policy);
    window_size.saturating_add(window_size.div_ceil(3))
}

fn limits(policy: &ProjectionPolicy, room: u64, reserve: u64, task: Option<usize>) -> Limits {
    let most_tokens = (room * KEEP_AT_MOST_QUARTERS / 4).saturating_sub(reserve);
    let goal_tokens = (room * EVICT_TO_TENTHS / 10).saturating_sub(reserve);
    Limits {
        goal: WindowRoom { tokens: goal_tokens, items: window_size(policy) },
        most: WindowRoom { tokens: most_tokens, items: most_items(policy) },
        room: room - reserve,
        shorten_first: policy.overflow == Overflow::Truncate,
        task: task.filter(|_| policy.overflow != Overflow::SlidingWindow),
    }
}

/// The position of the task: the first user message.
fn task(log: &ItemLog) -> Option<usize> {
    log.range(0..log.newest_user()? + 1).find(|(_, entry)| entry.item.is_message_of(Role::User)).map(|(at, _)| at)
}

/// Cuts history down to its room, or asks for the summary that this takes.
pub(super) fn fold(
    epoch: Option<&Epoch>,
    input: &WindowInput<'_>,
    shown: Vec<ProjectedItem>,
    room: u64,
) -> Result<CutHistory, SummaryRequest> {
    let (start, last) = epoch.map_or((0, None), |epoch| (epoch.start, epoch.summary.as_ref()));
    let cut = |shown: Vec<ProjectedItem>, reserve: u64| {
        let user = newest_user(input.history, &shown);
        fit::fit(
            input.counter,
            input.history.log(),
            shown,
            user,
            limits(input.policy, room, reserve, task(input.history.log())),
        )
    };
    let is_last = |shown: &ProjectedItem| last.is_some_and(|last| Arc::ptr_eq(&last.item, &shown.item));
    if input.policy.overflow == Overflow::Summarize {
        let reserve = room / summary::SHARE;
        // The last summary is included in the new one, so it takes no room of its own.
        let fitted = cut(shown.iter().filter(|shown| !is_last(shown)).cloned().collect(), reserve);
        if fitted.start > start {
            let summary = summary::summarize(input, start..fitted.start, last, reserve)?;
            return Ok(CutHistory { fitted, summary });
        }
    }
    let fitted = cut(shown, 0);
    let summary = if fitted.shown.iter().any(is_last) { SummaryChange::Unchanged } else { SummaryChange::Gone };
    Ok(CutHistory { fitted, summary })
}

impl Epoch {
    /// Takes over what was decided; returns what is shown now, and the decisions.
    pub(super) fn take_over(
        &mut self,
        log: &ItemLog,
        folded: CutHistory,
    ) -> (Vec<ProjectedItem>, Vec<(Action, String)>) {
        let CutHistory { fitted: Fitted { mut shown, start, task, shortened }, summary } = folded;
        let mut decisions = Vec::new();
        let mut decide = |action, reason: &str| decisions.push((action, reason.to_owned()));
        let is_shown = |user: usize| shown.iter().any(|shown| shown.position == Some(user));
        let evicts = start > self.start || self.kept_user.is_some_and(|user| !is_shown(user));
        if evicts {
            self.start = self.start.max(start);
            self.kept_user = log.newest_user().filter(|user| *user < self.start);
        }
        let (start, user) = (self.start, self.kept_user);
        let is_kept = |shown: &&ProjectedItem| shown.is_system() || task.is_some() && shown.position == task;
        let kept = shown.iter().filter(is_kept).filter_map(|shown| shown.position);
        self.kept = kept.filter(|position| *position < start && Some(*position) != user).collect();
        let stays = |position: usize| position >= start || Some(position) == user || self.kept.contains(&position);
        self.shortened.retain(|position, _| stays(*position));
        for (position, cut) in shortened.into_iter().filter(|(position, _)| stays(*position)) {
            self.shortened.insert(position, cut);
            let action = Action::Shorten { position, head_bytes: cut.head_bytes, tail_bytes: cut.tail_bytes };
            decide(action, "history outgrew its room, and this item is large");
        }
        match summary {
            SummaryChange::Unchanged => {}
            SummaryChange::Gone => self.summary = None,
            SummaryChange::New { pinned, tokens, action } => {
                shown.insert(0, ProjectedItem { item: pinned.item.clone(), tokens, position: None });
                self.summary = Some(pinned);
                decide(action, "history outgrew its room");
            }
        }
        if evicts {
            decide(Action::Evict { start }, "history outgrew its room");
        }
        (shown, decisions)
    }
}
