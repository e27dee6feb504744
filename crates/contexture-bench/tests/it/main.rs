//! The tests of the tools that are beside the benchmarks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fit;
