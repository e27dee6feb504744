//! The test kit: what the project's own tests are made of, for the tests of layers, stores and agents.

mod faulty_store;
mod lossy_store;
mod store_conformance;

pub use faulty_store::FaultyStore;
pub use lossy_store::{InFlight, LossyStore};
pub use store_conformance::{durable_store_conformance, store_conformance};
