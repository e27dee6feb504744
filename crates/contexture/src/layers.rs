//! Built-in layers.

pub mod file_history;
