//! The test kit of the gateway, behind the feature `testing`: a provider's cache, its rules, and recorded sessions as a
//! client would send them.

pub mod cache;
pub mod rules;

pub use crate::simulate::recorded;
