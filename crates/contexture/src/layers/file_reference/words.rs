//! Words that a query and a file have in common, without keeping the words.

use std::ops::Range;

/// Words shorter than this say nothing.
const MIN_WORD_BYTES: usize = 3;

/// How much of a text is looked at: its beginning tells what it is about.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// How many words of a query are looked for.
const MAX_QUERY_WORDS: usize = 64;

/// A sketch is made of lines of 512 bits, and a word leaves its bits in one of them: one look into memory finds it.
type Line = [u64; 8];

/// How many lines the sketch of a text has.
const TEXT_LINES: usize = 16;

/// How many lines the sketch of a path has.
const PATH_LINES: usize = 1;

/// English words that are in every message; sorted.
const STOP_WORDS: [&str; 77] = [
    "about", "after", "again", "all", "also", "and", "any", "are", "because", "been", "before", "but", "can", "could",
    "did", "does", "don", "done", "for", "from", "get", "good", "had", "has", "have", "here", "how", "into", "its",
    "just", "let", "like", "look", "make", "more", "need", "new", "not", "now", "okay", "one", "only", "other", "our",
    "out", "please", "see", "should", "some", "such", "thank", "thanks", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "use", "very", "want", "was", "way", "well", "were", "what", "when", "where",
    "which", "why", "will", "with", "would", "you",
];

/// A set of words as a Bloom filter: it may think of a word that is not there, once in thirty for a file of usual size.
#[derive(Clone)]
pub(super) struct Sketch<const LINES: usize>(Box<[Line; LINES]>);

/// The words of a text.
pub(super) type TextSketch = Sketch<TEXT_LINES>;

/// The words of a path.
pub(super) type PathSketch = Sketch<PATH_LINES>;

impl<const LINES: usize> Sketch<LINES> {
    /// The words of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut sketch = Self(Box::new([[0; 8]; LINES]));
        let bytes = text.as_bytes();
        for_each_word(&bytes[..bytes.len().min(MAX_TEXT_BYTES)], |hash, _| {
            let (line, bits) = places::<LINES>(hash);
            for bit in bits {
                sketch.0[line][bit / 64] |= 1 << (bit % 64);
            }
        });
        sketch
    }

    fn has(&self, hash: u64) -> bool {
        let (line, bits) = places::<LINES>(hash);
        bits.into_iter().all(|bit| self.0[line][bit / 64] & (1 << (bit % 64)) != 0)
    }
}

/// The line of a word, and its two bits there.
fn places<const LINES: usize>(hash: u64) -> (usize, [usize; 2]) {
    let part = |shift: u32, modulus: usize| (hash >> shift) as usize % modulus;
    (part(0, LINES), [part(16, 512), part(32, 512)])
}

/// The words of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryWords(Vec<u64>);

impl QueryWords {
    /// The distinct words of a text that say something.
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut words = Vec::new();
        for_each_word(&bytes[..bytes.len().min(MAX_TEXT_BYTES)], |hash, range| {
            let word = bytes[range].to_ascii_lowercase();
            let stops = STOP_WORDS.binary_search_by(|stop| stop.as_bytes().cmp(&word)).is_ok();
            if !stops && words.len() < MAX_QUERY_WORDS && !words.contains(&hash) {
                words.push(hash);
            }
        });
        Self(words)
    }

    /// How many of them are in a sketch.
    pub(super) fn in_common<const LINES: usize>(&self, sketch: &Sketch<LINES>) -> usize {
        self.0.iter().filter(|hash| sketch.has(**hash)).count()
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a byte is in a word. `FileTracker` and `file_tracker` are two words each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Between,
    Lower,
    Upper,
    /// Digits, and all bytes of letters beyond ASCII.
    Other,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Between; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' | 0x80.. => Class::Other,
            _ => Class::Between,
        };
        byte += 1;
    }
    classes
};

/// Calls `found` with the hash and place of every word. The case of letters does not matter.
fn for_each_word(bytes: &[u8], mut found: impl FnMut(u64, Range<usize>)) {
    let (mut start, mut before) = (0, Class::Between);
    // The last eight bytes of the word, and what came before them.
    let (mut tail, mut hash) = (0_u64, 0_u64);
    for (at, byte) in bytes.iter().enumerate() {
        let class = CLASSES[usize::from(*byte)];
        let between = class == Class::Between;
        if between || (before == Class::Lower && class == Class::Upper) {
            if at - start >= MIN_WORD_BYTES {
                found(mix(hash ^ tail), start..at);
            }
            (start, tail, hash) = (at + usize::from(between), 0, 0);
        } else if tail >> 56 != 0 {
            (hash, tail) = (mix(hash ^ tail), 0);
        }
        if !between {
            // This bit makes letters lower case and leaves digits alone.
            tail = tail << 8 | u64::from(*byte | 0x20);
        }
        before = class;
    }
    if bytes.len() - start >= MIN_WORD_BYTES {
        found(mix(hash ^ tail), start..bytes.len());
    }
}

/// Spreads what differs over all bits.
fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, expected: usize) {
        assert_eq!(QueryWords::of(query).in_common(&TextSketch::of(text)), expected, "{query:?} in {text:?}");
    }

    #[test]
    fn words_are_found_whatever_their_spelling() {
        check("how does the tracker track files", "struct FileTracker; fn track_files()", 3);
        check("Parser parser PARSER", "mod parser;", 1);
        check("日本", "docs/日本.md", 1);
        check("the and with", "the and with", 0);
        check("", "text", 0);
        check("tracking", "track", 0);
    }

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn few_words_are_found_that_are_not_there() {
        let text: String = (0..500).map(|n| format!("word{n} ")).collect();
        let sketch = TextSketch::of(&text);
        let others: String = (0..40).map(|n| format!("other{n} ")).collect();
        let wrong = QueryWords::of(&others).in_common(&sketch);
        assert!(wrong < 6, "{wrong} of 40");
    }
}
