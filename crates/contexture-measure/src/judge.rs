//! Measures what a policy's requests keep, and what they would have cost.
//!
//! No model is called. For each edit that the agent made next, it checks whether the text that the edit replaces was in
//! the window; of the tokens that were sent, it counts how many the provider had in its cache.

use std::borrow::Cow;
use std::collections::HashMap;

use contexture::fold::Prices;
use serde::Serialize;

use crate::bill::{ReplayBill, Sizes};
use crate::pauses::Pauses;
use crate::policies::{HEAD_BYTES, STUB_BYTES, ShownMessage, WindowChange, WindowEntry};
use crate::record_text::whole_text;
use crate::recorded::{RecordedSession, Write};

/// Bytes that count as one token.
const TOKEN_BYTES: f64 = 4.0;

/// A transcript counts as more expensive than pass-through from this factor on.
const COSTLIER_FACTOR: f64 = 1.001;

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
    /// Edits whose old text is somewhere in the past.
    pub targets: u64,
    /// Of those, edits whose old text is in the window.
    pub hits: u64,
    /// Requests before which people had said something.
    pub said_requests: u64,
    /// Summed over those, the share of what people said that is in the window.
    pub said: f64,
    /// Requests before which the agent had said something.
    pub told_requests: u64,
    /// Summed over those, the share of what the agent said that is in the window.
    pub told: f64,
    /// Rare words that the agent's messages drew on.
    pub needed: u64,
    /// Of those, words that are in the window.
    pub used: u64,
    /// Transcripts that cost more than pass-through.
    pub costlier: u64,
    /// Transcripts with a request over budget.
    pub over: u64,
}

impl Measures {
    /// The share of edits whose old text is in the window.
    pub fn recall(&self) -> f64 {
        self.hits as f64 / self.targets.max(1) as f64
    }

    /// The share of what people said that is in the window, averaged over requests; 1 where nobody said anything.
    pub fn said_share(&self) -> f64 {
        ratio(self.said, self.said_requests as f64)
    }

    /// The share of what the agent said that is in the window, averaged over requests; 1 where it said nothing.
    pub fn told_share(&self) -> f64 {
        ratio(self.told, self.told_requests as f64)
    }

    /// The share of the rare words that the agent drew on that is in the window; 1 where there are none.
    pub fn used_share(&self) -> f64 {
        ratio(self.used as f64, self.needed as f64)
    }

    /// The price, relative to pass-through.
    pub fn cost_ratio(&self) -> f64 {
        ratio(self.cost, self.pass_through_cost)
    }

    /// What is sent, relative to pass-through.
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
        self.said_requests += other.said_requests;
        self.said += other.said;
        self.told_requests += other.told_requests;
        self.told += other.told;
        self.needed += other.needed;
        self.used += other.used;
        self.costlier += other.costlier;
        self.over += other.over;
    }
}

/// A ratio; 1 if both are 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 1.0 } else { part / whole }
}

/// Measures a policy's requests one by one.
pub struct WindowJudge<'a> {
    recorded: &'a RecordedSession<'a>,
    window: JudgedWindow<'a>,
    bill: ReplayBill,
    pauses: Pauses,
    /// How many messages were processed.
    processed: usize,
    /// Bytes of what people said that the last request did not show.
    unsaid_bytes: u64,
    measures: Measures,
}

impl<'a> WindowJudge<'a> {
    /// Starts with an empty window, at a provider's prices.
    pub fn new(recorded: &'a RecordedSession<'a>, prices: Prices) -> Self {
        Self {
            recorded,
            window: JudgedWindow::new(recorded),
            bill: ReplayBill::new(prices),
            pauses: Pauses::new(prices.cache_life),
            processed: 0,
            unsaid_bytes: 0,
            measures: Measures::default(),
        }
    }

    /// Measures the next request.
    pub fn take(&mut self, request: WindowChange) {
        let WindowChange { before, keep, added } = request;
        let shared = self.window.advance(keep, added);
        self.recorded.records[self.processed..before].iter().for_each(|record| self.pauses.note(record));
        let seen = self.recorded.bytes_before(self.processed);
        self.processed = before;
        self.bill.note(Sizes {
            cached: shared.bytes,
            sent: self.window.bytes(),
            passed_through: self.recorded.bytes_before(before),
            seen,
            is_cold: self.pauses.has_expired(),
        });
        self.take_said(before, shared.is_all);
        self.take_told(before);
        if self.recorded.records[before].calls().next().is_some() {
            self.take_stale(before);
            self.take_recall(before);
        }
    }

    /// Measures how much of what people said is shown. If the window only grew, only its new part is examined.
    fn take_said(&mut self, before: usize, has_only_grown: bool) {
        let said = &self.recorded.said;
        let count = said.said_before(before);
        if count == 0 {
            return;
        }
        if !has_only_grown {
            self.unsaid_bytes = self.window.lines_not_shown(count).map(|line| said.bytes(line)).sum();
        }
        self.measures.said_requests += 1;
        self.measures.said += 1.0 - self.unsaid_bytes as f64 / said.bytes_of_first(count) as f64;
    }

    /// Measures how much of what the agent said is shown, and of what it draws on next.
    fn take_told(&mut self, before: usize) {
        let told = &self.recorded.told;
        let count = told.said_before(before);
        if count > 0 {
            let absent = (0..count).filter(|line| self.window.told[*line] == 0);
            let missing: u64 = absent.map(|line| told.bytes(line)).sum();
            self.measures.told_requests += 1;
            self.measures.told += 1.0 - missing as f64 / told.bytes_of_first(count) as f64;
        }
        let used = told.used(before);
        self.measures.needed += used.len() as u64;
        self.measures.used += used.iter().filter(|word| self.window.words[**word] > 0).count() as u64;
    }

    fn take_stale(&mut self, before: usize) {
        for entry in &self.window.entries {
            let Some((read_at, path)) = self.window.shown_read(entry) else { continue };
            let bytes = entry_bytes(self.recorded, entry);
            self.measures.read_bytes += bytes;
            let writes = self.recorded.writes[path].iter();
            let mut later = writes.filter(|write| read_at < write.message && write.message < before);
            // A policy may have kept one of the two messages and written the other.
            let is_shown = |write: &Write<'_>| {
                self.window.whole[write.message] > 0 || self.window.made_calls.contains_key(write.call_id)
            };
            let is_hidden = later.any(|write| !is_shown(write));
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

    /// The measures, for a budget in tokens.
    pub fn finish(mut self, budget: f64) -> Measures {
        let (measures, bill) = (&mut self.measures, &self.bill);
        (measures.requests, measures.bytes, measures.peak_bytes) = (bill.requests(), bill.sent(), bill.peak());
        measures.pass_through_bytes = bill.passed_through();
        (measures.cost, measures.pass_through_cost) = (bill.account().billed, bill.account().passed_through);
        measures.costlier = u64::from(measures.cost > measures.pass_through_cost * COSTLIER_FACTOR);
        measures.over = u64::from(measures.peak_tokens() > budget * OVER_FACTOR);
        self.measures
    }
}

/// The entries of the current request, with data for fast lookups.
struct JudgedWindow<'a> {
    recorded: &'a RecordedSession<'a>,
    entries: Vec<WindowEntry>,
    /// The bytes of all entries before each one, and the total at the end.
    bytes_before: Vec<u64>,
    /// For each recorded message, how often it is shown whole.
    whole: Vec<u32>,
    /// How often each call is shown in a message that the policy wrote.
    made_calls: HashMap<Box<str>, u32>,
    /// How many entries the policy wrote.
    made: usize,
    /// For each line that people said, how many entries contain it.
    said: Vec<u32>,
    /// The same for each line that the agent said.
    told: Vec<u32>,
    /// The same for each word.
    words: Vec<u32>,
}

/// The common prefix of a request with the previous one.
struct CommonPrefix {
    bytes: u64,
    /// Whether it is all of the previous request, and there was one.
    is_all: bool,
}

impl<'a> JudgedWindow<'a> {
    fn new(recorded: &'a RecordedSession<'a>) -> Self {
        let whole = vec![0; recorded.records.len()];
        let said = vec![0; recorded.said.len()];
        let (lines, words) = recorded.told.len();
        Self {
            recorded,
            entries: Vec::new(),
            bytes_before: vec![0],
            whole,
            made_calls: HashMap::new(),
            made: 0,
            said,
            told: vec![0; lines],
            words: vec![0; words],
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes_before[self.entries.len()]
    }

    /// Advances to the next request and returns what it shares with the last one.
    fn advance(&mut self, keep: usize, added: Vec<WindowEntry>) -> CommonPrefix {
        let last_len = self.entries.len();
        let keep = keep.min(last_len);
        let removed = self.entries.split_off(keep);
        self.bytes_before.truncate(keep + 1);
        removed.iter().for_each(|entry| self.uncount(entry));
        let same = removed.iter().zip(&added).take_while(|(old, new)| old == new).count();
        for entry in added {
            self.count(&entry);
            self.bytes_before.push(self.bytes() + entry_bytes(self.recorded, &entry));
            self.entries.push(entry);
        }
        CommonPrefix { bytes: self.bytes_before[keep + same], is_all: last_len > 0 && keep + same == last_len }
    }

    fn count(&mut self, entry: &WindowEntry) {
        self.note_told(entry, |count| *count += 1);
        match entry {
            WindowEntry::RecordedSession { index, shown: ShownMessage::Full } => {
                self.whole[*index] += 1;
                self.recorded.said.lines_of(*index).iter().for_each(|&line| self.said[line] += 1);
            }
            WindowEntry::RecordedSession { .. } => {}
            WindowEntry::Made(made) => {
                self.made += 1;
                self.recorded.said.ids_in(&made.plain).into_iter().for_each(|line| self.said[line] += 1);
                for call in made.record.calls() {
                    *self.made_calls.entry(call.call_id.clone()).or_insert(0) += 1;
                }
            }
        }
    }

    fn uncount(&mut self, entry: &WindowEntry) {
        self.note_told(entry, |count| *count -= 1);
        match entry {
            WindowEntry::RecordedSession { index, shown: ShownMessage::Full } => {
                self.whole[*index] -= 1;
                self.recorded.said.lines_of(*index).iter().for_each(|&line| self.said[line] -= 1);
            }
            WindowEntry::RecordedSession { .. } => {}
            WindowEntry::Made(made) => {
                self.made -= 1;
                self.recorded.said.ids_in(&made.plain).into_iter().for_each(|line| self.said[line] -= 1);
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

    /// Counts what an entry shows of what the agent said, and its words.
    fn note_told(&mut self, entry: &WindowEntry, change: impl Fn(&mut u32)) {
        let told = &self.recorded.told;
        let marks = match entry {
            WindowEntry::RecordedSession { shown: ShownMessage::Stub, .. } => return,
            WindowEntry::RecordedSession { index, .. } => Cow::Borrowed(told.shown(*index)),
            // A numbered list of the agent is its own words, not a file with its line numbers.
            WindowEntry::Made(made) => Cow::Owned(told.marks(&whole_text(&made.record))),
        };
        marks.lines.iter().for_each(|line| change(&mut self.told[*line]));
        marks.words.iter().for_each(|word| change(&mut self.words[*word]));
    }

    /// The read that an entry shows, if any: its position in the transcript, and the file.
    ///
    /// A message that the policy wrote shows a read if it contains most of it.
    fn shown_read(&self, entry: &WindowEntry) -> Option<(usize, usize)> {
        let index = match entry {
            WindowEntry::RecordedSession { index, shown: ShownMessage::Full } => *index,
            WindowEntry::RecordedSession { .. } => return None,
            WindowEntry::Made(made) => {
                let index = self.recorded.output_of(&made.record.output()?.call_id)?;
                if 2 * made.chars <= self.recorded.facts[index].chars {
                    return None;
                }
                index
            }
        };
        Some((index, self.recorded.facts[index].read?))
    }

    /// Of the first `count` lines that people said, those that are not shown, not even with other line breaks.
    fn lines_not_shown(&self, count: usize) -> impl Iterator<Item = usize> {
        let absent: Vec<usize> = (0..count).filter(|&line| self.said[line] == 0).collect();
        let said = &self.recorded.said;
        let made = self.entries.iter().filter(|_| !absent.is_empty()).filter_map(WindowEntry::made);
        let joined = said.join(made.map(|made| &made.plain));
        absent.into_iter().filter(move |&line| {
            let mut holders = said.holders(line, self.recorded.records).iter();
            !holders.any(|&holder| self.whole[holder] > 0) && !said.is_in(line, &joined)
        })
    }

    /// Whether a message that the policy wrote contains a text.
    fn is_made_to_show(&self, text: &str) -> bool {
        if self.made == 0 {
            return false;
        }
        let finder = memchr::memmem::Finder::new(text);
        let holds = |entry: &WindowEntry| matches!(entry, WindowEntry::Made(made) if finder.find(made.plain.as_bytes()).is_some());
        self.entries.iter().rev().any(holds)
    }
}

fn entry_bytes(recorded: &RecordedSession<'_>, entry: &WindowEntry) -> u64 {
    match entry {
        WindowEntry::RecordedSession { index, shown: ShownMessage::Full } => recorded.facts[*index].bytes,
        WindowEntry::RecordedSession { index, shown: ShownMessage::Head } => {
            recorded.facts[*index].bytes.min(HEAD_BYTES)
        }
        WindowEntry::RecordedSession { shown: ShownMessage::Stub, .. } => STUB_BYTES,
        WindowEntry::Made(made) => made.bytes,
    }
}

#[cfg(test)]
mod tests {
    use contexture::fold::Prices;
    use contexture::transcript::Transcript;

    use super::WindowJudge;
    use crate::policies::{MadeMessage, WindowChange, WindowEntry};
    use crate::recorded::RecordedSession;

    /// A numbered list of the agent counts as shown when a policy writes it again, and as missing when it does not.
    #[test]
    fn a_numbered_list_of_the_agent_is_its_own_words() {
        let recording = [
            r#"{"role":"user","content":"What is wrong with the harbour?"}"#,
            r#"{"role":"assistant","content":"1. The harbour has no tide table at all.\n2. Ships are counted twice a day."}"#,
            r#"{"role":"user","content":"And what else?"}"#,
            r#"{"role":"assistant","content":"Nothing else."}"#,
        ];
        let (transcript, _) = Transcript::read(recording.join("\n").as_bytes()).expect("the plain form");
        let recorded = RecordedSession::new(&transcript);
        let told = |shown: &[usize]| {
            let mut judge = WindowJudge::new(&recorded, Prices::ANTHROPIC);
            let added = shown.iter().map(|index| WindowEntry::Made(MadeMessage::new(recorded.records[*index].clone())));
            judge.take(WindowChange { before: 3, keep: 0, added: added.collect() });
            judge.finish(1_000.0).told_share()
        };
        assert_eq!((told(&[0, 1, 2]), told(&[0, 2])), (1.0, 0.0));
    }
}
