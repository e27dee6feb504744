//! How much of a request a provider reads from its cache, as providers document it.

use std::collections::BTreeSet;

use contexture::fold::Prices;

/// How many blocks Anthropic looks at for something that it has, from each mark backwards.
const LOOK_BACK: usize = 20;

/// The shortest prefix that is cached, in tokens.
const LEAST_TOKENS: u64 = 1_024;

/// Without marks, whole pieces of so many tokens are read.
const PIECE_TOKENS: u64 = 128;

/// The cache of a provider for one conversation.
#[derive(Clone, Debug)]
pub struct PrefixCache {
    /// Whether requests say with marks what is cached.
    is_marked: bool,
    /// The size of a token.
    token: u64,
    /// Blocks and size of the last request up to the end of each message, after those of nothing.
    ends: Vec<(usize, u64)>,
    /// The messages of the last request up to which the provider has it.
    held: BTreeSet<usize>,
}

impl PrefixCache {
    /// An empty cache of a provider, for sizes of which `token` are a token. Writing has a price where it is asked for
    /// with marks.
    pub fn new(prices: &Prices, token: u64) -> Self {
        Self { is_marked: prices.write > 1.0, token, ends: vec![(0, 0)], held: BTreeSet::new() }
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
        self.ends.truncate(keep + 1);
        self.held.retain(|end| *end <= keep && !is_cold);
        for (blocks, size) in new {
            let (blocks_before, size_before) = self.ends[self.ends.len() - 1];
            self.ends.push((blocks_before + blocks, size_before + size));
        }
        match (self.is_marked, is_cold) {
            (true, _) => self.read_from_marks(marks),
            (false, true) => 0,
            (false, false) => self.read_by_itself(keep),
        }
    }

    fn read_from_marks(&mut self, marks: &[usize]) -> u64 {
        let last = self.ends.len() - 1;
        let is_long = |mark: &usize| self.ends[*mark].1 >= LEAST_TOKENS * self.token;
        let marks: Vec<usize> =
            marks.iter().copied().filter(|mark| *mark < last).chain([last]).filter(is_long).collect();
        let is_near = |mark: usize, end: usize| self.ends[mark].0 - self.ends[end].0 < LOOK_BACK;
        let found = |mark: &usize| self.held.range(..=*mark).rev().copied().find(|end| is_near(*mark, *end));
        let found = marks.iter().filter_map(found).max();
        self.held.extend(marks);
        found.map_or(0, |end| self.ends[end].1)
    }

    fn read_by_itself(&self, keep: usize) -> u64 {
        let (shared, piece) = (self.ends[keep].1, PIECE_TOKENS * self.token);
        if shared >= LEAST_TOKENS * self.token { shared / piece * piece } else { 0 }
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
