//! Records what the model sees in each request, compares it, and serves it to a web page.
//!
//! An [`Archive`] stores the windows of requests as lists of blocks, each text once. `window` determines the state of
//! each block, `timeline` what is known of files, and [`Inspector`] serves everything as JSON and as a page.

pub mod block;
mod text;
pub mod view;
mod verdict;
mod window;
mod timeline;
mod archive;
mod bill;
mod export;
mod pass;
mod answer;
mod routes;
mod page;
mod server;
mod respond;
pub(crate) mod controls;
pub mod played;
pub mod library;

pub use archive::{ASIDE, Archive, Seen, Ticket};
pub use played::Played;
pub use server::{InspectServer, Inspector};
