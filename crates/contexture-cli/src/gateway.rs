//! The commands of the gateway.

mod yaml;
mod configured;
mod agents;
pub(crate) mod place;
mod keys;
mod flags;
mod print;
mod signals;
mod telemetry;
pub mod doctor;
pub mod forget;
pub mod inspect;
pub mod models;
pub mod receipts;
pub mod run;
mod start;
mod for_parent;
pub mod serve;
pub mod show;
pub mod status;
