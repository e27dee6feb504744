//! The test kit of the gateway, behind the feature `testing`: a provider's cache, its rules, and recorded work as a
//! client would send it.

pub mod rules;

pub use crate::{cache, recorded};
