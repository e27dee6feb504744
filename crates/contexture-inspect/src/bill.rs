//! The bill by conversation, day or model.

use std::collections::BTreeMap;
use std::time::Duration;

use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::report::receipt::Receipt;
use contexture_gateway::write::StoreError;
use contexture_text::date::day;

use super::archive::Archive;
use super::view::{BillLine, ExpensiveRequest};

/// How many of its most expensive requests each line lists.
const DEAREST: usize = 3;

/// The day of requests without a date.
const NO_DATE: &str = "no date";

/// How the bill is grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BillGrouping {
    /// One conversation.
    Conversation,
    /// One day, in UTC.
    Day,
    /// One model.
    Model,
}

impl BillGrouping {
    /// Parses a grouping by its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "conversation" => Some(BillGrouping::Conversation),
            "day" => Some(BillGrouping::Day),
            "model" => Some(BillGrouping::Model),
            _ => None,
        }
    }
}

#[derive(Default)]
struct BillGroup {
    records: Vec<RequestRecord>,
    simulated: u64,
    dearest: Vec<ExpensiveRequest>,
}

/// The bill of everything in an archive.
pub fn bill(archive: &Archive, by: BillGrouping) -> Result<Vec<BillLine>, StoreError> {
    let mut groups: BTreeMap<String, BillGroup> = BTreeMap::new();
    archive.each_request(|conversation, line| {
        let name = match by {
            BillGrouping::Conversation => conversation.to_owned(),
            BillGrouping::Day if line.record.time_ms == 0 => NO_DATE.to_owned(),
            BillGrouping::Day => day(Duration::from_millis(line.record.time_ms)),
            BillGrouping::Model => line.record.model.clone(),
        };
        let group = groups.entry(name).or_default();
        if let Some(bill) = line.record.bill {
            group.dearest.push(ExpensiveRequest {
                conversation: conversation.to_owned(),
                n: line.n,
                billed: bill.billed,
            });
            group.dearest.sort_by(|one, other| other.billed.total_cmp(&one.billed));
            group.dearest.truncate(DEAREST);
        }
        group.simulated += u64::from(line.record.is_simulated);
        group.records.push(line.record);
    })?;
    let mut lines = Vec::with_capacity(groups.len());
    for (name, group) in groups {
        let title = match by {
            BillGrouping::Conversation => archive.conversation(&name)?.map(|line| line.title).unwrap_or_default(),
            BillGrouping::Day | BillGrouping::Model => name.clone(),
        };
        let BillGroup { simulated, dearest, records } = group;
        lines.push(BillLine { title, name, receipt: Receipt::of(&records), dearest, simulated });
    }
    match by {
        BillGrouping::Day => lines.reverse(),
        _ => lines.sort_by(|one, other| other.receipt.billed.total_cmp(&one.receipt.billed)),
    }
    Ok(lines)
}
