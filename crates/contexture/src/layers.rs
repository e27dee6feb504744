//! Built-in layers: one file each, its manual page on top.
//!
//! A built-in layer uses only what an outsider could use, and no other layer. [`working_memory`] is the one to imitate.

pub mod working_memory;
pub mod file_reference;
pub mod file_history;

pub use file_history::FileHistory;
pub use file_reference::{FileReference, FileReferenceOptions};
pub use working_memory::WorkingMemory;
