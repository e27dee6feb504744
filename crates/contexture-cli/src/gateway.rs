//! The commands of the gateway.

mod configured;
mod agents;
pub(crate) mod place;
mod keys;
mod flags;
mod lean;
mod print;
mod compared;
mod words;
mod roots;
mod running;
mod signals;
mod telemetry;
pub mod doctor;
pub mod forget;
pub mod inspect;
pub mod install;
pub mod pause;
pub mod receipts;
pub mod run;
pub(crate) mod start;
mod stopping;
mod for_parent;
pub mod serve;
pub mod show;
pub mod status;
