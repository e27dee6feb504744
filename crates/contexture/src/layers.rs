//! Built-in layers: one file each, its manual page on top.
//!
//! Built-in layers use only the public API and no other layer. [`working_memory`] is a good example to copy.

pub mod working_memory;
pub mod file_reference;
pub mod file_history;

pub use file_history::FileHistory;
pub use file_reference::{FileReference, FileReferenceOptions};
pub use working_memory::WorkingMemory;
