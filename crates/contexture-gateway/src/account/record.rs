//! The record of one request, from which receipts are made.

use std::collections::BTreeMap;

use contexture::wire::{Format, Usage};
use serde::{Deserialize, Serialize};

use crate::account::bill::Bill;
use crate::account::cap::Spent;
use crate::account::signals::SignalCounts;
use crate::models::Source;

/// The record of one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRecord {
    /// The run of the gateway that handled it.
    pub session: String,
    /// Its conversation, if it belongs to one.
    pub conversation: Option<String>,
    /// The conversation's title: what its user said first, on one line and without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it arrived, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Its format, if it called a model.
    pub format: Option<Format>,
    /// The cloud through which it called the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud: Option<Cloud>,
    /// The requested model.
    pub model: String,
    /// Whether it only asked for a token count.
    pub is_count: bool,
    /// The provider's status.
    pub status: u16,
    /// Whether it was sent changed.
    pub is_changed: bool,
    /// Why it was sent unchanged or without new decisions.
    pub passed: Option<String>,
    /// Whether what was decided for it was not in the store when this was written: after a restart it is lost.
    pub is_unsaved: bool,
    /// How many requests of its conversation were answered before it of which the store knows nothing.
    #[serde(skip_serializing_if = "is_no_request")]
    pub unknown: usize,
    /// Whether it was sent, and nothing is known of its response yet: it is under way, or the gateway was killed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
    /// The decisions for it, in plain words.
    pub decided: Vec<DecidedNote>,
    /// The usage that the provider reported, or that was simulated.
    pub usage: Option<Usage>,
    /// What it is taken to have spent, by our own count of its input, if it was answered and the response did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreported: Option<Spent>,
    /// Whether its usage is that of a simulated provider, as for recordings.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_simulated: bool,
    /// The most tokens that it could have, as the provider counts them, where something was decided about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Its bill.
    pub bill: Option<Bill>,
    /// Dollars per million input and output tokens for what was sent, where known.
    pub dollars: Option<(f64, f64)>,
    /// The same for what pass-through would have sent: large requests may cost more.
    pub dollars_through: Option<(f64, f64)>,
    /// Where the prices were learnt.
    pub price_from: Option<Source>,
    /// The model's context window in tokens.
    pub context: Option<u64>,
    /// Where the window was learnt.
    pub context_from: Option<Source>,
    /// Tokens that would have been sent, in observe mode.
    pub would_send: Option<u64>,
    /// What the provider reported about its cache, if asked.
    pub diagnosis: Option<String>,
    /// Whether its conversation is held out for comparison; `None` if no conversations are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_held_out: Option<bool>,
    /// What has happened in its conversation so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals: Option<SignalCounts>,
    /// What the provider did to the window by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_edits: Vec<ProviderEditNote>,
    /// How long the gateway itself worked on it, in microseconds.
    pub own_us: u64,
    /// Time to the first byte of the response, in milliseconds.
    pub first_byte_ms: u64,
    /// Time to the end of the response, in milliseconds.
    pub whole_ms: u64,
    /// Headers that report the use of a quota.
    pub quota: Vec<(String, String)>,
    /// Whether it was sent with the login of a plan, and not with a key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_on_plan: bool,
    /// The tools of its conversation, if those leave that nobody calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsNote>,
    /// Tokens of memory in it, of all that was added to its conversation, by our own count.
    #[serde(skip_serializing_if = "is_none_of_it")]
    pub memory_tokens: u64,
    /// What these cost, in tokens at the plain input price.
    #[serde(skip_serializing_if = "is_free")]
    pub memory_cost: f64,
}

/// What is new of the tools of a conversation with a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsNote {
    /// The conversation.
    pub conversation: String,
    /// A hash of where the agent works.
    pub place: String,
    /// How many messages the request has.
    pub messages: usize,
    /// With the first request, the tools that may leave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    /// With the first request, those that are left out of the conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Those that were called for the first time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<String>,
    /// Those of them that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<String>,
    /// About how many tokens of the request were left out.
    #[serde(skip_serializing_if = "is_none_of_it")]
    pub tokens: u64,
    /// Whether the provider took the request only with all tools, so that all are sent from here on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_whole: bool,
}

fn is_none_of_it(tokens: &u64) -> bool {
    *tokens == 0
}

fn is_no_request(count: &usize) -> bool {
    *count == 0
}

fn is_free(cost: &f64) -> bool {
    *cost == 0.0
}

/// A cloud that has models of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cloud {
    /// Amazon Bedrock.
    Bedrock,
    /// Google's Vertex AI.
    Vertex,
    /// Azure OpenAI.
    Azure,
}

/// What kind of decision it is. It is stored as its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DecisionKind {
    /// Work of the past was folded.
    Fold,
    /// A text was shortened.
    Shorten,
    /// A text was brought back, because it is needed again.
    BringBack,
    /// The provider's cache had expired.
    Cold,
    /// A file was checked on the disk.
    Disk,
    /// Files that a message names were added.
    Reference,
    /// What is remembered was added.
    Memory,
    /// A kind that is known by its name only: of a thread of the library, or of another version.
    Other(String),
}

impl DecisionKind {
    const NAMED: [Self; 7] =
        [Self::Fold, Self::Shorten, Self::BringBack, Self::Cold, Self::Disk, Self::Reference, Self::Memory];

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Fold => "fold",
            Self::Shorten => "shorten",
            Self::BringBack => "bring back",
            Self::Cold => "cold",
            Self::Disk => "disk",
            Self::Reference => "reference",
            Self::Memory => "memory",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for DecisionKind {
    fn from(name: String) -> Self {
        Self::NAMED.into_iter().find(|kind| kind.name() == name).unwrap_or(Self::Other(name))
    }
}

impl From<DecisionKind> for String {
    fn from(kind: DecisionKind) -> Self {
        kind.name().to_owned()
    }
}

/// What a record takes in memory, about, and each decision in it.
const RECORD_BYTES: usize = 2_048;
const NOTE_BYTES: usize = 512;

impl RequestRecord {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        RECORD_BYTES + NOTE_BYTES * self.decided.len()
    }

    /// Dollars that were paid for it, and that pass-through would have cost, where they are known.
    pub fn paid(&self) -> Option<(f64, f64)> {
        dollars_of(self).flatten()
    }

    /// Says of a fold what it was billed, in place of what was estimated before.
    pub fn note_fold_bill(&mut self) {
        let Some(fold) = self.bill.and_then(|bill| bill.fold) else { return };
        if let Some(note) = self.decided.iter_mut().find(|note| note.is_fold()) {
            note.estimated = Some((note.cost, note.saves_per_request));
            (note.cost, note.saves_per_request) = (fold.cost.max(0.0), fold.saves_per_request);
        }
    }
}

/// Something that the provider did to the window by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderEditNote {
    /// Its type, in the provider's own word.
    pub kind: String,
    /// How many tool uses, or turns with thoughts, were cleared.
    pub cleared: u64,
    /// How many tokens of input the model did not see for it, as far as that is said.
    pub cleared_tokens: u64,
    /// What it was billed beside the response: input, in tokens at the plain input price, and output.
    pub billed: f64,
    /// Output tokens, beside those of the response.
    pub output: u64,
    /// All its tokens.
    pub tokens: u64,
}

/// A decision in plain words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecidedNote {
    /// Its kind.
    pub what: DecisionKind,
    /// Why.
    pub reason: String,
    /// Whether it is a fold that the budget forced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_forced: bool,
    /// Tokens before it.
    pub before_tokens: u64,
    /// Tokens after it.
    pub after_tokens: u64,
    /// What a fold makes the provider bill again, in tokens at the plain input price.
    #[serde(default)]
    pub cost: f64,
    /// What it saves in every later request.
    #[serde(default)]
    pub saves_per_request: f64,
    /// The cost of a fold and what it saves as they were estimated when it was decided, if the two above are as billed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<(f64, f64)>,
    /// Files with changes by the agent, or pinned ones, that a fold had no room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What of the dialogue a fold had to cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<CutNote>,
    /// Of the lines that the agent last read of the files that it works on, the share that is in the window after a fold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_view: Option<f64>,
    /// Those files of which no line is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// How many facts and passages were recalled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recalled: usize,
    /// Files that were about to be shown and could not be compared with the disk, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_compared: BTreeMap<String, usize>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Something that a fold had to cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutNote {
    /// What it is: `said`, `told` or `record`.
    pub what: String,
    /// The hash by which the whole text can be shown again.
    pub hash: String,
    /// How many of its tokens are not shown.
    pub tokens: u64,
}

impl DecidedNote {
    /// A decision without figures.
    pub fn new(what: DecisionKind, reason: impl Into<String>) -> Self {
        let (reason, left_out, cut) = (reason.into(), Vec::new(), Vec::new());
        let (before_tokens, after_tokens, cost, saves_per_request) = (0, 0, 0.0, 0.0);
        let (is_forced, estimated) = (false, None);
        let (recalled, not_compared) = (0, BTreeMap::new());
        Self {
            what,
            reason,
            is_forced,
            before_tokens,
            after_tokens,
            cost,
            saves_per_request,
            estimated,
            left_out,
            cut,
            in_view: None,
            unseen: Vec::new(),
            recalled,
            not_compared,
        }
    }

    /// Whether it is a fold.
    pub fn is_fold(&self) -> bool {
        self.what == DecisionKind::Fold
    }

    /// Tokens that the folds among decisions leave out; `None` if there is no fold.
    pub fn folded(decided: &[Self]) -> Option<u64> {
        let folds = decided.iter().filter(|note| note.is_fold());
        folds.map(|fold| fold.before_tokens.saturating_sub(fold.after_tokens)).reduce(u64::saturating_add)
    }
}

impl Spent {
    /// What a request took: as its response says, or by our own count if it does not.
    pub fn of(record: &RequestRecord) -> Self {
        let Some(usage) = record.usage else { return record.unreported.unwrap_or_default() };
        let dollars = record.paid().map(|(paid, _)| paid);
        let is_guess = record.price_from.as_ref().is_some_and(|from| from.is_guess());
        Self {
            dollars: dollars.unwrap_or(0.0),
            tokens: usage.total_input()
                + usage.output
                + record.provider_edits.iter().map(|edit| edit.tokens).sum::<u64>(),
            is_guessed: is_guess && dollars.is_some(),
            unpriced: u64::from(dollars.is_none()),
        }
    }
}

/// Dollars that were paid for a request and that pass-through would have cost; the inner `None` means that its prices
/// are not known, the outer that nothing was billed.
pub(crate) fn dollars_of(record: &RequestRecord) -> Option<Option<(f64, f64)>> {
    let (usage, bill) = record.usage.zip(record.bill)?;
    let Some((input, output)) = record.dollars else { return Some(None) };
    let (input_through, output_through) = record.dollars_through.unwrap_or((input, output));
    // The provider would have done by itself what it did, so it is part of both.
    let written = usage.output as f64 + record.provider_edits.iter().map(|edit| edit.output as f64).sum::<f64>();
    let edited: f64 = record.provider_edits.iter().map(|edit| edit.billed).sum();
    Some(Some((
        ((bill.billed + edited) * input + written * output) / 1e6,
        ((bill.passed_through + edited) * input_through + written * output_through) / 1e6,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_written_as_they_were_before_there_were_kinds() {
        let text = r#"{"what":"bring back","reason":"a file was touched","before_tokens":0,"after_tokens":0,"cost":0.0,"saves_per_request":0.0}"#;
        let note = DecidedNote::new(DecisionKind::BringBack, "a file was touched");
        assert_eq!(serde_json::to_string(&note).unwrap(), text);
        assert_eq!(serde_json::from_str::<DecidedNote>(text).unwrap(), note);
        for name in DecisionKind::NAMED.map(|kind| kind.name().to_owned()).into_iter().chain(["of tomorrow".to_owned()])
        {
            assert_eq!(DecisionKind::from(name.clone()).name(), name);
        }
    }
}
