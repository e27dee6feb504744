//! A hash for short words that costs a few instructions.
//!
//! A fold looks up every word of every known line. The standard hash guards against keys chosen to collide; here
//! such keys would only make one fold slow, and they would have to be said by the user or the model.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes maps of words.
pub(super) type HashWords = BuildHasherDefault<WordHasher>;

/// Mixes eight bytes at a time.
#[derive(Clone, Copy, Default)]
pub(super) struct WordHasher(u64);

/// An odd number whose bits are spread well: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl WordHasher {
    fn mix(&mut self, bits: u64) {
        let product = u128::from(self.0 ^ bits) * u128::from(SPREAD);
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (wholes, rest) = bytes.as_chunks::<8>();
        for whole in wholes {
            self.mix(u64::from_le_bytes(*whole));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    /// Strings end their hash with a byte that tells them from longer ones; the length does so already.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn different_words_have_different_hashes() {
        let words = (0..10_000).map(|n| "ab_é".repeat(1 + n % 7) + &n.to_string());
        let hashes: HashSet<u64> = words.map(|word| HashWords::default().hash_one(word.as_str())).collect();
        assert_eq!(hashes.len(), 10_000);
        let low_bits: HashSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        assert!(low_bits.len() > 8_500, "{} different ends", low_bits.len());
    }
}
