//! Helpers of layers and folds for text in a window: counts, fitting, blocks, dates, patterns, words and merging.
//!
//! Fences, escapes and plain shortening are in [`crate::window`].

pub(crate) mod block;
pub(crate) mod counts;
pub(crate) mod date;
pub(crate) mod fit;
pub(crate) mod one_line;
pub(crate) mod pattern;
pub(crate) mod united;
pub(crate) mod words;
