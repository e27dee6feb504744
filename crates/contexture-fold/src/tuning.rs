//! Private tuning numbers, each with its origin. They may change in any release.
//!
//! "Scanned" means that nearby values were tried on recorded work and none had better recall for its cost; "fitted"
//! that a regression found it; "chosen" that it is a round number.

/// The reference budget for numbers that scale with the budget. Around it, about as many folds are forced by a full
/// window as are made because they pay. Chosen.
const MIDDLE_BUDGET: f64 = 64_000.0;

/// The number of messages at which [`LEAST_NEED`] applies. Chosen, like the middle budget.
const MIDDLE_MESSAGES: f64 = 100.0;

/// The least need of a chunk that a view shows, at the middle budget and the middle number of messages. Scanned.
const LEAST_NEED: f64 = -2.65;

/// How much the least need falls each time the budget halves below the middle: there the budget itself bounds the view.
/// Scanned.
const NEED_PER_HALVING: f64 = 0.15;

/// How much the least need falls each time the budget doubles above the middle: there the view has room for chunks that
/// are less likely needed. Scanned.
const NEED_PER_DOUBLING: f64 = 0.1;

/// How far unforced folds may raise the bill above pass-through, as a share of it. Chosen: a tenth.
pub(super) const MOST_EXCESS: f64 = 0.1;

/// How often the allowed excess halves each time the budget doubles above the middle. A small window is soon folded by
/// force, so an early fold risks little; a large one may never be. Scanned: with it no recording costs more than
/// pass-through at 200 000 tokens.
const EXCESS_HALVINGS: f64 = 0.6;

/// An unforced fold waits until resending what it would remove has cost this many times the price of the fold. At 1, a
/// conversation that ends right after the fold has paid for it twice. Scanned.
pub(super) const PATIENCE: f64 = 1.5;

/// An unforced fold must earn its price within this share of the requests since the last fold. Scanned.
pub(super) const MOST_PAYBACK_SHARE: f64 = 1.0 / 3.0;

/// What an unforced fold puts the bill above pass-through must be earned back within this share of the requests so far.
/// Chosen, not measured.
pub(super) const MOST_MISSING_SHARE: f64 = 0.05;

/// The least share of the budget that a fold leaves free, so that the next fold does not follow soon. The design says a
/// third.
pub(super) const FREE_SHARE: f64 = 1.0 / 3.0;

/// The same for a lean fold, as far as leaving out views of files achieves it. Chosen.
pub(super) const LEAN_FREE_SHARE: f64 = 0.5;

/// The tokens that a lean fold may take in all, however small the budget: below it, edits lack their text. Scanned on the
/// made recordings; it matters only for budgets below twice as much.
pub(super) const LEAST_LEAN_TOKENS: u64 = 6_000;

/// The share of the bill of pass-through from which on a conversation has saved so much that its folds need not be lean,
/// however often they are forced. Chosen.
pub(super) const MUCH_SAVED_SHARE: f64 = 0.5;

/// The largest share of the budget for the dialogue. Chosen: more would leave too little room for work.
pub(super) const MOST_SAID_SHARE: f64 = 0.5;

/// How many outputs the recent messages have at least, with their calls. Chosen.
pub(super) const LEAST_EXCHANGES: usize = 2;

/// The share of the budget that the recent messages may take for that. Chosen.
pub(super) const EXCHANGES_SHARE: f64 = 0.125;

/// The share of its room that what is said before the first response may have when everything must be cut. Chosen.
pub(super) const LEAD_SHARE: f64 = 0.5;

/// The budget from which on steps in the agent's own form have no more tokens: what an agent needs of its steps does not
/// grow with the window. Scanned.
pub(super) const MOST_STEPS_BUDGET: u64 = 54_000;

/// The share of the budget that steps in the agent's own form may have, from which on the oldest ones leave, and the
/// share that is left of them then. Scanned.
pub(super) const STEPS_SHARE: f64 = 0.25;
pub(super) const STEPS_AIM_SHARE: f64 = 0.06;

/// The share of its room that a selection takes when its account is written anew. Chosen.
pub(super) const REBUILT_SHARE: f64 = 0.8;

/// Most tokens of the output of an old call that failed. Chosen.
pub(super) const FAILED_TOKENS: u64 = 120;

/// Most bytes of a string in the arguments of an old call.
const ARGUMENT_BYTES: (usize, usize) = (120, 400);

/// The budget for one byte of a string in an argument.
const BUDGET_PER_ARGUMENT_BYTE: u64 = 160;

/// The largest share of the view that kept parts may waste when a new view would need all of it. Scanned.
pub(super) const IDLE_SHARE: f64 = 0.1;

/// The least size of a part of the view in bytes, unless nothing is left for it. Scanned.
pub(super) const LEAST_PART_BYTES: usize = 6_000;

/// How many requests a fold is expected to last when nothing is known yet. Chosen: near the median of recorded work.
pub(super) const EXPECTED_REQUESTS: f64 = 10.0;

/// The share of the budget by which a fold that nothing forces must shrink the window: few large folds cost less than
/// many small ones, and each also loses something. The design says a third.
pub(super) const WORTHWHILE_SHARE: f64 = 1.0 / 3.0;

/// The window must have grown by one part in this many since the last fold before an unforced fold is tried. Chosen.
pub(super) const LEAST_GROWTH_PART: u64 = 5;

/// An unforced fold is tried once in this many requests, since trying takes time. Chosen.
pub(super) const TRY_EVERY_REQUESTS: u32 = 3;

/// The share of the budget below which a window has room for known lines of files that were only named. Scanned.
pub(super) const ROOM_FOR_NAMED_SHARE: f64 = 0.8;

/// Fewest lines of a chunk, unless its segment is shorter. Scanned.
pub(super) const LEAST_CHUNK_LINES: usize = 8;

/// Most lines of a chunk. Scanned.
pub(super) const MOST_CHUNK_LINES: usize = 24;

/// How many lines from a line that the agent changed a chunk still counts as its own work. Chosen.
pub(super) const NEAR_LINES: usize = 20;

/// How many messages back words count as recent. Scanned.
pub(super) const RECENT_MESSAGES: usize = 40;

/// The weight of shared words is divided by the chunk's size. At this size in bytes, a word that no other chunk has
/// weighs one. Chosen.
pub(super) const WEIGHT_BYTES: f64 = 5_000.0;

/// Smaller chunks are weighed as if they had this many bytes. Chosen.
pub(super) const LEAST_WEIGHED_BYTES: usize = 200;

/// Weights of [`super::view::need`].
pub(super) mod weight {
    /// Of the squared logarithm of the messages since a chunk was seen. Fitted.
    pub(crate) const SEEN: f64 = -0.07;
    /// The same for chunks that only a search showed. Fitted.
    pub(crate) const HIT: f64 = -0.5;
    /// Of the logarithm of the messages since the agent changed it: changed chunks remain needed. Fitted.
    pub(crate) const EDIT_AGE: f64 = 0.19;
    /// Of a file that the agent changed: what needed changing is mostly done. Fitted.
    pub(crate) const FILE_EDITED: f64 = -0.3;
    /// Of a file that recent talk names. Fitted.
    pub(crate) const NAMED: f64 = 0.3;
    /// Of a file that a task or plan named and that was not changed since. It is often changed much later, when no
    /// other sign points to it. Found by reading what was missed, then scanned.
    pub(crate) const PENDING: f64 = 0.7;
    /// Of a chunk with a line that was just named. Chosen: enough to rank it above everything else known of the file.
    pub(crate) const POINTED_AT: f64 = 3.0;
    /// Of rare words in common with recent talk. Fitted.
    pub(crate) const TALK_WORDS: f64 = 0.17;
    /// Of the logarithm of how many lines were shown together: of a long read, little is needed. Fitted.
    pub(crate) const SPAN: f64 = -0.25;
    /// The logarithm of a typical span, so that the weight raises needs about as often as it lowers them.
    pub(crate) const MIDDLE_SPAN: f64 = 4.2;
    /// Of the logarithm of how often the user spoke since. Fitted.
    pub(crate) const ASKS: f64 = -0.25;
    /// Of a chunk with a line that may have changed: the logarithm of how often such lines are still there when they are
    /// read again, 57 times of 100. Measured.
    pub(crate) const IN_DOUBT: f64 = -0.57;
}

/// The limits that follow from a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Most tokens of the view of files. It stops growing with the budget: beyond some size, resending what is never
    /// needed costs more than the few additional pieces are worth.
    pub(super) view_tokens: u64,
    /// Most tokens of the recent messages that a fold leaves as they are; the newest step always stays.
    pub(super) recent_tokens: u64,
    /// Most bytes of a string in the arguments of an old call.
    pub(super) argument_bytes: usize,
    /// Most tokens of the outlines of files that are known but not shown.
    pub(super) outline_tokens: u64,
    /// Most tokens of known lines that touching a file brings back.
    pub(super) touch_tokens: u64,
    /// Most tokens of an output that is not the text of a file, when it is first sent.
    pub(super) output_tokens: u64,
    /// How far unforced folds may raise the bill above pass-through, as a share of it.
    pub(super) most_excess: f64,
    least_need: f64,
}

impl Tuning {
    /// The limits for a budget. The shares were scanned at 32, 64 and 200 thousand tokens.
    pub(super) fn new(budget: u64) -> Self {
        let doublings = (budget.max(1) as f64 / MIDDLE_BUDGET).log2();
        let (larger, smaller) = (doublings.max(0.0), (-doublings).max(0.0));
        Self {
            view_tokens: (budget * 80 / 100).min(9_000 + budget * 47 / 100),
            recent_tokens: (budget / 32).min(1_000),
            argument_bytes: ((budget / BUDGET_PER_ARGUMENT_BYTE) as usize).clamp(ARGUMENT_BYTES.0, ARGUMENT_BYTES.1),
            outline_tokens: (budget / 256).min(200),
            touch_tokens: (budget / 8).min(4_000),
            output_tokens: (budget / 10).min(1_000),
            most_excess: MOST_EXCESS * (-EXCESS_HALVINGS * larger).exp2(),
            least_need: LEAST_NEED - NEED_PER_DOUBLING * larger - NEED_PER_HALVING * smaller,
        }
    }

    /// Returns the least need of a chunk that the view shows after a number of messages.
    ///
    /// It rises as a conversation grows. Early on, old chunks are needed nearly as often as new ones, because an agent
    /// first reads what it will work on. Later, the same age and the same shared words mean much less.
    pub(super) fn least_need(&self, messages: u32) -> f64 {
        self.least_need + (f64::from(messages.max(1)) / MIDDLE_MESSAGES).ln()
    }
}
