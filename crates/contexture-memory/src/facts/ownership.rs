//! Whose a fact is: the least trusted of those whose words it is made of.
//!
//! A quote shows only what it says. The words of a fact (its text, value, entity and attribute, as terms, without common
//! words) must be in the sentence that the quote is in, with as many negations. Two things are allowed beside them: the
//! words of an attribute from the table of known ones, as `lives in`, and one name that the fact is about, if no tool and
//! no file used it: people speak of themselves as `I`.
//!
//! If other words are in what a tool or a file returned, the fact is that tool's or file's. Otherwise it is the model's
//! guess. So a text that a file dictates does not become the user's by quoting any words of the user.

use contexture_core::ThreadId;
use contexture_core::log::ItemLog;
use contexture_files::dialect::Dialects;

use super::attribute::is_single;
use super::evidence::{Evidence, LocatedQuote, find_repeated};
use super::fact::{Fact, Source, Speaker, coverage, hashes, negations};

/// Among how many of the newest items those are looked for whose words a fact has.
const MAX_COMPARED: usize = 200;
/// What facts are about without anybody saying so.
const SUBJECTS: &str = "user project conversation assistant";
/// The share of a fact's words that tell that it is spoken of.
const SPOKEN_OF: f64 = 0.5;

/// What a fact says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FactStatement<'a> {
    pub(super) text: &'a str,
    pub(super) entity: &'a str,
    pub(super) attribute: &'a str,
    pub(super) value: &'a str,
    /// Names of the user.
    pub(super) names: &'a str,
}

impl FactStatement<'_> {
    /// The words that are not in a sentence.
    fn missing(&self, sentence: &str) -> Vec<u64> {
        let is_known = is_single(self.attribute);
        let attribute = if is_known { "" } else { self.attribute };
        let own = hashes(&format!("{} {} {attribute} {}", self.text, self.value, self.entity));
        let known = if is_known { self.attribute } else { "" };
        let allowed = hashes(&format!("{sentence} {SUBJECTS} {} {known}", self.names));
        own.iter().copied().filter(|word| allowed.binary_search(word).is_err()).collect()
    }

    /// Whether these words are only the name of what it is about.
    fn is_name(&self, words: &[u64]) -> bool {
        let entity = hashes(self.entity);
        let first = hashes(self.text.split_whitespace().next().unwrap_or_default());
        words.len() == 1 && (entity.contains(&words[0]) || first.contains(&words[0]))
    }
}

/// Who says a statement with this quote, among these items.
pub(super) fn owned<'a>(
    found: LocatedQuote,
    statement: &FactStatement<'_>,
    thread: &ThreadId,
    items: impl Iterator<Item = Evidence<'a>>,
) -> LocatedQuote {
    let missing = statement.missing(&found.sentence);
    let is_same = negations(statement.text) == negations(&found.sentence) || found.said_by != Speaker::User;
    if missing.is_empty() && is_same {
        return found;
    }
    let mut others: Option<(f64, LocatedQuote)> = None;
    for evidence in items.filter(|evidence| evidence.said_by.is_content() && evidence.said_by < found.said_by) {
        let share = coverage(&missing, &hashes(evidence.read()));
        if share > others.as_ref().map_or(0.0, |(known, _)| *known) {
            let words = hashes(statement.text);
            let line = evidence
                .read()
                .lines()
                .map(str::trim)
                .max_by(|one, other| coverage(&words, &hashes(one)).total_cmp(&coverage(&words, &hashes(other))));
            let source = line.and_then(|line| evidence.source(thread, line));
            others = source.map(|source| (share, evidence.found(source))).or(others);
        }
    }
    match others {
        Some((_, other)) => other,
        None if is_same && statement.is_name(&missing) => found,
        None => LocatedQuote { said_by: found.said_by.min(Speaker::Assistant), ..found },
    }
}

/// The same, in the newest items of a log.
pub(super) fn owned_in(
    log: &ItemLog,
    dialects: &Dialects,
    thread: &ThreadId,
    found: LocatedQuote,
    statement: &FactStatement<'_>,
) -> LocatedQuote {
    // What the model said may be what it read.
    if found.said_by == Speaker::Assistant {
        return find_repeated(log, dialects, thread, statement.text).unwrap_or(found);
    }
    let newest = log.len().saturating_sub(MAX_COMPARED)..log.len();
    owned(found, statement, thread, newest.filter_map(|position| Evidence::at(log, dialects, position)))
}

/// Whether the user said, after a fact, that it is no longer true: in another message that speaks of it.
pub(super) fn ends(found: &LocatedQuote, fact: &Fact) -> bool {
    let spoken = hashes(&found.sentence);
    let told = if fact.value.trim().is_empty() { hashes(&fact.text) } else { hashes(&fact.value) };
    let is_other = |source: &Source| !source.is_same_item(&found.source);
    found.said_by == Speaker::User && fact.sources.iter().all(is_other) && coverage(&told, &spoken) >= SPOKEN_OF
}
