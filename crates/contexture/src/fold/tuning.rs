//! Shares and weights, each with where it comes from. None of them is a promise.
//!
//! "Scanned" means that values around it were tried on recorded work and none was better in recall for its cost;
//! "fitted" that a regression found it; "chosen" that it is a plain round number.

/// The budget at which windows are full about as often as they are folded because it pays. Chosen: what changes with
/// the budget is said for this one.
const MIDDLE_BUDGET: f64 = 64_000.0;

/// The messages after which [`LEAST_NEED`] holds. Chosen, like the middle budget.
const MIDDLE_MESSAGES: f64 = 100.0;

/// Least need of a chunk that a view shows, with the middle budget after the middle number of messages. Scanned.
const LEAST_NEED: f64 = -2.45;

/// By how much the least need falls when a smaller budget halves: there the budget itself bounds the view. Scanned.
const NEED_PER_HALVING: f64 = 0.25;

/// By how much the least need falls when a larger budget doubles: there the view can hold more in case it is needed.
/// Scanned.
const NEED_PER_DOUBLING: f64 = 0.68;

/// The excess over pass-through that unforced folds may run up. Chosen: a tenth.
const MOST_EXCESS: f64 = 0.1;

/// How often the excess halves when a larger budget doubles. A smaller window is soon folded by force, so a fold that
/// comes early risks little; a larger one may never be. Scanned: with it no recording costs more than pass-through at 200 000 tokens.
const EXCESS_HALVINGS: f64 = 1.5;

/// Rent that must have been paid on what a fold would remove, against the fold's price. At 1 a conversation that ends
/// right after the fold has paid for it twice. Scanned.
const PATIENCE: f64 = 1.5;

/// By how much patience grows when the budget doubles: where nothing forces a fold, it can wait to be sure. Scanned.
const PATIENCE_PER_DOUBLING: f64 = 0.4;

/// Patience with the smallest budgets, where a fold is soon forced anyway. Scanned.
const LEAST_PATIENCE: f64 = 1.1;

/// Share of the budget that a fold leaves free at least, so that the next one is not at once. Scanned.
pub(super) const FREE_SHARE: f64 = 0.22;

/// The same when the newest step alone is so large that it takes [`LARGE_STEP_SHARE`]: the next ones will be smaller,
/// and the view needs the room. Scanned.
pub(super) const FREE_SHARE_AFTER_LARGE_STEP: f64 = 0.15;

/// Share of the budget from which on what a fold must show besides the view is large. Chosen.
pub(super) const LARGE_STEP_SHARE: f64 = 0.2;

/// Share of the budget that what people said may take. Chosen: more would leave no room to work in.
pub(super) const MOST_SAID_SHARE: f64 = 0.5;

/// Share of the view that may be idle in kept parts when a fresh view would need all of it. Scanned.
pub(super) const IDLE_SHARE: f64 = 0.1;

/// Least bytes of a part of the view, unless nothing is left for it. Scanned.
pub(super) const LEAST_PART_BYTES: usize = 6_000;

/// Requests that a fold is expected to last when nothing is known yet. Chosen: near the median of recorded work.
pub(super) const EXPECTED_REQUESTS: f64 = 10.0;

/// Share of the budget by which a free fold must make the window smaller: each fold also leaves something out. Chosen.
pub(super) const WORTHWHILE_SHARE: f64 = 0.125;

/// A window must have grown by one part in so many since the last fold before an unforced one is tried. Chosen.
pub(super) const LEAST_GROWTH_PART: u64 = 5;

/// A fold that nothing forces is tried once in so many requests, since trying takes time. Chosen.
pub(super) const TRY_EVERY_REQUESTS: u32 = 3;

/// Share of the budget up to which a window has room for what is known of files that were only named. Scanned.
pub(super) const ROOM_FOR_NAMED_SHARE: f64 = 0.8;

/// Fewest lines of a chunk, unless its segment is shorter. Scanned.
pub(super) const LEAST_CHUNK_LINES: usize = 8;

/// Most lines of a chunk. Scanned.
pub(super) const MOST_CHUNK_LINES: usize = 24;

/// How near to a line that the agent changed a chunk counts as its own work. Chosen.
pub(super) const NEAR_LINES: usize = 20;

/// How many messages back words count as recent. Scanned.
pub(super) const RECENT_MESSAGES: usize = 40;

/// Words are weighed for a chunk's size; this many bytes make a word that only it has count one. Chosen.
pub(super) const WEIGHT_BYTES: f64 = 5_000.0;

/// Chunks smaller than this are weighed as if they had it. Chosen.
pub(super) const LEAST_WEIGHED_BYTES: usize = 200;

/// Weights of [`super::view::need`].
pub(super) mod weight {
    /// Of the squared logarithm of the messages since a chunk was seen. Fitted.
    pub(in crate::fold) const SEEN: f64 = -0.07;
    /// Of the same for mere hits of searches. Fitted.
    pub(in crate::fold) const HIT: f64 = -0.5;
    /// Of the logarithm of the messages since the agent changed it: changed chunks stay needed. Fitted.
    pub(in crate::fold) const EDIT_AGE: f64 = 0.19;
    /// Of a file that the agent changed: what it needs of it, it has changed already. Fitted.
    pub(in crate::fold) const FILE_EDITED: f64 = -0.3;
    /// Of a file that recent talk names. Fitted.
    pub(in crate::fold) const NAMED: f64 = 0.3;
    /// Of a file that a task or plan named and that was not changed since: it is changed much later, when nothing else
    /// speaks for it. Found by reading what was missed, then scanned.
    pub(in crate::fold) const PENDING: f64 = 0.7;
    /// Of a chunk of which a line was just named. Chosen: enough to come before all else that is known of the file.
    pub(in crate::fold) const POINTED_AT: f64 = 3.0;
    /// Of rare words in common with recent talk. Fitted.
    pub(in crate::fold) const TALK_WORDS: f64 = 0.17;
    /// Of the logarithm of how many lines were seen together: who reads much needs little of it. Fitted.
    pub(in crate::fold) const SPAN: f64 = -0.25;
    /// The logarithm of a middling span, so that the weight moves needs up as often as down.
    pub(in crate::fold) const MIDDLE_SPAN: f64 = 4.2;
    /// Of the logarithm of how often the user spoke since. Fitted.
    pub(in crate::fold) const ASKS: f64 = -0.25;
}

/// What follows from a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Most tokens of the view of files. A larger budget buys a larger view only up to a point: beyond it, rent on what
    /// is never needed outweighs the few pieces that a still larger view would hold.
    pub(super) view_tokens: u64,
    /// Most tokens of the recent messages that a fold leaves as they are; the newest step always stays.
    pub(super) recent_tokens: u64,
    /// Most tokens of the ledger of what was done.
    pub(super) ledger_tokens: u64,
    /// Most tokens of the outlines of files that are known but not shown.
    pub(super) outline_tokens: u64,
    /// Most tokens of known lines that touching a file brings back.
    pub(super) touch_tokens: u64,
    /// Most tokens of one output that is no file's text, when it is first sent.
    pub(super) output_tokens: u64,
    /// Rent that must have been paid on what a fold would remove, against the fold's price.
    pub(super) patience: f64,
    /// How far the bill may go above pass-through's because of folds that nothing forces, against pass-through's.
    pub(super) most_excess: f64,
    least_need: f64,
}

impl Tuning {
    /// For a budget. All shares of it were scanned at 32, 64 and 200 thousand tokens.
    pub(super) fn new(budget: u64) -> Self {
        let doublings = (budget.max(1) as f64 / MIDDLE_BUDGET).log2();
        let (larger, smaller) = (doublings.max(0.0), (-doublings).max(0.0));
        Self {
            view_tokens: (budget * 80 / 100).min(9_000 + budget * 47 / 100),
            recent_tokens: (budget / 32).min(1_000),
            ledger_tokens: (budget / 64).min(500),
            outline_tokens: (budget / 128).min(400),
            touch_tokens: (budget / 8).min(4_000),
            output_tokens: (budget / 10).min(1_000),
            patience: (PATIENCE + PATIENCE_PER_DOUBLING * doublings).max(LEAST_PATIENCE),
            most_excess: MOST_EXCESS * (-EXCESS_HALVINGS * larger).exp2(),
            least_need: LEAST_NEED - NEED_PER_DOUBLING * larger - NEED_PER_HALVING * smaller,
        }
    }

    /// The least need of a chunk that the view shows after a number of messages.
    ///
    /// It rises as a conversation grows. Early on, old chunks are needed nearly as often as new ones: what an agent
    /// reads first is what it works on. Later the same age, and the same words in common, mean much less.
    pub(super) fn least_need(&self, messages: u32) -> f64 {
        self.least_need + (f64::from(messages.max(1)) / MIDDLE_MESSAGES).ln()
    }
}
