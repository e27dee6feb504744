//! The simulated prefix cache of a provider, for windows that grow: only what is new in a window costs time.
//!
//! It does what [`Cache`](super::cache::Cache) does with bodies.

use std::collections::HashMap;
use std::sync::Arc;

use contexture::fold::ShownItem;
use contexture::item::Item;
use foldhash::fast::FixedState;

use super::cache::{LEAST, LOOK_BACK, Took};

/// How a provider caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Up to marks in the request, and writing has a price.
    Marked,
    /// Whatever prefix it finds.
    Automatic,
}

/// A cache, and the window that it was asked for last.
pub struct GrowingCache {
    kind: CacheKind,
    life_ms: u64,
    /// When a prefix was used last, by its hash.
    prefixes: HashMap<blake3::Hash, u64>,
    /// The blocks of the last request: the hash of everything up to each, and the tokens up to it.
    chain: Vec<(blake3::Hash, u64)>,
    /// The items of the last request, after the instructions.
    window: Vec<(Option<usize>, Arc<Item>)>,
    /// How many of them were expected to stay.
    standing: usize,
    /// The hash and the tokens of items that came, by their positions: a fold moves many of them.
    known: HashMap<usize, (Arc<Item>, (blake3::Hash, u64)), FixedState>,
}

impl GrowingCache {
    /// An empty cache whose entries expire when they are not used for this many milliseconds. Every request begins with
    /// the instructions.
    pub fn new(kind: CacheKind, life_ms: u64, instructions: &str) -> Self {
        let first = (blake3::hash(instructions.as_bytes()), instructions.len() as u64 / 4);
        Self {
            kind,
            life_ms,
            prefixes: HashMap::new(),
            chain: vec![first],
            window: Vec::new(),
            known: HashMap::default(),
            standing: 0,
        }
    }

    /// Serves a window at the given time. `standing` of its items will probably stay with the next fold: the last of
    /// them is marked, and so is the last of those that stayed. Returns the usage, and how many leading items are as
    /// they were in the last window.
    pub fn serve(&mut self, window: &[ShownItem], standing: usize, now_ms: u64) -> (Took, usize) {
        let is_same = |((position, item), shown): &(&(Option<usize>, Arc<Item>), &ShownItem)| {
            *position == shown.position && (Arc::ptr_eq(item, &shown.item) || *item == shown.item)
        };
        let keep = self.window.iter().zip(window).take_while(is_same).count();
        self.window.truncate(keep);
        self.chain.truncate(1 + keep);
        for shown in &window[keep..] {
            self.window.push((shown.position, shown.item.clone()));
            let (before, tokens) = *self.chain.last().expect("the instructions are first");
            let (hash, more) = self.item(shown);
            let mut hasher = blake3::Hasher::new();
            hasher.update(before.as_bytes()).update(hash.as_bytes());
            self.chain.push((hasher.finalize(), tokens + more));
        }
        let took = match self.kind {
            CacheKind::Marked => self.marked([self.standing.min(keep), standing], now_ms),
            CacheKind::Automatic => self.automatic(now_ms),
        };
        self.standing = standing;
        (took, keep)
    }

    /// The hash and the tokens of an item.
    fn item(&mut self, shown: &ShownItem) -> (blake3::Hash, u64) {
        let position = shown.position.filter(|_| shown.is_logged);
        let known = position.and_then(|position| self.known.get(&position));
        if let Some((_, known)) = known.filter(|(item, _)| Arc::ptr_eq(item, &shown.item)) {
            return *known;
        }
        let text = serde_json::to_vec(&*shown.item).unwrap_or_default();
        let made = (blake3::hash(&text), text.len() as u64 / 4);
        if let Some(position) = position {
            self.known.insert(position, (shown.item.clone(), made));
        }
        made
    }

    fn holds(&self, at: usize, now_ms: u64) -> bool {
        self.prefixes.get(&self.chain[at].0).is_some_and(|used| now_ms.saturating_sub(*used) <= self.life_ms)
    }

    fn marked(&mut self, [stayed, standing]: [usize; 2], now_ms: u64) -> Took {
        let last = self.chain.len() - 1;
        let mut marks = vec![0, stayed.min(last), standing.min(last), last];
        marks.dedup();
        marks.retain(|mark| self.chain[*mark].1 >= LEAST);
        let total = self.chain[last].1;
        if marks.is_empty() {
            return Took { plain: total, ..Took::default() };
        }
        let looked_at = marks.iter().flat_map(|mark| mark.saturating_sub(LOOK_BACK - 1)..=*mark);
        let found = looked_at.filter(|at| self.holds(*at, now_ms)).max();
        let read = found.map_or(0, |at| self.chain[at].1);
        for at in marks.into_iter().chain(found) {
            self.prefixes.insert(self.chain[at].0, now_ms);
        }
        Took { read, written: total.saturating_sub(read), plain: 0 }
    }

    fn automatic(&mut self, now_ms: u64) -> Took {
        let total = self.chain.last().map_or(0, |last| last.1);
        // Prefixes are used together, so those that are held come first.
        let (mut low, mut high) = (0, self.chain.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.holds(middle, now_ms) { low = middle + 1 } else { high = middle }
        }
        let shared = low.checked_sub(1).map_or(0, |at| self.chain[at].1);
        let read = if shared >= LEAST { shared / 128 * 128 } else { 0 };
        for (hash, _) in &self.chain {
            self.prefixes.insert(*hash, now_ms);
        }
        Took { read, written: 0, plain: total - read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(position: usize, text: &str) -> ShownItem {
        ShownItem { position: Some(position), is_logged: true, item: Arc::new(Item::user(text)), tokens: 0 }
    }

    #[test]
    fn what_was_sent_before_is_read_until_it_expires_or_changes() {
        for kind in [CacheKind::Marked, CacheKind::Automatic] {
            let mut cache = GrowingCache::new(kind, 300_000, &"x".repeat(8_000));
            let mut window = vec![shown(0, &"a".repeat(8_000))];
            let (first, keep) = cache.serve(&window, 0, 0);
            assert_eq!((first.read, keep), (0, 0), "{kind:?}");
            window.push(shown(1, &"b".repeat(4_000)));
            let (second, keep) = cache.serve(&window, 0, 1_000);
            assert!(second.read * 100 >= first.total() * 95 && keep == 1, "{kind:?}: {second:?}");
            window[1] = shown(1, "another");
            let (third, keep) = cache.serve(&window, 0, 2_000);
            assert!(third.read <= first.total() && third.read > 3_000 && keep == 1, "{kind:?}: {third:?}");
            let (late, _) = cache.serve(&window, 0, 400_000);
            assert_eq!(late.read, 0, "{kind:?}");
        }
    }
}
