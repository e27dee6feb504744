//! How well past conversations are found again, for `contexture-bench recall`.
//!
//! Four measures: facts planted in long made conversations and asked for in other words ([`planted`]), conversations of
//! two people that were written for this, with questions whose evidence is marked ([`written`]), questions about recorded
//! sessions of coding agents ([`coding`]), and files that later messages of recorded sessions name again ([`recorded`]).

pub mod planted;
pub mod written;
pub mod coding;
pub mod recorded;
pub mod remembered;
