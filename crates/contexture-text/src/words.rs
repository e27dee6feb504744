//! Words of code and of talk: the splitter of the core, which searching shares with layers and folds.

pub use contexture_core::words::{parts, words};
