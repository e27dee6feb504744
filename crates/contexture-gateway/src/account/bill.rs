//! What the provider billed, and an estimate of what sending every request unchanged would have cost.

use contexture::fold::Prices;
use contexture::wire::Usage;
use serde::{Deserialize, Serialize};

use crate::account::cap::Spent;
use crate::account::growth::{BodyBytes, Growth, MoreBytes};
use crate::account::models::Model;

/// The bill of a conversation by the provider's own figures, compared with a model of pass-through. Amounts are in
/// tokens at the plain input price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Billed so far.
    billed: f64,
    /// What pass-through would have cost.
    passed_through: f64,
    /// Tokens sent.
    sent: u64,
    /// Tokens that pass-through would have sent.
    came: u64,
    /// Output tokens.
    output: u64,
    /// Requests that were billed.
    requests: u64,
    /// Whether any request was ever sent changed.
    is_changed: bool,
    /// Whether the last request was sent changed.
    #[serde(default)]
    last_changed: bool,
    /// Tokens that pass-through would have sent with the last request.
    last_came: u64,
    /// Tokens that were sent with the last request.
    #[serde(default)]
    last_sent: u64,
    /// The same two by our own count: sent, and received from the client.
    #[serde(default)]
    last_own: Option<(u64, u64)>,
    /// What requests have grown by while nothing was folded: by our own count, and by the provider's.
    #[serde(default)]
    grown: (f64, f64),
    /// The same by bytes, for each kind of them.
    #[serde(default)]
    growth: Growth,
    /// The same for the pieces of the text in place of its bytes.
    #[serde(default)]
    growth_of_pieces: Growth,
    /// The pieces of the text that came last, and of what was sent.
    #[serde(default)]
    last_pieces: (u64, u64),
    #[serde(default)]
    last_bytes: u64,
    /// The bytes that were sent last.
    #[serde(default)]
    last_sent_bytes: u64,
    /// Of the same two requests, the bytes that say little for their length.
    #[serde(default)]
    last_opaque: (u64, u64),
    /// Tokens of the last request that were not cached.
    #[serde(default)]
    last_plain: u64,
    /// Whether the provider was seen to hold tokens of which it had reported neither that they were read nor written.
    #[serde(default)]
    holds_untold: bool,
    /// Tokens that it did not find then.
    #[serde(default)]
    missed: u64,
    /// What was billed more than without the folds that are not paid back yet.
    #[serde(default)]
    owed: f64,
    /// Tokens that would have been sent with the last request without these folds; 0 if all are paid back.
    #[serde(default)]
    unfolded: u64,
    /// When the last response arrived, in milliseconds since the Unix epoch.
    last_ms: u64,
    /// How many tokens the provider counts for one of our own estimate.
    ratio: f64,
    /// Tokens of a content that the provider keeps under a name, in the last request that had one.
    #[serde(default)]
    apart: u64,
    /// Tokens of the last request that the provider should have in its cache.
    last_held: u64,
    /// The share of the previous request that the provider found in its cache when the prefix had not changed.
    #[serde(default)]
    found: Option<f64>,
    /// What was spent, with what was spent before it branched off.
    #[serde(default)]
    spent: Spent,
}

/// One request as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentRequest {
    /// Tokens sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens received from the client, by our own count.
    pub came_tokens: u64,
    /// Whether these two were counted, and not only estimated from bytes.
    pub is_counted: bool,
    /// Bytes received from the client.
    pub came_bytes: BodyBytes,
    /// Bytes sent.
    pub sent_bytes: BodyBytes,
    /// Whether it was sent changed.
    pub is_changed: bool,
    /// Whether its prefix differs from what was sent before.
    pub has_moved: bool,
    /// Tokens that new folds leave out, by our own count; `None` without one.
    pub folded: Option<u64>,
    /// Whether the client asks to go on from a content that the provider keeps under a name. What is read from a cache
    /// is that content then.
    pub has_apart: bool,
    /// How the client changed what it had sent before, if it did.
    pub rewritten: Option<Rewritten>,
    /// The most tokens that the provider takes, if that is known.
    pub window: Option<u64>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}

/// How a client changed what it had sent before. The provider's cache holds only what is before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Bytes of the request as it came that the provider can still have in its cache.
    pub same: BodyBytes,
    /// Bytes of the request as it came before the first changed message of which something is sent; `None` if nothing of
    /// any changed message is, so that what was sent before is sent again.
    pub sent_same: Option<BodyBytes>,
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
    /// What a fold cost, if there was one.
    #[serde(default)]
    pub fold: Option<FoldBill>,
    /// Whether what the folds so far have cost is paid back with this request.
    #[serde(default)]
    pub has_paid_back: bool,
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

/// The fewest and the most tokens for a byte of text.
const TOKENS_PER_BYTE: [f64; 2] = [0.05, 2.0];

/// The same for a piece, which is about a hundredth.
const TOKENS_PER_PIECE: [f64; 2] = [0.0025, 0.04];

/// The share of a request that is found when its prefix has not changed.
const FOUND: f64 = 0.9;

/// Tokens by which requests must have grown before what is learnt from it counts.
const LEAST_GROWN: f64 = 200.0;

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

impl SentRequest {
    /// Whether the client has changed something that is sent.
    fn has_lost(&self) -> bool {
        self.rewritten.is_some_and(|rewritten| rewritten.sent_same.is_some())
    }
}

impl Account {
    /// How many tokens the provider counts for one of ours, rounded so that a budget is not exceeded.
    pub fn ratio(&self) -> f64 {
        // Rounded to steps, so that budgets do not change with every request.
        if self.ratio > 0.0 { (self.ratio * 20.0).ceil() / 20.0 } else { 1.0 }
    }

    /// The account of a new branch. The provider's cache is that of the original, and so is the balance: otherwise a
    /// client that begins branches could be made to pay more again in each of them.
    pub fn branch(&self) -> Self {
        Self { sent: 0, came: 0, output: 0, requests: 0, ..*self }
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
        self.last_sent
    }

    /// Tokens of a content that the provider keeps under a name: they are in its count, and in none of ours.
    pub fn apart(&self) -> u64 {
        self.apart
    }

    /// Whether the provider's cache entry for the last request has expired.
    pub fn is_cold(&self, prices: &Prices, now_ms: u64) -> bool {
        let life = prices.cache_life.map(|life| life.as_millis() as u64);
        self.last_ms > 0 && life.is_some_and(|life| now_ms.saturating_sub(self.last_ms) > life)
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
        let has_switched = self.is_changed && sent.is_changed != self.last_changed;
        let sent = SentRequest { has_moved: sent.has_moved || has_switched, ..sent };
        self.is_changed |= sent.is_changed;
        self.last_changed = sent.is_changed;
        let came = self.came(&sent, total);
        let billed = billed_input(model, usage);
        let is_same = !sent.has_moved && !sent.has_lost();
        if is_same && self.last_ms > 0 && !self.is_cold(prices, sent.time_ms) {
            let held = self.last_held as f64;
            self.found = Some(if held > 0.0 { (usage.cache_read as f64 / held).min(1.0) } else { 0.0 });
            self.missed = self.last_held.saturating_sub(usage.cache_read);
            self.holds_untold |= self.last_plain > 0 && usage.cache_read > self.last_held;
        }
        let passed_through = match self.is_changed {
            false => billed,
            // Nobody knows what the client would have sent instead of what does not fit, so nothing counts as saved.
            true if sent.window.is_some_and(|window| came > window) => billed,
            true => self.pass_through(model.least, prices, sent, usage, came),
        };
        let grown = self.grown_by(&sent, total, came);
        let fold = self.fold_bill(prices, folded, usage, grown, billed);
        let has_paid_back = self.pay_back(prices, sent, usage, grown, billed);
        let bill = Bill { billed, passed_through, sent: total, came, fold, has_paid_back };
        self.billed += bill.billed;
        self.passed_through += bill.passed_through;
        self.sent += total;
        self.came += came;
        self.output += usage.output;
        self.requests += 1;
        // Where writing to the cache is reported, what is neither read nor written was not cached; elsewhere all is.
        let is_written = usage.cache_write + usage.cache_write_hour > 0;
        // Some have a price for writing and report none, as OpenAI does for logins.
        let is_silent = prices.write > 1.0 && usage.cache_read > 0 && !self.holds_untold;
        let is_told = is_written || is_silent || sent.has_apart;
        self.last_held = if is_told { total - usage.input } else { total };
        self.last_plain = if is_told { usage.input } else { 0 };
        self.learn(&sent, total);
        (self.last_came, self.last_sent, self.last_ms) = (came, total, now_ms);
        bill
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
        if self.last_sent == 0 {
            return (own(total) + (own(sent.came_tokens) - own(sent.sent_tokens)) * self.ratio()).max(0.0) as u64;
        }
        let last_own = self.last_own.filter(|_| sent.is_counted);
        let more = match (last_own, sent.has_moved) {
            (last_own, true) => {
                // What goes on never gets shorter, unless the client makes it so; earlier versions counted other bytes.
                let least = if sent.rewritten.is_some() { f64::NEG_INFINITY } else { 0.0 };
                let more = sent.came_bytes.more_than(&self.last_came_bytes());
                let bytes = more.text.max(least);
                let counted = last_own.map(|(_, last)| own(sent.came_tokens) - own(last));
                // Pictures have many bytes and few tokens. A client that goes back sends less of both.
                match counted.filter(|counted| counted.abs() * MOST_BYTES_PER_TOKEN < bytes.abs()) {
                    Some(counted) => counted * self.marginal(),
                    None => self.tokens_of(MoreBytes { text: bytes, pieces: more.pieces.max(least), ..more }),
                }
            }
            (_, false) => {
                let came = sent.came_bytes.more_than(&self.last_came_bytes());
                let went = sent.sent_bytes.more_than(&self.last_went_bytes());
                own(total) - own(self.last_sent) + self.tokens_of(came - went)
            }
        };
        (own(self.last_came) + more).max(0.0) as u64
    }

    /// How many tokens the provider counts for one of ours in what is new.
    fn marginal(&self) -> f64 {
        let (own, counted) = self.grown;
        match own >= LEAST_GROWN {
            true => (counted / own).clamp(0.25, 4.0),
            false => self.last_ratio(),
        }
    }

    /// How many tokens the provider counted for one of ours last.
    fn last_ratio(&self) -> f64 {
        if self.ratio > 0.0 { self.ratio } else { 1.0 }
    }

    /// The bytes that came last.
    fn last_came_bytes(&self) -> BodyBytes {
        BodyBytes { text: self.last_bytes, pieces: self.last_pieces.0, opaque: self.last_opaque.0 }
    }

    /// The bytes that were sent last.
    fn last_went_bytes(&self) -> BodyBytes {
        BodyBytes { text: self.last_sent_bytes, pieces: self.last_pieces.1, opaque: self.last_opaque.1 }
    }

    /// How many tokens the provider counts for bytes of what is new. The text is measured by its bytes or by its pieces,
    /// whichever explains better what the provider has counted so far.
    fn tokens_of(&self, more: MoreBytes) -> f64 {
        let is_by_pieces = self.growth_of_pieces.unexplained() < self.growth.unexplained();
        let by_pieces = self.growth_of_pieces.rate().filter(|_| is_by_pieces);
        let (growth, text, usual, [least, most]) = match by_pieces {
            Some(rate) => (&self.growth_of_pieces, more.pieces, rate, TOKENS_PER_PIECE),
            None => (&self.growth, more.text, self.growth.rate().unwrap_or(0.25), TOKENS_PER_BYTE),
        };
        match growth.rates() {
            Some((of_text, of_opaque)) => text * of_text.clamp(least, most) + more.opaque * of_opaque.min(2.0),
            None => text * usual.clamp(least, most),
        }
    }

    /// The share of tokens that a part of the bytes has, by what the provider counts for each kind of them.
    fn share(&self, tokens: u64, part: BodyBytes, of: BodyBytes) -> u64 {
        let weight = |bytes: BodyBytes| self.tokens_of(bytes.all());
        let whole = weight(of);
        if whole > 0.0 { (tokens as f64 * (weight(part) / whole).min(1.0)) as u64 } else { tokens }
    }

    /// Learns what the provider counts for one of ours.
    fn learn(&mut self, sent: &SentRequest, total: u64) {
        if self.last_sent > 0 && !sent.has_moved {
            let MoreBytes { text: bytes, pieces, opaque } = sent.sent_bytes.more_than(&self.last_went_bytes());
            let counted = total as f64 - self.last_sent as f64;
            if bytes > 0.0 && counted > 0.0 {
                self.growth.add((bytes, opaque), counted);
                // Earlier versions did not count pieces.
                if self.last_pieces.1 > 0 {
                    self.growth_of_pieces.add((pieces, opaque), counted);
                }
            }
        }
        (self.last_bytes, self.last_sent_bytes) = (sent.came_bytes.text, sent.sent_bytes.text);
        self.last_pieces = (sent.came_bytes.pieces, sent.sent_bytes.pieces);
        self.last_opaque = (sent.came_bytes.opaque, sent.sent_bytes.opaque);
        if !sent.is_counted {
            self.last_own = None;
            return;
        }
        if sent.sent_tokens > 0 {
            self.ratio = (total as f64 / sent.sent_tokens as f64).clamp(0.25, 4.0);
        }
        if let Some((last, _)) = self.last_own.filter(|_| !sent.has_moved && self.last_sent > 0) {
            let (own, counted) = (sent.sent_tokens as f64 - last as f64, total as f64 - self.last_sent as f64);
            if own > 0.0 && counted > 0.0 {
                self.grown = (self.grown.0 + own, self.grown.1 + counted);
            }
        }
        self.last_own = Some((sent.sent_tokens, sent.came_tokens));
    }

    /// How many tokens the request would have grown by if nothing new were folded.
    fn grown_by(&self, sent: &SentRequest, total: u64, came: u64) -> i64 {
        let came = came as i64 - self.last_came as i64;
        let went = total as i64 - self.last_sent as i64;
        match sent.folded {
            // What is new was counted with what the fold leaves out, as far as it would have been sent.
            Some(folded) => {
                let last = self.last_own.filter(|_| sent.is_counted);
                let new = last.map_or(went as f64 + folded as f64 * self.last_ratio(), |(last, _)| {
                    ((sent.sent_tokens + folded) as f64 - last as f64) * self.marginal()
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
        if !sent.has_moved || self.last_sent == 0 {
            return None;
        }
        let unfolded = self.last_sent.saturating_add_signed(grown);
        let held = if self.is_cold(prices, sent.time_ms) { 0 } else { self.still_held(&sent).min(unfolded) };
        let spared = unfolded.saturating_sub(usage.total_input());
        let cost = billed - at_prices(prices, usage, held, unfolded);
        Some(FoldBill { cost, saves_per_request: prices.read * spared as f64 })
    }

    /// Tokens of what was sent last that the provider would find again if nothing new were folded.
    fn still_held(&self, sent: &SentRequest) -> u64 {
        let Some(same) = sent.rewritten.and_then(|rewritten| rewritten.sent_same) else { return self.last_held };
        // What comes after it was sent as it came.
        let lost = self.last_came_bytes().without(&same);
        self.last_held - self.share(self.last_held, lost, self.last_went_bytes())
    }

    /// Adds what was billed more, or less, than without the folds that are not paid back. Returns whether they are with
    /// this request. What they save after that pays for no later fold.
    fn pay_back(&mut self, prices: &Prices, sent: SentRequest, usage: &Usage, grown: i64, billed: f64) -> bool {
        if self.unfolded == 0 && sent.folded.is_some() {
            (self.unfolded, self.owed) = (self.last_sent, 0.0);
        }
        if self.unfolded == 0 {
            return false;
        }
        // What is not found of what was sent last would not be found without folds either.
        let held = self.unfolded.saturating_sub(self.last_sent.saturating_sub(self.still_held(&sent)));
        self.unfolded = self.unfolded.saturating_add_signed(grown);
        if sent.window.is_some_and(|window| self.unfolded > window) {
            return false;
        }
        let held = if self.is_cold(prices, sent.time_ms) { 0 } else { self.found_of(held).min(self.unfolded) };
        let before = self.owed;
        self.owed += billed - at_prices(prices, usage, held, self.unfolded);
        if self.owed > 0.0 {
            return false;
        }
        (self.unfolded, self.owed) = (0, 0.0);
        before > 0.0
    }

    /// Tokens that the provider finds of those that it should have in its cache.
    fn found_of(&self, held: u64) -> u64 {
        let found = self.found.unwrap_or(1.0);
        // Caches that hold whole pieces miss less than one at the end, however long a request is.
        if found >= FOUND { held.saturating_sub(self.missed) } else { (found * held as f64) as u64 }
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
        let is_cached = !is_cold && self.last_came >= least && prices.read < 1.0;
        // A provider that finds less than was sent would find the same share without the gateway.
        let found = self.found_of(self.last_came.saturating_sub(self.last_plain));
        // What a client has changed is not found without the gateway either.
        let same = sent.rewritten.map(|rewritten| self.share(self.last_came, rewritten.same, self.last_came_bytes()));
        let found = same.map_or(found, |same| found.min(same));
        let cached = if is_cached && found >= least { found.min(came) } else { 0 };
        at_prices(prices, usage, cached, came)
    }
}

#[cfg(test)]
mod tests;
