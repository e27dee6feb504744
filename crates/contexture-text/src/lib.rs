//! Text as layers, folds and memory write it: fitted into budgets, counted, dated, merged, packed.
//!
//! Fences, escapes and plain shortening are in [`contexture_core::window`]. This crate is shared by the others and makes
//! no promise of its own.

pub mod block;
pub mod counts;
pub mod date;
pub mod fit;
pub mod numbers;
pub mod one_line;
pub mod pattern;
pub mod spoken;
pub mod united;
pub mod window_part;
pub mod words;
pub mod search;
#[cfg(feature = "testing")]
pub mod testing;
pub mod front_matter;
pub mod yaml;
pub mod packed;
pub mod revised;
pub mod state_version;
