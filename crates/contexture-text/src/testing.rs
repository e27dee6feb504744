//! Test kit: the suite that every search index must pass (feature `testing`).

mod search_conformance;

pub use search_conformance::search_conformance;
