//! `contexture receipts`: what passed through the gateway, and what it cost.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, ValueEnum};
use contexture_gateway::account::compare::{compare, conversation_sums};
use contexture_gateway::{Receipt, RequestRecord};
use contexture_text::date::day;
use serde_json::json;

use super::compared;
use super::place::StoreFlag;
use super::print::{self, less_or_more, thousands};
use crate::failure::Failure;
use crate::table::{Align, TextTable};

/// Print what passed through the gateway, what it cost, and what it would have cost without it
///
/// docs/receipts.md says how the bill is computed and how to check it.
#[derive(Args)]
pub struct Receipts {
    /// What each line is about
    #[arg(long, value_enum, default_value_t = By::Conversation)]
    by: By,
    /// Compare conversations that were folded with those that `--holdout` held out, with intervals
    #[arg(long, conflicts_with = "by")]
    compare: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlag,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// One conversation.
    Conversation,
    /// One day, in UTC.
    Day,
    /// One model.
    Model,
    /// One run of the gateway.
    Session,
}

/// Carries out the command.
///
/// # Errors
/// The store cannot be read.
pub fn run(command: &Receipts) -> Result<(), Failure> {
    let records = match command.store.existing()? {
        Some(store) => store.requests(None).map_err(|error| Failure::work(error.to_string()))?,
        None => Vec::new(),
    };
    if command.compare {
        let comparison = compare(&conversation_sums(&records));
        let text = match command.json {
            true => serde_json::to_string_pretty(&comparison)? + "\n",
            false => compared::told(&comparison),
        };
        return Ok(io::stdout().write_all(text.as_bytes())?);
    }
    let mut groups: BTreeMap<String, Vec<RequestRecord>> = BTreeMap::new();
    for record in &records {
        groups.entry(name_of(command.by, record)).or_default().push(record.clone());
    }
    let receipts: Vec<(String, Receipt)> =
        groups.into_iter().map(|(name, records)| (name, Receipt::of(&records))).collect();
    let text = match command.json {
        true => {
            let all: Vec<_> =
                receipts.iter().map(|(name, receipt)| json!({"name": name, "receipt": receipt})).collect();
            serde_json::to_string_pretty(&json!({"by": format!("{:?}", command.by).to_lowercase(), "receipts": all}))?
                + "\n"
        }
        false if receipts.is_empty() => "no request was seen yet; `contexture run claude` lets some pass\n".to_owned(),
        false => format!("{}\n{}", table(&receipts), print::receipt(&Receipt::of(&records), false)),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn name_of(by: By, record: &RequestRecord) -> String {
    match by {
        By::Conversation => record.conversation.clone().unwrap_or_else(|| "none".to_owned()),
        By::Model => record.model.clone(),
        By::Session => record.session.clone(),
        By::Day => day(Duration::from_millis(record.time_ms)),
    }
}

fn table(receipts: &[(String, Receipt)]) -> String {
    let titles = ["", "requests", "came", "sent", "billed", "pass-through", "", "folds"];
    let mut table =
        TextTable::new(titles.map(|title| (title, if title.is_empty() { Align::Left } else { Align::Right })));
    for (name, receipt) in receipts {
        table.row([
            name.clone(),
            receipt.requests.to_string(),
            thousands(receipt.came),
            thousands(receipt.sent),
            thousands(receipt.billed as u64),
            thousands(receipt.passed_through as u64),
            less_or_more(receipt.saved_share()),
            receipt.folds.len().to_string(),
        ]);
    }
    table.render()
}
