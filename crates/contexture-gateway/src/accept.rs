//! Accepts a request: who sends it, whether it is forwarded, and what its head and its body say.

pub mod access;
pub mod collect;
pub mod guard;
pub mod serving;
pub(crate) mod routes;
pub(crate) mod headers;
pub(crate) mod coding;
pub(crate) mod refusal;
pub(crate) mod incoming;
pub(crate) mod compaction;
pub(crate) mod health;
