//! Built-in layers: one file each, its manual page on top.
//!
//! A built-in layer uses only what an outsider could use, and no other layer. [`working_memory`] is the one to imitate.

pub mod working_memory;

pub use working_memory::WorkingMemory;
