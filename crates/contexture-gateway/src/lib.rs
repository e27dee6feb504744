//! The gateway of Contexture: a proxy between an agent and its model that sends only what is still needed of the past.
//!
//! [`Gateway::start`] listens on an address. `gateway` takes each request through the steps: it is accepted (`accept`),
//! its conversation is found (`find`), what is sent of it is decided (`decide`), the decisions are written (`write`), it
//! is sent and its response forwarded byte for byte (`send`), and it is accounted for (`account` for the request,
//! `report` for all together). `conversation` has what is known of a conversation. If anything fails, the earlier
//! decisions are applied again, so that the provider's cache stays valid.
//!
//! A module imports only from those that are declared above it.

pub mod models;
pub mod account;
mod conversation;
pub mod write;
pub mod provider;
pub mod accept;
mod lean;
mod find;
pub mod watch;
pub mod remember;
mod options;
mod decide;
pub mod report;
mod shared;
mod send;
mod gateway;
pub mod in_process;
pub mod remote;
pub mod simulate;
#[cfg(feature = "testing")]
pub mod testing;

pub use accept::access;
pub use accept::access::AccessKey;
pub use account::record::RequestRecord;
pub use gateway::{Gateway, StartError};
pub use lean::{LEAST_CONVERSATIONS, LeanTools};
pub use options::{DEFAULT_BUDGET, LEAST_BUDGET, Options, References, WHOLE_WINDOW, WindowEditor};
pub use provider::prepare_tls;
pub use provider::tls::ExtraRoots;
pub use provider::upstream::Upstreams;
pub use remember::GatewayMemory;
#[cfg(feature = "otlp")]
pub use report::otlp;
pub use report::receipt::Receipt;
pub use simulate::answerer;
pub use watch::Watcher;
pub use write::{
    CheckedFile, Store, StoreError, check_store_file, copy_store_file, delete_store_file, is_store, open_store,
    open_store_to_read,
};
