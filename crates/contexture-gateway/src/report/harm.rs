//! Watches the signals of harm of folded conversations beside those of held-out ones, and says when folding is to be
//! careful.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::account::record::RequestRecord;
use crate::report::compare::{ConversationSums, conversation_sums, harm_rate, harm_share};
use crate::write::Store;

/// The share of resamples in which there must be more harm than in the held-out group.
const SURE: f64 = 0.99;

/// How far back conversations count, in milliseconds: thirty days.
const BACK_MS: u64 = 30 * 86_400_000;

/// Most conversations that are looked at.
const MOST: usize = 1_000;

/// The signals of harm of all conversations that were assigned to a group.
pub(crate) struct HarmWatch {
    /// Whether there is a held-out group to compare with.
    is_on: bool,
    store: Option<Arc<dyn Store>>,
    seen: Mutex<HarmState>,
}

#[derive(Default)]
struct HarmState {
    is_loaded: bool,
    conversations: HashMap<String, ConversationSums>,
    /// What is said of it, if folding is careful.
    why: Option<String>,
}

impl HarmWatch {
    /// Watches, if there is a held-out group.
    pub(crate) fn new(is_on: bool, store: Option<Arc<dyn Store>>) -> Self {
        Self { is_on, store, seen: Mutex::default() }
    }

    /// Adds a request that has ended. Returns whether folding is to be careful from now on. Blocks.
    pub(crate) fn note(&self, record: &RequestRecord) -> bool {
        let (Some(conversation), Some(is_held_out), Some(signals)) =
            (&record.conversation, record.is_held_out, record.signals)
        else {
            return self.why().is_some();
        };
        if !self.is_on {
            return false;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.is_loaded {
            seen.is_loaded = true;
            seen.conversations = self.earlier(record.time_ms);
        }
        if seen.conversations.len() >= MOST && !seen.conversations.contains_key(conversation) {
            return seen.why.is_some();
        }
        let sums = seen.conversations.entry(conversation.clone()).or_default();
        let has_changed = sums.signals != signals;
        (sums.is_held_out, sums.signals) = (is_held_out, signals);
        if has_changed {
            let all: Vec<ConversationSums> =
                seen.conversations.values().filter(|sums| sums.signals.turns > 0).copied().collect();
            seen.why = harm_share(&all).filter(|share| *share >= SURE).map(|_| said(&all));
        }
        seen.why.is_some()
    }

    /// Why folding is careful, if it is.
    pub(crate) fn why(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).why.clone()
    }

    /// The conversations of earlier runs.
    fn earlier(&self, now_ms: u64) -> HashMap<String, ConversationSums> {
        // What cannot be read is not known.
        let since = now_ms.saturating_sub(BACK_MS);
        let records = self.store.as_ref().and_then(|store| store.requests_since(since).ok()).unwrap_or_default();
        let mut by_conversation: HashMap<String, Vec<RequestRecord>> = HashMap::new();
        for record in records {
            let Some(name) = record.conversation.clone().filter(|_| record.is_held_out.is_some()) else { continue };
            by_conversation.entry(name).or_default().push(record);
        }
        let sums = |(name, records): (String, Vec<RequestRecord>)| Some((name, *conversation_sums(&records).first()?));
        by_conversation.into_iter().filter_map(sums).take(MOST).collect()
    }
}

/// What is said when folding becomes careful.
fn said(all: &[ConversationSums]) -> String {
    format!(
        "folding is careful now, only when a window is full and with more of what is recent: signals of harm are {:.2} a \
         turn where it folds and {:.2} where conversations are held out, more in at least 99 % of resamples",
        harm_rate(all, false),
        harm_rate(all, true)
    )
}
