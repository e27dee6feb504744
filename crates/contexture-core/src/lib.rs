//! The contract and the engine of Contexture, which builds the context window of an LLM agent.
//!
//! This crate has no I/O, no wire format and no particular layer: it has the traits that layers, stores, models and
//! tools implement, and the engine that runs them. Most programs use the crate `contexture`, which re-exports it and adds
//! an embedded store, real token counts and built-in layers.
//!
//! The main traits are [`MemoryLayer`], [`StorageAdapter`], [`Model`] and [`Tool`]; [`Engine`] runs them.
//!
//! Modules in reading order:
//!
//! - basic types: [`id`], [`item`], [`tokens`], [`slot`], [`log`], [`history`];
//! - the contract: [`layer`](mod@layer), [`store`], [`model`], [`tool`], [`host`], [`search`], [`clock`], [`event`],
//!   [`error`];
//! - pure functions: [`budget`], [`window`];
//! - the engine: [`engine`].

pub mod id;
pub mod item;
pub mod tokens;
pub mod slot;
pub mod log;
pub mod history;
pub mod decision;
pub mod usage;
pub mod schema;
pub mod layer;
pub mod memory;
pub mod store;
pub mod model;
pub mod tool;
pub mod host;
pub mod percent;
pub mod search;
pub mod clock;
pub mod event;
pub mod error;
pub mod state;
pub mod budget;
pub mod window;
mod turn;
pub mod engine;
#[cfg(feature = "testing")]
pub mod testing;

/// The boxed future that [`StorageAdapter`], [`FsAdapter`](host::FsAdapter) and [`Clock`](clock::Clock) return.
pub use futures_util::future::BoxFuture;
/// Derives the schemas of [`layer_fn`](layer::layer_fn): `#[derive(JsonSchema)] #[schemars(crate = "…::schemars")]`.
pub use schemars;

pub use engine::{Engine, Execution};
pub use error::{Error, SpecError};
pub use history::History;
pub use id::{ExecutionId, LayerId, ResourceId, ThreadId};
pub use item::{Content, Item, Role};
pub use layer::{
    BudgetConfig, ExecutionContext, HookResult, LayerSpec, MemoryLayer, MemoryScope, Placement, RecallMode, layer,
};
pub use log::ItemLog;
pub use memory::{MemoryConfig, memory};
pub use model::{LlmResponse, Model, ModelRequest};
pub use slot::Slot;
pub use store::{MemoryStore, StorageAdapter};
pub use tool::Tool;
