//! Signs in a conversation that something was missing from its windows.

use contexture_gateway::account::signals::SignalCounts;

use super::super::view::{RequestLine, SignalKind, SignalLine};

/// Most requests that are named for one kind.
const MOST_NAMED: usize = 3;

/// What was counted up to the last of some requests, each with the newest requests in which it rose. Empty if nothing was
/// counted.
pub fn signals(past: &[RequestLine]) -> Vec<SignalLine> {
    let counted: Vec<(u64, SignalCounts)> =
        past.iter().rev().filter_map(|line| Some((line.n, line.record.signals?))).collect();
    let Some((_, newest)) = counted.first() else { return Vec::new() };
    let line = |kind: SignalKind| {
        let rose = counted.windows(2).filter(|pair| count(kind, &pair[0].1) > count(kind, &pair[1].1));
        let requests = rose.map(|pair| pair[0].0).take(MOST_NAMED).collect();
        SignalLine { kind, count: count(kind, newest), requests }
    };
    SignalKind::ALL.into_iter().map(line).filter(|line| line.count > 0).collect()
}

fn count(kind: SignalKind, counts: &SignalCounts) -> u64 {
    match kind {
        SignalKind::RepeatedReads => counts.repeated_reads,
        SignalKind::ReadsAfterFold => counts.reads_after_fold,
        SignalKind::FailedEdits => counts.failed_edits,
        SignalKind::RepeatedInstructions => counts.repeated_instructions,
        SignalKind::Noes => counts.noes,
        SignalKind::Interruptions => counts.interruptions,
        SignalKind::ToolErrors => counts.tool_errors,
    }
}
