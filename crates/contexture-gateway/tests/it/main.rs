//! The gateway, spoken to over real connections.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod played;
mod provider;
mod receiver;

mod bills;
mod certificates;
mod compared;
mod compressed;
mod diagnosis;
mod disk;
mod faults;
mod folding;
mod kills;
mod limits;
mod own_routes;
mod passing;
mod pauses;
mod recordings;
mod restarts;
mod spans;
mod strangers;
mod two_gateways;
mod wire;
