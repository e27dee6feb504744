//! Builds the context window of an LLM agent.
//!
//! Before every model call, Contexture decides what the model sees: which memories, which files, how much of the past,
//! and in what order. It keeps to a token budget, and it keeps the prefix that the provider has cached.
//!
//! An agent consists of
//!
//! - a [`Model`]: a client of your provider, one method;
//! - [`Tool`]s that the model can call;
//! - memory layers ([`layers`], or [your own](layer::MemoryLayer)), each with a budget, a state and hooks;
//! - a store: a SQLite file, or PostgreSQL for many machines, with [`open`]; or memory with [`in_memory`].
//!
//! An [`Engine`] holds them, an [`Execution`] runs turns on a thread. After every step everything is durable, and a turn
//! that was interrupted can be resumed.
//!
//! ```
//! use std::sync::Arc;
//!
//! use contexture::fs::LocalFs;
//! use contexture::layers::{FileHistory, FileReference, FileReferenceOptions};
//! use contexture::prelude::*;
//! use contexture::testing::ScriptedModel;
//! use serde_json::{Value, json};
//!
//! /// A tool that takes no arguments.
//! struct Today;
//!
//! impl Tool for Today {
//!     fn name(&self) -> &str {
//!         "today"
//!     }
//!
//!     fn description(&self) -> &str {
//!         "Returns the date."
//!     }
//!
//!     fn parameters(&self) -> Value {
//!         json!({ "type": "object" })
//!     }
//!
//!     async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
//!         Ok("Tuesday".to_owned())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let directory = tempfile::tempdir()?;
//! # let project = directory.path();
//! std::fs::write(project.join("notes.md"), "The release is on Friday.")?;
//!
//! // A model that follows a script, from the test kit. A client of your provider takes its place.
//! let model = ScriptedModel::new().calls("today", "{}").says("Three days.");
//!
//! // `file-reference` shows files that a message names; `file-history` keeps a long past within the budget.
//! let files = FileReference::new(FileReferenceOptions::default())?;
//! let engine = contexture::open(project.join("agent.db"), memory((files, FileHistory::default())))?
//!     .model(model.clone())
//!     .tool(Today)
//!     .fs(Arc::new(LocalFs::open(project)?))
//!     .build()?;
//!
//! let mut execution = engine.execution("thread-1").start().await?;
//! let answer = execution.turn("How long until the date in #notes.md?").await?;
//! assert_eq!(answer.text(), "Three days.");
//! assert!(model.last_texts()[0].contains("The release is on Friday."));
//! execution.complete().await?;
//! # Ok::<(), BoxError>(())
//! # }).unwrap();
//! ```
//!
//! # Where to go next
//!
//! - [`layers`]: the built-in layers.
//! - [`layer::MemoryLayer`]: how to write a layer; the guide is `docs/writing-a-layer.md`.
//! - [`store::StorageAdapter`]: how to write a store; the guide is `docs/writing-a-store.md`.
//! - [`window`]: the parts of a window, and what happens when it is full.
//! - [`fold`] and [`files`]: what `file-history` and the gateway are made of.
//! - `testing` (feature `testing`): scripted model, manual clock, conformance suites.
//!
//! # Features
//!
//! `sqlite` and `bpe` (both on by default) bring the embedded store and real token counts; see `Cargo.toml` for the
//! others. [`fs::LocalFs`] reads files on Unix systems only.

pub use contexture_core::{
    BoxFuture, BudgetConfig, Content, Engine, Error, Execution, ExecutionContext, ExecutionId, History, HookResult,
    Item, ItemLog, LayerId, LayerSpec, LlmResponse, MemoryConfig, MemoryLayer, MemoryScope, MemoryStore, Model,
    ModelRequest, Placement, RecallMode, ResourceId, Role, Slot, SpecError, StorageAdapter, ThreadId, Tool, budget,
    clock, decision, engine, error, event, history, id, item, layer, log, memory, model, schema, schemars, slot, state,
    tokens, tool, usage, window,
};

pub mod host;
pub mod search;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(unix)]
pub mod fs;
#[cfg(not(unix))]
#[path = "fs/unsupported.rs"]
pub mod fs;
pub mod reference;
pub mod layers;
pub mod store;
#[cfg(feature = "bpe")]
pub mod bpe;
#[cfg(feature = "client")]
pub mod client;
#[cfg(all(unix, feature = "tools"))]
pub mod tools;
pub mod notes;
pub mod project;
mod arguments;

pub use contexture_files as files;
pub use contexture_memory::{facts, personal, recall, redact};
pub use contexture_wire as wire;
pub use contexture_wire::transcript;

mod front;

/// Folding the past of a coding agent into what it still needs; `contexture-fold` has its parts.
pub mod fold {
    pub use contexture_fold::cap::{has_hash, short_hash};
    pub use contexture_fold::records::RECORDS_MARK;
    pub use contexture_fold::{
        Account, Asking, Fold, FoldDecision, FoldWhen, Folder, Meter, Pins, Policy, Prices, Replay, Rest, RestError,
        ShownItem, ToldLines, Written, decision, told_lines,
    };
}

pub use front::{in_memory, open};

/// What most programs import. Everything else of layers is in its module, `layer`: `use contexture::prelude::layer::*`.
pub mod prelude {
    pub use crate::engine::{Engine, Execution, TurnAnswer};
    pub use crate::error::{BoxError, Error};
    pub use crate::event::Observer;
    pub use crate::item::Item;
    pub use crate::layer::{
        self, BudgetConfig, ExecutionContext, FnResult, HookResult, LayerProvides, LayerSpec, MemoryLayer, MemoryScope,
        RecallParams, RecallResult, StoreParams, StoreResult, layer, layer_fn,
    };
    pub use crate::memory::{At, memory};
    pub use crate::model::{LlmResponse, Model, ModelRequest};
    pub use crate::slot::Slot;
    pub use crate::tool::{Tool, ToolContext, tool};
    pub use crate::window::{Overflow, ProjectionPolicy, Window};

    // What it had before is still there for one version.
    #[doc(hidden)]
    pub use crate::{item::Role, layer::*};
}

// The Rust code of the guides is compiled and run as tests.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-layer.md")]
struct WritingALayer;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-store.md")]
struct WritingAStore;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/memory.md")]
struct MemoryGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/file-references.md")]
struct FileReferences;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/file-aware-history.md")]
struct FileAwareHistory;

#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../docs/models.md")]
struct Models;

#[cfg(all(doctest, unix, feature = "tools"))]
#[doc = include_str!("../../../docs/tools.md")]
struct Tools;
