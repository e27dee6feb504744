//! What the provider billed, and an estimate of what sending every request unchanged would have cost.

use contexture::fold::Prices;
use contexture::wire::Usage;
use serde::{Deserialize, Serialize};

use crate::account::cap::Spent;
use crate::account::growth::MoreBytes;
use crate::account::last_request::{LastRequest, Reported};
use crate::account::sent_request::SentRequest;
use crate::account::token_rates::TokenRates;
use crate::models::Model;

/// The bill of a conversation by the provider's own figures, compared with a model of pass-through. Amounts are in
/// tokens at the plain input price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Billed so far.
    billed: f64,
    /// What pass-through would have cost.
    passed_through: f64,
    /// Whether any request was ever sent changed.
    is_changed: bool,
    /// The request that was billed last.
    #[serde(flatten)]
    last: LastRequest,
    /// How many tokens the provider counts.
    #[serde(flatten)]
    rates: TokenRates,
    /// The folds that are not paid back yet.
    #[serde(flatten)]
    debt: FoldDebt,
    /// What the provider finds in its cache.
    #[serde(flatten)]
    finds: CacheFinds,
    /// Tokens of a content that the provider keeps under a name, in the last request that had one.
    #[serde(default)]
    apart: u64,
    /// What was spent, with what was spent before it branched off.
    #[serde(default)]
    spent: Spent,
}

/// The folds of a conversation that are not paid back yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct FoldDebt {
    /// What was billed more than without them.
    #[serde(default)]
    owed: f64,
    /// Tokens that would have been sent with the last request without them; 0 if all are paid back.
    #[serde(default)]
    unfolded: u64,
    /// What was billed since the first of them.
    #[serde(default)]
    billed_since: f64,
    /// Whether more was ever billed than without them.
    #[serde(default)]
    was_owed: bool,
}

/// How far what would have been billed may be off, as a share of what was billed: folds are paid back when they are by
/// more than that. Chosen: with a fiftieth, the long form of a test saw one claim that was too early.
const UNSURE_SHARE: f64 = 0.05;

/// What a provider finds in its cache of a request whose prefix has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct CacheFinds {
    /// The share of the previous request that it found last.
    #[serde(default)]
    found: Option<f64>,
    /// Tokens that it did not find then.
    #[serde(default)]
    missed: u64,
    /// Whether it was seen to hold tokens of which it had reported neither that they were read nor written.
    #[serde(default)]
    holds_untold: bool,
}

impl CacheFinds {
    /// Learns from what the provider read from its cache of the request before.
    fn learn(&mut self, last: &LastRequest, read: u64) {
        let held = last.held();
        self.holds_untold |= last.has_plain() && read > held;
        self.found = Some(if held > 0 { (read as f64 / held as f64).min(1.0) } else { 0.0 });
        self.missed = held.saturating_sub(read);
    }

    /// Tokens that the provider finds of those that it should have in its cache.
    fn of(&self, held: u64) -> u64 {
        let found = self.found.unwrap_or(1.0);
        // Caches that hold whole pieces miss less than one at the end, however long a request is.
        if found >= FOUND { held.saturating_sub(self.missed) } else { (found * held as f64) as u64 }
    }
}

/// The bill of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// Billed.
    pub billed: f64,
    /// What pass-through would have cost.
    pub passed_through: f64,
    /// Tokens sent.
    pub sent: u64,
    /// Tokens that pass-through would have sent.
    pub came: u64,
    /// Whether the agent would have summarised its conversation by now, so that nothing counts as saved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_beyond: bool,
    /// What a fold cost, if there was one.
    #[serde(default)]
    pub fold: Option<FoldBill>,
    /// Whether what the folds so far have cost is paid back with this request.
    #[serde(default)]
    pub has_paid_back: bool,
}

impl Bill {
    /// Tokens of the request with which it is compared.
    pub(crate) fn passed(&self) -> u64 {
        if self.is_beyond { self.sent } else { self.came }
    }
}

/// What a fold cost, as it was billed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoldBill {
    /// What was billed more than without it.
    pub cost: f64,
    /// What it spares with every later request, as long as nothing else changes.
    pub saves_per_request: f64,
}

/// Text has fewer bytes for a token.
const MOST_BYTES_PER_TOKEN: f64 = 12.0;

/// The share of a request that is found when its prefix has not changed.
const FOUND: f64 = 0.9;

/// What is billed for the input of a response, in tokens at the plain input price.
pub(crate) fn billed_input(model: &Model, usage: &Usage) -> f64 {
    let written = model.write * usage.cache_write as f64 + model.write_hour * usage.cache_write_hour as f64;
    usage.input as f64 + model.read * usage.cache_read as f64 + written
}

/// What a request would cost of which a part is read from the cache. Of the rest, as much is not written to the cache as
/// of the actual request.
fn at_prices(prices: &Prices, usage: &Usage, cached: u64, total: u64) -> f64 {
    let rest = total.saturating_sub(cached);
    let is_written = usage.cache_write + usage.cache_write_hour > 0;
    let plain = if is_written { usage.input.min(rest) } else { rest };
    prices.read * cached as f64 + prices.write * (rest - plain) as f64 + plain as f64
}

impl Account {
    /// How many tokens the provider counts for one of ours, rounded so that a budget is not exceeded.
    pub fn ratio(&self) -> f64 {
        self.rates.rounded()
    }

    /// What was spent, in it and before it branched off.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Adds what a request took.
    pub fn spend(&mut self, spent: Spent) {
        self.spent = self.spent.and(spent);
    }

    /// Tokens of the last request as it was sent, by the provider's count; 0 if that is not known.
    pub fn last_sent(&self) -> u64 {
        self.last.sent()
    }

    /// Tokens of a content that the provider keeps under a name: they are in its count, and in none of ours.
    pub fn apart(&self) -> u64 {
        self.apart
    }

    /// Whether the provider's cache entry for the last request has expired.
    pub fn is_cold(&self, prices: &Prices, now_ms: u64) -> bool {
        let life = prices.cache_life.map(|life| life.as_millis() as u64);
        self.last.time_ms() > 0 && life.is_some_and(|life| now_ms.saturating_sub(self.last.time_ms()) > life)
    }

    /// What was billed so far, and what pass-through would have been.
    pub fn bills(&self) -> (f64, f64) {
        (self.billed, self.passed_through)
    }

    /// Adds a request with the usage that the provider reported.
    pub fn note(&mut self, model: &Model, prices: &Prices, sent: SentRequest, usage: &Usage, now_ms: u64) -> Bill {
        let total = usage.total_input();
        let sent = self.with_apart(sent, usage);
        let folded = sent;
        // After folds, what is sent as it came has another prefix, and so has what comes after that.
        let has_switched = self.is_changed && sent.is_changed != self.last.is_changed();
        let sent = SentRequest { has_moved: sent.has_moved || has_switched, ..sent };
        self.is_changed |= sent.is_changed;
        let came = self.came(&sent, total);
        let billed = billed_input(model, usage);
        let is_same = !sent.has_moved && !sent.has_lost();
        if is_same && self.last.time_ms() > 0 && !self.is_cold(prices, sent.time_ms) {
            self.finds.learn(&self.last, usage.cache_read);
        }
        let is_beyond = self.is_changed && sent.most.is_some_and(|most| came > most);
        let passed_through = match self.is_changed {
            false => billed,
            // The agent would have asked for a summary. Nobody knows what it would have sent after that, so nothing more
            // counts as saved.
            true if is_beyond => billed + self.summary(prices, &sent),
            true => self.pass_through(model.least, prices, sent, usage, came),
        };
        let grown = self.grown_by(&sent, total, came);
        let fold = self.fold_bill(prices, folded, usage, grown, billed);
        let has_paid_back = self.pay_back(prices, sent, usage, grown, billed);
        let bill = Bill { billed, passed_through, sent: total, came, is_beyond, fold, has_paid_back };
        self.billed += bill.billed;
        self.passed_through += bill.passed_through;
        // Where writing to the cache is reported, what is neither read nor written was not cached; elsewhere all is.
        let is_written = usage.cache_write + usage.cache_write_hour > 0;
        // Some have a price for writing and report none, as OpenAI does for logins.
        let is_silent = prices.write > 1.0 && usage.cache_read > 0 && !self.finds.holds_untold;
        let is_told = is_written || is_silent || sent.has_apart;
        let held = if is_told { total - usage.input } else { total };
        self.rates.learn(&self.last, &sent, total);
        self.last = LastRequest::new(&sent, Reported { came, sent: total, held, time_ms: now_ms });
        bill
    }

    /// What the input of the agent's own summary would have cost, if this is the first request that needs one: all of the
    /// conversation, most of it read from the cache.
    fn summary(&self, prices: &Prices, sent: &SentRequest) -> f64 {
        let most = sent.most.unwrap_or(u64::MAX);
        if self.last.came() <= most { prices.read * self.last.came() as f64 } else { 0.0 }
    }

    /// The request with what the provider keeps for it added to our own counts.
    fn with_apart(&mut self, sent: SentRequest, usage: &Usage) -> SentRequest {
        if !sent.has_apart {
            return sent;
        }
        self.apart = usage.cache_read;
        let with = |tokens: u64| tokens + usage.cache_read;
        SentRequest { sent_tokens: with(sent.sent_tokens), came_tokens: with(sent.came_tokens), ..sent }
    }

    /// How many tokens pass-through would have sent, by the provider's count.
    ///
    /// A request that is sent as it came says it itself. While nothing is folded, what was sent grows by what came. Only
    /// for what is new in a request with a fold, and for what is shortened before it is first sent, an estimate is needed:
    /// from bytes, or from our own count, scaled by what the provider has counted for these in what was new before.
    fn came(&self, sent: &SentRequest, total: u64) -> u64 {
        if !sent.is_changed {
            return total;
        }
        let own = |tokens: u64| tokens as f64;
        if self.last.is_none() {
            return (own(total) + (own(sent.came_tokens) - own(sent.sent_tokens)) * self.ratio()).max(0.0) as u64;
        }
        let last_own = self.last.own().filter(|_| sent.is_counted);
        let more = match (last_own, sent.has_moved) {
            (last_own, true) => {
                // What goes on never gets shorter, unless the client makes it so; earlier versions counted other bytes.
                let least = if sent.rewritten.is_some() { f64::NEG_INFINITY } else { 0.0 };
                let more = sent.came_bytes.more_than(&self.last.came_bytes());
                let bytes = more.text.max(least);
                let counted = last_own.map(|(_, last)| own(sent.came_tokens) - own(last));
                // Pictures have many bytes and few tokens. A client that goes back sends less of both.
                match counted.filter(|counted| counted.abs() * MOST_BYTES_PER_TOKEN < bytes.abs()) {
                    Some(counted) => counted * self.rates.marginal(),
                    None => self.rates.tokens_of(MoreBytes { text: bytes, pieces: more.pieces.max(least), ..more }),
                }
            }
            (_, false) => {
                let came = sent.came_bytes.more_than(&self.last.came_bytes());
                let went = sent.sent_bytes.more_than(&self.last.sent_bytes());
                own(total) - own(self.last.sent()) + self.rates.tokens_of(came - went)
            }
        };
        (own(self.last.came()) + more).max(0.0) as u64
    }

    /// How many tokens the request would have grown by if nothing new were folded.
    fn grown_by(&self, sent: &SentRequest, total: u64, came: u64) -> i64 {
        let came = came as i64 - self.last.came() as i64;
        let went = total as i64 - self.last.sent() as i64;
        match sent.folded {
            // What is new was counted with what the fold leaves out, as far as it would have been sent.
            Some(folded) => {
                let last = self.last.own().filter(|_| sent.is_counted);
                let new = last.map_or(went as f64 + folded as f64 * self.rates.last(), |(last, _)| {
                    ((sent.sent_tokens + folded) as f64 - last as f64) * self.rates.marginal()
                });
                (new.max(0.0) as i64).min(came)
            }
            // What is sent as it came for once, or not any more, says nothing about what is new.
            None if sent.has_moved => came,
            // What a client has left out would not have been sent without folds either.
            None if sent.rewritten.is_some() => came.min(went),
            None => went,
        }
    }

    /// What a fold cost as it was billed: more than the request would have cost with the same prefix as before.
    fn fold_bill(
        &self,
        prices: &Prices,
        sent: SentRequest,
        usage: &Usage,
        grown: i64,
        billed: f64,
    ) -> Option<FoldBill> {
        if !sent.has_moved || self.last.is_none() {
            return None;
        }
        let unfolded = self.last.sent().saturating_add_signed(grown);
        let held = if self.is_cold(prices, sent.time_ms) { 0 } else { self.still_held(&sent).min(unfolded) };
        let spared = unfolded.saturating_sub(usage.total_input());
        let cost = billed - at_prices(prices, usage, held, unfolded);
        Some(FoldBill { cost, saves_per_request: prices.read * spared as f64 })
    }

    /// Tokens of what was sent last that the provider would find again if nothing new were folded.
    fn still_held(&self, sent: &SentRequest) -> u64 {
        let Some(same) = sent.rewritten.and_then(|rewritten| rewritten.sent_same) else { return self.last.held() };
        // What comes after it was sent as it came.
        let lost = self.last.came_bytes().without(&same);
        self.last.held() - self.rates.share(self.last.held(), lost, self.last.sent_bytes())
    }

    /// Adds what was billed more, or less, than without the folds that are not paid back. Returns whether they are with
    /// this request. What they save after that pays for no later fold.
    fn pay_back(&mut self, prices: &Prices, sent: SentRequest, usage: &Usage, grown: i64, billed: f64) -> bool {
        if self.debt.unfolded == 0 && sent.folded.is_some() {
            self.debt = FoldDebt { unfolded: self.last.sent(), ..FoldDebt::default() };
        }
        if self.debt.unfolded == 0 {
            return false;
        }
        // What is not found of what was sent last would not be found without folds either.
        let held = self.debt.unfolded.saturating_sub(self.last.sent().saturating_sub(self.still_held(&sent)));
        self.debt.unfolded = self.debt.unfolded.saturating_add_signed(grown);
        let unfolded = self.debt.unfolded;
        if sent.most.is_some_and(|most| unfolded > most) {
            return false;
        }
        let held = if self.is_cold(prices, sent.time_ms) { 0 } else { self.finds.of(held).min(unfolded) };
        self.debt.owed += billed - at_prices(prices, usage, held, unfolded);
        self.debt.billed_since += billed;
        self.debt.was_owed |= self.debt.owed > 0.0;
        if self.debt.owed > -UNSURE_SHARE * self.debt.billed_since {
            return false;
        }
        std::mem::take(&mut self.debt).was_owed
    }

    /// What pass-through would have cost: the previous request is read from the cache and the rest is written to it,
    /// except for the part that the actual request did not ask to be cached either.
    fn pass_through(&self, least: u64, prices: &Prices, sent: SentRequest, usage: &Usage, came: u64) -> f64 {
        if sent.has_apart {
            // The same content would have been kept.
            return prices.read * usage.cache_read as f64 + came.saturating_sub(usage.cache_read) as f64;
        }
        let is_cold = self.is_cold(prices, sent.time_ms);
        // What was read from the cache shows that it holds as little as that, whatever is known about the model.
        let least = if usage.cache_read > 0 { least.min(usage.cache_read) } else { least };
        let is_cached = !is_cold && self.last.came() >= least && prices.read < 1.0;
        // A provider that finds less than was sent would find the same share without the gateway.
        let found = self.finds.of(self.last.came_cached());
        // What a client has changed is not found without the gateway either.
        let same =
            sent.rewritten.map(|rewritten| self.rates.share(self.last.came(), rewritten.same, self.last.came_bytes()));
        let found = same.map_or(found, |same| found.min(same));
        let cached = if is_cached && found >= least { found.min(came) } else { 0 };
        at_prices(prices, usage, cached, came)
    }
}

#[cfg(test)]
mod tests;
