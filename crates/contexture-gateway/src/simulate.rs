//! Stand-ins for a provider and a client: recorded requests, a provider's cache and its rules, and a provider with one
//! answer.

mod growing_cache;
pub mod recorded;
pub mod cache;
pub mod rules;
pub mod played;
pub mod answerer;
