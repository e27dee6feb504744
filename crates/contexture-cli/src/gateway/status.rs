//! `contexture status`: running gateways.

use std::io::{self, Write};

use clap::Args;
use contexture_gateway::Receipt;
use contexture_gateway::remote::receipt_of;
use contexture_inspect::running_inspector;
use serde_json::json;

use super::place::StoreFlag;
use super::print::thousands;
use crate::failure::Failure;

/// List the running gateways, and what passed through them
///
/// With --line, print one line about the newest one, for an agent's status bar.
#[derive(Args)]
pub struct StatusCommand {
    /// One short line about the newest gateway
    #[arg(long, conflicts_with = "json")]
    line: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlag,
}

/// Carries out the command.
///
/// # Errors
/// The store cannot be read.
pub fn run(command: &StatusCommand) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut running = Vec::new();
    let mut elsewhere = Vec::new();
    if let Some(store) = command.store.existing()? {
        let fail = |error: contexture_gateway::StoreError| Failure::work(error.to_string());
        for gateway in store.gateways().map_err(fail)? {
            // Their addresses mean something on their own machines only.
            if !gateway.host.is_empty() && gateway.host != contexture::host::machine() {
                elsewhere.push(gateway);
                continue;
            }
            match runtime.block_on(receipt_of(&gateway)) {
                Some(receipt) => running.push((gateway.address, receipt)),
                // It was killed, or it would have said so itself.
                None => store.forget_gateway(&gateway.id).map_err(fail)?,
            }
        }
    }
    let text = match (command.json, command.line) {
        (true, _) => {
            let all: Vec<_> =
                running.iter().map(|(address, receipt)| json!({"address": address, "receipt": receipt})).collect();
            let all = all
                .into_iter()
                .chain(elsewhere.iter().map(|gateway| json!({"address": gateway.address, "host": gateway.host})));
            serde_json::to_string_pretty(&all.collect::<Vec<_>>())? + "\n"
        }
        (_, true) => {
            let link = running_inspector(&command.store.path()?).map(|url| linked(&url)).unwrap_or_default();
            let told = |(_, receipt): &(String, Receipt)| format!("{}{link}\n", line(receipt));
            running.last().map_or("contexture: no gateway runs\n".to_owned(), told)
        }
        _ if running.is_empty() && elsewhere.is_empty() => {
            "no gateway runs; `contexture run claude` starts one\n".to_owned()
        }
        _ => {
            let here = running.iter().map(|(address, receipt)| format!("{address}  {}\n", line(receipt)));
            let there = elsewhere.iter().map(|gateway| format!("{}  on {}\n", gateway.address, gateway.host));
            here.chain(there).collect()
        }
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// A link to the inspector, as terminals understand it: the token in its address is not shown.
fn linked(url: &str) -> String {
    format!(" \u{1b}]8;;{url}\u{1b}\\inspect\u{1b}]8;;\u{1b}\\")
}

/// A receipt in one line.
fn line(receipt: &Receipt) -> String {
    format!(
        "{} requests, {} of {} tokens sent, {:.0} % less billed, {} folds",
        receipt.requests,
        thousands(receipt.sent),
        thousands(receipt.came),
        receipt.saved_share() * 100.0,
        receipt.folds.len()
    )
}
