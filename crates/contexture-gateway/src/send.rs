//! Sends a request to its provider, and forwards the response.

pub(crate) mod passing;
mod rejection;
pub(crate) mod exchange;
