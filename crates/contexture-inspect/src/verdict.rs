//! Short descriptions of notable things that happened to a request.

use contexture_gateway::account::record::DecisionKind;

use super::block::BlockSource;
use super::text::about;
use super::view::{RequestLine, RequestVerdict, VerdictKind};

/// The share of the previous request that must be read from the cache for a request to count as a cache hit.
const FOUND_SHARE: f64 = 0.5;

/// The fewest tokens of a request for which a cache miss is reported.
const LEAST_TOKENS: u64 = 4_000;

/// How long providers cache an unused prefix, at least.
const LIFE_MS: u64 = 5 * 60 * 1000;

/// The verdicts for a finished request.
pub fn of(line: &RequestLine, before: Option<&RequestLine>) -> Vec<RequestVerdict> {
    let record = &line.record;
    let mut verdicts = Vec::new();
    let mut say = |kind, text: String| verdicts.push(RequestVerdict { kind, text });
    if record.status >= 400 || record.status == 0 {
        say(
            VerdictKind::Failed,
            match record.status {
                0 => "no answer came".to_owned(),
                status => format!("the provider's answer was {status}"),
            },
        );
    }
    for note in &record.decided {
        match note.what {
            DecisionKind::Fold => say(VerdictKind::Fold, format!("folded to {}", about(line.sent_tokens))),
            DecisionKind::BringBack => say(VerdictKind::BroughtBack, note.reason.clone()),
            _ => {}
        }
    }
    if record.bill.is_some_and(|bill| bill.has_paid_back) {
        say(VerdictKind::PaidBack, "what the folds so far have cost is paid back".to_owned());
    }
    let passed_before = before.and_then(|before| before.record.passed.as_ref());
    if let Some(why) = record.passed.as_ref().filter(|why| Some(*why) != passed_before) {
        say(VerdictKind::Passed, format!("nothing new was decided: {why}"));
    }
    if let Some((kind, text)) = before.and_then(|before| missed(line, before)) {
        say(kind, text);
    }
    verdicts
}

/// Why the provider did not find the previous request in its cache.
fn missed(line: &RequestLine, before: &RequestLine) -> Option<(VerdictKind, String)> {
    let (usage, held) = (line.record.usage?, before.record.usage?.total_input());
    let has_moved = line.record.decided.iter().any(|note| note.is_fold()) || !line.verdicts.is_empty();
    let was_held =
        before.record.usage.is_some_and(|usage| usage.cache_read + usage.cache_write + usage.cache_write_hour > 0);
    if has_moved || !was_held || held < LEAST_TOKENS || usage.cache_read as f64 >= FOUND_SHARE * held as f64 {
        return None;
    }
    let waited = line.record.time_ms.saturating_sub(before.record.time_ms);
    Some(match waited > LIFE_MS {
        true => (VerdictKind::Expired, format!("expired after {}", duration(waited))),
        false => (
            VerdictKind::Missed,
            format!("the cache missed: {} billed again", about(held.saturating_sub(usage.cache_read))),
        ),
    })
}

fn duration(ms: u64) -> String {
    match ms / 60_000 {
        minutes @ 0..120 => format!("{minutes} minutes"),
        minutes @ 120..2_880 => format!("{} hours", minutes / 60),
        minutes => format!("{} days", minutes / 1_440),
    }
}

/// What the client changed before its messages.
pub fn head_change(before: &[u32], now: &[u32], source: &dyn Fn(u32) -> Option<BlockSource>) -> Vec<RequestVerdict> {
    let of = |list: &[u32], wanted| -> Vec<u32> {
        list.iter().copied().filter(|id| source(*id).is_none_or(|found| found == wanted)).collect()
    };
    let words = [
        (BlockSource::Tools, VerdictKind::Tools, "the client changed its tools"),
        (BlockSource::System, VerdictKind::System, "the client changed its instructions"),
    ];
    let changed = words.into_iter().filter(|(wanted, ..)| of(before, *wanted) != of(now, *wanted));
    changed.map(|(_, kind, text)| RequestVerdict { kind, text: text.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use contexture::wire::Usage;

    use super::*;
    use contexture_gateway::account::record::{DecidedNote, RequestRecord};

    fn line(time_ms: u64, usage: Usage, decided: Vec<DecidedNote>) -> RequestLine {
        let record = RequestRecord { status: 200, time_ms, usage: Some(usage), decided, ..RequestRecord::default() };
        RequestLine { record, sent_tokens: 41_000, ..RequestLine::default() }
    }

    #[track_caller]
    fn check(line: &RequestLine, expected: &[&str]) {
        let held = Usage { cache_write: 40_000, ..Usage::default() };
        let before = self::line(0, held, Vec::new());
        let told: Vec<String> = of(line, Some(&before)).into_iter().map(|verdict| verdict.text).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_verdict_is_given_only_when_something_happened() {
        let found = Usage { cache_read: 40_000, cache_write: 1_000, ..Usage::default() };
        let lost = Usage { cache_write: 41_000, ..Usage::default() };
        check(&line(1_000, found, Vec::new()), &[]);
        check(&line(7 * 60_000, lost, Vec::new()), &["expired after 7 minutes"]);
        check(&line(1_000, lost, Vec::new()), &["the cache missed: 40k billed again"]);
        let fold = DecidedNote::new(DecisionKind::Fold, "");
        check(&line(1_000, lost, vec![fold]), &["folded to 41k"]);
    }
}
