//! Durable storage: the contract of the core, the embedded store, and the one for many machines.

pub use contexture_core::store::*;
pub use contexture_store::*;
