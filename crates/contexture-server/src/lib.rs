//! The gateway of Contexture: a proxy between an agent and its model that sends only what is still needed of the past.
//!
//! [`Gateway::start`](gateway::Gateway::start) listens on an address. A request to a model is split into its messages
//! (`contexture::wire`), its conversation is looked up (`table`), a folder decides what of it is sent (`decide`), and
//! the response is forwarded byte for byte (`exchange`) while its usage is read (`passing`). If anything fails, the
//! earlier decisions are applied again, so that the provider's cache stays valid.

pub mod models;
pub mod upstream;
pub mod account;
pub mod record;
pub mod access;
mod serving;
pub mod options;
pub mod receipt;
pub mod metrics;
mod steps;
mod known;
mod referenced;
mod reading;
mod live;
mod conversation;
pub mod store;
mod table;
mod asked;
mod decide;
mod tls;
mod guard;
mod headers;
mod coding;
mod passing;
mod routes;
mod refusal;
mod sessions;
pub mod percent;
mod start_error;
mod shared;
mod own;
pub mod day;
pub mod cache;
pub mod recorded;
pub mod inspect;
mod watching;
mod exchange;
mod handle;
pub mod gateway;
pub mod answerer;
pub mod remote;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "testing")]
pub mod testing;

pub use access::Key;
pub use gateway::Gateway;
pub use options::{Options, Watcher};
pub use receipt::Receipt;
pub use record::RequestRecord;
pub use start_error::StartError;
pub use store::{Store, StoreError};
pub use tls::prepare_tls;
pub use upstream::Upstreams;
pub use watching::ARCHIVE_NAME;
