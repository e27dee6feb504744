//! Four wire formats and the recordings of agents as items, without a copy and without I/O.
//!
//! A [`Request`] is a body split into its messages without a copy: what is not rewritten keeps its bytes. A message is
//! read as [`Unit`]s, each with its item, and identified by its [`Digest`], independent of its form. A [`Plan`] says
//! which messages of a request are kept and what replaces the others.
//!
//! ```
//! use contexture_wire::{Format, Plan, Request};
//!
//! let body = r#"{"model":"m", "messages":[{"role":"user","content":"hello"}]}"#;
//! let request = Request::parse(Format::Chat, body)?;
//! assert_eq!(request.messages().len(), 1);
//! assert_eq!(request.rewritten(&Plan::default())?, body);
//! # Ok::<(), contexture_wire::WireError>(())
//! ```

mod fields;
mod format;
mod error;
pub mod in_force;
mod unit;
mod anthropic;
mod chat;
mod responses;
mod gemini;
mod read;
mod digest;
mod plan;
mod marks;
pub mod encode;
mod write;
mod entry;
mod system_turns;
mod rewritten;
mod request;
mod tools;
mod usage;
mod editing;
mod diagnosis;
mod events;
mod amazon_events;
mod answer_text;
mod answer;
pub mod prefix_cache;
pub mod rules;
pub mod transcript;

pub use answer::{AnswerReader, Answered};
pub use diagnosis::asking_for_diagnosis;
pub use digest::{Digest, digest, digests, raw_digest};
pub use editing::{AppliedEdit, without_edits};
pub use error::WireError;
pub use events::{BadEvent, EventParser};
pub use format::Format;
pub use marks::CacheMarks;
pub use plan::{Plan, Segment, ShownUnit};
pub use read::{as_reminder, read, read_at, told};
pub use request::Request;
pub use tools::DeclaredTool;
pub use unit::{Unit, groups, unit_tokens};
pub use usage::Usage;
