//! Splits code and prose into words, for layers, folds and search.

/// Runs of letters, digits and underscores. A fold examines every known line, so bytes are classified by a table.
///
/// `file_tracker.rs` has the words `file_tracker` and `rs`.
#[inline]
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    WordIter { text, at: 0 }
}

/// The parts of an identifier: `file_tracker` and `FileTracker` have two each.
#[inline]
pub fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches('_');
        if rest.is_empty() {
            return None;
        }
        let (part, after) = rest.split_at(part_len(rest));
        rest = after;
        Some(part)
    })
}

/// Where the first part of a word ends: at an underscore, or where a capital follows a small letter.
fn part_len(word: &str) -> usize {
    let bytes = word.as_bytes();
    let is_end =
        |at: &usize| bytes[*at] == b'_' || (bytes[*at].is_ascii_uppercase() && bytes[*at - 1].is_ascii_lowercase());
    (1..bytes.len()).find(is_end).unwrap_or(bytes.len())
}

struct WordIter<'a> {
    text: &'a str,
    at: usize,
}

const IS_WORD_BYTE: [bool; 128] = {
    let mut table = [false; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

impl WordIter<'_> {
    /// Skips the characters that are in words, or those that are not.
    fn pass(&mut self, in_words: bool) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            let (is_in, len) = match IS_WORD_BYTE.get(usize::from(*byte)) {
                Some(is_in) => (*is_in, 1),
                None => self.text[self.at..].chars().next().map_or((false, 1), |c| (c.is_alphanumeric(), c.len_utf8())),
            };
            if is_in != in_words {
                return;
            }
            self.at += len;
        }
    }
}

impl<'a> Iterator for WordIter<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        self.pass(false);
        let start = self.at;
        self.pass(true);
        (start < self.at).then(|| &self.text[start..self.at])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_runs_of_letters_digits_and_underscores(text in "[a-zA-Z0-9_ .é日()−\\n]{0,120}") {
            let split = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let expected: Vec<&str> = split.filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(words(&text).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn parts_are_all_of_a_word_but_its_underscores(word in "[a-zA-Z0-9_é日]{0,40}") {
            let joined: String = parts(&word).collect();
            prop_assert_eq!(joined, word.replace('_', ""));
        }
    }

    #[test]
    fn a_word_is_parted_where_people_part_it() {
        let cases: [(&str, &[&str]); 5] = [
            ("FileTracker", &["File", "Tracker"]),
            ("file_tracker", &["file", "tracker"]),
            ("__init__", &["init"]),
            ("HTTPServer2", &["HTTPServer2"]),
            ("日本", &["日本"]),
        ];
        for (word, expected) in cases {
            assert_eq!(parts(word).collect::<Vec<_>>(), expected);
        }
    }
}
