//! Words that mean the same, or a kind and its members: a question often has other words than what it asks for.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use contexture_text::search::terms;

/// See its first lines.
const TABLE: &str = include_str!("thesaurus.txt");
const STOP_WORDS: &str = include_str!("stop_words.txt");

/// The table by stem. It is a constant that takes a moment to compute.
static RELATED: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut related: HashMap<String, Vec<String>> = HashMap::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let (kinds, members) = line.split_once('>').unwrap_or((line, ""));
        let kinds = terms(kinds);
        let members = terms(members);
        for kind in &kinds {
            let entry = related.entry(kind.clone()).or_default();
            let new = kinds.iter().chain(&members).filter(|word| *word != kind);
            entry.extend(new.cloned());
        }
    }
    for words in related.values_mut() {
        words.sort_unstable();
        words.dedup();
    }
    related
});

static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
static STOP_TERMS: LazyLock<HashSet<String>> = LazyLock::new(|| terms(STOP_WORDS).into_iter().collect());

/// The terms that are related to a term.
pub(crate) fn related(term: &str) -> &'static [String] {
    RELATED.get(term).map_or(&[], Vec::as_slice)
}

/// Whether a word in lower case says nothing about what a question is about.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP.contains(word)
}

/// The same for a term.
pub(crate) fn is_stop_term(term: &str) -> bool {
    STOP_TERMS.contains(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_lead_to_members_and_equals_to_each_other() {
        let leads = |from: &str, to: &str| related(&terms(from)[0]).contains(&terms(to)[0]);
        assert!(leads("instruments", "guitar") && !leads("guitar", "violin"));
        assert!(leads("mother", "mum") && leads("mum", "mother"));
        assert!(is_stop_word("the") && is_stop_term(&terms("does")[0]) && !is_stop_word("guitar"));
    }
}
