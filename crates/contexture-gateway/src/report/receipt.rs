//! The receipt: how many requests there were, what they cost, and what was saved.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::account::cap::CapUse;
use crate::account::record::{DecidedNote, DecisionKind, RequestRecord, ToolsNote, dollars_of};
use crate::account::signals::SignalCounts;
use crate::models::Source;
use crate::report::quota::{self, QuotaUse};

/// What the figures about a model rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelNote {
    /// Its context window in tokens.
    pub context: u64,
    /// Where that was learnt.
    pub context_from: Source,
    /// Dollars per million input and output tokens, where known.
    pub dollars: Option<(f64, f64)>,
    /// Where these were learnt.
    pub dollars_from: Source,
}

/// The totals of a set of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Requests that passed through.
    pub requests: usize,
    /// Conversations they belong to.
    pub conversations: usize,
    /// Requests that were sent changed.
    pub changed: usize,
    /// Requests that failed, by the provider's status.
    pub failed: BTreeMap<u16, usize>,
    /// Requests whose response reported its usage.
    pub with_usage: usize,
    /// Requests that a model answered without reporting its usage.
    #[serde(default)]
    pub without_usage: usize,
    /// Input tokens sent, by the provider's figures.
    pub sent: u64,
    /// Input tokens that pass-through would have sent.
    pub came: u64,
    /// Of those sent, the ones read from the provider's cache.
    pub cache_read: u64,
    /// Output tokens.
    pub output: u64,
    /// Input billed, in tokens at the plain input price.
    pub billed: f64,
    /// What pass-through would have cost.
    pub passed_through: f64,
    /// The same in dollars, output included, where all prices are known.
    pub dollars: Option<(f64, f64)>,
    /// Requests that came after the agent would have summarised its conversation, so that nothing counts as saved.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub beyond: usize,
    /// Tokens that would have been sent, in observe mode.
    pub would_send: Option<u64>,
    /// Folds, in order.
    pub folds: Vec<DecidedNote>,
    /// The other decisions, by reason.
    pub decided: BTreeMap<String, usize>,
    /// Requests that were sent unchanged or without new decisions, by reason.
    pub passed: BTreeMap<String, usize>,
    /// How often a file was shown that could not be compared with the disk, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_compared: BTreeMap<String, usize>,
    /// Requests of which something is not in the store yet, while the gateway runs.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub late: usize,
    /// Requests of which something never came into the store: after a restart other bytes may be sent.
    #[serde(default)]
    pub unsaved: usize,
    /// Which ones these are: the first of them.
    #[serde(default)]
    pub unsaved_requests: Vec<UnsavedRequest>,
    /// Requests that were answered before a start and of which the store knows nothing: they were sent and not written when
    /// a kill came, or not by way of this store.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub unknown: usize,
    /// Requests whose responses have not ended: they are under way, or the gateway was killed meanwhile.
    #[serde(default)]
    pub open: usize,
    /// Folds that are not listed.
    #[serde(default)]
    pub more_folds: usize,
    /// What is to be said about the store.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What providers reported about their caches when asked, with how often.
    #[serde(default)]
    pub diagnosed: BTreeMap<String, usize>,
    /// What happened in the conversations that were not held out, so far.
    #[serde(default)]
    pub signals: SignalCounts,
    /// Conversations that were held out for comparison.
    #[serde(default)]
    pub held_out: usize,
    /// What happened in those.
    #[serde(default)]
    pub held_out_signals: SignalCounts,
    /// What providers did to windows by themselves, by type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provider_edits: BTreeMap<String, ProviderEdits>,
    /// How long the gateway itself worked on a request, in microseconds: median and 99th percentile.
    pub own_us: (u64, u64),
    /// Conversations that would not fit into the model's window without the gateway.
    pub dependent: Vec<String>,
    /// What memory added.
    #[serde(default, skip_serializing_if = "MemoryReceipt::is_empty")]
    pub memory: MemoryReceipt,
    /// What was left out of tools that nobody calls.
    #[serde(default, skip_serializing_if = "LeanReceipt::is_empty")]
    pub lean: LeanReceipt,
    /// Headers that report the use of a quota, as last received.
    pub quota: BTreeMap<String, String>,
    /// What was used of quotas, by the header that says it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota_used: BTreeMap<String, QuotaUse>,
    /// Billed requests with the login of a plan.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub on_plan: usize,
    /// How long providers took to begin their answers, in milliseconds at the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_ms: Option<u64>,
    /// The same in conversations that were held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out_begun_ms: Option<u64>,
    /// How much of the cap is used, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<CapUse>,
    /// The models that were asked, each with what its figures rest on.
    #[serde(default)]
    pub models: BTreeMap<String, ModelNote>,
}

fn is_none_of_them(count: &usize) -> bool {
    *count == 0
}

/// What providers did to windows by themselves, in all requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderEdits {
    /// In how many requests.
    pub requests: usize,
    /// How many tool uses, or turns with thoughts, were cleared.
    pub cleared: u64,
    /// How many tokens of input models did not see for it, as far as that is said.
    pub cleared_tokens: u64,
}

/// What memory added to requests, and what that cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryReceipt {
    /// How often something was added.
    pub added: usize,
    /// Facts and passages that were added.
    pub memories: usize,
    /// Tokens that were added, each counted once, by our own count.
    pub tokens: u64,
    /// Tokens of memory in all requests: what was added once is sent again with every later one.
    pub sent: u64,
    /// What these cost, in tokens at the plain input price.
    pub cost: f64,
    /// How often it was late: what it found went with a later request.
    pub late: usize,
}

impl MemoryReceipt {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, note: &DecidedNote) {
        if note.recalled == 0 {
            self.late += 1;
            return;
        }
        self.added += 1;
        self.memories += note.recalled;
        self.tokens += note.after_tokens;
    }
}

/// What was left out of tools that nobody calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeanReceipt {
    /// Conversations out of which some were left.
    pub conversations: usize,
    /// How many declarations that were.
    pub tools: usize,
    /// About how many tokens of all requests.
    pub tokens: u64,
    /// Those that were called all the same, with how often.
    pub missed: BTreeMap<String, usize>,
    /// Conversations that got all their tools again because the provider refused them without some.
    pub whole: usize,
}

impl LeanReceipt {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, note: &ToolsNote) {
        self.conversations += usize::from(!note.left_out.is_empty());
        self.tools += note.left_out.len();
        self.tokens += note.tokens;
        self.whole += usize::from(note.is_whole);
        note.missed.iter().for_each(|name| *self.missed.entry(name.clone()).or_default() += 1);
    }
}

/// Most folds, and most requests of a kind, that a receipt lists; the others are counted.
const MOST_LISTED: usize = 10_000;
const MOST_NAMED: usize = 100;

/// A request of which something could not be written to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsavedRequest {
    /// Its conversation, if it has one.
    pub conversation: Option<String>,
    /// When it came, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}

impl UnsavedRequest {
    fn of(record: &RequestRecord) -> Self {
        Self { conversation: record.conversation.clone(), time_ms: record.time_ms }
    }
}

/// Adds up requests as they come, however many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    receipt: Receipt,
    conversations: HashSet<String>,
    dependent: HashSet<String>,
    /// By conversation: whether it is held out, and what happened in it.
    signals: HashMap<String, (bool, SignalCounts)>,
    own_us: Spread,
    /// How long answers took to begin, and those of conversations that were held out.
    begun_ms: [Spread; 2],
    dollars: (f64, f64),
    is_unpriced: bool,
    /// Records that could never be written.
    lost: usize,
}

impl Totals {
    /// Adds a request.
    pub fn add(&mut self, record: &RequestRecord) {
        self.receipt.requests += 1;
        if let Some(conversation) = &record.conversation
            && !self.conversations.contains(conversation)
        {
            self.conversations.insert(conversation.clone());
        }
        self.receipt.add(record);
        if let Some((conversation, signals)) = record.conversation.as_ref().zip(record.signals) {
            self.signals.insert(conversation.clone(), (record.is_held_out == Some(true), signals));
        }
        if let Some(conversation) = record.conversation.as_ref().filter(|_| depends(record))
            && self.dependent.insert(conversation.clone())
            && self.receipt.dependent.len() < MOST_LISTED
        {
            self.receipt.dependent.push(conversation.clone());
        }
        if record.format.is_some() && !record.is_open {
            self.own_us.add(record.own_us);
        }
        if record.usage.is_some() && !record.is_simulated {
            self.begun_ms[usize::from(record.is_held_out == Some(true))].add(record.first_byte_ms);
        }
        match dollars_of(record) {
            Some(Some((paid, through))) => self.dollars = (self.dollars.0 + paid, self.dollars.1 + through),
            Some(None) => self.is_unpriced = true,
            None => {}
        }
    }

    /// Notes that a record could not be written and is not kept any longer.
    pub fn note_lost(&mut self) {
        self.lost += 1;
    }

    /// The receipt so far. `unwritten` are requests of which something is not in the store.
    pub fn receipt<'a>(&self, missing: Missing, unwritten: impl Iterator<Item = &'a RequestRecord>) -> Receipt {
        let mut receipt = self.receipt.clone();
        receipt.conversations = self.conversations.len();
        receipt.dollars = Some(self.dollars).filter(|dollars| !self.is_unpriced && dollars.0 > 0.0);
        for (is_held_out, signals) in self.signals.values() {
            match is_held_out {
                true => {
                    receipt.held_out += 1;
                    receipt.held_out_signals = receipt.held_out_signals.and(*signals);
                }
                false => receipt.signals = receipt.signals.and(*signals),
            }
        }
        receipt.own_us = (self.own_us.at(0.5), self.own_us.at(0.99));
        [receipt.begun_ms, receipt.held_out_begun_ms] = self.begun_ms.each_ref().map(Spread::median);
        receipt.unsaved += self.lost;
        match missing {
            Missing::Late => receipt.late = unwritten.count(),
            Missing::Lost => unwritten.for_each(|record| receipt.add_unsaved(record)),
        }
        receipt
    }
}

/// What becomes of requests of which something is not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is written later.
    Late,
    /// It never will be.
    Lost,
}

/// Bits of a value that are told apart.
const BITS: u32 = 7;

/// How values are spread, to less than one percent.
#[derive(Clone, Debug, Default)]
struct Spread {
    counts: BTreeMap<u64, u64>,
    count: u64,
}

impl Spread {
    fn add(&mut self, value: u64) {
        let cut = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
        *self.counts.entry(value >> cut << cut).or_default() += 1;
        self.count += 1;
    }

    fn median(&self) -> Option<u64> {
        (self.count > 0).then(|| self.at(0.5))
    }

    /// The value below which this share of all is.
    fn at(&self, share: f64) -> u64 {
        let mut left = (self.count as f64 * share) as u64;
        for (value, count) in &self.counts {
            if left < *count {
                return *value;
            }
            left -= count;
        }
        self.counts.last_key_value().map_or(0, |(value, _)| *value)
    }
}

impl Receipt {
    /// Adds up requests.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a RequestRecord>) -> Self {
        let mut totals = Totals::default();
        records.into_iter().for_each(|record| totals.add(record));
        totals.receipt(Missing::Lost, std::iter::empty())
    }

    fn add_unsaved(&mut self, record: &RequestRecord) {
        self.unsaved += 1;
        if self.unsaved_requests.len() < MOST_NAMED {
            self.unsaved_requests.push(UnsavedRequest::of(record));
        }
    }

    fn add(&mut self, record: &RequestRecord) {
        if record.is_open {
            self.open += 1;
            return;
        }
        self.changed += usize::from(record.is_changed);
        self.unknown += record.unknown;
        self.memory.sent += record.memory_tokens;
        self.memory.cost += record.memory_cost;
        if record.is_unsaved {
            self.add_unsaved(record);
        }
        if record.status >= 400 {
            *self.failed.entry(record.status).or_default() += 1;
        }
        let is_answered = record.format.is_some() && record.status < 400 && !record.is_count;
        self.without_usage += usize::from(is_answered && record.usage.is_none());
        if let Some((usage, bill)) = record.usage.zip(record.bill) {
            self.with_usage += 1;
            self.sent += bill.sent;
            self.came += bill.came;
            self.beyond += usize::from(bill.is_beyond);
            self.cache_read += usage.cache_read;
            self.output += usage.output;
            self.billed += bill.billed;
            self.passed_through += bill.passed_through;
        }
        if let Some(would) = record.would_send {
            *self.would_send.get_or_insert_default() += would;
        }
        for note in &record.decided {
            for (why, count) in &note.not_compared {
                *self.not_compared.entry(why.clone()).or_default() += count;
            }
            match note.what {
                DecisionKind::Fold if self.folds.len() < MOST_LISTED => self.folds.push(note.clone()),
                DecisionKind::Fold => self.more_folds += 1,
                DecisionKind::Memory => self.memory.add(note),
                _ => *self.decided.entry(note.reason.clone()).or_default() += 1,
            }
        }
        if let Some(why) = &record.passed {
            *self.passed.entry(why.clone()).or_default() += 1;
        }
        if let Some(word) = &record.diagnosis {
            *self.diagnosed.entry(word.clone()).or_default() += 1;
        }
        for edit in &record.provider_edits {
            let edits = self.provider_edits.entry(edit.kind.clone()).or_default();
            edits.requests += 1;
            edits.cleared += edit.cleared;
            edits.cleared_tokens += edit.cleared_tokens;
        }
        if let Some(note) = &record.tools {
            self.lean.add(note);
        }
        self.on_plan += usize::from(record.is_on_plan && record.bill.is_some());
        quota::add(&mut self.quota_used, &record.quota);
        self.quota.extend(record.quota.iter().cloned());
        self.note_model(record);
    }

    /// How many folds there were.
    pub fn fold_count(&self) -> usize {
        self.folds.len() + self.more_folds
    }

    fn note_model(&mut self, record: &RequestRecord) {
        let (Some(context), Some(context_from)) = (record.context, &record.context_from) else { return };
        if record.model.is_empty() || record.bill.is_none() {
            return;
        }
        let note = ModelNote {
            context,
            context_from: context_from.clone(),
            dollars: record.dollars,
            dollars_from: record.price_from.clone().unwrap_or_default(),
        };
        self.models.insert(record.model.clone(), note);
    }

    /// Whether the sums in dollars rest on a guess of some model's prices.
    pub fn has_guessed_prices(&self) -> bool {
        self.models.values().any(|model| model.dollars.is_some() && model.dollars_from.is_guess())
    }

    /// How much less was paid, as a share of what unchanged requests would have cost: of dollars, or of tokens where a
    /// price is not known. Negative if the gateway cost more.
    pub fn saved_share(&self) -> f64 {
        let (paid, through) = self.dollars.unwrap_or((self.billed, self.passed_through));
        if through > 0.0 { 1.0 - paid / through } else { 0.0 }
    }
}

/// Whether the unchanged request would not have fitted into the model's window.
fn depends(record: &RequestRecord) -> bool {
    record.is_changed && record.bill.zip(record.context).is_some_and(|(bill, context)| bill.came > context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_go_on_however_many_requests_there_are() {
        let mut totals = Totals::default();
        for n in 0..100_000_u64 {
            let conversation = Some(format!("c-{}", n % 500));
            totals.add(&RequestRecord {
                conversation,
                format: Some(contexture::wire::Format::Chat),
                own_us: n % 1_000,
                status: 200,
                ..RequestRecord::default()
            });
        }
        let receipt = totals.receipt(Missing::Lost, std::iter::empty());
        assert_eq!((receipt.requests, receipt.conversations, receipt.without_usage), (100_000, 500, 100_000));
        let is_near = |value: u64, expected: u64| value <= expected && value + expected / 100 >= expected;
        assert!(is_near(receipt.own_us.0, 500) && is_near(receipt.own_us.1, 990), "{:?}", receipt.own_us);
    }

    #[test]
    fn a_request_that_was_cut_off_is_on_the_receipt() {
        let open = RequestRecord { is_open: true, conversation: Some("c".to_owned()), ..RequestRecord::default() };
        let receipt = Receipt::of(&[open]);
        assert_eq!((receipt.requests, receipt.open, receipt.without_usage), (1, 1, 0));
    }
}
