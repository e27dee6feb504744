//! The prefix cache of a provider, for one conversation of which only the sizes are known.

use contexture::fold::Prices;
use contexture::wire::prefix_cache::{CacheKind, Prefix, ProviderCache};

/// The cache of a provider for one conversation.
#[derive(Clone, Debug)]
pub struct PrefixCache {
    kind: CacheKind,
    held: ProviderCache<u64>,
    /// The last request up to the end of each message, after nothing. Each that is new gets a new number.
    ends: Vec<Prefix<u64>>,
    numbered: u64,
}

impl PrefixCache {
    /// An empty cache of a provider, for sizes of which `token` are a token. Writing has a price where it is asked for
    /// with marks.
    pub fn new(prices: &Prices, token: u64) -> Self {
        let kind = if prices.write > 1.0 { CacheKind::Marked } else { CacheKind::Automatic };
        let nothing = Prefix { key: 0, blocks: 0, size: 0 };
        Self { kind, held: ProviderCache::new(u64::MAX, token), ends: vec![nothing], numbered: 0 }
    }

    /// Serves a request that begins with `keep` messages of the last one; of the others it is given the blocks and the
    /// size. It has marks after so many messages, and one at its end. Returns the size of what is read from the cache.
    pub fn serve(
        &mut self,
        keep: usize,
        new: impl IntoIterator<Item = (usize, u64)>,
        marks: &[usize],
        is_cold: bool,
    ) -> u64 {
        if is_cold {
            self.held.clear();
        }
        self.ends.truncate(keep + 1);
        for (blocks, size) in new {
            let before = self.ends[self.ends.len() - 1];
            self.numbered += 1;
            let (blocks, size) = (before.blocks + blocks, before.size + size);
            self.ends.push(Prefix { key: self.numbered, blocks, size });
        }
        let last = self.ends.len() - 1;
        let marks: Vec<usize> = marks.iter().copied().filter(|mark| *mark < last).chain([last]).collect();
        self.held.serve(self.kind, &self.ends, &marks, 0).read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_twenty_blocks_back_is_not_found() {
        for (blocks, read) in [(19, 6_000), (20, 2_000)] {
            let mut cache = PrefixCache::new(&Prices::ANTHROPIC, 1);
            assert_eq!(cache.serve(0, [(1, 2_000), (3, 4_000)], &[1], false), 0);
            assert_eq!(cache.serve(2, [(blocks, 500)], &[1], false), read, "{blocks} new blocks");
        }
    }

    #[test]
    fn a_mark_finds_what_a_fold_leaves() {
        let mut cache = PrefixCache::new(&Prices::ANTHROPIC, 1);
        let long = (0..40).map(|_| (1, 100));
        assert_eq!(cache.serve(0, std::iter::once((1, 2_000)).chain(long), &[1, 30], false), 0);
        assert_eq!(cache.serve(31, [(1, 700)], &[1, 30], false), 4_900, "the fold leaves 31 messages");
        assert_eq!(cache.serve(32, [(1, 10)], &[1, 30], true), 0, "it has expired");
        assert_eq!(cache.serve(33, [(1, 10)], &[1, 30], false), 5_710);
    }

    #[test]
    fn short_requests_are_not_cached() {
        for prices in [Prices::ANTHROPIC, Prices::OPENAI] {
            let mut cache = PrefixCache::new(&prices, 4);
            assert_eq!(cache.serve(0, [(1, 4_000)], &[], false), 0);
            assert_eq!(cache.serve(1, [(1, 1_000)], &[], false), 0, "{prices:?}");
            let read = cache.serve(2, [(1, 1_000)], &[], false);
            assert!((4_608..=5_000).contains(&read), "{prices:?}: {read}");
        }
    }
}
