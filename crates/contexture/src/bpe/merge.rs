//! Merges the bytes of a piece into tokens.
//!
//! At first every byte is a part. Then the two neighbouring parts that make the token of the lowest rank become
//! one, the leftmost such pair first, until no two neighbours make a token.

use super::vocabulary::{NO_RANK, Rank, Vocabulary};

/// Merges pieces, one after the other, and reuses its memory.
#[derive(Default)]
pub(super) struct Merger {
    /// Where each part starts, and where the last one ends.
    starts: Vec<usize>,
    /// The rank of the token that each part makes with the next one.
    ranks: Vec<Rank>,
}

impl Merger {
    /// Where the tokens of a piece end. The piece is not empty.
    pub(super) fn merge(&mut self, vocabulary: &Vocabulary, piece: &[u8]) -> &[usize] {
        self.starts.clear();
        self.starts.extend(0..=piece.len());
        self.ranks.clear();
        self.ranks.extend(piece.windows(2).map(|pair| vocabulary.pair_rank(pair[0], pair[1])));
        self.ranks.push(NO_RANK);
        while let Some(lowest) = self.ranks.iter().copied().min().filter(|rank| *rank != NO_RANK) {
            self.merge_all(vocabulary, piece, lowest);
        }
        &self.starts[1..]
    }

    /// Merges all pairs of this rank, which is the lowest, in one pass from left to right.
    ///
    /// It ends early when a merge makes a pair of a still lower rank, since that pair is next. So the result is the
    /// same as when the lowest rank is searched for after each merge. But since merges mostly make pairs of higher
    /// rank, a thousand equal signs need ten passes instead of a thousand.
    fn merge_all(&mut self, vocabulary: &Vocabulary, piece: &[u8], lowest: Rank) {
        let rank = |start: usize, end: usize| vocabulary.rank(&piece[start..end]).unwrap_or(NO_RANK);
        let (starts, ranks) = (&mut self.starts, &mut self.ranks);
        let len = ranks.len();
        // Parts before `write` are done; parts from `read` on are unchanged. What is between is free.
        let first = ranks.iter().position(|rank| *rank == lowest).unwrap_or(len);
        let (mut write, mut read) = (first, first);
        let mut has_lower = false;
        while read < len {
            starts[write] = starts[read];
            ranks[write] = ranks[read];
            read += 1;
            if ranks[write] == lowest && !has_lower {
                read += 1;
                ranks[write] = if read < len { rank(starts[write], starts[read + 1]) } else { NO_RANK };
                has_lower = ranks[write] < lowest;
                if let Some(before) = write.checked_sub(1) {
                    ranks[before] = rank(starts[before], starts[read]);
                    has_lower |= ranks[before] < lowest;
                }
            }
            write += 1;
        }
        starts[write] = piece.len();
        starts.truncate(write + 1);
        ranks.truncate(write);
    }
}
