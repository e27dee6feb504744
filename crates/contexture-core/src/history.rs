//! The past as layers may project it.

use std::ops::Range;
use std::sync::Arc;

use crate::item::Item;
use crate::log::ItemLog;

/// The part of the past that is shown: ranges of the log, and items that replace others.
///
/// A history is a list of parts, so that returning a long log unchanged is cheap. The engine starts with
/// everything that is not evicted; each layer's `project_history` may replace it.
///
/// ```
/// use contexture_core::{History, Item, ItemLog};
/// let mut log = ItemLog::new();
/// for n in 0..10 {
///     log.append(Item::user(n.to_string()), 5);
/// }
/// let history = History::of(&log).keep_last(3).with_preface(vec![Item::developer("seven items left out")]);
/// assert_eq!(history.len(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct History {
    log: ItemLog,
    parts: Vec<Part>,
}

/// One part of a [`History`].
#[derive(Clone, Debug)]
pub enum Part {
    /// Items of the log as they are.
    Log(Range<usize>),
    /// An item that replaces others.
    Item(Arc<Item>),
}

/// One item of a [`History`], in order.
#[derive(Clone, Debug)]
pub struct Projected<'a> {
    /// The item to be shown.
    pub item: &'a Arc<Item>,
    /// Its position in the log, if it is shown as it is.
    pub position: Option<usize>,
}

impl History {
    /// Everything in the log.
    pub fn of(log: &ItemLog) -> Self {
        Self::since(log, 0)
    }

    /// Everything in the log from a position on.
    pub fn since(log: &ItemLog, start: usize) -> Self {
        let range = start.min(log.len())..log.len();
        Self { log: log.clone(), parts: vec![Part::Log(range)] }
    }

    pub(crate) fn from_parts(log: &ItemLog, parts: Vec<Part>) -> Self {
        Self { log: log.clone(), parts }
    }

    /// A history of exactly these parts, over the same log. Ranges are clipped to the log.
    pub fn with_parts(&self, mut parts: Vec<Part>) -> Self {
        let end = self.log.len();
        for part in &mut parts {
            if let Part::Log(range) = part {
                *range = range.start.min(end)..range.end.min(end);
            }
        }
        Self { log: self.log.clone(), parts }
    }

    /// The log that positions refer to.
    pub fn log(&self) -> &ItemLog {
        &self.log
    }

    /// The parts, oldest first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many items it has.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.len() == 0)
    }

    /// The items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Projected<'_>> {
        self.parts.iter().flat_map(|part| {
            let (range, item) = match part {
                Part::Log(range) => (range.clone(), None),
                Part::Item(item) => (0..0, Some(Projected { item, position: None })),
            };
            let logged = self.log.range(range);
            logged.map(|(position, entry)| Projected { item: &entry.item, position: Some(position) }).chain(item)
        })
    }

    /// Only the newest `count` items.
    pub fn keep_last(mut self, count: usize) -> Self {
        let mut surplus = self.len().saturating_sub(count);
        self.parts.retain_mut(|part| {
            let dropped = part.len().min(surplus);
            surplus -= dropped;
            match part {
                Part::Log(range) => range.start += dropped,
                Part::Item(_) => return dropped == 0,
            }
            part.len() > 0
        });
        self
    }

    /// The same with items put before everything else.
    pub fn with_preface(mut self, items: Vec<Item>) -> Self {
        self.parts.splice(0..0, items.into_iter().map(|item| Part::Item(Arc::new(item))));
        self
    }

    /// The same with one item of the log shown as another.
    pub fn replace(mut self, position: usize, item: Item) -> Self {
        let found = self.parts.iter().position(|part| matches!(part, Part::Log(range) if range.contains(&position)));
        let Some(index) = found else { return self };
        let Part::Log(range) = self.parts[index].clone() else { return self };
        let around = [Part::Log(range.start..position), Part::Item(Arc::new(item)), Part::Log(position + 1..range.end)];
        self.parts.splice(index..=index, around.into_iter().filter(|part| part.len() > 0));
        self
    }
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Part::Log(range) => range.len(),
            Part::Item(_) => 1,
        }
    }
}
