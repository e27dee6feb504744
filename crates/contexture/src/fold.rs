//! Folding the past of a coding agent into what it still needs.
//!
//! Modules in reading order: what it is told to keep to ([`policy`], [`price`]), what a window is made of
//! ([`window`]), what a fold shows ([`view`], [`words`], [`outline`], [`digest`]), what is done before anything is sent
//! ([`doors`], [`terse`], [`cap`], [`rows`]), the state machine that decides when ([`folder`]), and what it decided
//! ([`decision`]).

pub mod policy;
pub mod price;
pub mod window;
pub mod view;
pub mod words;
mod vocabulary;
mod word_hash;
mod cuts;
pub mod outline;
pub mod digest;
pub mod doors;
pub mod terse;
pub mod cap;
pub mod rows;
mod counts;
pub mod folder;
pub mod decision;

pub use decision::{Fold, FoldDecision};
pub use folder::Folder;
pub use policy::Policy;
pub use price::{Account, Prices};
pub use window::Slot;
