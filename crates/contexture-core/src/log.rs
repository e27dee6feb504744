//! The append-only sequence of a thread's items.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use crate::item::{Item, Role};

/// Items per sealed chunk. Cloning a log copies at most this many pointers.
const CHUNK_LEN: usize = 256;

/// One item of a log with its token count and position data, which never change.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The item itself.
    pub item: Arc<Item>,
    /// Its tokens, counted when it was appended.
    pub tokens: u64,
    /// For an output, the position of its call.
    pub call: Option<usize>,
    /// The tokens of all entries before this one.
    before_tokens: u64,
}

/// The items of a thread, oldest first, never edited.
///
/// Cloning is cheap (shared chunks), the tokens of a range take constant time, and positions never change:
/// the item appended as number 7 is number 7 for ever.
///
/// ```
/// use contexture_core::{Item, ItemLog};
/// let mut log = ItemLog::new();
/// log.append(Item::user("hello"), 5);
/// log.append(Item::assistant("hi"), 5);
/// assert_eq!(log.len(), 2);
/// assert_eq!(log.range_tokens(0..2), 10);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ItemLog {
    sealed: Arc<Vec<Arc<Vec<Entry>>>>,
    open: Arc<Vec<Entry>>,
    total_tokens: u64,
    newest_user: Option<usize>,
    user_messages: u64,
    open_calls: Arc<OpenCalls>,
}

/// Calls that have no output.
#[derive(Clone, Debug, Default)]
struct OpenCalls {
    positions: BTreeSet<usize>,
    /// By call id. If a later call has the same id, the earlier one is not here: it can no longer get an output.
    by_id: HashMap<Box<str>, usize>,
}

impl ItemLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an item whose tokens are already counted and returns its position.
    pub fn append(&mut self, item: impl Into<Arc<Item>>, tokens: u64) -> usize {
        let item = item.into();
        let position = self.len();
        if item.is_message_of(Role::User) {
            self.newest_user = Some(position);
            self.user_messages += 1;
        }
        let call = self.pair(&item, position);
        let entry = Entry { item, tokens, call, before_tokens: self.total_tokens };
        self.total_tokens += tokens;
        let open = Arc::make_mut(&mut self.open);
        open.push(entry);
        if open.len() == CHUNK_LEN {
            let chunk = std::mem::take(&mut self.open);
            Arc::make_mut(&mut self.sealed).push(chunk);
        }
        position
    }

    /// Records an open call, or finds and closes the call that the output `item` belongs to.
    ///
    /// Ids are not always unique: some models count from zero in every response. So an output belongs to the newest
    /// open call of its id, and older calls of that id never get one.
    fn pair(&mut self, item: &Item, position: usize) -> Option<usize> {
        match item {
            Item::FunctionCall(call) => {
                let open_calls = Arc::make_mut(&mut self.open_calls);
                open_calls.positions.insert(position);
                open_calls.by_id.insert(call.call_id.clone(), position);
                None
            }
            Item::FunctionCallOutput(output) => {
                let call = self.open_call(&output.call_id)?;
                let open_calls = Arc::make_mut(&mut self.open_calls);
                open_calls.by_id.remove(&output.call_id);
                open_calls.positions.remove(&call);
                Some(call)
            }
            _ => None,
        }
    }

    /// Whether an entry is a call without an output, or an output whose call is before `start` or nowhere.
    pub(crate) fn is_orphan_since(&self, position: usize, entry: &Entry, start: usize) -> bool {
        match &*entry.item {
            Item::FunctionCall(_) => self.open_calls.positions.contains(&position),
            Item::FunctionCallOutput(_) => entry.call.is_none_or(|call| call < start),
            _ => false,
        }
    }

    /// A log of the first `len` items.
    pub(crate) fn prefix(&self, len: usize) -> Self {
        let mut prefix = ItemLog::new();
        for (_, entry) in self.range(0..len) {
            prefix.append(entry.item.clone(), entry.tokens);
        }
        prefix
    }

    /// Whether this is the same log at the same moment (pointer equality, not equal contents).
    pub(crate) fn is_same(&self, other: &ItemLog) -> bool {
        Arc::ptr_eq(&self.sealed, &other.sealed) && Arc::ptr_eq(&self.open, &other.open)
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.sealed.len() * CHUNK_LEN + self.open.len()
    }

    /// Whether nothing was ever appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at a position.
    pub fn get(&self, position: usize) -> Option<&Entry> {
        match self.sealed.get(position / CHUNK_LEN) {
            Some(chunk) => chunk.get(position % CHUNK_LEN),
            None => self.open.get(position - self.sealed.len() * CHUNK_LEN),
        }
    }

    /// The entries of a range, oldest first; the part of the range beyond the end is empty.
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = (usize, &Entry)> {
        let end = range.end.min(self.len());
        (range.start.min(end)..end).filter_map(|position| Some((position, self.get(position)?)))
    }

    /// All items, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.range(0..self.len()).map(|(_, entry)| &*entry.item)
    }

    /// The newest `count` items, oldest of them first.
    pub fn last(&self, count: usize) -> impl DoubleEndedIterator<Item = &Item> {
        self.range(self.len().saturating_sub(count)..self.len()).map(|(_, entry)| &*entry.item)
    }

    /// The position of the newest user message.
    pub fn newest_user(&self) -> Option<usize> {
        self.newest_user
    }

    /// How many user messages there are, which is the number of turns.
    pub fn user_messages(&self) -> u64 {
        self.user_messages
    }

    /// Whether a call of this id waits for its output.
    pub(crate) fn is_open(&self, call_id: &str) -> bool {
        self.open_call(call_id).is_some()
    }

    /// The position of the call of this id that waits for its output.
    pub(crate) fn open_call(&self, call_id: &str) -> Option<usize> {
        self.open_calls.by_id.get(call_id).copied()
    }

    /// Positions of the calls that have no output yet, oldest first.
    pub fn open_calls(&self) -> impl Iterator<Item = usize> {
        self.open_calls.positions.iter().copied()
    }

    /// The tokens of a range, without walking it.
    pub fn range_tokens(&self, range: Range<usize>) -> u64 {
        self.tokens_before(range.end).saturating_sub(self.tokens_before(range.start))
    }

    fn tokens_before(&self, position: usize) -> u64 {
        self.get(position).map_or(self.total_tokens, |entry| entry.before_tokens)
    }

    /// The tokens of all items.
    pub fn total_tokens(&self) -> u64 {
        self.total_tokens
    }
}

/// The conversation so far: cheap to clone, and copied only when it is read.
#[derive(Clone, Default)]
pub(crate) struct SharedLog(Arc<RwLock<ItemLog>>);

impl SharedLog {
    pub(crate) fn get(&self) -> ItemLog {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, log: ItemLog) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = log;
    }

    /// Calls `grow` with the original log and then copies it again. The old copy is dropped first, so that the log is
    /// not shared while it grows and need not be cloned.
    pub(crate) fn grow(&self, log: &mut ItemLog, grow: impl FnOnce(&mut ItemLog)) {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *shared = ItemLog::default();
        grow(log);
        *shared = log.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_does_not_see_what_is_appended_later() {
        let mut log = ItemLog::new();
        for n in 0..600 {
            log.append(Item::user(n.to_string()), n);
        }
        let before = log.clone();
        for n in 600..1200 {
            log.append(Item::user(n.to_string()), n);
        }
        assert_eq!((before.len(), log.len()), (600, 1200));
        assert_eq!(log.range_tokens(10..1000), (10..1000).sum::<u64>());
        assert_eq!(before.range_tokens(10..1000), (10..600).sum::<u64>());
        assert!(log.iter().enumerate().all(|(n, item)| *item == Item::user(n.to_string())));
        let mut other = before.clone();
        for n in 0..600 {
            other.append(Item::user(format!("other {n}")), 1);
        }
        assert_eq!((before.len(), log.len(), other.len()), (600, 1200, 1200));
        assert_eq!(other.range_tokens(590..1200), (590..600).sum::<u64>() + 600);
        assert_eq!(log.range_tokens(590..1200), (590..1200).sum::<u64>());
        let texts =
            |log: &ItemLog| log.iter().skip(599).take(2).map(|item| item.as_message().unwrap().text()).collect();
        let (of_log, of_other): (Vec<_>, Vec<_>) = (texts(&log), texts(&other));
        assert_eq!((of_log, of_other), (vec!["599".into(), "600".into()], vec!["599".into(), "other 0".to_owned()]));
    }

    #[test]
    fn outputs_know_the_call_they_answer() {
        let mut log = ItemLog::new();
        log.append(Item::call("a", "read", "{}"), 1);
        log.append(Item::call("b", "read", "{}"), 1);
        log.append(Item::output("b", ""), 1);
        log.append(Item::output("x", ""), 1);
        assert_eq!(log.get(2).unwrap().call, Some(1));
        assert_eq!(log.get(3).unwrap().call, None);
        assert_eq!(log.open_calls().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn an_output_answers_the_newest_call_of_its_id_and_the_older_one_is_never_answered() {
        let mut log = ItemLog::new();
        log.append(Item::call("a", "read", "{}"), 1);
        log.append(Item::call("a", "read", "{}"), 1);
        log.append(Item::output("a", ""), 1);
        log.append(Item::output("a", ""), 1);
        assert_eq!(log.get(2).unwrap().call, Some(1));
        assert_eq!(log.get(3).unwrap().call, None);
        assert_eq!(log.open_calls().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_prefix_is_the_log_as_it_was() {
        let mut log = ItemLog::new();
        for n in 0..700 {
            log.append(Item::call(&n.to_string(), "read", "{}"), 3);
            log.append(if n % 2 == 0 { Item::output(&n.to_string(), "") } else { Item::user("u") }, 3);
        }
        let prefix = log.prefix(601);
        assert_eq!((prefix.len(), prefix.total_tokens()), (601, 1803));
        assert_eq!((prefix.newest_user(), prefix.open_calls().last()), (Some(599), Some(600)));
    }
}
