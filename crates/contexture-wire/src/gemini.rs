//! The format of Google's `generateContent`.

mod content;
mod pairs;
mod turns;

pub(super) use content::{either, part, parts, plain, read, role};
pub(super) use pairs::pair;
pub(super) use turns::joined;

#[cfg(test)]
mod tests;
