//! Numbers and texts in few bytes: what values write of themselves to be made again later.
//!
//! Owners write their fields with a [`Packer`] and read them again, in the same order, with an [`Unpacker`]. There are
//! no names and no types in the bytes, so whoever stores them has to say which version wrote them. Lines that are in a
//! text of the log are written as where they are in it: see [`quotes`].

mod packer;
mod quotes;
mod unpacker;

pub(crate) use packer::Packer;
pub(crate) use unpacker::{Damaged, Unpacker};

#[cfg(test)]
mod tests;
