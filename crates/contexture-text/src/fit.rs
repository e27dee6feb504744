//! Fits something into a number of tokens.

/// How often something is built again because it was too large.
const MAX_TRIES: usize = 6;

/// Each try aims this much below what the previous one suggests, since tokens are not spread evenly.
const AIM: f64 = 0.95;

/// The result, with its size.
pub struct Made<T> {
    /// The result.
    pub made: T,
    /// How many of the given bytes it used.
    pub bytes: usize,
    /// Its tokens.
    pub tokens: u64,
}

/// Builds something from a number of bytes, fewer each time, until it has at most a number of tokens; `None` if a few
/// tries are not enough.
pub fn fit<T>(tokens: u64, mut bytes: usize, mut make: impl FnMut(usize) -> Made<T>) -> Option<T> {
    for _ in 0..MAX_TRIES {
        let made = make(bytes);
        if made.tokens <= tokens {
            return Some(made.made);
        }
        let fitting = made.bytes.min(bytes) as f64 * tokens as f64 / made.tokens as f64;
        bytes = (fitting * AIM) as usize;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_made_fits_and_is_not_much_smaller_than_it_may_be(
            tokens in 1_u64..10_000,
            bytes in 0_usize..1_000_000,
            per_token in 1.0_f64..8.0,
            around in 0_u64..20,
        ) {
            let make = |bytes: usize| {
                Made { made: bytes, bytes, tokens: around + (bytes as f64 / per_token) as u64 }
            };
            if let Some(made) = fit(tokens, bytes, make) {
                prop_assert!(make(made).tokens <= tokens);
                prop_assert!(made == bytes || made as f64 / per_token >= tokens as f64 * 0.7 - 25.0);
            } else {
                prop_assert!(around * 5 > tokens, "{tokens} tokens are enough for a little of {bytes} bytes");
            }
        }
    }
}
