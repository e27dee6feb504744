//! What is known of all requests together, and how people and other programs are told: receipts, statistics, telemetry.

pub mod quota;
pub mod receipt;
pub mod told;
pub mod compare;
pub(crate) mod spending;
pub(crate) mod session;
pub(crate) mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
