//! What learning facts with a model cost.

use contexture_core::error::BoxError;
use contexture_core::model::Usage;
use contexture_core::store::{Batch, StorageAdapter, StoreError};
use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// How often a record is written again because another writer was first.
const MAX_TRIES: usize = 8;
/// What the limit of a day is counted under.
const SPENT: &str = "learning/spent";

/// Tokens and money that extraction has used, in all and on the last day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spent {
    /// How often the model was called.
    pub calls: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Money, as far as the model's client reported it.
    pub cost: f64,
    /// The day of the last call, since 1970.
    day: u64,
    /// The tokens of that day.
    day_tokens: u64,
}

impl Spent {
    /// The tokens that were used on the day of a moment.
    pub fn on_day_of(&self, at_ms: u64) -> u64 {
        if at_ms / DAY_MS == self.day { self.day_tokens } else { 0 }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, usage: &Usage, cost: Option<f64>, at_ms: u64) {
        let tokens = usage.input_tokens + usage.output_tokens;
        self.day_tokens = self.on_day_of(at_ms) + tokens;
        self.day = at_ms / DAY_MS;
        self.calls += 1;
        self.input_tokens += usage.input_tokens;
        self.output_tokens += usage.output_tokens;
        self.cost += cost.unwrap_or(0.0);
    }

    /// What two writers know to have been spent: at least this much.
    pub(super) fn merged(&self, theirs: &Self) -> Self {
        let day = self.day.max(theirs.day);
        let of_day = |spent: &Self| if spent.day == day { spent.day_tokens } else { 0 };
        Self {
            calls: self.calls.max(theirs.calls),
            input_tokens: self.input_tokens.max(theirs.input_tokens),
            output_tokens: self.output_tokens.max(theirs.output_tokens),
            cost: self.cost.max(theirs.cost),
            day,
            day_tokens: of_day(self).max(of_day(theirs)),
        }
    }
}

/// The tokens of a day that all who learn in one store may use together.
pub(super) struct DailyTokens<'a> {
    pub(super) store: &'a dyn StorageAdapter,
    pub(super) limit: u64,
}

impl DailyTokens<'_> {
    /// Takes tokens for a call that is about to be made; `false` if the day has no more so many.
    pub(super) async fn take(&self, tokens: u64, now_ms: u64) -> Result<bool, BoxError> {
        self.change(|spent| {
            let today = spent.on_day_of(now_ms).saturating_add(tokens);
            if today > self.limit {
                return false;
            }
            (spent.day, spent.day_tokens) = (now_ms / DAY_MS, today);
            true
        })
        .await
    }

    /// Replaces what was taken for a call by what it used.
    pub(super) async fn settle(
        &self,
        taken: u64,
        usage: &Usage,
        cost: Option<f64>,
        now_ms: u64,
    ) -> Result<(), BoxError> {
        let settled = self.change(|spent| {
            spent.day_tokens = spent.day_tokens.saturating_sub(taken);
            spent.add(usage, cost, now_ms);
            true
        });
        settled.await.map(drop)
    }

    /// Changes the record, also if others do at the same time; `false` changes nothing.
    async fn change(&self, change: impl Fn(&mut Spent) -> bool) -> Result<bool, BoxError> {
        for _ in 0..MAX_TRIES {
            let record = self.store.get(SPENT).await?;
            let mut spent: Spent =
                record.as_ref().and_then(|record| serde_json::from_slice(&record.value).ok()).unwrap_or_default();
            if !change(&mut spent) {
                return Ok(false);
            }
            let batch = Batch::new().expect(SPENT, record.map(|record| record.version));
            match self.store.apply(batch.set(SPENT, serde_json::to_vec(&spent)?)).await {
                Err(StoreError::Conflict { .. }) => {}
                applied => return applied.map(|_| true).map_err(Into::into),
            }
        }
        Err("what learning costs could not be counted".into())
    }
}

#[cfg(test)]
mod tests {
    use contexture_core::store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_day_has_one_limit_for_all_and_the_next_one_another() {
        let store = MemoryStore::new();
        let tokens = DailyTokens { store: &store, limit: 1_000 };
        assert!(tokens.take(600, 1).await.unwrap());
        assert!(!tokens.take(600, 2).await.unwrap(), "the first one may still use what it took");
        let usage = Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() };
        tokens.settle(600, &usage, None, 3).await.unwrap();
        assert!(tokens.take(900, 4).await.unwrap(), "it used less");
        assert!(!tokens.take(1, 5).await.unwrap());
        assert!(tokens.take(1_000, DAY_MS + 1).await.unwrap());
        assert!(!DailyTokens { store: &store, limit: 0 }.take(1, 3 * DAY_MS).await.unwrap());
    }
}
