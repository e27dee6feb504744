//! What the packages for Python and TypeScript have in common: everything that is no matter of the language.
//!
//! Every function catches panics, so none crosses the border.

mod failure;
mod files;
mod folder;
mod memory;

pub use contexture::facts::Fact;
pub use contexture::wire::Format;
pub use contexture_gateway::account::bill::Bill;
pub use contexture_gateway::account::record::DecidedNote;
pub use contexture_gateway::in_process::FoldReport;
pub use failure::{Failure, FailureKind, to_json};
pub use files::{FoundReference, OffsetUnit, count_tokens, references};
pub use folder::{FoldedBody, Folder};
pub use memory::{FoundPassage, FoundPassages, Memory, NewFact};
