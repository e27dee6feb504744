//! Folded conversations beside those that were held out, as people read them.

use contexture_gateway::report::compare::{Comparison, LEAST, Measure};
use contexture_measure::interval::Interval;
use contexture_text::numbers::counted;

use contexture_terminal::table::{Align, TextTable};

/// Both groups with their intervals, and what is missing for narrower ones.
pub(super) fn comparison_text(comparison: &Comparison) -> String {
    let Comparison { folded, held_out, .. } = comparison;
    if *folded + *held_out == 0 {
        return "no conversation was assigned to a group yet; `contexture run --holdout 0.2 claude` holds one in five \
                out for comparison\n"
            .to_owned();
    }
    let mut text = format!("folded: {}, held out: {held_out}\n", counted(*folded, "conversation"));
    if comparison.measures.is_empty() {
        let (folded, held_out) = comparison.missing;
        text.push_str(&format!(
            "too few for an interval: {folded} folded and {held_out} held-out conversations are missing until there are \
             {LEAST} of each\n"
        ));
        return text;
    }
    let titles =
        [("", Align::Left), ("folded", Align::Right), ("held out", Align::Right), ("difference", Align::Right)];
    let mut table = TextTable::new(titles);
    for Measure { name, folded, held_out, difference } in &comparison.measures {
        let difference = difference.as_ref().map_or_else(|| "not known".to_owned(), share);
        table.row([name.clone(), figure(folded), figure(held_out), difference]);
    }
    text.push_str(&format!("\n{}\n", table.render()));
    text.push_str("in brackets: where 95 % of resamples lie, drawn by conversation\n");
    match comparison.missing {
        (0, 0) => text.push_str("the difference in dollars a turn is known to ± 20 % or better\n"),
        (folded, held_out) => text.push_str(&format!(
            "for ± 20 % in dollars a turn, about {folded} more folded and {held_out} more held-out conversations are \
             missing\n"
        )),
    }
    if comparison.is_guessed {
        text.push_str("some dollars rest on guessed prices; [[model]] in contexture.toml sets them\n");
    }
    if comparison.unpriced > 0 {
        text.push_str(&format!(
            "dollars lack {} to models without a known price\n",
            counted(comparison.unpriced as usize, "request")
        ));
    }
    text
}

fn figure(interval: &Interval) -> String {
    let number = |value: f64| match value.abs() {
        size if size >= 1_000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    format!("{} [{}, {}]", number(interval.value), number(interval.low), number(interval.high))
}

fn share(interval: &Interval) -> String {
    let percent = |value: f64| format!("{:+.0} %", value * 100.0);
    format!("{} [{}, {}]", percent(interval.value), percent(interval.low), percent(interval.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_missing() {
        assert!(comparison_text(&Comparison::default()).contains("--holdout"));
        let few = Comparison { folded: 7, held_out: 2, missing: (0, 3), ..Comparison::default() };
        assert!(
            comparison_text(&few)
                .contains("0 folded and 3 held-out conversations are missing until there are 5 of each")
        );
        let one = Interval { value: 0.5, low: 0.25, high: 1.5 };
        let (folded, held_out) = (one, Interval { value: 12.0, low: 11.0, high: 2_000.0 });
        let difference = Some(Interval { value: -0.3, low: -0.5, high: 0.1 });
        let measures = vec![Measure { name: "dollars a turn".to_owned(), folded, held_out, difference }];
        let text = comparison_text(&Comparison {
            folded: 9,
            held_out: 8,
            measures,
            missing: (40, 36),
            ..Comparison::default()
        });
        assert!(text.contains("0.500 [0.250, 1.500]") && text.contains("12.0 [11.0, 2000]"), "{text}");
        assert!(text.contains("-30 % [-50 %, +10 %]") && text.contains("about 40 more folded and 36 more"), "{text}");
    }
}
