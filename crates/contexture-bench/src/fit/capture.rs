//! How much of what was needed a ranking of chunks captures.

use super::sample::{ChunkSample, RequestSample};

/// The budgets for chunks, in bytes.
pub const FILLS: [f64; 4] = [20_000.0, 40_000.0, 60_000.0, 80_000.0];

/// Bytes that were needed, and how many of them were captured, for each budget.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capture {
    needed: [f64; FILLS.len()],
    captured: [f64; FILLS.len()],
}

impl Capture {
    /// The captured share for each budget; `None` where nothing was needed.
    pub fn shares(&self) -> [Option<f64>; FILLS.len()] {
        std::array::from_fn(|fill| (self.needed[fill] > 0.0).then(|| self.captured[fill] / self.needed[fill]))
    }

    /// The mean of the shares; 1 if there are none.
    pub fn mean(&self) -> f64 {
        let shares: Vec<f64> = self.shares().into_iter().flatten().collect();
        if shares.is_empty() { 1.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }

    /// Adds another capture.
    pub fn add(&mut self, other: &Capture) {
        for fill in 0..FILLS.len() {
            self.needed[fill] += other.needed[fill];
            self.captured[fill] += other.captured[fill];
        }
    }

    /// Adds what is captured of a request if its chunks are taken by descending score. Budgets that hold all known
    /// chunks are skipped, because there is nothing to choose.
    pub(super) fn add_request(&mut self, request: &RequestSample, score: impl Fn(&ChunkSample) -> f64) {
        let mut order: Vec<(f64, &ChunkSample)> = request.chunks.iter().map(|chunk| (score(chunk), chunk)).collect();
        // Of equal scores the larger chunk comes first, so that the input order does not matter.
        order.sort_by(|(one, a), (two, b)| two.total_cmp(one).then(b.bytes.total_cmp(&a.bytes)));
        let needed: f64 = bytes_of(order.iter().map(|(_, chunk)| *chunk).filter(|chunk| chunk.is_needed));
        let known: f64 = bytes_of(order.iter().map(|(_, chunk)| *chunk));
        for (fill, most) in FILLS.into_iter().enumerate().filter(|(_, most)| known > *most) {
            let mut left = most;
            for (_, chunk) in &order {
                let bytes = bytes_of([*chunk]);
                if bytes <= left {
                    left -= bytes;
                    self.captured[fill] += if chunk.is_needed { bytes } else { 0.0 };
                }
            }
            self.needed[fill] += needed;
        }
    }
}

fn bytes_of<'a>(chunks: impl IntoIterator<Item = &'a ChunkSample>) -> f64 {
    chunks.into_iter().map(|chunk| f64::from(chunk.bytes * chunk.stands_for)).sum()
}
