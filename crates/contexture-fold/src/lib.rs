//! Folding the past of a coding agent into what it still needs.
//!
//! Modules in reading order: what configures a fold ([`pins`], [`policy`], [`price`], [`meter`], and the private
//! `tuning`), the state of a conversation (`conversation`, `knowledge`, `shown` and `billing`, together `state`), what
//! a view shows ([`view`], [`words`], [`outline`], [`digest`]), what remains of calls ([`records`] and the private
//! `brief`), what is shortened before it is first sent ([`stubs`], [`compact`], [`cap`], [`rows`]), what is decided
//! (`plan`, [`decision`]), how it is read again ([`written`]), what drives it ([`folder`], [`asking`], [`replay`]), and
//! how a folder is stored ([`rest`]).

pub mod pins;
pub mod policy;
pub mod price;
pub mod meter;
mod tuning;
mod settings;
mod fingerprint;
mod conversation;
mod knowledge;
pub mod shown;
mod billing;
mod state;
pub mod claims;
pub mod view;
pub mod words;
mod vocabulary;
mod cuts;
pub mod outline;
pub mod digest;
pub mod records;
mod brief;
pub mod stubs;
pub mod compact;
pub mod cap;
pub mod rows;
pub mod decision;
pub mod written;
mod plan;
pub mod folder;
pub mod asking;
pub mod replay;
pub mod rest;
#[cfg(feature = "tuning")]
pub mod fitting;

pub use asking::Asking;
pub use decision::{Fold, FoldDecision};
pub use folder::Folder;
pub use meter::Meter;
pub use pins::Pins;
pub use policy::{FoldWhen, Policy};
pub use price::{Account, Prices};
pub use replay::Replay;
pub use rest::{Rest, RestError};
pub use shown::ShownItem;
pub use written::{ACCOUNT_START, ToldLines, Written, told_lines};
