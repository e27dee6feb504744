//! A compact binary encoding of numbers and texts.
//!
//! Owners write their fields with a [`Packer`] and read them in the same order with an [`Unpacker`]. The bytes have no
//! names and no types, so the version must be stored with them. Lines that are in a text of the log are written as their
//! position: see `quotes`.

mod packer;
mod quotes;
mod unpacker;

pub use packer::Packer;
pub use unpacker::{Damaged, Unpacker};

#[cfg(test)]
mod tests;
