//! Files of the machine that the agent works on: reading them safely, and naming them in messages.

pub mod anchor;
pub mod kinds;
#[cfg(unix)]
pub mod local;
pub mod reference;

#[cfg(unix)]
pub use local::LocalFs;
