//! The test kit of the gateway, behind the feature `testing`: a provider's cache, its rules, what is in
//! force in a request, and recorded sessions as a
//! client would send them.

pub mod in_force;

pub use crate::simulate::{cache, recorded, rules};
