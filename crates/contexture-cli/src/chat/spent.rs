//! What a turn used: one line after it.

use contexture::layer::TokenUsage;
use contexture::usage::StepUsage;
use contexture_gateway::models::Models;

use contexture_measure::plot::short_count;

/// Shorter turns do not say how long they took.
const LONG_SECONDS: u64 = 10;

/// The cells of the gauge.
const GAUGE_CELLS: u64 = 8;

/// Tokens, money and time, from what was used before and after; `None` if the provider reports nothing. The price is that
/// of a request of so many tokens.
pub(super) fn line(model: &str, before: TokenUsage, after: TokenUsage, request: u64, seconds: u64) -> Option<String> {
    let used = between(before, after);
    let TokenUsage { input, output, cache_read: read, .. } = used;
    if input + output == 0 {
        return None;
    }
    let mut line = format!("{} tokens in", short_count(input));
    if read > 0 {
        line.push_str(&format!(" ({}% from the cache)", 100 * read / input.max(1)));
    }
    line.push_str(&format!(", {} out", short_count(output)));
    if let Some(dollars) = dollars(model, used, request) {
        line.push_str(&match dollars < 0.1 {
            true => format!(" · ${dollars:.4}"),
            false => format!(" · ${dollars:.2}"),
        });
    }
    if seconds >= LONG_SECONDS {
        line.push_str(&format!(" · {seconds} s"));
    }
    Some(line)
}

/// What was used after something that was not before it.
pub(super) fn between(before: TokenUsage, after: TokenUsage) -> TokenUsage {
    TokenUsage {
        input: after.input.saturating_sub(before.input),
        output: after.output.saturating_sub(before.output),
        cache_read: after.cache_read.saturating_sub(before.cache_read),
        cache_write: after.cache_write.saturating_sub(before.cache_write),
    }
}

/// How full the window is.
pub(super) fn gauge(usage: &StepUsage) -> String {
    let full = (usage.total() * GAUGE_CELLS).div_ceil(usage.budget.max(1)).min(GAUGE_CELLS) as usize;
    let cells = "▰".repeat(full) + &"▱".repeat(GAUGE_CELLS as usize - full);
    format!("{cells} {} of {}", short_count(usage.total()), short_count(usage.budget))
}

/// What it cost, if the price of the model is known.
pub(super) fn dollars(model: &str, used: TokenUsage, request: u64) -> Option<f64> {
    let TokenUsage { input, output, cache_read: read, cache_write: write } = used;
    let model = Models::builtin().get(model);
    let (in_price, out_price) = model.dollars(request)?;
    let fresh = input.saturating_sub(read + write) as f64;
    let weighed = fresh + read as f64 * model.read + write as f64 * model.write;
    Some((weighed * in_price + output as f64 * out_price) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_what_was_used_since_before_it() {
        let usage = |input, output, cache_read| TokenUsage { input, output, cache_read, cache_write: 0 };
        let (before, after) = (usage(1_000, 100, 0), usage(13_000, 1_300, 6_000));
        assert_eq!(
            line("nobody-knows-it", before, after, 9_000, 3).as_deref(),
            Some("12k tokens in (50% from the cache), 1.2k out")
        );
        let priced = line("claude-sonnet-4-5", before, after, 9_000, 12).unwrap();
        assert!(priced.contains(" · $0.0") && priced.ends_with(" · 12 s"), "{priced}");
        assert_eq!(line("m", before, before, 0, 60), None);
    }

    #[test]
    fn a_gauge_is_as_full_as_the_window() {
        let used = |history, budget| gauge(&StepUsage { history, budget, ..StepUsage::default() });
        assert_eq!(used(12_000, 64_000), "▰▰▱▱▱▱▱▱ 12k of 64k");
        assert_eq!(used(64_000, 64_000), "▰▰▰▰▰▰▰▰ 64k of 64k");
        assert_eq!(used(0, 0), "▱▱▱▱▱▱▱▱ 0 of 0");
    }
}
