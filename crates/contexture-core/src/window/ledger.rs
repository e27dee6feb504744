//! The ledger: a summary of evicted items that is written without a model.

use std::collections::BTreeMap;

use super::shorten::shorten;
use crate::item::{Item, Role};
use crate::log::ItemLog;
use crate::tokens::{TokenCounter, floor_boundary};

/// How much of a user message the ledger quotes, in bytes.
const QUOTE_BYTES: usize = 200;

/// Summarises a range of the log: what the user asked for, and how often each tool ran.
///
/// `previous` is the ledger or summary of what came before. The result has at most `max_tokens` tokens; if that
/// is not enough, its middle is cut out.
pub fn ledger(
    counter: &dyn TokenCounter,
    log: &ItemLog,
    range: std::ops::Range<usize>,
    previous: Option<&str>,
    max_tokens: u64,
) -> String {
    let mut lines: Vec<String> = previous.into_iter().map(str::to_owned).collect();
    let mut tools: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = 0;
    for (_, entry) in log.range(range) {
        match &*entry.item {
            Item::Message(message) if message.role == Role::User => {
                lines.push(format!("- user: {}", quote(&message.text())))
            }
            Item::FunctionCall(call) => *tools.entry(&call.name).or_default() += 1,
            Item::FunctionCallOutput(output) => failures += usize::from(output.outcome.is_error()),
            _ => {}
        }
    }
    if !tools.is_empty() {
        let counts: Vec<String> = tools.iter().map(|(name, count)| format!("{name} ×{count}")).collect();
        let failed = if failures > 0 { format!(", {failures} failed") } else { String::new() };
        lines.push(format!("- tools: {}{failed}", counts.join(", ")));
    }
    shorten(counter, &lines.join("\n"), max_tokens)
}

/// The first line of a text, shortened.
fn quote(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let end = floor_boundary(line, QUOTE_BYTES);
    let more = if end < line.len() || text.trim().lines().count() > 1 { " …" } else { "" };
    format!("{}{more}", &line[..end])
}
