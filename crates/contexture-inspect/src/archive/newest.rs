//! The newest window of a conversation, with totals that are kept up to date: a request costs time for what is new in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use contexture::files::observer::Observer;
use contexture::wire::Digest;
use contexture_text::window_part::WindowPart;

use super::super::block::{BlockDraft, BlockSource};
use super::super::view::RequestLine;
use super::super::window::newest_from;
use super::lists::{Lists, shared};

/// The newest window of a conversation.
pub struct NewestWindow {
    /// Its request, and how many turns there were with it.
    pub n: u64,
    pub turn: u64,
    pub lists: Lists,
    /// The line of its request, if it is known.
    pub line: Option<RequestLine>,
    /// The blocks of messages, by a hash of the message's bytes.
    pub by_bytes: HashMap<Digest, Vec<u32>>,
    /// What is needed of the blocks to compute a window's totals.
    pub facts: HashMap<u32, BlockFact>,
    /// Blocks before the messages.
    pub head: Vec<u32>,
    pub observer: Observer,
    /// The name and the arguments of calls whose outputs have not come yet, by their ids.
    pub calls: HashMap<String, (String, String)>,
    came: ListTotals,
    sent: ListTotals,
    /// After each block that came: how many turns there were, and whether a person was speaking.
    turns: Vec<(u64, bool)>,
}

/// What is needed of a block to compute a window's totals.
#[derive(Clone, Copy)]
pub struct BlockFact {
    pub source: BlockSource,
    pub part: WindowPart,
    pub tokens: u64,
}

impl BlockFact {
    /// What is needed of a draft.
    pub fn of(draft: &BlockDraft) -> Self {
        Self { source: draft.source, part: draft.part(), tokens: draft.tokens }
    }
}

/// The totals of a list of blocks.
#[derive(Default)]
struct ListTotals {
    /// How often each block is in it.
    counts: HashMap<u32, u32>,
    parts: BTreeMap<WindowPart, u64>,
    tokens: u64,
}

impl ListTotals {
    fn add(&mut self, id: u32, fact: Option<&BlockFact>) -> bool {
        if let Some(fact) = fact {
            *self.parts.entry(fact.part).or_default() += fact.tokens;
            self.tokens += fact.tokens;
        }
        let count = self.counts.entry(id).or_default();
        *count += 1;
        *count == 1
    }

    fn remove(&mut self, id: u32, fact: Option<&BlockFact>) -> bool {
        if let Some(fact) = fact {
            let sum = self.parts.entry(fact.part).or_default();
            *sum = sum.saturating_sub(fact.tokens);
            self.tokens = self.tokens.saturating_sub(fact.tokens);
        }
        match self.counts.get_mut(&id).filter(|count| **count > 1) {
            Some(count) => {
                *count -= 1;
                false
            }
            None => {
                self.counts.remove(&id);
                true
            }
        }
    }

    fn has(&self, id: u32) -> bool {
        self.counts.contains_key(&id)
    }
}

/// What changed from one request to the next.
pub struct ListsChange {
    /// How many leading blocks stayed, of those that came and of those sent.
    pub came_keep: usize,
    pub sent_keep: usize,
    /// Blocks that came and were not in the last request.
    pub came_new: Vec<u32>,
    /// Blocks that are sent and were not in the last request.
    pub sent_new: Vec<u32>,
    /// Blocks that were sent and are not any more.
    pub gone: Vec<u32>,
    /// Blocks that came and were not in the last request, and that are not sent.
    pub left_out: Vec<u32>,
}

impl NewestWindow {
    /// The newest window as it was read from disk; its totals are computed with the next request.
    pub fn new(n: u64, turn: u64, observer: Observer) -> Self {
        Self {
            n,
            turn,
            lists: Lists::default(),
            line: None,
            by_bytes: HashMap::new(),
            facts: HashMap::new(),
            head: Vec::new(),
            observer,
            calls: HashMap::new(),
            came: ListTotals::default(),
            sent: ListTotals::default(),
            turns: Vec::new(),
        }
    }

    /// Replaces the lists. What is needed of their blocks must be known.
    pub fn change(&mut self, lists: Lists) -> ListsChange {
        let Self { facts, came, sent, .. } = self;
        let came_keep = shared(&self.lists.came, &lists.came);
        let sent_keep = shared(&self.lists.sent, &lists.sent);
        let fact = |id: &u32| facts.get(id);
        let mut gone = Vec::new();
        let mut came_before = HashSet::new();
        for id in &self.lists.came[came_keep..] {
            if came.remove(*id, fact(id)) {
                came_before.insert(*id);
            }
        }
        for id in &self.lists.sent[sent_keep..] {
            if sent.remove(*id, fact(id)) {
                gone.push(*id);
            }
        }
        let sent_before: HashSet<u32> = gone.iter().copied().collect();
        let mut came_new = Vec::new();
        for id in &lists.came[came_keep..] {
            if came.add(*id, fact(id)) && !came_before.contains(id) {
                came_new.push(*id);
            }
        }
        let mut sent_new = Vec::new();
        for id in &lists.sent[sent_keep..] {
            if sent.add(*id, fact(id)) && !sent_before.contains(id) {
                sent_new.push(*id);
            }
        }
        gone.retain(|id| !sent.has(*id));
        let left_out = came_new.iter().copied().filter(|id| !sent.has(*id)).collect();
        self.count_turns(&lists.came, came_keep);
        self.lists = lists;
        ListsChange { came_keep, sent_keep, came_new, sent_new, gone, left_out }
    }

    /// Counts turns: consecutive messages of people are one.
    fn count_turns(&mut self, came: &[u32], keep: usize) {
        self.turns.truncate(keep);
        for id in &came[self.turns.len()..] {
            let (turns, is_speaking) = self.turns.last().copied().unwrap_or_default();
            self.turns.push(match self.facts.get(id) {
                Some(fact) if fact.source == BlockSource::Said && !is_speaking => (turns + 1, true),
                Some(fact) if matches!(fact.source, BlockSource::Said | BlockSource::System) => (turns, is_speaking),
                _ => (turns, false),
            });
        }
    }

    /// How many turns there were so far.
    pub fn turns(&self) -> u64 {
        self.turns.last().map_or(0, |(turns, _)| *turns)
    }

    /// Tokens received, and tokens sent.
    pub fn tokens(&self) -> (u64, u64) {
        (self.came.tokens, self.sent.tokens)
    }

    /// Tokens sent, by part of the window.
    pub fn parts(&self) -> BTreeMap<WindowPart, u64> {
        let mut parts = self.sent.parts.clone();
        let sent = &self.lists.sent;
        let is_of_model = |id: &u32| self.facts.get(id).is_some_and(|fact| fact.source == BlockSource::Model);
        for fact in sent[newest_from(sent, is_of_model)..].iter().filter_map(|id| self.facts.get(id)) {
            let sum = parts.entry(fact.part).or_default();
            *sum = sum.saturating_sub(fact.tokens);
            *parts.entry(fact.part.of_newest()).or_default() += fact.tokens;
        }
        parts.retain(|_, tokens| *tokens > 0);
        parts
    }
}

#[cfg(test)]
mod tests {
    use contexture::files::dialect::Dialects;

    use super::*;

    #[test]
    fn totals_are_those_of_the_lists_whatever_changes() {
        let mut newest = NewestWindow::new(0, 0, Observer::new(Dialects::builtin()));
        for id in 0..20 {
            let source = if id % 5 == 0 { BlockSource::Said } else { BlockSource::Output };
            let part = if id % 5 == 0 { WindowPart::People } else { WindowPart::Calls };
            newest.facts.insert(id, BlockFact { source, part, tokens: u64::from(id) + 1 });
        }
        let steps: [(&[u32], &[u32]); 5] = [
            (&[0, 1, 2], &[0, 1, 2]),
            (&[0, 1, 2, 1, 5], &[0, 9, 5]),
            (&[0, 1, 2, 1, 5, 6], &[0, 9, 5, 6]),
            (&[0, 1], &[0, 1, 1]),
            (&[], &[]),
        ];
        for (came, sent) in steps {
            let before = newest.lists.sent.clone();
            let change = newest.change(Lists { came: came.to_vec(), sent: sent.to_vec() });
            let sum = |list: &[u32]| list.iter().map(|id| u64::from(*id) + 1).sum::<u64>();
            assert_eq!(newest.tokens(), (sum(came), sum(sent)));
            assert_eq!(newest.parts().values().sum::<u64>(), sum(sent));
            assert_eq!(newest.turns(), came.iter().filter(|id| **id % 5 == 0).count() as u64);
            let gone: Vec<u32> = before.iter().copied().filter(|id| !sent.contains(id)).collect();
            assert!(gone.iter().all(|id| change.gone.contains(id)) && change.gone.iter().all(|id| gone.contains(id)));
            assert!(change.sent_new.iter().all(|id| sent.contains(id) && !before.contains(id)));
        }
    }
}
