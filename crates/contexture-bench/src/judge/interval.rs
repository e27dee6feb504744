//! Intervals by drawing recordings again.

use contexture_measure::judge::Measures;

use crate::synthetic::Rng;

/// How often the recordings are drawn.
const DRAWS: usize = 1_000;

/// The share of draws that is left out on each side: 95 of 100 are inside.
const OUTSIDE: f64 = 0.025;

/// The seed: the same recordings give the same intervals, and all policies are drawn alike.
const SEED: u64 = 1;

/// A value of all recordings, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalEstimate {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
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
        let drawn =
            (0..draws).map(|_| sum(&mut (0..recordings.len()).map(|_| random.below(recordings.len())))).collect();
        Self { all, drawn }
    }

    /// The sums of all recordings.
    pub fn all(&self) -> &Measures {
        &self.all
    }

    /// A value with its interval.
    pub fn estimate(&self, value: impl Fn(&Measures) -> f64) -> IntervalEstimate {
        let mut values: Vec<f64> = self.drawn.iter().map(&value).collect();
        values.sort_by(f64::total_cmp);
        let whole = value(&self.all);
        let outside = (values.len() as f64 * OUTSIDE) as usize;
        let at = |index: usize| values.get(index).copied().unwrap_or(whole);
        IntervalEstimate { value: whole, low: at(outside), high: at(values.len().saturating_sub(outside + 1)) }
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
        assert_eq!(estimate, IntervalEstimate { value: 0.75, low: 0.75, high: 0.75 });
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
