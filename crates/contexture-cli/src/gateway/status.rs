//! `contexture status`: running gateways.

use std::io::{self, Write};

use clap::Args;
use contexture_gateway::Receipt;
use contexture_inspect::running_inspector;
use serde_json::json;

use super::place::StoreFlag;
use super::running::{self, Elsewhere, LocalGateway};
use crate::failure::Failure;
use contexture_gateway::report::told::used;
use contexture_text::numbers::counted;

/// List the running gateways, and what passed through them
///
/// With --line, print one line about the gateway of the agent that asks, for its status bar.
#[derive(Args)]
pub struct StatusCommand {
    /// One short line about the gateway of the agent that asks
    #[arg(long, conflicts_with = "json")]
    line: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The gateway at this address only, as in 127.0.0.1:7717
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<String>,
    #[command(flatten)]
    store: StoreFlag,
}

/// Carries out the command.
///
/// # Errors
/// The store cannot be read.
pub fn run(command: &StatusCommand) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut running, mut elsewhere) = runtime.block_on(running::all(&command.store))?;
    let text = if command.line {
        // An agent that `contexture run` started has a gateway of its own, whatever its settings name.
        let own = running::of_variable(&running).or_else(|| running::own(&running, command.gateway.as_deref()));
        match own {
            Some(gateway) => {
                let link = running_inspector(&command.store.path()?).map(|url| linked(&url)).unwrap_or_default();
                format!("{}{link}\n", line(gateway))
            }
            None if running.is_empty() => "contexture: no gateway runs\n".to_owned(),
            None => format!("contexture: no gateway here ({} elsewhere)\n", running.len()),
        }
    } else {
        if let Some(address) = &command.gateway {
            running.retain(|gateway| gateway.address == *address);
            elsewhere.clear();
        }
        match command.json {
            true => written_as_json(&running, &elsewhere)?,
            false => listed(&running, &elsewhere),
        }
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// A link to the inspector, as terminals understand it: the token in its address is not shown.
fn linked(url: &str) -> String {
    format!(" \u{1b}]8;;{url}\u{1b}\\inspect\u{1b}]8;;\u{1b}\\")
}

fn written_as_json(running: &[LocalGateway], elsewhere: &[Elsewhere]) -> Result<String, Failure> {
    let here = running.iter().map(|gateway| {
        let status = &gateway.status;
        json!({
            "address": gateway.address, "pid": gateway.pid, "what": gateway.what, "paused": status.is_paused,
            "receipt": status.receipt,
        })
    });
    let there = elsewhere.iter().map(|gateway| json!({"address": gateway.address, "host": gateway.host}));
    Ok(serde_json::to_string_pretty(&here.chain(there).collect::<Vec<_>>())? + "\n")
}

fn listed(running: &[LocalGateway], elsewhere: &[Elsewhere]) -> String {
    if running.is_empty() && elsewhere.is_empty() {
        return "no gateway runs; `contexture run claude` starts one\n".to_owned();
    }
    let here = running.iter().map(|gateway| {
        let what = if gateway.what.is_empty() { String::new() } else { format!("{}  ", gateway.what) };
        format!("{}  {what}{}\n", gateway.address, line(gateway))
    });
    let there = elsewhere.iter().map(|gateway| format!("{}  on {}\n", gateway.address, gateway.host));
    here.chain(there).collect()
}

/// A gateway in one line.
fn line(gateway: &LocalGateway) -> String {
    let paused = if gateway.status.is_paused { "paused: " } else { "" };
    format!("{paused}{}", of_receipt(&gateway.status.receipt))
}

fn of_receipt(receipt: &Receipt) -> String {
    let cap = receipt.cap.as_ref().filter(|cap| !cap.day.is_none());
    let cap = cap.map(|cap| format!(", today {}", used(&cap.day, &cap.day_spent))).unwrap_or_default();
    format!(
        "{}, {}, {}{cap}",
        counted(receipt.requests, "request"),
        receipt.saved(),
        counted(receipt.fold_count(), "fold")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(billed: f64, passed_through: f64, expected: &str) {
        let receipt = Receipt { requests: 2, billed, passed_through, ..Receipt::default() };
        assert_eq!(of_receipt(&receipt), format!("2 requests, {expected}, 0 folds"));
    }

    #[test]
    fn what_is_used_of_the_cap_is_said() {
        use contexture_gateway::account::cap::{CapAmounts, CapUse, Spent};
        let day = CapAmounts { dollars: Some(5.0), tokens: None };
        let day_spent = Spent { dollars: 1.234, is_guessed: true, ..Spent::default() };
        let cap = Some(CapUse { day, day_spent, ..CapUse::default() });
        let text = of_receipt(&Receipt { requests: 2, cap, ..Receipt::default() });
        assert!(text.ends_with(", today $1.23 of $5.00 by guessed prices"), "{text}");
    }

    #[test]
    fn what_costs_more_is_said_to_cost_more() {
        check(80.0, 100.0, "80 tokens instead of 100 tokens (20 % less)");
        check(120.0, 100.0, "120 tokens instead of 100 tokens (20 % more)");
        check(100.1, 100.0, "100 tokens instead of 100 tokens (0 % less)");
        check(5.0, 0.0, "5 tokens instead of 0 tokens (0 % less)");
    }
}
