//! Intervals by drawing again what was measured.

use serde::{Deserialize, Serialize};

use crate::judge::Measures;
use crate::random::Rng;

/// The share of draws that is left out on each side: 95 of 100 are inside.
const TAIL: f64 = 0.025;

/// How often recordings are drawn.
const DRAWS: usize = 1_000;

/// The seed: the same recordings give the same intervals, and all policies are drawn alike.
const SEED: u64 = 1;

/// A figure with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The figure itself.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// A figure with what 95 % of its draws lie in; without draws, both ends are the figure.
    pub fn of(value: f64, mut drawn: Vec<f64>) -> Self {
        drawn.sort_by(f64::total_cmp);
        let last = drawn.len().saturating_sub(1) as f64;
        let at = |share: f64| drawn.get((last * share).round() as usize).copied().unwrap_or(value);
        Self { value, low: at(TAIL), high: at(1.0 - TAIL) }
    }
}

/// Which members of some groups are drawn: each time as many as a group has, with replacement.
#[derive(Clone, Debug)]
pub struct Resamples<const GROUPS: usize>(Vec<[Vec<usize>; GROUPS]>);

impl<const GROUPS: usize> Resamples<GROUPS> {
    /// Draws many times from groups of these sizes. `pick` returns a number below the one that it gets.
    pub fn draw(times: usize, sizes: [usize; GROUPS], mut pick: impl FnMut(usize) -> usize) -> Self {
        let mut some = |size: usize| (0..size).map(|_| pick(size)).collect::<Vec<_>>();
        Self((0..times).map(|_| sizes.map(&mut some)).collect())
    }

    /// What was drawn, each time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Vec<usize>; GROUPS]> {
        self.0.iter()
    }
}

/// The sums of all recordings, and of each draw.
pub struct Draws {
    all: Measures,
    drawn: Vec<Measures>,
}

impl Draws {
    /// Draws as many recordings as there are, with replacement, many times.
    ///
    /// Requests of one recording are alike, so they are not drawn one by one: that would make intervals far too narrow.
    pub fn of(recordings: &[Measures]) -> Self {
        let mut random = Rng::new(SEED);
        let sum = |chosen: &mut dyn Iterator<Item = usize>| {
            let mut sum = Measures::default();
            chosen.for_each(|at| sum.add(&recordings[at]));
            sum
        };
        let all = sum(&mut (0..recordings.len()));
        let draws = if recordings.is_empty() { 0 } else { DRAWS };
        let drawn = Resamples::draw(draws, [recordings.len()], |size| random.below(size));
        Self { all, drawn: drawn.iter().map(|[drawn]| sum(&mut drawn.iter().copied())).collect() }
    }

    /// The sums of all recordings.
    pub fn all(&self) -> &Measures {
        &self.all
    }

    /// A value with its interval.
    pub fn estimate(&self, value: impl Fn(&Measures) -> f64) -> Interval {
        Interval::of(value(&self.all), self.drawn.iter().map(&value).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(hits: u64, targets: u64) -> Measures {
        Measures { hits, targets, ..Measures::default() }
    }

    #[test]
    fn recordings_that_are_alike_have_an_interval_of_one_point() {
        let estimate = Draws::of(&vec![recording(3, 4); 9]).estimate(Measures::recall);
        assert_eq!(estimate, Interval { value: 0.75, low: 0.75, high: 0.75 });
    }

    #[test]
    fn one_recording_that_differs_is_not_hidden_by_many_requests() {
        // 1000 targets each, so the share by targets would have an interval of about 0.03 to each side.
        let mut recordings = vec![recording(1_000, 1_000); 3];
        recordings.push(recording(0, 1_000));
        let estimate = Draws::of(&recordings).estimate(Measures::recall);
        assert_eq!((estimate.value, estimate.low, estimate.high), (0.75, 0.25, 1.0));
    }

    #[test]
    fn nothing_has_the_interval_of_its_value() {
        let estimate = Draws::of(&[]).estimate(Measures::recall);
        assert_eq!((estimate.low, estimate.high), (estimate.value, estimate.value));
    }
}
