//! Reads the configuration for a command: its files, the environment and its flags.
//!
//! What keys there are, and what their values mean, is in [`crate::settings`].

mod environment;
mod flags;
mod files;
mod load;

pub(crate) use files::{ConfigFileCandidate, Files};
pub use flags::{ConfigFlags, Everything, FlagsOf, OfChat, OfGateway, OfReplay, OfWindow};
