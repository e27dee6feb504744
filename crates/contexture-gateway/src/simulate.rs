//! Stand-ins for a provider and a client: a cache, recorded requests, and a provider with one answer.

pub mod cache;
pub mod growing_cache;
pub mod recorded;
pub mod played;
pub mod answerer;
