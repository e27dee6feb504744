//! What outlives a conversation: facts, recall, redaction, and the layers made of them.
//!
//! [`redact`] removes secrets from everything that is stored. [`facts`] are what is known about people, projects and
//! things, with source, quote and validity. [`recall`] finds passages of past conversations again. [`layers`] shows them
//! to a model.

mod stable;
pub mod redact;
pub mod facts;
pub mod recall;
pub mod layers;
pub mod personal;
