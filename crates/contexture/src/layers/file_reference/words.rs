//! Words that a query and a file have in common, without keeping the words.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use contexture_text::words::{parts, words};

/// Shorter words are ignored.
const MIN_WORD_BYTES: usize = 3;

/// Words that differ only after this many bytes count as the same.
const MAX_WORD_BYTES: usize = 64;

/// How much of a text is used: its beginning says what it is about.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// How many words of a query are used.
const MAX_QUERY_WORDS: usize = 64;

/// A sketch consists of lines of 512 bits, and each word sets bits in only one line, so that a lookup touches memory
/// once.
type SketchLine = [u64; 8];

/// The number of lines of a text's sketch.
const TEXT_LINES: usize = 16;

/// The number of lines of a path's sketch.
const PATH_LINES: usize = 1;

/// Common English words, sorted.
const STOP_WORDS: [&str; 77] = [
    "about", "after", "again", "all", "also", "and", "any", "are", "because", "been", "before", "but", "can", "could",
    "did", "does", "don", "done", "for", "from", "get", "good", "had", "has", "have", "here", "how", "into", "its",
    "just", "let", "like", "look", "make", "more", "need", "new", "not", "now", "okay", "one", "only", "other", "our",
    "out", "please", "see", "should", "some", "such", "thank", "thanks", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "use", "very", "want", "was", "way", "well", "were", "what", "when", "where",
    "which", "why", "will", "with", "would", "you",
];

/// A set of words as a Bloom filter. The false positive rate is about one in thirty for a file of usual size.
#[derive(Clone)]
pub(super) struct Sketch<const LINES: usize>(Box<[SketchLine; LINES]>);

/// The words of a text.
pub(super) type TextSketch = Sketch<TEXT_LINES>;

/// The words of a path.
pub(super) type PathSketch = Sketch<PATH_LINES>;

impl<const LINES: usize> Sketch<LINES> {
    /// The words of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut sketch = Self(Box::new([[0; 8]; LINES]));
        for_each_word(text, |hash, _| {
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
    /// The distinct significant words of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut words = Vec::new();
        for_each_word(text, |hash, word| {
            let stops = STOP_WORDS.binary_search_by(|stop| stop.as_bytes().cmp(word)).is_ok();
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

    /// Whether there are no words.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Calls `found` with the hash of every word that is long enough, and the word, ignoring case.
fn for_each_word(text: &str, mut found: impl FnMut(u64, &[u8])) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let state = FixedState::with_seed(0);
    for part in words(text).flat_map(parts).filter(|part| part.len() >= MIN_WORD_BYTES) {
        let mut small = [0; MAX_WORD_BYTES];
        let small = &mut small[..part.len().min(MAX_WORD_BYTES)];
        small.copy_from_slice(&part.as_bytes()[..small.len()]);
        small.make_ascii_lowercase();
        found(state.hash_one(&*small), small);
    }
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
