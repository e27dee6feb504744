//! The tokens that a window may have, as a person writes them.

/// The most tokens that a budget may have, so that sums cannot overflow.
const MAX_BUDGET: u64 = 1 << 40;

/// Reads a budget.
///
/// # Errors
///
/// When it is no number, or no number of tokens that a window can have.
pub fn parse(text: &str) -> Result<u64, String> {
    match text.replace('_', "").parse() {
        Ok(0) => Err("a window needs at least one token".to_owned()),
        Ok(tokens) if tokens <= MAX_BUDGET => Ok(tokens),
        _ => Err(format!("a budget is a whole number of tokens, at most {MAX_BUDGET}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_of_tokens() {
        assert_eq!(parse("32000"), Ok(32_000));
        assert_eq!(parse("32_000"), Ok(32_000));
        for text in ["0", "-1", "", "32k", "1.5", "99999999999999999999", "1099511627777"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
