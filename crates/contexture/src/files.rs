//! Files of the machine that the agent works on: reading them safely, and naming them in messages.

#[cfg(unix)]
pub mod local;

#[cfg(unix)]
pub use local::LocalFs;
