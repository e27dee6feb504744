//! How many tokens a provider counts for bytes of text, for the pieces of a text, and for bytes that say little for their
//! length.

use serde::{Deserialize, Serialize};

/// The size of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BodyBytes {
    /// Bytes of text.
    pub text: u64,
    /// About how many tokens the text is, in hundredths, by the kinds of its signs.
    pub pieces: u64,
    /// Bytes that say little for their length: encrypted reasoning, and signatures.
    pub opaque: u64,
}

/// By how much one body is larger than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MoreBytes {
    /// Bytes of text.
    pub text: f64,
    /// Pieces of it.
    pub pieces: f64,
    /// The other bytes.
    pub opaque: f64,
}

impl BodyBytes {
    /// The same without others.
    pub fn without(&self, other: &Self) -> Self {
        Self {
            text: self.text.saturating_sub(other.text),
            pieces: self.pieces.saturating_sub(other.pieces),
            opaque: self.opaque.saturating_sub(other.opaque),
        }
    }

    /// By how much it is more than before.
    pub fn more_than(&self, before: &Self) -> MoreBytes {
        let more = |now: u64, before: u64| now as f64 - before as f64;
        MoreBytes {
            text: more(self.text, before.text),
            pieces: more(self.pieces, before.pieces),
            opaque: more(self.opaque, before.opaque),
        }
    }

    /// All of it.
    pub fn all(&self) -> MoreBytes {
        self.more_than(&Self::default())
    }
}

impl std::ops::Sub for MoreBytes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { text: self.text - other.text, pieces: self.pieces - other.pieces, opaque: self.opaque - other.opaque }
    }
}

/// What requests have grown by, as sums of products of the size of the text, of other bytes, and of the tokens that the
/// provider counted for both. From these follow the tokens for each of the two, with the least error in the squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Growth {
    text_text: f64,
    text_opaque: f64,
    opaque_opaque: f64,
    text_counted: f64,
    opaque_counted: f64,
    #[serde(default)]
    counted_counted: f64,
}

/// How much the text must have grown before what is learnt from it counts.
const LEAST_GROWN: f64 = 200.0;

/// Both kinds of bytes must grow so differently that the tokens of one can be told from those of the other. Chosen.
const LEAST_APART: f64 = 0.01;

impl Growth {
    /// Adds a request that grew by so much text, other bytes and tokens.
    pub fn add(&mut self, (text, opaque): (f64, f64), counted: f64) {
        self.text_text += text * text;
        self.text_opaque += text * opaque;
        self.opaque_opaque += opaque * opaque;
        self.text_counted += text * counted;
        self.opaque_counted += opaque * counted;
        self.counted_counted += counted * counted;
    }

    /// Tokens for one of the size of the text alone; `None` if that has hardly grown. Much that comes at once weighs more:
    /// beside it, what is written around a text is little.
    pub fn rate(&self) -> Option<f64> {
        (self.text_text >= LEAST_GROWN * LEAST_GROWN).then(|| self.text_counted / self.text_text)
    }

    /// What it leaves unexplained of what was counted, in squares of tokens; `None` if that cannot be told.
    pub fn unexplained(&self) -> Option<f64> {
        let (text, opaque) = self.rates().or_else(|| Some((self.rate()?, 0.0)))?;
        Some(self.counted_counted - text * self.text_counted - opaque * self.opaque_counted)
    }

    /// Tokens for one of the size of the text, and for another byte; `None` if that cannot be told yet.
    pub fn rates(&self) -> Option<(f64, f64)> {
        let apart = self.text_text * self.opaque_opaque - self.text_opaque * self.text_opaque;
        if apart <= LEAST_APART * self.text_text * self.opaque_opaque {
            return None;
        }
        let text = (self.text_counted * self.opaque_opaque - self.opaque_counted * self.text_opaque) / apart;
        let opaque = (self.opaque_counted * self.text_text - self.text_counted * self.text_opaque) / apart;
        (text > 0.0 && opaque >= 0.0).then_some((text, opaque))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_of_both_kinds_are_told_apart() {
        let mut growth = Growth::default();
        assert_eq!(growth.rates(), None);
        for (text, opaque) in [(4_000.0, 100.0), (900.0, 700.0), (8_000.0, 0.0), (300.0, 1_500.0)] {
            growth.add((text, opaque), text / 4.0 + opaque / 30.0);
        }
        let (text, opaque) = growth.rates().expect("both kinds have grown");
        assert!((text - 0.25).abs() < 1e-9 && (opaque - 1.0 / 30.0).abs() < 1e-9, "{text} and {opaque}");
    }

    #[test]
    fn what_always_grows_alike_is_not_told_apart() {
        let mut growth = Growth::default();
        for size in [1.0, 5.0, 9.0] {
            growth.add((size * 1_000.0, size * 30.0), size * 260.0);
        }
        assert_eq!(growth.rates(), None);
        let mut growth = Growth::default();
        growth.add((1_000.0, 0.0), 250.0);
        assert_eq!(growth.rates(), None);
    }
}
