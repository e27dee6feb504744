//! Memory for the agents of a gateway: what is relevant is added where a person says something, and what passes is
//! kept.

mod readers;
mod late;
mod memory;
pub(crate) mod recalled;
pub(crate) mod passing;

pub use memory::{DEFAULT_BUDGET, DEFAULT_THRESHOLD, GatewayMemory};
