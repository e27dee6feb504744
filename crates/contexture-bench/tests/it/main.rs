//! Tests of the tools that accompany the benchmarks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fit;
mod judge;
