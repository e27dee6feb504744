//! Words that a query and a file have in common, without keeping the words.

/// Words shorter than this say nothing.
const MIN_WORD_BYTES: usize = 3;

/// How much of a text is looked at: its beginning tells what it is about.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// How many words of a query are looked for.
const MAX_QUERY_WORDS: usize = 64;

const SKETCH_WORDS: usize = 128;
const SKETCH_BITS: u64 = SKETCH_WORDS as u64 * 64;

/// English words that are in every message; sorted.
const STOP_WORDS: [&str; 77] = [
    "about", "after", "again", "all", "also", "and", "any", "are", "because", "been", "before", "but", "can", "could",
    "did", "does", "don", "done", "for", "from", "get", "good", "had", "has", "have", "here", "how", "into", "its",
    "just", "let", "like", "look", "make", "more", "need", "new", "not", "now", "okay", "one", "only", "other", "our",
    "out", "please", "see", "should", "some", "such", "thank", "thanks", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "use", "very", "want", "was", "way", "well", "were", "what", "when", "where",
    "which", "why", "will", "with", "would", "you",
];

/// A set of words as a Bloom filter: it may think of a word that is not there, once in fifty for a file of usual size.
#[derive(Clone)]
pub(super) struct Sketch(Box<[u64; SKETCH_WORDS]>);

impl Sketch {
    /// The words of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut sketch = Self(Box::new([0; SKETCH_WORDS]));
        let bytes = text.as_bytes();
        for_each_word(&bytes[..bytes.len().min(MAX_TEXT_BYTES)], |hash, _| {
            for bit in bits(hash) {
                sketch.0[(bit / 64) as usize] |= 1 << (bit % 64);
            }
        });
        sketch
    }

    fn has(&self, hash: u64) -> bool {
        bits(hash).into_iter().all(|bit| self.0[(bit / 64) as usize] & (1 << (bit % 64)) != 0)
    }
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
    pub(super) fn in_common(&self, sketch: &Sketch) -> usize {
        self.0.iter().filter(|hash| sketch.has(**hash)).count()
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Two bits for each word.
fn bits(hash: u64) -> [u64; 2] {
    [hash % SKETCH_BITS, (hash >> 32) % SKETCH_BITS]
}

/// Calls `found` with the hash and place of every word. `FileTracker` and `file_tracker` are two words each.
fn for_each_word(bytes: &[u8], mut found: impl FnMut(u64, std::ops::Range<usize>)) {
    const SEED: u64 = 0xcbf2_9ce4_8422_2325;
    let (mut hash, mut start, mut was_lower) = (SEED, 0, false);
    for (at, byte) in bytes.iter().chain([&b' ']).enumerate() {
        let is_word = byte.is_ascii_alphanumeric() || *byte >= 0x80;
        if !is_word || (was_lower && byte.is_ascii_uppercase()) {
            if at - start >= MIN_WORD_BYTES {
                found(mix(hash), start..at);
            }
            (hash, start) = (SEED, if is_word { at } else { at + 1 });
        }
        if is_word {
            hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3);
        }
        was_lower = byte.is_ascii_lowercase();
    }
}

/// Spreads what differs over all bits.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, expected: usize) {
        assert_eq!(QueryWords::of(query).in_common(&Sketch::of(text)), expected, "{query:?} in {text:?}");
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
        let text: String = (0..800).map(|n| format!("word{n} ")).collect();
        let sketch = Sketch::of(&text);
        let wrong = (0..1000).filter(|n| sketch.has(mix(*n * 7919))).count();
        assert!(wrong < 60, "{wrong} of 1000");
    }
}
