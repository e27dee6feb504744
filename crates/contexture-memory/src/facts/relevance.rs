//! Which facts are worth showing for a query.

use contexture_core::item::Role;
use contexture_core::log::ItemLog;
use contexture_core::tokens::floor_boundary;

use super::fact::{Fact, Speaker, hashes};
use super::set::Facts;

/// How many messages of the user count besides the query, and how much of each.
const RECENT_MESSAGES: usize = 3;
const RECENT_ITEMS: usize = 40;
const RECENT_BYTES: usize = 600;
/// How much of the query counts.
const QUERY_BYTES: usize = 4 * 1024;
/// What a word of a recent message counts, beside one of the query.
const RECENT_WEIGHT: f64 = 0.3;

/// What a conversation is about.
pub(crate) struct Subject {
    query: Box<[u64]>,
    recent: Box<[u64]>,
}

impl Subject {
    /// The words of the query, and of the newest messages of the user.
    pub(crate) fn of(query: &str, log: &ItemLog) -> Self {
        let messages = log.last(RECENT_ITEMS).rev().filter(|item| item.is_message_of(Role::User)).take(RECENT_MESSAGES);
        let mut recent = String::new();
        for message in messages.filter_map(|item| item.as_message()) {
            let text = message.text_cow();
            recent.push_str(&text[..floor_boundary(&text, RECENT_BYTES)]);
            recent.push('\n');
        }
        Self { query: hashes(&query[..floor_boundary(query, QUERY_BYTES)]), recent: hashes(&recent) }
    }
}

impl Subject {
    /// How many words of a fact the query has, and how many the fact has.
    pub(crate) fn shared(&self, fact: &Fact) -> (usize, usize) {
        let terms = fact.terms();
        (terms.iter().filter(|term| self.query.binary_search(term).is_ok()).count(), terms.len())
    }
}

/// A fact with how well it fits.
#[derive(Clone, Copy)]
pub(crate) struct RankedFact<'a> {
    pub(crate) fact: &'a Fact,
    /// How much it has in common with the query; 0 for nothing.
    pub(crate) score: f64,
}

/// The current facts, the most relevant first; among equal ones those that matter more in general.
pub(crate) fn ranked<'a>(facts: &'a Facts, subject: &Subject) -> Vec<RankedFact<'a>> {
    let current: Vec<&Fact> = facts.current().collect();
    let (query, recent) = (WeightedTerms::of(&subject.query, &current), WeightedTerms::of(&subject.recent, &current));
    let score = |fact: &'a Fact| RankedFact { fact, score: query.shared(fact) + RECENT_WEIGHT * recent.shared(fact) };
    let mut ranked: Vec<RankedFact<'_>> = current.iter().map(|fact| score(fact)).collect();
    ranked.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| standing(other.fact).cmp(&standing(one.fact)))
    });
    ranked
}

/// Words with what each counts: the rarer among the facts, the more.
struct WeightedTerms<'a> {
    /// Sorted.
    terms: &'a [u64],
    weights: Vec<f64>,
}

impl<'a> WeightedTerms<'a> {
    fn of(terms: &'a [u64], facts: &[&Fact]) -> Self {
        let mut having = vec![0_u32; terms.len()];
        for term in facts.iter().flat_map(|fact| fact.terms()) {
            if let Ok(at) = terms.binary_search(term) {
                having[at] += 1;
            }
        }
        let weight = |having: u32| (1.0 + facts.len() as f64 / (1.0 + f64::from(having))).ln();
        Self { terms, weights: having.into_iter().map(weight).collect() }
    }

    /// What a fact has of them, added up.
    fn shared(&self, fact: &Fact) -> f64 {
        fact.terms().iter().filter_map(|term| Some(self.weights[self.terms.binary_search(term).ok()?])).sum()
    }
}

/// What a fact counts without a query.
fn standing(fact: &Fact) -> (bool, bool, u32, u64) {
    (fact.confirmed, fact.said_by == Speaker::User, fact.uses.min(8), fact.valid_from_ms)
}
