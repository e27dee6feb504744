//! Measures what a policy's requests keep, and what they would have cost.
//!
//! No model is asked. Of the edits that an agent made next, one looks whether the text they replace stood in the
//! window; of the tokens that were sent, how many the provider had in its cache.

use std::collections::HashMap;

use serde::Serialize;

use crate::policies::{Entry, HEAD_BYTES, Request, STUB_BYTES, Shown};
use crate::recorded::Recorded;

/// What reading a cached byte costs, where sending one without a cache costs 1.
const CACHE_READ: f64 = 0.1;

/// What sending a byte costs that is to be cached.
const CACHE_WRITE: f64 = 1.25;

/// Bytes that count as one token.
const TOKEN_BYTES: f64 = 4.0;

/// A transcript counts as dearer than pass-through from this factor on.
const DEARER_FACTOR: f64 = 1.001;

/// A transcript counts as over budget from this factor on.
const OVER_FACTOR: f64 = 1.02;

/// What was measured over all requests of a transcript, or of many.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measures {
    /// How many requests were made.
    pub requests: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Their price, in bytes at full price.
    pub cost: f64,
    /// The largest request.
    pub peak_bytes: u64,
    /// Bytes that pass-through would have sent.
    pub pass_through_bytes: u64,
    /// Their price.
    pub pass_through_cost: f64,
    /// Bytes of files shown as they were read.
    pub read_bytes: u64,
    /// Of those, bytes of files that were changed since by a call that is not shown.
    pub stale_bytes: u64,
    /// Edits whose old text stands somewhere in the past.
    pub targets: u64,
    /// Of those, edits whose old text stands in the window.
    pub hits: u64,
    /// Transcripts that cost more than pass-through.
    pub dearer: u64,
    /// Transcripts with a request over budget.
    pub over: u64,
}

impl Measures {
    /// The share of edits whose old text stands in the window.
    pub fn recall(&self) -> f64 {
        self.hits as f64 / self.targets.max(1) as f64
    }

    /// The price, against pass-through.
    pub fn cost_ratio(&self) -> f64 {
        ratio(self.cost, self.pass_through_cost)
    }

    /// What is sent, against pass-through.
    pub fn tokens_ratio(&self) -> f64 {
        ratio(self.bytes as f64, self.pass_through_bytes as f64)
    }

    /// The tokens of the largest request.
    pub fn peak_tokens(&self) -> f64 {
        self.peak_bytes as f64 / TOKEN_BYTES
    }

    /// The share of shown file contents that are out of date.
    pub fn stale(&self) -> f64 {
        self.stale_bytes as f64 / self.read_bytes.max(1) as f64
    }

    /// Adds the measures of another transcript.
    pub fn add(&mut self, other: &Measures) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.cost += other.cost;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.pass_through_bytes += other.pass_through_bytes;
        self.pass_through_cost += other.pass_through_cost;
        self.read_bytes += other.read_bytes;
        self.stale_bytes += other.stale_bytes;
        self.targets += other.targets;
        self.hits += other.hits;
        self.dearer += other.dearer;
        self.over += other.over;
    }
}

/// A ratio, which is 1 between two nothings.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 1.0 } else { part / whole }
}

/// The price of a request of which the leading bytes are in the cache.
fn price(cached: u64, all: u64) -> f64 {
    CACHE_READ * cached as f64 + CACHE_WRITE * (all - cached) as f64
}

/// Takes a policy's requests one by one and measures them.
pub struct Judge<'a> {
    recorded: &'a Recorded<'a>,
    window: Window<'a>,
    /// What pass-through sent last.
    passed_bytes: u64,
    measures: Measures,
}

impl<'a> Judge<'a> {
    /// Begins with an empty window.
    pub fn new(recorded: &'a Recorded<'a>) -> Self {
        let window = Window::new(recorded);
        Self { recorded, window, passed_bytes: 0, measures: Measures::default() }
    }

    /// Takes the next request.
    pub fn take(&mut self, request: Request) {
        let Request { before, keep, added } = request;
        let cached = self.window.advance(keep, added);
        let bytes = self.window.bytes();
        let measures = &mut self.measures;
        measures.requests += 1;
        measures.bytes += bytes;
        measures.cost += price(cached, bytes);
        measures.peak_bytes = measures.peak_bytes.max(bytes);
        let passed = self.recorded.bytes_before(before);
        measures.pass_through_bytes += passed;
        measures.pass_through_cost += price(self.passed_bytes, passed);
        self.passed_bytes = passed;
        if self.recorded.records[before].calls().next().is_some() {
            self.take_stale(before);
            self.take_recall(before);
        }
    }

    fn take_stale(&mut self, before: usize) {
        for entry in &self.window.entries {
            let Some((read_at, path)) = self.window.shown_read(entry) else { continue };
            let bytes = entry_bytes(self.recorded, entry);
            self.measures.read_bytes += bytes;
            let writes = self.recorded.writes[path].iter();
            let mut later = writes.filter(|write| read_at < write.message && write.message < before);
            let is_hidden = match entry {
                Entry::Recorded { .. } => later.any(|write| self.window.whole[write.message] == 0),
                Entry::Made(_) => later.any(|write| !self.window.made_calls.contains_key(write.call_id)),
            };
            if is_hidden {
                self.measures.stale_bytes += bytes;
            }
        }
    }

    fn take_recall(&mut self, before: usize) {
        for target in self.recorded.targets(before) {
            self.measures.targets += 1;
            let is_shown = target.holders.iter().any(|&holder| self.window.whole[holder] > 0);
            if is_shown || self.window.is_made_to_show(&target.text) {
                self.measures.hits += 1;
            }
        }
    }

    /// What was measured, against a budget in tokens.
    pub fn finish(mut self, budget: f64) -> Measures {
        let measures = &mut self.measures;
        measures.dearer = u64::from(measures.cost > measures.pass_through_cost * DEARER_FACTOR);
        measures.over = u64::from(measures.peak_tokens() > budget * OVER_FACTOR);
        self.measures
    }
}

/// The entries of the current request, with what is asked of them all the time.
struct Window<'a> {
    recorded: &'a Recorded<'a>,
    entries: Vec<Entry>,
    /// The bytes of all entries before each one, and of all of them last.
    bytes_before: Vec<u64>,
    /// For each recorded message, how often it is shown whole.
    whole: Vec<u32>,
    /// How often each call is shown in a message that the policy wrote.
    made_calls: HashMap<Box<str>, u32>,
    /// How many entries the policy wrote.
    made: usize,
}

impl<'a> Window<'a> {
    fn new(recorded: &'a Recorded<'a>) -> Self {
        let whole = vec![0; recorded.records.len()];
        Self { recorded, entries: Vec::new(), bytes_before: vec![0], whole, made_calls: HashMap::new(), made: 0 }
    }

    fn bytes(&self) -> u64 {
        self.bytes_before[self.entries.len()]
    }

    /// Goes on to the next request and gives the bytes that it shares with the last one, from the start.
    fn advance(&mut self, keep: usize, added: Vec<Entry>) -> u64 {
        let keep = keep.min(self.entries.len());
        let removed = self.entries.split_off(keep);
        self.bytes_before.truncate(keep + 1);
        removed.iter().for_each(|entry| self.uncount(entry));
        let same = removed.iter().zip(&added).take_while(|(old, new)| old == new).count();
        for entry in added {
            self.count(&entry);
            self.bytes_before.push(self.bytes() + entry_bytes(self.recorded, &entry));
            self.entries.push(entry);
        }
        self.bytes_before[keep + same]
    }

    fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::Recorded { index, shown: Shown::Full } => self.whole[*index] += 1,
            Entry::Recorded { .. } => {}
            Entry::Made(made) => {
                self.made += 1;
                for call in made.record.calls() {
                    *self.made_calls.entry(call.call_id.clone()).or_insert(0) += 1;
                }
            }
        }
    }

    fn uncount(&mut self, entry: &Entry) {
        match entry {
            Entry::Recorded { index, shown: Shown::Full } => self.whole[*index] -= 1,
            Entry::Recorded { .. } => {}
            Entry::Made(made) => {
                self.made -= 1;
                for call in made.record.calls() {
                    if let Some(count) = self.made_calls.get_mut(&call.call_id) {
                        *count -= 1;
                        if *count == 0 {
                            self.made_calls.remove(&call.call_id);
                        }
                    }
                }
            }
        }
    }

    /// Whether an entry shows what was read of a file: where that stands in the transcript, and which file.
    ///
    /// A message that the policy wrote shows a read if it carries most of it.
    fn shown_read(&self, entry: &Entry) -> Option<(usize, usize)> {
        let index = match entry {
            Entry::Recorded { index, shown: Shown::Full } => *index,
            Entry::Recorded { .. } => return None,
            Entry::Made(made) => {
                let index = self.recorded.answer_to(&made.record.output()?.call_id)?;
                if 2 * made.chars <= self.recorded.facts[index].chars {
                    return None;
                }
                index
            }
        };
        Some((index, self.recorded.facts[index].read?))
    }

    /// Whether a message that the policy wrote holds a text.
    fn is_made_to_show(&self, text: &str) -> bool {
        if self.made == 0 {
            return false;
        }
        let finder = memchr::memmem::Finder::new(text);
        let holds = |entry: &Entry| matches!(entry, Entry::Made(made) if finder.find(made.plain.as_bytes()).is_some());
        self.entries.iter().rev().any(holds)
    }
}

fn entry_bytes(recorded: &Recorded<'_>, entry: &Entry) -> u64 {
    match entry {
        Entry::Recorded { index, shown: Shown::Full } => recorded.facts[*index].bytes,
        Entry::Recorded { index, shown: Shown::Head } => recorded.facts[*index].bytes.min(HEAD_BYTES),
        Entry::Recorded { shown: Shown::Stub, .. } => STUB_BYTES,
        Entry::Made(made) => made.bytes,
    }
}
