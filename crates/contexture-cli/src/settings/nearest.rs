//! The known word that an unknown word was probably meant to be.

/// Returns the known word with the least edit distance to `word`, the first of several, if one is near enough.
///
/// Near enough is one edit for every three characters, and at least one.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    let measured = known.into_iter().map(|other| (distance(word, other), other));
    measured.filter(|(edits, _)| *edits <= most).min_by_key(|(edits, _)| *edits).map(|(_, other)| other)
}

/// The same as a hint.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|meant| format!("did you mean `{meant}`?"))
}

/// The edits that turn one word into the other: a character added, removed or changed, or two neighbours swapped.
///
/// Case does not count.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.to_lowercase().chars().collect();
    let to: Vec<char> = to.to_lowercase().chars().collect();
    // A row for each prefix of `from`, and in it the distance to each prefix of `to`.
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_are_counted_in_edits() {
        for (from, to, edits) in
            [("", "", 0), ("", "abc", 3), ("buget", "budget", 1), ("bugdet", "budget", 1), ("x", "budget", 6)]
        {
            assert_eq!(distance(from, to), edits, "{from} {to}");
        }
    }

    #[test]
    fn a_word_that_is_far_from_all_has_no_nearest() {
        let known = ["budget", "counter", "overflow"];
        assert_eq!(nearest("bugdet", known), Some("budget"));
        assert_eq!(nearest("Counter", known), Some("counter"));
        assert_eq!(nearest("upstream", known), None);
        assert_eq!(nearest("", known), None);
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_zero_only_for_equal_words(one in "[a-d]{0,6}", other in "[a-d]{0,6}") {
            prop_assert_eq!(distance(&one, &other), distance(&other, &one));
            prop_assert_eq!(distance(&one, &other) == 0, one == other);
        }
    }
}
