//! Sends a request to its provider, and forwards the response.

mod door;
pub mod upstream;
pub mod tls;
pub(crate) mod client;
pub(crate) mod passing;
mod rejection;
pub(crate) mod exchange;

pub use tls::prepare_tls;
