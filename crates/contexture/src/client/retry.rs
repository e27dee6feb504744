//! When a failed request is sent again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request that failed and is about to be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientRetry {
    /// The number of the retry, from 1.
    pub attempt: u32,
    /// How long is waited first.
    pub wait: Duration,
    /// Why it failed.
    pub reason: String,
}

/// Is called before a retry.
type RetryListener = dyn Fn(ClientRetry) + Send + Sync;

/// Is told of retries.
#[derive(Clone, Default)]
pub(super) struct RetryHook(pub(super) Option<Arc<RetryListener>>);

impl RetryHook {
    pub(super) fn call(&self, retry: ClientRetry) {
        if let Some(hook) = &self.0 {
            hook(retry);
        }
    }
}

impl fmt::Debug for RetryHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RetryHook").field("is_set", &self.0.is_some()).finish()
    }
}

/// When a failed request is sent again: at most `max_retries` times, after a wait that doubles each time, or after the
/// wait that the provider asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of retries.
    pub max_retries: u32,
    /// The wait before the first retry.
    pub first_wait: Duration,
    /// The longest wait. If the provider asks for more, the call fails at once and says so.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 4, first_wait: Duration::from_millis(500), max_wait: Duration::from_secs(60) }
    }
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Send it again after this time.
    Again(Duration),
    /// The provider asks for a longer wait than is allowed.
    TooLong(Duration),
    /// Give up.
    GiveUp,
}

impl RetryPolicy {
    /// Decides what to do after `retries` retries, if the provider asks to wait for `asked`. `spread`, from 0 to 1, is
    /// the jitter that keeps many clients from retrying at the same moment.
    pub(super) fn judge(&self, retries: u32, asked: Option<Duration>, spread: f64) -> RetryDecision {
        if let Some(asked) = asked.filter(|asked| *asked > self.max_wait) {
            return RetryDecision::TooLong(asked);
        }
        if retries >= self.max_retries {
            return RetryDecision::GiveUp;
        }
        let own = self.first_wait.saturating_mul(1 << retries.min(16)).min(self.max_wait);
        RetryDecision::Again(asked.unwrap_or(own.mul_f64(0.75 + spread.clamp(0.0, 1.0) / 4.0)))
    }
}

/// Whether the same request may succeed later after a response with this status.
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 522 | 524 | 529)
}

/// How long a provider asks to wait: `retry-after-ms`, or `retry-after` in seconds. Dates are ignored, since the two
/// clocks may differ.
pub(super) fn asked_wait(milliseconds: Option<&str>, seconds: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text?.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let seconds = number(milliseconds).map(|ms| ms / 1_000.0).or(number(seconds))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_the_provider_is_believed() {
        let policy =
            RetryPolicy { max_retries: 3, first_wait: Duration::from_secs(1), max_wait: Duration::from_secs(3) };
        assert_eq!(policy.judge(0, None, 1.0), RetryDecision::Again(Duration::from_secs(1)));
        assert_eq!(policy.judge(1, None, 1.0), RetryDecision::Again(Duration::from_secs(2)));
        assert_eq!(policy.judge(2, None, 1.0), RetryDecision::Again(Duration::from_secs(3)));
        assert_eq!(policy.judge(2, None, 0.0), RetryDecision::Again(Duration::from_millis(2250)));
        assert_eq!(policy.judge(3, None, 1.0), RetryDecision::GiveUp);
        assert_eq!(policy.judge(0, Some(Duration::ZERO), 1.0), RetryDecision::Again(Duration::ZERO));
        assert_eq!(policy.judge(0, Some(Duration::from_secs(4)), 1.0), RetryDecision::TooLong(Duration::from_secs(4)));
    }

    #[test]
    fn waits_are_read_from_headers() {
        assert_eq!(asked_wait(None, Some("2")), Some(Duration::from_secs(2)));
        assert_eq!(asked_wait(Some("1500"), Some("2")), Some(Duration::from_millis(1500)));
        for odd in ["", "soon", "-1", "NaN", "1e300", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(asked_wait(None, Some(odd)), None, "{odd}");
        }
    }
}
