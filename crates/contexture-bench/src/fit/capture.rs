//! How much of what was needed a ranking of chunks captures.

use super::sample::{Known, Request};

/// Bytes of chunks that are filled.
pub const FILLS: [f64; 4] = [20_000.0, 40_000.0, 60_000.0, 80_000.0];

/// Bytes that were needed and bytes of them that were captured, for each fill.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capture {
    needed: [f64; FILLS.len()],
    captured: [f64; FILLS.len()],
}

impl Capture {
    /// The share that was captured with each fill; none where nothing was needed.
    pub fn shares(&self) -> [Option<f64>; FILLS.len()] {
        std::array::from_fn(|fill| (self.needed[fill] > 0.0).then(|| self.captured[fill] / self.needed[fill]))
    }

    /// The mean of the shares; 1 if there are none.
    pub fn mean(&self) -> f64 {
        let shares: Vec<f64> = self.shares().into_iter().flatten().collect();
        if shares.is_empty() { 1.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }

    /// Adds what was captured elsewhere.
    pub fn add(&mut self, other: &Capture) {
        for fill in 0..FILLS.len() {
            self.needed[fill] += other.needed[fill];
            self.captured[fill] += other.captured[fill];
        }
    }

    /// Adds what is captured of a request if its chunks are taken in the order of their scores, the highest first.
    /// Fills that hold all that is known do not count: there nothing is chosen.
    pub(super) fn add_request(&mut self, request: &Request, score: impl Fn(&Known) -> f64) {
        let mut order: Vec<(f64, &Known)> = request.chunks.iter().map(|chunk| (score(chunk), chunk)).collect();
        // Equal scores fall to the larger chunk, so that the order in which they are known does not matter.
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

fn bytes_of<'a>(chunks: impl IntoIterator<Item = &'a Known>) -> f64 {
    chunks.into_iter().map(|chunk| f64::from(chunk.bytes * chunk.stands_for)).sum()
}
