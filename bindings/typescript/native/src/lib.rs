//! Contexture in the process of a Node program: what the package `contexture` is made of, which wraps it.
//!
//! What takes long is done in the threads of libuv. Failures are errors whose message is JSON, of which the package makes
//! errors of its own classes.

pub mod files;
pub mod folder;
pub mod memory;
pub mod work;
