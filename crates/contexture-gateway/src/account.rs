//! Accounts for a request: its bill, its record, and the receipt of many.

pub mod models;
pub mod growth;
pub mod sent_request;
mod last_request;
mod token_rates;
pub mod bill;
pub mod record;
pub mod receipt;
pub mod cap;
pub mod told;
pub mod signals;
pub mod compare;
pub(crate) mod harm;
pub(crate) mod spending;
pub mod metrics;
pub(crate) mod session;
#[cfg(feature = "otlp")]
pub mod otlp;
