//! BM25: how well documents match a query, computed from term counts.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::FixedState;

/// How quickly further occurrences of a term in one document lose weight.
const K1: f64 = 1.2;
/// How much the score of long documents is reduced.
const B: f64 = 0.75;

/// A document that has a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting<D> {
    /// The index's key of the document.
    pub document: D,
    /// How often the term occurs in it.
    pub count: u32,
    /// The number of its terms.
    pub length: u32,
}

/// Ranks the documents of one scope for one query.
///
/// An index adds the documents of each term, in the order of the terms, so that scores are the same to the last bit in
/// every index. For each term that a document has, its score increases by the term's weight times
/// `ln(1 + (n − df + ½) / (df + ½)) · tf · (k₁ + 1) / (tf + k₁ · (1 − b + b · length / average))`, with `k₁` 1.2 and
/// `b` 0.75, where `n` documents are in the scope and `df` of them have the term.
#[derive(Debug)]
pub struct Ranking<D> {
    documents: f64,
    average_length: f64,
    scores: HashMap<D, f64, FixedState>,
}

impl<D: Copy + Eq + Hash> Ranking<D> {
    /// A ranking over a scope with this many documents and terms.
    pub fn new(documents: u64, total_length: u64) -> Self {
        let average_length = if documents == 0 { 1.0 } else { total_length as f64 / documents as f64 };
        Self { documents: documents as f64, average_length: average_length.max(1.0), scores: HashMap::default() }
    }

    /// Adds a term and its weight, with all documents of the scope that have it.
    pub fn add_term(&mut self, weight: f64, postings: &[Posting<D>]) {
        let having = postings.len() as f64;
        self.scores.reserve(postings.len().saturating_sub(self.scores.len()));
        let weight = weight * ((self.documents - having + 0.5) / (having + 0.5)).ln_1p();
        for Posting { document, count, length } in postings {
            let (count, length) = (f64::from(*count), f64::from(*length));
            let held_back = K1 * (1.0 - B + B * length / self.average_length);
            *self.scores.entry(*document).or_default() += weight * count * (K1 + 1.0) / (count + held_back);
        }
    }

    /// Returns the best documents with their scores, best first: `limit` of them, and those that equal the last.
    pub fn best(self, limit: usize) -> Vec<(D, f64)> {
        let mut scores: Vec<(D, f64)> = self.scores.into_iter().collect();
        let better = |(_, one): &(D, f64), (_, other): &(D, f64)| other.total_cmp(one);
        // Only the best are sorted: a frequent term is in most documents of a large scope.
        if let Some(last) = limit.checked_sub(1).filter(|last| *last < scores.len()) {
            let score = scores.select_nth_unstable_by(last, better).1.1;
            scores.retain(|(_, other)| *other >= score);
        }
        scores.sort_by(better);
        if let Some((_, last)) = limit.checked_sub(1).and_then(|last| scores.get(last)).copied() {
            scores.retain(|(_, score)| *score >= last);
        } else if limit == 0 {
            scores.clear();
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posting(document: u32, count: u32, length: u32) -> Posting<u32> {
        Posting { document, count, length }
    }

    #[test]
    fn rare_terms_frequent_ones_and_short_documents_count_more() {
        let mut ranking = Ranking::new(4, 40);
        ranking.add_term(1.0, &[posting(1, 1, 10), posting(2, 2, 10), posting(3, 1, 5)]);
        ranking.add_term(1.0, &[posting(4, 1, 10)]);
        let order: Vec<u32> = ranking.best(10).into_iter().map(|(document, _)| document).collect();
        assert_eq!(order, [4, 2, 3, 1]);
    }

    #[test]
    fn the_best_come_with_their_equals() {
        let ranked = |limit| {
            let mut ranking = Ranking::new(5, 5);
            ranking.add_term(1.0, &[posting(1, 2, 1), posting(2, 1, 1), posting(3, 1, 1)]);
            ranking.best(limit).len()
        };
        assert_eq!([ranked(0), ranked(1), ranked(2), ranked(3), ranked(9)], [0, 1, 3, 3, 3]);
    }

    #[test]
    fn a_term_of_every_document_still_counts_for_something() {
        let mut ranking = Ranking::new(1, 0);
        ranking.add_term(1.0, &[posting(1, 1, 0)]);
        assert!(ranking.best(1)[0].1 > 0.0);
    }
}
