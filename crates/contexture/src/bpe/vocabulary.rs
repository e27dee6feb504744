//! The tokens of a vocabulary, and how early each was learned.

/// How early a token was learned; of two merges, the one with the lower rank comes first.
pub(super) type Rank = u32;

/// The rank for bytes that are not a token.
pub(super) const NO_RANK: Rank = Rank::MAX;

/// All tokens, indexed by their bytes.
///
/// A hash table with open addressing, at most half full.
pub(super) struct Vocabulary {
    /// The bytes of all tokens, by rank.
    bytes: Vec<u8>,
    /// Where the bytes of each token end.
    ends: Vec<u32>,
    slots: Vec<TokenSlot>,
    /// The ranks of all tokens of two bytes, by these.
    pairs: Vec<Rank>,
    longest: usize,
}

#[derive(Clone, Copy)]
struct TokenSlot {
    key: TokenKey,
    rank: Rank,
}

/// The key of a token. Most tokens are short, and for these comparing the key is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TokenKey {
    /// The bytes themselves, if they are at most eight; otherwise a hash of them.
    word: u64,
    len: u32,
}

impl Vocabulary {
    /// The vocabulary of an encoder, without its special tokens.
    pub(super) fn of(encoder: &tiktoken::CoreBpe) -> Self {
        let len = encoder.vocab_size();
        let free = TokenSlot { key: TokenKey { word: 0, len: 0 }, rank: NO_RANK };
        let mut vocabulary = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(len),
            slots: vec![free; (2 * len).next_power_of_two()],
            pairs: vec![NO_RANK; 1 << 16],
            longest: 1,
        };
        for rank in 0..len as Rank {
            vocabulary.add(&encoder.decode(&[rank]), rank);
        }
        vocabulary
    }

    fn add(&mut self, token: &[u8], rank: Rank) {
        self.bytes.extend_from_slice(token);
        self.ends.push(self.bytes.len() as u32);
        self.longest = self.longest.max(token.len());
        if let [first, second] = *token {
            self.pairs[pair_index(first, second)] = rank;
        }
        let key = TokenKey::of(token);
        let mut index = key.hash() as usize & (self.slots.len() - 1);
        while self.slots[index].rank != NO_RANK {
            index = (index + 1) & (self.slots.len() - 1);
        }
        self.slots[index] = TokenSlot { key, rank };
    }

    /// How many tokens there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes the longest token has.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The rank of the token with these bytes.
    #[inline]
    pub(super) fn rank(&self, token: &[u8]) -> Option<Rank> {
        let key = TokenKey::of(token);
        let mut index = key.hash() as usize & (self.slots.len() - 1);
        loop {
            let slot = self.slots[index];
            if slot.rank == NO_RANK {
                return None;
            }
            if slot.key == key && (key.is_whole() || self.token(slot.rank) == token) {
                return Some(slot.rank);
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }

    /// The rank of the token with these two bytes, or [`NO_RANK`].
    #[inline]
    pub(super) fn pair_rank(&self, first: u8, second: u8) -> Rank {
        self.pairs[pair_index(first, second)]
    }

    fn token(&self, rank: Rank) -> &[u8] {
        let rank = rank as usize;
        let start = rank.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[rank] as usize]
    }
}

fn pair_index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

impl TokenKey {
    #[inline]
    fn of(token: &[u8]) -> Self {
        let last = last_word(token);
        let word = match token.len() {
            ..=8 => last,
            _ => token.as_chunks::<8>().0.iter().fold(last, |hash, word| fold(hash ^ u64::from_le_bytes(*word))),
        };
        Self { word, len: token.len() as u32 }
    }

    /// Whether it has all bytes of the token.
    #[inline]
    fn is_whole(self) -> bool {
        self.len <= 8
    }

    #[inline]
    fn hash(self) -> u64 {
        fold(self.word ^ u64::from(self.len) << 56)
    }
}

/// The last eight bytes, or all if there are fewer. Of four to seven bytes some are in it twice, but for the same
/// length, different bytes still give different words.
#[inline]
fn last_word(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.last_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
    }
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Multiplies and folds the halves of the product. An attacker who chooses the text cannot choose what is in the table,
/// so the hash needs no protection against collisions.
#[inline]
fn fold(word: u64) -> u64 {
    let product = u128::from(word) * 0x9E37_79B9_7F4A_7C15;
    product as u64 ^ (product >> 64) as u64
}
