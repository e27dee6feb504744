//! What an agent knows about the files that it works on, read off its own calls.
//!
//! What a call tells ([`observation`]), how tools of different agents say it ([`dialect`], [`shell`], [`numbering`],
//! [`patch`], [`mentions`]), what is known in sum ([`model`]), and the small tracker that truncation by age needs
//! ([`tracker`]).

pub mod observation;
pub mod dialect;
pub mod shell;
pub mod numbering;
pub mod patch;
pub mod mentions;
mod printed;
pub mod model;
pub mod tracker;
