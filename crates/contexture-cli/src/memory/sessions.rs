//! The recorded sessions of the agents on this machine.

mod agents;
mod rows;
mod opencode;
mod session;
mod find;

pub(super) use agents::recorded;
pub(super) use find::{find_sessions, named_sessions};
pub(super) use session::AgentSession;
