//! Accounts for a request: its bill, its record, and the receipt of many.

pub mod models;
pub mod bill;
pub mod record;
pub mod receipt;
pub mod metrics;
pub(crate) mod session;
#[cfg(feature = "otlp")]
pub mod otlp;
