//! Folding the past of a coding agent into what it still needs.
//!
//! Modules in reading order: what it is told to keep to ([`policy`], [`price`]), what a window is made of
//! ([`window`]), what a fold shows ([`view`], [`words`], [`outline`], [`digest`]), what is done before anything is sent
//! ([`doors`], [`cap`], [`rows`]), and the state machine that decides when ([`folder`]).

pub mod cap;
mod counts;
pub mod digest;
pub mod doors;
pub mod folder;
pub mod outline;
pub mod policy;
pub mod price;
pub mod rows;
pub mod view;
mod vocabulary;
pub mod window;
mod word_hash;
pub mod words;

pub use folder::{Fold, FoldDecision, Folder};
pub use policy::Policy;
pub use price::{Account, Prices};
pub use window::Slot;
