//! Test kit: scripted models, stores that fail, and the suites that stores, layers and indexes must pass (feature
//! `testing`).

pub use contexture_core::testing::*;
pub use contexture_text::testing::search_conformance;
