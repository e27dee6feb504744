//! The test kit: what the project's own tests are made of, for the tests of layers, stores and agents.

mod memory_fs;

pub use memory_fs::MemoryFs;
