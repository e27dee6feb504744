//! Compares conversations that were folded with those that were held out, with intervals.
//!
//! Conversations are what was assigned, so they are what is drawn again: each of `RESAMPLES` resamples draws as many
//! conversations of each group as there are, with replacement, and the interval is what 95 % of them lie in. A measure of
//! a group is the sum over its conversations divided by the sum of their requests or turns.

use std::collections::BTreeMap;

use contexture_measure::interval::{Interval, Resamples};
use contexture_measure::random::Rng;
use serde::{Deserialize, Serialize};

use crate::account::cap::Spent;
use crate::account::record::RequestRecord;
use crate::account::signals::SignalCounts;

/// How many resamples are drawn.
pub(crate) const RESAMPLES: usize = 2_000;

/// The half width of an interval that is narrow enough to say something, as a share.
pub(crate) const NARROW: f64 = 0.2;

/// The fewest conversations of a group from which an interval is made.
pub const LEAST: usize = 5;

/// The seed of what is drawn.
const SEED: u64 = 0x5eed;

/// The sums of one conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConversationSums {
    /// Whether it was held out.
    pub is_held_out: bool,
    /// Requests that a model answered.
    pub requests: u64,
    /// What was spent.
    pub spent: Spent,
    /// Time until responses had ended, in milliseconds.
    pub time_ms: u64,
    /// What happened in it.
    pub signals: SignalCounts,
}

/// One measure of both groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What is measured.
    pub name: String,
    /// The conversations that were folded.
    pub folded: Interval,
    /// Those that were held out.
    pub held_out: Interval,
    /// The first against the second, as a share: −0.3 is 30 % less. `None` if the second has none of it.
    pub difference: Option<Interval>,
}

/// Both groups side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How many conversations were folded.
    pub folded: usize,
    /// How many were held out.
    pub held_out: usize,
    /// The measures; empty if there are too few conversations for any interval.
    pub measures: Vec<Measure>,
    /// How many conversations of each group are missing until the difference in dollars for each turn is known to
    /// ± 20 %, by what is known now: folded, and held out. Nothing is missing if both are 0.
    pub missing: (usize, usize),
    /// Whether some dollars rest on guessed prices.
    pub is_guessed: bool,
    /// Requests to models without a known price, which dollars lack.
    pub unpriced: u64,
}

/// What is divided by what.
type Ratio = fn(&ConversationSums) -> (f64, f64);

/// The measures, in order. The third is the one whose interval decides whether there are enough conversations.
const MEASURES: &[(&str, Ratio)] = &[
    ("dollars a request", |sums| (sums.spent.dollars, sums.requests as f64)),
    ("tokens a request", |sums| (sums.spent.tokens as f64, sums.requests as f64)),
    ("dollars a turn", |sums| (sums.spent.dollars, turns(sums))),
    ("tokens a turn", |sums| (sums.spent.tokens as f64, turns(sums))),
    ("requests a turn", |sums| (sums.requests as f64, turns(sums))),
    ("seconds a turn", |sums| (sums.time_ms as f64 / 1_000.0, turns(sums))),
    ("interruptions a turn", |sums| (sums.signals.interruptions as f64, turns(sums))),
    ("\"no\" a turn", |sums| (sums.signals.noes as f64, turns(sums))),
    ("repeated instructions a turn", |sums| (sums.signals.repeated_instructions as f64, turns(sums))),
    ("repeated reads a turn", |sums| (sums.signals.repeated_reads as f64, turns(sums))),
    ("failed edits a turn", |sums| (sums.signals.failed_edits as f64, turns(sums))),
    ("tool errors a turn", |sums| (sums.signals.tool_errors as f64, turns(sums))),
];

/// The measure that decides whether there are enough conversations: dollars, or tokens where no price is known.
const DECIDING: [&str; 2] = ["dollars a turn", "tokens a turn"];

fn turns(sums: &ConversationSums) -> f64 {
    sums.signals.turns as f64
}

/// The sums of the conversations that were assigned to a group, in the order of their names.
pub fn conversation_sums(records: &[RequestRecord]) -> Vec<ConversationSums> {
    let mut found: BTreeMap<&str, ConversationSums> = BTreeMap::new();
    for record in records.iter().filter(|record| record.usage.is_some() && !record.is_count) {
        let (Some(conversation), Some(is_held_out)) = (&record.conversation, record.is_held_out) else { continue };
        let sums = found.entry(conversation).or_default();
        sums.is_held_out = is_held_out;
        sums.requests += 1;
        sums.spent = sums.spent.and(Spent::of(record));
        sums.time_ms += record.whole_ms;
        // Counts only grow, and records come in any order: the largest are those of the conversation.
        if let Some(signals) = record.signals.filter(|signals| signals.total() >= sums.signals.total()) {
            sums.signals = signals;
        }
    }
    found.into_values().filter(|sums| sums.signals.turns > 0).collect()
}

/// Compares the conversations of both groups.
pub fn compare(conversations: &[ConversationSums]) -> Comparison {
    let (held_out, folded): (Vec<_>, Vec<_>) = conversations.iter().copied().partition(|sums| sums.is_held_out);
    let all = conversations.iter().fold(Spent::default(), |sum, sums| sum.and(sums.spent));
    let mut comparison = Comparison {
        folded: folded.len(),
        held_out: held_out.len(),
        is_guessed: all.is_guessed,
        unpriced: all.unpriced,
        ..Comparison::default()
    };
    if folded.len() < LEAST || held_out.len() < LEAST {
        comparison.missing = (LEAST.saturating_sub(folded.len()), LEAST.saturating_sub(held_out.len()));
        return comparison;
    }
    let drawn = resamples(folded.len(), held_out.len());
    comparison.measures =
        MEASURES.iter().map(|(name, ratio)| measure(name, *ratio, &folded, &held_out, &drawn)).collect();
    let known = |name: &&&str| comparison.measures.iter().find(|measure| measure.name == **name)?.difference;
    let deciding = DECIDING.iter().find_map(|name| known(&name));
    let half = deciding.map_or(f64::INFINITY, |interval| (interval.high - interval.low) / 2.0);
    // An interval narrows with the root of the number.
    let factor = (half / NARROW).powi(2);
    let missing = |count: usize| match factor.is_finite() {
        true => ((count as f64 * factor).ceil() as usize).saturating_sub(count),
        false => count,
    };
    comparison.missing = (missing(folded.len()), missing(held_out.len()));
    comparison
}

fn rate<'a>(ratio: Ratio, conversations: impl Iterator<Item = &'a ConversationSums>) -> f64 {
    let (above, below) = conversations.map(ratio).fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if below > 0.0 { above / below } else { 0.0 }
}

fn measure(
    name: &str,
    ratio: Ratio,
    folded: &[ConversationSums],
    held_out: &[ConversationSums],
    drawn: &Resamples<2>,
) -> Measure {
    let mut values: [Vec<f64>; 3] = Default::default();
    for [one, other] in drawn.iter() {
        let (one, other) =
            (rate(ratio, one.iter().map(|at| &folded[*at])), rate(ratio, other.iter().map(|at| &held_out[*at])));
        values[0].push(one);
        values[1].push(other);
        if other > 0.0 {
            values[2].push(one / other - 1.0);
        }
    }
    let (one, other) = (rate(ratio, folded.iter()), rate(ratio, held_out.iter()));
    let [ones, others, differences] = values;
    Measure {
        name: name.to_owned(),
        folded: Interval::of(one, ones),
        held_out: Interval::of(other, others),
        // Where hardly any resample has something to compare with, a share says nothing.
        difference: (other > 0.0 && differences.len() * 10 >= RESAMPLES * 9)
            .then(|| Interval::of(one / other - 1.0, differences)),
    }
}

/// Which conversations are drawn, of each group: folded, and held out. The same are drawn for every measure, and every
/// time.
fn resamples(folded: usize, held_out: usize) -> Resamples<2> {
    let mut random = Rng::new(SEED);
    Resamples::draw(RESAMPLES, [folded, held_out], |size| random.share(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(is_held_out: bool, count: usize, dollars: impl Fn(usize) -> f64, harm: u64) -> Vec<ConversationSums> {
        let one = |n: usize| ConversationSums {
            is_held_out,
            requests: 20,
            spent: Spent { dollars: dollars(n), tokens: 1_000, ..Spent::default() },
            time_ms: 60_000,
            signals: SignalCounts { turns: 2, repeated_reads: harm, ..SignalCounts::default() },
        };
        (0..count).map(one).collect()
    }

    fn named<'a>(comparison: &'a Comparison, name: &str) -> &'a Measure {
        comparison.measures.iter().find(|measure| measure.name == name).unwrap()
    }

    #[test]
    fn an_interval_has_the_figure_in_it_and_a_clear_difference_is_clear() {
        let spread = |n: usize| 1.0 + (n % 5) as f64 / 10.0;
        let both = [group(false, 60, |n| spread(n) * 0.6, 0), group(true, 40, spread, 0)].concat();
        let comparison = compare(&both);
        let Measure { folded, held_out, difference, .. } = named(&comparison, "dollars a turn");
        assert!((held_out.value - 0.6).abs() < 1e-9 && (folded.value - 0.36).abs() < 1e-9, "{folded:?} {held_out:?}");
        let difference = difference.unwrap();
        assert!((difference.value + 0.4).abs() < 1e-9, "{difference:?}");
        assert!(difference.low < -0.4 && -0.4 < difference.high && difference.high < -0.3, "{difference:?}");
        assert_eq!(comparison.missing, (0, 0));
        assert_eq!(named(&comparison, "failed edits a turn").difference, None, "nobody has any");
        assert_eq!(compare(&both), comparison, "it says the same every time");
    }

    #[test]
    fn the_sums_of_a_conversation_do_not_depend_on_the_order_of_its_records() {
        let record = |n: u64| RequestRecord {
            conversation: Some("c".to_owned()),
            is_held_out: Some(false),
            usage: Some(Default::default()),
            whole_ms: 5,
            signals: Some(SignalCounts { turns: 1, repeated_reads: n, ..SignalCounts::default() }),
            ..RequestRecord::default()
        };
        let mut records = vec![record(0), record(1), record(2)];
        let forward = conversation_sums(&records);
        records.reverse();
        assert_eq!(conversation_sums(&records), forward);
        assert_eq!((forward[0].signals.repeated_reads, forward[0].requests, forward[0].time_ms), (2, 3, 15));
    }

    #[test]
    fn too_few_conversations_say_how_many_are_missing() {
        let few = [group(false, 3, |_| 1.0, 0), group(true, 9, |_| 1.0, 0)].concat();
        let comparison = compare(&few);
        assert!(comparison.measures.is_empty());
        assert_eq!(comparison.missing, (2, 0));
        // Conversations that differ by a factor of a hundred need many.
        let wide = |n: usize| if n.is_multiple_of(4) { 10.0 } else { 0.1 };
        let comparison = compare(&[group(false, 12, wide, 0), group(true, 12, wide, 0)].concat());
        let half = named(&comparison, "dollars a turn").difference.map(|one| (one.high - one.low) / 2.0).unwrap();
        let expected = (12.0 * (half / NARROW).powi(2)).ceil() as usize - 12;
        assert!(expected > 50 && comparison.missing == (expected, expected), "{half} {:?}", comparison.missing);
    }
}
