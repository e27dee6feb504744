//! The built-in layers, one file each, its manual page on top.

pub mod file_reference;

pub use file_reference::{FileReference, FileReferenceOptions};
