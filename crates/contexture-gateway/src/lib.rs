//! The gateway of Contexture: a proxy between an agent and its model that sends only what is still needed of the past.
//!
//! [`Gateway::start`](gateway::Gateway::start) listens on an address. A request goes through the folders in this order:
//! it is accepted (`accept`), its conversation is found (`find`), what is sent of it is decided (`decide`), the
//! decisions are written (`write`), it is sent and its response forwarded byte for byte (`send`), and it is accounted
//! for (`account`). `conversation` has what is known of a conversation. If anything fails, the earlier decisions are
//! applied again, so that the provider's cache stays valid.

pub mod models;
pub mod account;
pub mod conversation;
pub mod write;
pub mod provider;
pub mod accept;
pub mod find;
pub mod watch;
pub mod remember;
pub mod options;
pub mod decide;
pub mod report;
mod shared;
pub mod send;
pub mod gateway;
pub mod in_process;
pub mod remote;
pub mod simulate;
#[cfg(feature = "testing")]
pub mod testing;

pub use accept::access;
pub use accept::access::AccessKey;
pub use account::record::RequestRecord;
pub use gateway::{Gateway, StartError};
pub use options::{Options, WindowEditor};
pub use provider::prepare_tls;
pub use provider::tls::ExtraRoots;
pub use provider::upstream::Upstreams;
pub use remember::GatewayMemory;
#[cfg(feature = "otlp")]
pub use report::otlp;
pub use report::receipt::Receipt;
pub use simulate::answerer;
pub use watch::Watcher;
pub use write::{CheckedFile, Store, StoreError, check_store_file, copy_store_file, is_store, open_store};
