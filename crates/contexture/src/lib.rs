//! Weaves the context window of an LLM agent out of memory layers.
//!
//! This is the front door: the contract and the engine of `contexture-core`, an embedded store, a real token
//! counter, and built-in layers. [`open`] gives an engine with everything filled in; [`in_memory`] the same without
//! anything durable.

pub use contexture_core::*;

pub mod host;
#[cfg(unix)]
pub mod fs;
pub mod reference;
pub mod files;
pub mod fold;
pub mod layers;
pub mod store;
#[cfg(feature = "bpe")]
pub mod bpe;
pub mod transcript;
#[cfg(feature = "wire")]
pub mod wire;
mod text;
mod packed;
#[cfg(feature = "config")]
pub mod config;

mod front;

pub use front::in_memory;
#[cfg(feature = "sqlite")]
pub use front::open;

/// What most programs import.
pub mod prelude {
    pub use crate::engine::{Engine, Execution};
    pub use crate::error::{BoxError, Error};
    pub use crate::item::{Item, Role};
    pub use crate::layer::*;
    pub use crate::memory::memory;
    pub use crate::model::{LlmResponse, Model, ModelRequest};
    pub use crate::slot::Slot;
    pub use crate::tool::{Tool, ToolContext};
    pub use crate::window::{Overflow, ProjectionPolicy};
}

// The Rust code of the README and of the guides is compiled and run as tests.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-layer.md")]
struct WritingALayer;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-store.md")]
struct WritingAStore;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/file-references.md")]
struct FileReferences;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/file-aware-history.md")]
struct FileAwareHistory;
