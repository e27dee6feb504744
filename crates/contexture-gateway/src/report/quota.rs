//! How much of a plan's quota was used, as the headers of the provider's responses say.
//!
//! Anthropic reports the share of each quota (`…-5h-utilization`), OpenAI percent with the length of the window
//! (`x-codex-primary-used-percent`). Read in Claude Code 2.1.328 and Codex 0.169 on 2026-11-19.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A quota in headers.
struct QuotaHeader {
    /// The header with what is used of it.
    used: &'static str,
    /// What all of it is there.
    all: f64,
    /// Its length, for people.
    length: QuotaLength,
}

/// How long a quota is for.
enum QuotaLength {
    /// Always so long, for people.
    Known(&'static str),
    /// So many minutes as another header says.
    Minutes(&'static str),
}

/// The quotas that are known, the shortest first.
const QUOTAS: [QuotaHeader; 4] = [
    QuotaHeader { used: "anthropic-ratelimit-unified-5h-utilization", all: 1.0, length: QuotaLength::Known("5-hour") },
    QuotaHeader {
        used: "x-codex-primary-used-percent",
        all: 100.0,
        length: QuotaLength::Minutes("x-codex-primary-window-minutes"),
    },
    QuotaHeader { used: "anthropic-ratelimit-unified-7d-utilization", all: 1.0, length: QuotaLength::Known("weekly") },
    QuotaHeader {
        used: "x-codex-secondary-used-percent",
        all: 100.0,
        length: QuotaLength::Minutes("x-codex-secondary-window-minutes"),
    },
];

/// A value below this part of the one before it is of a new window; others are of responses that came late.
const NEW_WINDOW: f64 = 0.5;

/// What was used of a quota while requests passed, by the header that says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuotaUse {
    /// How long it is for, for people.
    pub length: String,
    /// The share that was used at the first response.
    pub first: f64,
    /// The share that is used now.
    pub now: f64,
    /// What was used of it from the first response on, in all windows.
    pub used: f64,
}

/// Adds what the headers of a response say about quotas.
pub(super) fn add(uses: &mut BTreeMap<String, QuotaUse>, headers: &[(String, String)]) {
    let value = |name: &str| headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.trim());
    for quota in &QUOTAS {
        let Some(share) = value(quota.used).and_then(|used| used.parse::<f64>().ok()) else { continue };
        let share = share / quota.all;
        if !share.is_finite() || share < 0.0 {
            continue;
        }
        let length = match quota.length {
            QuotaLength::Known(length) => length.to_owned(),
            QuotaLength::Minutes(name) => told(value(name).and_then(|minutes| minutes.parse().ok())),
        };
        let known = uses.entry(quota.used.to_owned());
        let known = known.or_insert_with(|| QuotaUse { length, first: share, now: share, used: 0.0 });
        if share < known.now * NEW_WINDOW {
            (known.used, known.now) = (known.used + share, share);
        } else if share > known.now {
            (known.used, known.now) = (known.used + share - known.now, share);
        }
    }
}

/// The quota that people look at: the shortest.
pub(super) fn shortest(uses: &BTreeMap<String, QuotaUse>) -> Option<&QuotaUse> {
    QUOTAS.iter().find_map(|quota| uses.get(quota.used))
}

/// A number of minutes, for people.
fn told(minutes: Option<u64>) -> String {
    match minutes {
        Some(10_080) => "weekly".to_owned(),
        Some(minutes) if minutes >= 60 && minutes.is_multiple_of(60) => format!("{}-hour", minutes / 60),
        Some(minutes) => format!("{minutes}-minute"),
        None => "shortest".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, values: &[&str], expected: (f64, f64, f64)) {
        let mut uses = BTreeMap::new();
        for value in values {
            add(&mut uses, &[(name.to_owned(), (*value).to_owned())]);
        }
        let used = shortest(&uses).cloned().unwrap_or_default();
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        let (first, now, all) = expected;
        assert!(
            is_near(used.first, first) && is_near(used.now, now) && is_near(used.used, all),
            "{values:?}: {used:?}"
        );
    }

    #[test]
    fn what_is_used_is_what_is_added_while_requests_pass() {
        let name = "anthropic-ratelimit-unified-5h-utilization";
        check(name, &["0.10", "0.12", "0.11", "0.15"], (0.10, 0.15, 0.05));
        check(name, &["0.90", "0.02", "0.05"], (0.90, 0.05, 0.05));
        check(name, &["much", "-1", "NaN", "0.3"], (0.3, 0.3, 0.0));
        check("x-codex-primary-used-percent", &["10", "12.5"], (0.10, 0.125, 0.025));
        check("x-codex-promo-message", &["10"], (0.0, 0.0, 0.0));
    }

    #[test]
    fn lengths_are_told_in_hours_and_weeks() {
        for (minutes, expected) in
            [(Some(300), "5-hour"), (Some(10_080), "weekly"), (Some(90), "90-minute"), (None, "shortest")]
        {
            assert_eq!(told(minutes), expected);
        }
    }
}
