//! The account of a request: what was billed, what pass-through would have been, and the record with both.

pub(crate) mod growth;
pub(crate) mod sent_request;
mod last_request;
mod token_rates;
pub mod bill;
pub mod cap;
pub mod signals;
pub mod record;
