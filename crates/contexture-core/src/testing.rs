//! The test kit for layers, stores and agents.
//!
//! A test of a layer usually needs [`engine`], which has a manual clock and predictable names, a [`ScriptedModel`], and a
//! [`Recorder`]. [`store_conformance`] checks a store; [`FaultyStore`] and [`LossyStore`] test how an agent handles a
//! failing one.
//!
//! ```
//! use contexture_core::testing::{engine, ScriptedModel};
//! use contexture_core::{layer, memory, LayerSpec, MemoryScope, Slot};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), contexture_core::Error> {
//! let hint = layer::<()>(LayerSpec::new("hint", Slot::REMINDER, MemoryScope::Thread))
//!     .recall(|_| async { Ok("Be brief.".into()) })
//!     .build();
//! let model = ScriptedModel::new().says("hi");
//! let engine = engine(memory((hint,))).model(model.clone()).build()?;
//! let mut execution = engine.execution("thread").start().await?;
//! assert_eq!(execution.turn("hello").await?.text(), "hi");
//! assert_eq!(model.last_texts(), ["<memory layer=\"hint\">\nBe brief.\n</memory>", "hello"]);
//! # Ok(())
//! # }
//! ```

mod faulty_store;
mod layer_conformance;
mod lease_conformance;
mod lossy_store;
mod manual_clock;
mod memory_fs;
mod recorder;
mod scripted_model;
mod store_conformance;

use std::sync::Arc;

use crate::engine::{Engine, EngineBuilder};
use crate::memory::MemoryConfig;

pub use faulty_store::FaultyStore;
pub use layer_conformance::layer_conformance;
pub use lease_conformance::lease_conformance;
pub use lossy_store::{InFlight, LossyStore};
pub use manual_clock::{CountingIds, ManualClock};
pub use memory_fs::MemoryFs;
pub use recorder::Recorder;
pub use scripted_model::ScriptedModel;
pub use store_conformance::{durable_store_conformance, store_conformance};

/// An engine builder for tests: the clock skips every sleep, names count up, nothing is durable.
pub fn engine<Ls>(memory: MemoryConfig<Ls>) -> EngineBuilder<Ls> {
    Engine::builder(memory, Arc::new(ManualClock::hurried()), Arc::new(CountingIds::new()))
}
