//! The prefix cache of a provider, for windows that grow: only what is new in a window costs time.

use std::collections::HashMap;
use std::sync::Arc;

use contexture::fold::ShownItem;
use contexture::item::Item;
use contexture::wire::prefix_cache::{CacheKind, Prefix, ProviderCache, Took};
use foldhash::fast::FixedState;

/// A cache, and the window that it was asked for last.
pub(crate) struct GrowingCache {
    kind: CacheKind,
    held: ProviderCache<blake3::Hash>,
    /// The prefixes of the last request, by their hashes.
    chain: Vec<Prefix<blake3::Hash>>,
    /// The items of the last request, after the instructions.
    window: Vec<(Option<usize>, Arc<Item>)>,
    /// How many of them were expected to stay.
    standing: usize,
    /// The hash and the tokens of items that came, by their positions: a fold moves many of them.
    known: HashMap<usize, (Arc<Item>, (blake3::Hash, u64)), FixedState>,
}

impl GrowingCache {
    /// An empty cache whose entries expire when they are not used for this many milliseconds. Every request begins with
    /// the instructions and the declared tools, of this many tokens.
    pub fn new(kind: CacheKind, life_ms: u64, instructions: &str, tokens: u64) -> Self {
        let key = blake3::hash(instructions.as_bytes());
        let first = Prefix { key, blocks: 1, size: tokens };
        Self {
            kind,
            held: ProviderCache::new(life_ms, 1),
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
            let before = *self.chain.last().expect("the instructions are first");
            let (hash, tokens) = self.item(shown);
            let mut hasher = blake3::Hasher::new();
            hasher.update(before.key.as_bytes()).update(hash.as_bytes());
            let (key, blocks, size) = (hasher.finalize(), before.blocks + 1, before.size + tokens);
            self.chain.push(Prefix { key, blocks, size });
        }
        let last = window.len();
        let marks = [0, self.standing.min(keep), standing.min(last), last];
        let took = self.held.serve(self.kind, &self.chain, &marks, now_ms);
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
            let mut cache = GrowingCache::new(kind, 300_000, &"x".repeat(8_000), 2_000);
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
