//! What an agent knows about the files that it works on, derived from its own calls.
//!
//! What a call tells ([`observation`]), how the tools of different agents express it ([`dialect`], [`shell`],
//! [`numbering`], [`patch`], [`mentions`]), everything that is known ([`model`]), and the small tracker for truncation
//! by age ([`tracker`]).

pub mod observation;
pub mod observer;
pub mod argument_names;
mod notes;
mod running;
mod batch;
pub mod dialect;
mod completion;
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
