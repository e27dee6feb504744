//! `contexture receipts`: what passed through the gateway, and what it cost.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::{Args, ValueEnum};
use contexture_gateway::report::compare::{compare, conversation_sums};
use contexture_gateway::report::told::less_or_more;
use contexture_gateway::{Receipt, RequestRecord};
use contexture_text::date::{day, minute};
use contexture_text::numbers::thousands;
use serde_json::{Value, json};

use super::compared;
use super::place::StoreFlag;
use super::print::{self, ReceiptExtent};
use crate::failure::Failure;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// Print what your agents' requests cost, and what they would have cost unchanged
///
/// One line for each conversation, newest first, with the id by which `contexture show` and `contexture forget` know it.
/// docs/receipts.md says how the bill is computed and how to check it.
#[derive(Args)]
pub struct Receipts {
    /// What each line is about
    #[arg(long, value_enum, default_value_t = By::Conversation)]
    by: By,
    /// Compare conversations that were folded with those that `--holdout` held out, with intervals
    #[arg(long, conflicts_with = "by")]
    compare: bool,
    /// Print everything about each line, and the whole receipt
    #[arg(long)]
    details: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreFlag,
}

/// The fewest characters of an id that are shown.
const MIN_ID_CHARS: usize = 8;

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

/// What a line is made of.
struct ReceiptGroup {
    name: String,
    /// What the user of the conversation said first.
    title: Option<String>,
    /// When its first and its last request came, in milliseconds since the Unix epoch.
    times_ms: (u64, u64),
    receipt: Receipt,
}

impl ReceiptGroup {
    fn of(name: String, records: &[RequestRecord]) -> Self {
        let times = || records.iter().map(|record| record.time_ms);
        let times_ms = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
        let title = records.iter().find_map(|record| record.title.clone());
        Self { name, title, times_ms, receipt: Receipt::of(records) }
    }

    fn to_json(&self, by: By) -> Value {
        let (first_ms, last_ms) = self.times_ms;
        let mut value = json!({"name": self.name, "first_ms": first_ms, "last_ms": last_ms, "receipt": self.receipt});
        if by == By::Conversation {
            value["title"] = json!(self.title);
        }
        value
    }

    /// The title, or what is said in place of it.
    fn title(&self) -> String {
        match &self.title {
            Some(title) => title.clone(),
            None if self.name == NO_CONVERSATION => "requests that belong to no conversation".to_owned(),
            None => "(without a title)".to_owned(),
        }
    }
}

/// The name of the group of requests that belong to no conversation.
const NO_CONVERSATION: &str = "none";

/// Carries out the command.
///
/// # Errors
/// The store cannot be read.
pub fn run(command: &Receipts) -> Result<(), Failure> {
    let records = match command.store.existing()? {
        Some(store) => store.requests(None).map_err(|error| Failure::work(error.to_string()))?,
        None => Vec::new(),
    };
    let text = if command.compare {
        let comparison = compare(&conversation_sums(&records));
        match command.json {
            true => serde_json::to_string_pretty(&comparison)? + "\n",
            false => compared::comparison_text(&comparison),
        }
    } else {
        let groups = grouped(command.by, &records);
        match command.json {
            true => {
                let all: Vec<Value> = groups.iter().map(|group| group.to_json(command.by)).collect();
                let by = format!("{:?}", command.by).to_lowercase();
                serde_json::to_string_pretty(&json!({"by": by, "receipts": all}))? + "\n"
            }
            false if groups.is_empty() => {
                "no request was seen yet; `contexture run claude` lets some pass\n".to_owned()
            }
            false => receipts_text(command, &groups, &Receipt::of(&records)),
        }
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// The groups of requests; conversations newest first.
fn grouped(by: By, records: &[RequestRecord]) -> Vec<ReceiptGroup> {
    let mut groups: BTreeMap<String, Vec<RequestRecord>> = BTreeMap::new();
    for record in records {
        groups.entry(name_of(by, record)).or_default().push(record.clone());
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(name, records)| ReceiptGroup::of(name, &records)).collect();
    if by == By::Conversation {
        groups.sort_by_key(|group| std::cmp::Reverse(group.times_ms.1));
    }
    groups
}

fn name_of(by: By, record: &RequestRecord) -> String {
    match by {
        By::Conversation => record.conversation.clone().unwrap_or_else(|| NO_CONVERSATION.to_owned()),
        By::Model => record.model.clone(),
        By::Session => record.session.clone(),
        By::Day => day(Duration::from_millis(record.time_ms)),
    }
}

/// All lines, and what they come to.
fn receipts_text(command: &Receipts, groups: &[ReceiptGroup], all: &Receipt) -> String {
    let screen = Screen::of_output();
    let (table, extent) = match command.details {
        true => (detailed(command.by, groups), ReceiptExtent::Details),
        false if command.by == By::Conversation => (conversations(groups), ReceiptExtent::Line),
        false => (listed(command.by, groups), ReceiptExtent::Line),
    };
    // What is piped somewhere is read by programs, for which a line is a line.
    let table = if io::stdout().is_terminal() || command.details { table.fit(screen) } else { table.render() };
    let sum = print::receipt(all, false, extent, screen);
    let next = match command.details {
        true => String::new(),
        false => screen.next("`contexture receipts --details` says why."),
    };
    format!("{table}\n{sum}{next}")
}

/// How many characters of each id tell them apart.
fn id_chars(groups: &[ReceiptGroup]) -> usize {
    let longest = groups.iter().map(|group| group.name.len()).max().unwrap_or_default();
    let is_enough = |chars: &usize| {
        let starts = groups.iter().map(|group| group.name.chars().take(*chars).collect::<String>());
        starts.collect::<HashSet<_>>().len() == groups.len()
    };
    (MIN_ID_CHARS..longest).find(is_enough).unwrap_or(longest)
}

/// One line for each group.
fn listed(by: By, groups: &[ReceiptGroup]) -> TextTable {
    let name = format!("{by:?}").to_lowercase();
    let mut table = TextTable::new([
        (name.as_str(), Align::Name),
        ("requests", Align::Right),
        ("paid", Align::Right),
        ("saved", Align::Right),
    ]);
    for group in groups {
        let receipt = &group.receipt;
        table.row([group.name.clone(), thousands(receipt.requests as u64), receipt.amounts().0, saved(receipt)]);
    }
    table
}

/// One row for each conversation.
fn conversations(groups: &[ReceiptGroup]) -> TextTable {
    let id_chars = id_chars(groups);
    let mut table = TextTable::new([
        ("id", Align::Left),
        ("day", Align::Left),
        ("paid", Align::Right),
        ("saved", Align::Right),
        ("conversation", Align::Prose),
    ]);
    for group in groups {
        let (id, last) = (group.name.chars().take(id_chars).collect(), Duration::from_millis(group.times_ms.1));
        table.row([id, day(last), group.receipt.amounts().0, saved(&group.receipt), group.title()]);
    }
    table
}

fn detailed(by: By, groups: &[ReceiptGroup]) -> TextTable {
    let name = format!("{by:?}").to_lowercase();
    let mut table = TextTable::new([
        (name.as_str(), Align::Name),
        ("title", Align::Prose),
        ("from", Align::Left),
        ("to", Align::Left),
        ("requests", Align::Right),
        ("written by the agent", Align::Right),
        ("sent", Align::Right),
        ("paid", Align::Right),
        ("unchanged", Align::Right),
        ("", Align::Left),
        ("folds", Align::Right),
    ]);
    for group in groups {
        let ReceiptGroup { name, times_ms: (first_ms, last_ms), receipt, .. } = group;
        let (paid, through) = receipt.amounts();
        table.row([
            name.clone(),
            if by == By::Conversation { group.title() } else { String::new() },
            minute(Duration::from_millis(*first_ms)),
            minute(Duration::from_millis(*last_ms)),
            receipt.requests.to_string(),
            thousands(receipt.came),
            thousands(receipt.sent),
            paid,
            through,
            less_or_more(receipt.saved_share()),
            receipt.fold_count().to_string(),
        ]);
    }
    table
}

/// What was saved in percent; nothing if nothing was changed.
fn saved(receipt: &Receipt) -> String {
    if receipt.changed == 0 { String::new() } else { format!("{:.0} %", receipt.saved_share() * 100.0) }
}
