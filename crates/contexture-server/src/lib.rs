//! The gateway of Contexture: it stands between an agent and its model, and sends of the past what is still needed.
//!
//! [`Gateway::start`](gateway::Gateway::start) listens on an address. A request to a model is split into its messages
//! (`contexture::wire`), its conversation is found again (`table`), a folder decides what of it is sent
//! (`decide`), and the answer passes back byte for byte (`exchange`) while it is read along for what it took (`passing`).
//! Whatever goes wrong, what was decided before is sent again, so that the provider's cache holds.

pub mod models;
pub mod upstream;
pub mod account;
pub mod record;
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
mod refusal;
mod sessions;
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

pub use gateway::{Gateway, StartError};
pub use options::{Options, Watcher};
pub use receipt::Receipt;
pub use record::RequestRecord;
pub use store::{Store, StoreError};
pub use tls::prepare_tls;
pub use upstream::Upstreams;
pub use watching::ARCHIVE_NAME;
