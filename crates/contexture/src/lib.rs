//! Weaves the context window of an LLM agent out of memory layers.
//!
//! This is the front door: the contract and the engine of `contexture-core`, an embedded store, a real token
//! counter, and built-in layers.

pub use contexture_core::*;

pub mod files;
pub mod fold;
pub mod layers;
pub mod transcript;
