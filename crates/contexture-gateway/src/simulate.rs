//! Stand-ins for a provider and a client: recorded requests, and a provider with one answer.

mod growing_cache;
pub mod recorded;
pub mod played;
pub mod answerer;
