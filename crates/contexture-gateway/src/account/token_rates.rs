//! How many tokens a provider counts for one of our own estimate, as far as its figures have shown.

use serde::{Deserialize, Serialize};

use crate::account::growth::{BodyBytes, Growth, MoreBytes};
use crate::account::last_request::LastRequest;
use crate::account::sent_request::SentRequest;

/// What was learnt of a provider's count. It is stored as part of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TokenRates {
    /// How many tokens the provider counts for one of our own estimate.
    ratio: f64,
    /// What requests have grown by while nothing was folded: by our own count, and by the provider's.
    #[serde(default)]
    grown: (f64, f64),
    /// The same by bytes, for each kind of them.
    #[serde(default)]
    growth: Growth,
    /// The same for the pieces of the text in place of its bytes.
    #[serde(default)]
    growth_of_pieces: Growth,
}

/// The fewest and the most tokens for a byte of text.
const TOKENS_PER_BYTE: [f64; 2] = [0.05, 2.0];

/// The same for a piece, which is about a hundredth.
const TOKENS_PER_PIECE: [f64; 2] = [0.0025, 0.04];

/// Tokens by which requests must have grown before what is learnt from it counts.
const LEAST_GROWN: f64 = 200.0;

impl TokenRates {
    /// How many tokens the provider counts for one of ours, rounded so that a budget is not exceeded.
    pub(super) fn rounded(&self) -> f64 {
        // Rounded to steps, so that budgets do not change with every request.
        if self.ratio > 0.0 { (self.ratio * 20.0).ceil() / 20.0 } else { 1.0 }
    }

    /// How many tokens the provider counted for one of ours last.
    pub(super) fn last(&self) -> f64 {
        if self.ratio > 0.0 { self.ratio } else { 1.0 }
    }

    /// How many tokens the provider counts for one of ours in what is new.
    pub(super) fn marginal(&self) -> f64 {
        let (own, counted) = self.grown;
        if own >= LEAST_GROWN { (counted / own).clamp(0.25, 4.0) } else { self.last() }
    }

    /// How many tokens the provider counts for bytes of what is new. The text is measured by its bytes or by its pieces,
    /// whichever explains better what the provider has counted so far.
    pub(super) fn tokens_of(&self, more: MoreBytes) -> f64 {
        let is_by_pieces = self.growth_of_pieces.unexplained() < self.growth.unexplained();
        let by_pieces = self.growth_of_pieces.rate().filter(|_| is_by_pieces);
        let (growth, text, usual, [least, most]) = match by_pieces {
            Some(rate) => (&self.growth_of_pieces, more.pieces, rate, TOKENS_PER_PIECE),
            None => (&self.growth, more.text, self.growth.rate().unwrap_or(0.25), TOKENS_PER_BYTE),
        };
        match growth.rates() {
            Some((of_text, of_opaque)) => text * of_text.clamp(least, most) + more.opaque * of_opaque.min(2.0),
            None => text * usual.clamp(least, most),
        }
    }

    /// The share of tokens that a part of the bytes has, by what the provider counts for each kind of them.
    pub(super) fn share(&self, tokens: u64, part: BodyBytes, of: BodyBytes) -> u64 {
        let weight = |bytes: BodyBytes| self.tokens_of(bytes.all());
        let whole = weight(of);
        if whole > 0.0 { (tokens as f64 * (weight(part) / whole).min(1.0)) as u64 } else { tokens }
    }

    /// Learns from what the provider counted for a request.
    pub(super) fn learn(&mut self, last: &LastRequest, sent: &SentRequest, total: u64) {
        let counted = total as f64 - last.sent() as f64;
        let is_longer = !last.is_none() && !sent.has_moved && counted > 0.0;
        if is_longer {
            let MoreBytes { text: bytes, pieces, opaque } = sent.sent_bytes.more_than(&last.sent_bytes());
            if bytes > 0.0 {
                self.growth.add((bytes, opaque), counted);
                // Earlier versions did not count pieces.
                if last.sent_bytes().pieces > 0 {
                    self.growth_of_pieces.add((pieces, opaque), counted);
                }
            }
        }
        if !sent.is_counted {
            return;
        }
        if sent.sent_tokens > 0 {
            self.ratio = (total as f64 / sent.sent_tokens as f64).clamp(0.25, 4.0);
        }
        if let Some((last_own, _)) = last.own().filter(|_| is_longer) {
            let own = sent.sent_tokens as f64 - last_own as f64;
            if own > 0.0 {
                self.grown = (self.grown.0 + own, self.grown.1 + counted);
            }
        }
    }
}
