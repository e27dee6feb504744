//! What a turn used: one line after it.

use contexture::layer::TokenUsage;
use contexture_gateway::models::Models;

use contexture_measure::plot::short_count;

/// Shorter turns do not say how long they took.
const LONG_SECONDS: u64 = 10;

/// Tokens, money and time of a turn, from what was used before and after it; `None` if the provider reports nothing.
pub(super) fn line(model: &str, before: TokenUsage, after: TokenUsage, seconds: u64) -> Option<String> {
    let input = after.input.saturating_sub(before.input);
    let output = after.output.saturating_sub(before.output);
    let read = after.cache_read.saturating_sub(before.cache_read);
    let write = after.cache_write.saturating_sub(before.cache_write);
    if input + output == 0 {
        return None;
    }
    let mut line = format!("{} tokens in", short_count(input));
    if read > 0 {
        line.push_str(&format!(" ({}% from the cache)", 100 * read / input.max(1)));
    }
    line.push_str(&format!(", {} out", short_count(output)));
    if let Some(dollars) = dollars(model, input, output, read, write) {
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

/// What it cost, if the price of the model is known.
pub(super) fn dollars(model: &str, input: u64, output: u64, read: u64, write: u64) -> Option<f64> {
    let model = Models::builtin().get(model);
    let (in_price, out_price) = model.dollars(input)?;
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
            line("nobody-knows-it", before, after, 3).as_deref(),
            Some("12k tokens in (50% from the cache), 1.2k out")
        );
        let priced = line("claude-sonnet-4-5", before, after, 12).unwrap();
        assert!(priced.contains(" · $0.0") && priced.ends_with(" · 12 s"), "{priced}");
        assert_eq!(line("m", before, before, 60), None);
    }
}
