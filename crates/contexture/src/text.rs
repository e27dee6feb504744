//! What layers and folds share to put text into a window: counts, fits and words.
//!
//! Fences, escapes and plain shortening are the engine's own: see [`crate::window`].

pub(crate) mod counts;
pub(crate) mod fit;
pub(crate) mod one_line;
pub(crate) mod words;
