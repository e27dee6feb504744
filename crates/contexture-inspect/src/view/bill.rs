//! What tools fill, and what was billed.

use contexture_gateway::report::receipt::Receipt;
use serde::Serialize;

/// A tool that was declared or called.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolLine {
    /// Its name.
    pub name: String,
    /// Tokens of its declaration, by our own count.
    pub tokens: u64,
    /// How often it was called.
    pub calls: u64,
    /// The number of requests that declared it.
    pub requests: u64,
    /// Roughly what its declaration cost in all of them, in tokens at the plain input price.
    pub billed: f64,
    /// The same in dollars, where the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// The block that declares it; 0 if none does.
    pub block: u32,
    /// Tokens of its calls.
    pub call_tokens: u64,
    /// Tokens of its outputs.
    pub output_tokens: u64,
    /// Tokens of its calls and outputs, each counted in every request in which it was sent.
    pub carried: u64,
    /// Its largest output, and the request in which it first was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<(u32, u64, u64)>,
}

/// A line of the bill.
#[derive(Clone, Debug, Serialize)]
pub struct BillLine {
    /// The conversation, day or model.
    pub name: String,
    /// A display name.
    pub title: String,
    /// The totals of its requests, as in `contexture receipts --json`.
    pub receipt: Receipt,
    /// Its most expensive requests.
    pub dearest: Vec<ExpensiveRequest>,
    /// How many of its requests have a simulated bill.
    pub simulated: u64,
}

/// An expensive request.
#[derive(Clone, Debug, Serialize)]
pub struct ExpensiveRequest {
    /// Its conversation.
    pub conversation: String,
    /// Its number.
    pub n: u64,
    /// Its bill.
    pub billed: f64,
}
