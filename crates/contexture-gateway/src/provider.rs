//! The providers: where a request goes, and the connection to there.

mod door;
pub mod upstream;
pub mod tls;
pub(crate) mod client;

pub use tls::prepare_tls;
