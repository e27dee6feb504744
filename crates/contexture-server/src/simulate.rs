//! Stand-ins for a provider and a client: a cache, recorded requests, and a provider with one answer.

pub mod cache;
pub mod recorded;
pub mod answerer;
