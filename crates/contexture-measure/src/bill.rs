//! The bill of requests, compared with sending everything every time, for all commands.

use contexture::fold::{Account, Prices};

/// The sizes of one request, all in the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The prefix that is in the cache.
    pub cached: u64,
    /// What is sent.
    pub sent: u64,
    /// What pass-through would have sent.
    pub passed_through: u64,
    /// The prefix of that which would be in the cache.
    pub seen: u64,
    /// Whether the provider's cache has expired since the previous request.
    pub is_cold: bool,
}

/// The requests of a policy, summed up.
#[derive(Clone, Debug)]
pub struct ReplayBill {
    prices: Prices,
    account: Account,
    requests: u64,
    sent: u64,
    passed_through: u64,
    peak: u64,
}

impl ReplayBill {
    /// An empty bill, at a provider's prices.
    pub fn new(prices: Prices) -> Self {
        let account = Account::default();
        Self { prices, account, requests: 0, sent: 0, passed_through: 0, peak: 0 }
    }

    /// Adds the next request.
    pub fn note(&mut self, sizes: Sizes) {
        let Sizes { cached, sent, passed_through, seen, is_cold } = sizes;
        let (cached, seen) = if is_cold { (0, 0) } else { (cached, seen) };
        self.account.note(self.prices.bill(cached, sent), self.prices.bill(seen, passed_through));
        self.requests += 1;
        self.sent += sent;
        self.passed_through += passed_through;
        self.peak = self.peak.max(sent);
    }

    /// What was billed, and what pass-through would have been billed.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The sum of what was sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The sum of what pass-through would have sent.
    pub fn passed_through(&self) -> u64 {
        self.passed_through
    }

    /// The largest request.
    pub fn peak(&self) -> u64 {
        self.peak
    }
}
