//! The receipt: how many requests there were, what they cost, and what was saved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::account::models::Source;
use crate::account::record::{DecidedNote, DecisionKind, RequestRecord};

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
    /// Tokens that would have been sent, in observe mode.
    pub would_send: Option<u64>,
    /// Folds, in order.
    pub folds: Vec<DecidedNote>,
    /// The other decisions, by reason.
    pub decided: BTreeMap<String, usize>,
    /// Requests that were sent unchanged or without new decisions, by reason.
    pub passed: BTreeMap<String, usize>,
    /// Requests of which something could not be written to the store.
    #[serde(default)]
    pub unsaved: usize,
    /// What providers reported about their caches when asked, with how often.
    #[serde(default)]
    pub diagnosed: BTreeMap<String, usize>,
    /// How long the gateway itself worked on a request, in microseconds: median and 99th percentile.
    pub own_us: (u64, u64),
    /// Conversations that would not fit into the model's window without the gateway.
    pub dependent: Vec<String>,
    /// Headers that report the use of a quota, as last received.
    pub quota: BTreeMap<String, String>,
    /// The models that were asked, each with what its figures rest on.
    #[serde(default)]
    pub models: BTreeMap<String, ModelNote>,
}

impl Receipt {
    /// Adds up requests.
    pub fn of(records: &[RequestRecord]) -> Self {
        let mut receipt = Self { requests: records.len(), ..Self::default() };
        let mut conversations: Vec<&str> = records.iter().filter_map(|record| record.conversation.as_deref()).collect();
        conversations.sort_unstable();
        conversations.dedup();
        receipt.conversations = conversations.len();
        records.iter().for_each(|record| receipt.add(record));
        receipt.dollars = dollars(records);
        let of_models = records.iter().filter(|record| record.format.is_some());
        let mut own: Vec<u64> = of_models.map(|record| record.own_us).collect();
        own.sort_unstable();
        let at = |share: f64| own.get((own.len() as f64 * share) as usize).or(own.last()).copied().unwrap_or(0);
        receipt.own_us = (at(0.5), at(0.99));
        receipt
    }

    fn add(&mut self, record: &RequestRecord) {
        self.changed += usize::from(record.is_changed);
        self.unsaved += usize::from(record.is_unsaved);
        if record.status >= 400 {
            *self.failed.entry(record.status).or_default() += 1;
        }
        let is_answered = record.format.is_some() && record.status < 400 && !record.is_count;
        self.without_usage += usize::from(is_answered && record.usage.is_none());
        if let Some((usage, bill)) = record.usage.zip(record.bill) {
            self.with_usage += 1;
            self.sent += bill.sent;
            self.came += bill.came;
            self.cache_read += usage.cache_read;
            self.output += usage.output;
            self.billed += bill.billed;
            self.passed_through += bill.passed_through;
        }
        if let Some(would) = record.would_send {
            *self.would_send.get_or_insert_default() += would;
        }
        for note in &record.decided {
            match note.what {
                DecisionKind::Fold => self.folds.push(note.clone()),
                _ => *self.decided.entry(note.reason.clone()).or_default() += 1,
            }
        }
        if let Some(why) = &record.passed {
            *self.passed.entry(why.clone()).or_default() += 1;
        }
        if let Some(word) = &record.diagnosis {
            *self.diagnosed.entry(word.clone()).or_default() += 1;
        }
        if let Some(conversation) = record.conversation.as_ref().filter(|_| depends(record))
            && !self.dependent.contains(conversation)
        {
            self.dependent.push(conversation.clone());
        }
        self.quota.extend(record.quota.iter().cloned());
        self.note_model(record);
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

    /// The savings as a share of pass-through's bill; negative if the gateway cost more.
    pub fn saved_share(&self) -> f64 {
        if self.passed_through > 0.0 { 1.0 - self.billed / self.passed_through } else { 0.0 }
    }
}

/// Whether the unchanged request would not have fitted into the model's window.
fn depends(record: &RequestRecord) -> bool {
    record.is_changed && record.bill.zip(record.context).is_some_and(|(bill, context)| bill.came > context)
}

/// Dollars that were paid and that pass-through would have cost, where all prices are known.
fn dollars(records: &[RequestRecord]) -> Option<(f64, f64)> {
    let mut sums = (0.0, 0.0);
    for record in records {
        let Some((usage, bill)) = record.usage.zip(record.bill) else { continue };
        let (input, output) = record.dollars?;
        let (input_through, output_through) = record.dollars_through.unwrap_or((input, output));
        let written = usage.output as f64;
        sums.0 += (bill.billed * input + written * output) / 1e6;
        sums.1 += (bill.passed_through * input_through + written * output_through) / 1e6;
    }
    (sums.0 > 0.0).then_some(sums)
}
