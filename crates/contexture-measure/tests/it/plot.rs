//! The plot of tokens per step.

use contexture_measure::plot::{Series, plot, short_count};
use proptest::prelude::*;

#[track_caller]
fn check(before: &[u64], after: &[u64], width: usize, height: usize, expected: &str) {
    let before = Series { name: "pass-through", values: before };
    let after = Series { name: "sent", values: after };
    let picture = plot(before, after, width, height);
    assert_eq!(picture, expected, "\n{picture}");
}

#[test]
fn what_is_saved_is_shaded() {
    let before: Vec<u64> = (1..=16).map(|step| step * 10_000).collect();
    let after: Vec<u64> = (1..=16).map(|step| 10_000 * (1 + (step - 1) % 6)).collect();
    check(
        &before,
        &after,
        23,
        8,
        "
 160k ┤              ░░
      │            ░░░░
      │          ░░░░░░
      │        ░░░░░░░░
  80k ┤      ░░░░░░░░░░
      │    ▄█░░░░▄█░░░░
      │  ▄███░░▄███░░▄█
      │▄█████▄█████▄███
    0 ┼────────────────
       1       16 steps
█ sent  ░ pass-through
"
        .trim_start_matches('\n'),
    );
}

#[test]
fn peaks_survive_when_steps_outnumber_columns() {
    let mut values = vec![1; 1000];
    values[503] = 100;
    check(
        &values,
        &values,
        23,
        3,
        "
  100 ┤        █
      │        █
      │▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁
    0 ┼────────────────
       1     1000 steps
█ sent  ░ pass-through
"
        .trim_start_matches('\n'),
    );
}

#[test]
fn few_steps_are_stretched_and_series_may_differ_in_length() {
    check(
        &[4, 8],
        &[4],
        23,
        4,
        "
    8 ┤        ░░░░░░░░
      │        ░░░░░░░░
    4 ┤████████░░░░░░░░
      │████████░░░░░░░░
    0 ┼────────────────
       1        2 steps
█ sent  ░ pass-through
"
        .trim_start_matches('\n'),
    );
}

#[test]
fn a_legend_that_is_too_long_has_two_lines() {
    let series = |name| Series { name, values: &[1, 2] };
    let picture = plot(series("sending everything"), series("sending what is needed"), 40, 3);
    let legend: Vec<&str> = picture.lines().skip(5).collect();
    assert_eq!(legend, ["█ sending what is needed", "░ sending everything"]);
}

#[test]
fn nothing_is_drawn_of_nothing() {
    check(&[], &[], 80, 10, "");
}

#[test]
fn counts_are_short() {
    let counts = [0, 999, 1_000, 1_549, 9_949, 9_950, 32_000, 999_499, 999_500, 1_200_000, 5_000_000_000];
    let short = ["0", "999", "1k", "1.5k", "9.9k", "10k", "32k", "999k", "1M", "1.2M", "5G"];
    assert_eq!(counts.map(short_count), short);
}

proptest! {
    #[test]
    fn a_plot_keeps_to_its_size(
        before in prop::collection::vec(any::<u64>(), 0..60),
        after in prop::collection::vec(any::<u64>(), 0..60),
        width in 0_usize..100,
        height in 0_usize..20,
    ) {
        let picture = plot(Series { name: "b", values: &before }, Series { name: "a", values: &after }, width, height);
        let is_empty = before.is_empty() && after.is_empty();
        let lines = if is_empty { 0 } else { height.max(3) + 3 };
        prop_assert_eq!(picture.lines().count(), lines);
        for line in picture.lines() {
            prop_assert!(line.chars().count() <= width.max(23), "{}", picture);
        }
    }
}
