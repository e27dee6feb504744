//! Synthetic histories and files that benchmarks run on.

pub mod store;
