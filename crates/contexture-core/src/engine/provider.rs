//! What is known of the provider: whether its cache is warm, and how far its token counts are from ours.

use std::time::Duration;

use crate::decision::EpochReason;
use crate::layer::CacheState;
use crate::model::Usage;
use crate::window::ProjectionPolicy;

/// The smallest prefix for which a cache hit is expected; providers do not cache shorter ones.
const MIN_CACHED_TOKENS: u64 = 1024;

/// What is known of the provider's cache of a thread, and of its token counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Provider {
    /// When the last request was sent, in time since the Unix epoch.
    last_sent: Option<Duration>,
    /// Whether the provider ever reported a hit.
    ever_hit: bool,
    /// Why the cache cannot be used for the next request.
    lost: Option<EpochReason>,
    calibration: Calibration,
}

impl Provider {
    /// Restores the state of an earlier execution.
    pub(crate) fn restore(last_sent: Option<Duration>, ever_hit: bool, calibration: f64) -> Self {
        Self { last_sent, ever_hit, lost: None, calibration: Calibration(calibration) }
    }

    pub(crate) fn last_sent(&self) -> Option<Duration> {
        self.last_sent
    }

    pub(crate) fn ever_hit(&self) -> bool {
        self.ever_hit
    }

    /// Real tokens per counted token.
    pub(crate) fn calibration(&self) -> f64 {
        self.calibration.0
    }

    /// Whether the cache still has the last request.
    pub(crate) fn cache_state(&self) -> CacheState {
        if self.lost.is_some() || self.last_sent.is_none() { CacheState::Cold } else { CacheState::Warm }
    }

    /// Why the cache cannot be used for the next request, if so.
    pub(crate) fn cache_lost(&self) -> Option<EpochReason> {
        self.lost
    }

    /// Marks the cache as unusable, for this reason.
    pub(crate) fn lose_cache(&mut self, reason: EpochReason) {
        self.lost = Some(reason);
    }

    /// Checks whether the cache has expired since the last request.
    pub(crate) fn watch_expiry(&mut self, now: Duration, ttl: Duration) {
        let expired = self.last_sent.is_some_and(|sent| now.saturating_sub(sent) > ttl);
        if expired && self.lost.is_none() {
            self.lost = Some(EpochReason::CacheExpired);
        }
    }

    /// A window was built that takes the lost cache into account.
    pub(crate) fn cache_renewed(&mut self) {
        self.lost = None;
    }

    /// A request is sent now.
    pub(crate) fn sent(&mut self, now: Duration) {
        self.last_sent = Some(now);
    }

    /// Detects a cache miss in the reported usage; `expected_hit` is the size of the shared prefix.
    pub(crate) fn report_cache(&mut self, usage: &Usage, expected_hit: u64) {
        let Some(read) = usage.cache_read_tokens else { return };
        if self.ever_hit && expected_hit >= MIN_CACHED_TOKENS && read * 2 < expected_hit {
            self.lost = Some(EpochReason::ProviderMiss);
        }
        self.ever_hit |= read > 0;
    }

    /// Calibrates an estimating counter with the reported usage.
    pub(crate) fn calibrate(&mut self, counted: u64, reported: u64) {
        self.calibration.observe(counted, reported);
    }

    /// Converts a policy, whose budgets are in real tokens, to counted tokens.
    pub(crate) fn in_counted_tokens(&self, policy: &ProjectionPolicy) -> ProjectionPolicy {
        ProjectionPolicy {
            token_budget: self.calibration.scale(policy.token_budget),
            response_reserve: self.calibration.scale(policy.response_reserve),
            ..policy.clone()
        }
    }
}

/// How far an estimating counter is off, by what the provider reports: real tokens per counted token.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Calibration(f64);

impl Default for Calibration {
    fn default() -> Self {
        Calibration(1.0)
    }
}

impl Calibration {
    /// Adds one report; the ratio changes in steps of 5 %, so that budgets are stable.
    fn observe(&mut self, counted: u64, reported: u64) {
        if counted == 0 || reported == 0 {
            return;
        }
        let ratio = (reported as f64 / counted as f64).clamp(0.25, 4.0);
        let smoothed = if ratio > self.0 { ratio } else { self.0 * 0.75 + ratio * 0.25 };
        self.0 = (smoothed * 20.0).ceil() / 20.0;
    }

    /// Converts a budget in real tokens to counted tokens.
    fn scale(self, tokens: u64) -> u64 {
        (tokens as f64 / self.0) as u64
    }
}
