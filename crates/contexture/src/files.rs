//! What an agent knows about files, read off its own calls.
//!
//! Modules in reading order: what a call tells ([`observation`]), how tools of different agents say it
//! ([`dialect`], [`shell`], [`numbering`], [`patch`]), what is known in sum ([`model`]), and the small tracker
//! that truncation by age needs ([`tracker`]).

pub mod dialect;
pub mod model;
pub mod numbering;
pub mod observation;
pub mod patch;
mod printed;
pub mod shell;
pub mod tracker;
