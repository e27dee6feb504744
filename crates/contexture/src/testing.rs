//! Test kit: scripted models, stores that fail, and the suites that stores, layers and indexes must pass (feature
//! `testing`).

pub use contexture_core::testing::{
    CountingIds, FaultyStore, InFlight, LossyStore, ManualClock, MemoryFs, Recorder, ScriptedModel,
    durable_store_conformance, engine, layer_conformance, lease_conformance, store_conformance,
};
pub use contexture_text::testing::search_conformance;
