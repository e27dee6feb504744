//! Context policies: those of other tools, for comparison, and [`own`], that of Contexture.
//!
//! Those of other tools are simple reimplementations: before every assistant message they return which recorded messages
//! would be sent, whole or as stubs. A policy returns the difference to its last request, so that playing a transcript
//! takes time in proportion to what changes.

pub mod own;

use std::ops::Range;
use std::sync::Arc;

use contexture::item::Role;
use contexture::transcript::{Record, Transcript};

use crate::record_text::plain_text;
use crate::recorded::{RecordedSession, sent_bytes};

/// The size of a stub that replaces an output.
pub const STUB_BYTES: u64 = 120;

/// The largest part of a message whose head is kept.
pub const HEAD_BYTES: u64 = 8_000;

/// Bytes that count as one token.
const TOKEN_BYTES: f64 = 4.0;

/// Decides before every model call what is sent.
pub trait WindowPolicy: Sync {
    /// The name of the policy in tables.
    fn name(&self) -> &str;

    /// Plays a transcript: one request for every assistant message, in order.
    ///
    /// `budget` is in tokens of four bytes. An error ends the requests.
    fn requests<'a>(
        &'a self,
        transcript: &'a Transcript,
        recorded: &'a RecordedSession<'a>,
        budget: f64,
    ) -> Box<dyn Iterator<Item = anyhow::Result<WindowChange>> + 'a>;
}

/// One request, as its difference to the previous one.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowChange {
    /// The position of the assistant message that is the response to it.
    pub before: usize,
    /// How many leading entries of the last request it begins with.
    pub keep: usize,
    /// What follows them.
    pub added: Vec<WindowEntry>,
}

/// One element of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowEntry {
    /// A message of the transcript.
    RecordedSession {
        /// Its position.
        index: usize,
        /// How much of it.
        shown: ShownMessage,
    },
    /// A message that the policy wrote.
    Made(Arc<MadeMessage>),
}

impl WindowEntry {
    /// The message, if the policy wrote it.
    pub fn made(&self) -> Option<&MadeMessage> {
        match self {
            WindowEntry::RecordedSession { .. } => None,
            WindowEntry::Made(made) => Some(made),
        }
    }
}

/// How much of a recorded message is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownMessage {
    /// All.
    Full,
    /// A note that it was there.
    Stub,
    /// Its beginning.
    Head,
}

/// A message that a policy wrote, with the facts that the judge needs.
#[derive(Debug)]
pub struct MadeMessage {
    /// The message.
    pub record: Record,
    /// Its size when it is sent.
    pub bytes: u64,
    /// The characters of its text.
    pub chars: usize,
    /// The text in which an edit's old text can be found.
    pub plain: String,
}

impl MadeMessage {
    /// Computes the facts of a message.
    pub fn new(record: Record) -> Arc<Self> {
        // Numbered lines in what people say are their own.
        let plain = plain_text(&record, record.role().is_none_or(|role| role == Role::Assistant));
        Arc::new(Self { bytes: sent_bytes(&record), chars: record.text().chars().count(), plain, record })
    }
}

impl PartialEq for MadeMessage {
    /// Whether a provider would get the same message.
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.record, &other.record);
        std::ptr::eq(self, other)
            || (self.bytes == other.bytes
                && one.role() == two.role()
                && one.output().map(|output| &output.call_id) == two.output().map(|output| &output.call_id)
                && one.text() == two.text()
                && one.calls().eq(two.calls()))
    }
}

/// The policies of other tools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnownPolicy {
    /// Everything, every time.
    PassThrough,
    /// The first user message and the newest messages; over budget, the oldest are dropped until a share of it is left.
    Sliding {
        /// That share.
        slack: f64,
    },
    /// All but the newest outputs of tools become stubs.
    Mask {
        /// How many stay.
        keep: usize,
    },
    /// Over budget, all but the newest outputs of tools become stubs.
    Clear {
        /// How many stay.
        keep: usize,
    },
    /// Outputs of tools beyond the newest tokens become stubs, if that saves enough.
    Prune {
        /// Tokens of outputs that stay.
        protect: u64,
        /// Tokens that must be saved at once.
        least: u64,
    },
}

/// All of them, in the order of tables.
pub const KNOWN: [KnownPolicy; 6] = [
    KnownPolicy::PassThrough,
    KnownPolicy::Sliding { slack: 1.0 },
    KnownPolicy::Sliding { slack: 0.5 },
    KnownPolicy::Mask { keep: 10 },
    KnownPolicy::Clear { keep: 3 },
    KnownPolicy::Prune { protect: 40_000, least: 20_000 },
];

impl WindowPolicy for KnownPolicy {
    fn name(&self) -> &str {
        match self {
            KnownPolicy::PassThrough => "pass-through",
            KnownPolicy::Sliding { slack } if *slack < 1.0 => "half-window drop",
            KnownPolicy::Sliding { .. } => "sliding window",
            KnownPolicy::Mask { .. } => "keep the last 10",
            KnownPolicy::Clear { .. } => "clear all but 3",
            KnownPolicy::Prune { .. } => "prune beyond 40k",
        }
    }

    fn requests<'a>(
        &'a self,
        _transcript: &'a Transcript,
        recorded: &'a RecordedSession<'a>,
        budget: f64,
    ) -> Box<dyn Iterator<Item = anyhow::Result<WindowChange>> + 'a> {
        match *self {
            KnownPolicy::PassThrough => play(recorded, Stubs::new(recorded, |_, _| 0)),
            KnownPolicy::Sliding { slack } => play(recorded, Sliding::new(recorded, budget, slack)),
            KnownPolicy::Mask { keep } => play(recorded, Stubs::new(recorded, move |stubs, _| stubs.live_beyond(keep))),
            KnownPolicy::Clear { keep } => play(
                recorded,
                Stubs::new(recorded, move |stubs, _| {
                    let is_over = stubs.bytes as f64 / TOKEN_BYTES > budget;
                    if is_over { stubs.live_beyond(keep) } else { 0 }
                }),
            ),
            KnownPolicy::Prune { protect, least } => {
                let mut protected = Protected { bytes: 0, start: 0, beyond_bytes: 0, seen: 0 };
                play(
                    recorded,
                    Stubs::new(recorded, move |stubs, recorded| protected.prunable(stubs, recorded, protect, least)),
                )
            }
        }
    }
}

/// A running policy: what is sent before each step.
trait RunningPolicy {
    fn request(&mut self, before: usize) -> WindowChange;
}

fn play<'a>(
    recorded: &'a RecordedSession<'a>,
    mut player: impl RunningPolicy + 'a,
) -> Box<dyn Iterator<Item = anyhow::Result<WindowChange>> + 'a> {
    Box::new(recorded.steps.iter().map(move |&step| Ok(player.request(step))))
}

fn whole(range: Range<usize>) -> impl Iterator<Item = WindowEntry> {
    range.map(|index| WindowEntry::RecordedSession { index, shown: ShownMessage::Full })
}

/// Shows every message in its place, and stubs for the oldest outputs of tools.
///
/// `stub` returns before each step how many more of the oldest outputs become stubs.
struct Stubs<'a, F> {
    recorded: &'a RecordedSession<'a>,
    stub: F,
    state: Stubbed,
}

/// The outputs of tools so far, of which the oldest are stubs.
struct Stubbed {
    /// Positions of the outputs.
    outputs: Vec<usize>,
    /// How many of them are stubs.
    gone: usize,
    /// How many messages are sent.
    len: usize,
    /// Their bytes.
    bytes: u64,
}

impl Stubbed {
    /// How many outputs are shown beyond the newest `keep`.
    fn live_beyond(&self, keep: usize) -> usize {
        (self.outputs.len() - self.gone).saturating_sub(keep)
    }
}

impl<'a, F: FnMut(&Stubbed, &RecordedSession<'a>) -> usize> Stubs<'a, F> {
    fn new(recorded: &'a RecordedSession<'a>, stub: F) -> Self {
        let state = Stubbed { outputs: Vec::new(), gone: 0, len: 0, bytes: 0 };
        Self { recorded, stub, state }
    }
}

impl<'a, F: FnMut(&Stubbed, &RecordedSession<'a>) -> usize> RunningPolicy for Stubs<'a, F> {
    fn request(&mut self, before: usize) -> WindowChange {
        let Self { recorded, stub, state } = self;
        let sent = state.len;
        state.outputs.extend((sent..before).filter(|&index| recorded.is_output(index)));
        state.bytes += recorded.bytes_before(before) - recorded.bytes_before(sent);
        state.len = before;
        let count = stub(state, recorded);
        let stubbed = &state.outputs[state.gone..state.gone + count];
        let keep = stubbed.first().map_or(sent, |&first| first.min(sent));
        for &index in stubbed {
            state.bytes = state.bytes + STUB_BYTES - recorded.facts[index].bytes;
        }
        state.gone += count;
        let first_whole = state.outputs.get(state.gone).copied().unwrap_or(before);
        let shown = |index| {
            let is_stub = index < first_whole && recorded.is_output(index);
            if is_stub { ShownMessage::Stub } else { ShownMessage::Full }
        };
        let added = (keep..before).map(|index| WindowEntry::RecordedSession { index, shown: shown(index) }).collect();
        WindowChange { before, keep, added }
    }
}

/// The newest outputs, which are not pruned.
struct Protected {
    /// Their bytes.
    bytes: u64,
    /// The first of them, among all outputs.
    start: usize,
    /// Bytes of the outputs before them that are still shown.
    beyond_bytes: u64,
    /// How many outputs were processed.
    seen: usize,
}

impl Protected {
    /// How many of the oldest shown outputs become stubs now.
    fn prunable(&mut self, stubs: &Stubbed, recorded: &RecordedSession<'_>, protect: u64, least: u64) -> usize {
        for &output in &stubs.outputs[self.seen..] {
            self.bytes += recorded.facts[output].bytes;
        }
        self.seen = stubs.outputs.len();
        while self.bytes as f64 / TOKEN_BYTES > protect as f64 {
            let bytes = recorded.facts[stubs.outputs[self.start]].bytes;
            self.bytes -= bytes;
            self.beyond_bytes += bytes;
            self.start += 1;
        }
        if self.beyond_bytes as f64 / TOKEN_BYTES <= least as f64 {
            return 0;
        }
        self.beyond_bytes = 0;
        self.start - stubs.gone
    }
}

/// The first user message and the newest messages.
struct Sliding<'a> {
    recorded: &'a RecordedSession<'a>,
    budget: f64,
    slack: f64,
    first: usize,
    /// The oldest message of the newest ones.
    start: usize,
    /// The end of the last request.
    sent: usize,
    /// How many entries it had.
    len: usize,
}

impl<'a> Sliding<'a> {
    fn new(recorded: &'a RecordedSession<'a>, budget: f64, slack: f64) -> Self {
        Self { recorded, budget, slack, first: recorded.first_said(), start: 0, sent: 0, len: 0 }
    }

    fn tokens(&self, before: usize, first_bytes: u64) -> f64 {
        let bytes = self.recorded.bytes_before(before) - self.recorded.bytes_before(self.start);
        (bytes + first_bytes) as f64 / TOKEN_BYTES
    }

    /// Moves the start until a share of the budget is left, but not between a call and its output.
    fn cut(&mut self, before: usize) {
        let first_bytes = self.recorded.facts[self.first].bytes;
        while self.start + 1 < before && self.tokens(before, first_bytes) > self.budget * self.slack {
            self.start += 1;
        }
        while self.start + 1 < before && self.recorded.is_output(self.start) {
            self.start += 1;
        }
    }
}

impl RunningPolicy for Sliding<'_> {
    fn request(&mut self, before: usize) -> WindowChange {
        let start = self.start;
        let has_first = self.first < self.start;
        let first_bytes = if has_first { self.recorded.facts[self.first].bytes } else { 0 };
        if self.tokens(before, first_bytes) > self.budget {
            self.cut(before);
        }
        let keep = if self.start == start { self.len } else { 0 };
        let head = (keep == 0 && self.first < self.start).then_some(self.first);
        let from = if keep == 0 { self.start } else { self.sent };
        let added: Vec<WindowEntry> =
            head.into_iter().flat_map(|first| whole(first..first + 1)).chain(whole(from..before)).collect();
        self.len = keep + added.len();
        self.sent = before;
        WindowChange { before, keep, added }
    }
}
