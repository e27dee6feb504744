//! Folding the past.
pub mod folder;
pub mod ledger;
pub mod price;
pub mod view;
