//! The gateway, spoken to over real connections.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// Whether all of it is run, and not the short form.
const IS_LONG: bool = cfg!(feature = "long-tests");

mod agent;
mod played;
mod provider;
mod receiver;

mod accounts;
#[cfg(feature = "long-tests")]
mod at_rest;
mod bills;
mod bound;
mod caps;
mod certificates;
mod compared;
mod compressed;
mod damage;
mod diagnosis;
mod disk;
mod doors;
mod editors;
mod faults;
mod folding;
mod gemini;
mod harms;
mod in_force;
mod in_process;
mod kills;
mod lean;
mod limits;
mod many;
mod masks;
mod mutations;
#[cfg(unix)]
mod on_disk;
mod own_routes;
mod passing;
mod pauses;
mod recordings;
mod references;
mod remembering;
mod restarts;
mod rules;
mod spans;
mod stopping;
mod strangers;
mod thinking;
mod two_gateways;
