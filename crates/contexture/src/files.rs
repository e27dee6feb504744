//! Files of the machine that the agent works on: reading them safely, naming them in messages, and what an agent
//! knows about them.
//!
//! Reading: [`local`]. Naming: [`mod@reference`], [`anchor`], [`kinds`]. Knowing, read off the agent's own calls: what a call
//! tells ([`observation`]), how tools of different agents say it ([`dialect`], [`shell`], [`numbering`], [`patch`], [`mentions`]),
//! what is known in sum ([`model`]), and the small tracker that truncation by age needs ([`tracker`]).

#[cfg(unix)]
pub mod local;
pub mod reference;
pub mod anchor;
pub mod kinds;
pub mod observation;
pub mod dialect;
pub mod shell;
pub mod numbering;
pub mod patch;
pub mod mentions;
mod printed;
pub mod model;
pub mod tracker;

#[cfg(unix)]
pub use local::LocalFs;
