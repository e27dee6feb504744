//! Signs in a conversation that something was missing from its windows.

use contexture_gateway::account::signals::SignalCounts;
use contexture_gateway::write::StoreError;
use rusqlite::{Connection, params};

use super::super::view::{SignalKind, SignalLine};

/// How many requests are looked back through for those in which a count rose.
const MOST_BACK: i64 = 500;

/// Most requests that are named for one kind.
const MOST_NAMED: usize = 3;

/// What was counted up to a request, each with the newest requests in which it rose. Empty if nothing was counted.
pub fn signals(connection: &Connection, conversation: &str, n: u64) -> Result<Vec<SignalLine>, StoreError> {
    let sql = "SELECT n, json_extract(line, '$.record.signals') FROM requests
               WHERE conversation = ?1 AND n <= ?2 AND json_extract(line, '$.record.signals') IS NOT NULL
               ORDER BY n DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![conversation, n as i64, MOST_BACK])?;
    let mut counted: Vec<(u64, SignalCounts)> = Vec::new();
    while let Some(row) = rows.next()? {
        let counts = serde_json::from_str(row.get_ref(1)?.as_str().unwrap_or("{}"))?;
        counted.push((row.get::<_, i64>(0)? as u64, counts));
    }
    let Some((_, newest)) = counted.first() else { return Ok(Vec::new()) };
    let line = |kind: SignalKind| {
        let rose = counted.windows(2).filter(|pair| count(kind, &pair[0].1) > count(kind, &pair[1].1));
        let requests = rose.map(|pair| pair[0].0).take(MOST_NAMED).collect();
        SignalLine { kind, count: count(kind, newest), requests }
    };
    Ok(SignalKind::ALL.into_iter().map(line).filter(|line| line.count > 0).collect())
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
