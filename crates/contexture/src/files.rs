//! What an agent knows about the files that it works on, read off its own calls.
//!
//! What a call tells ([`observation`]), how tools of different agents say it ([`dialect`], [`shell`], [`numbering`],
//! [`patch`], [`mentions`]), what is known in sum ([`model`]), and the small tracker that truncation by age needs
//! ([`tracker`]).

pub mod observation;
pub mod observer;
pub mod dialect;
mod fate;
mod framing;
pub mod shell;
pub mod commands;
mod powershell;
mod run;
mod found;
pub mod numbering;
pub mod patch;
mod patched;
mod path;
pub mod mentions;
pub mod model;
pub mod disk;
pub mod tracker;
