//! Facts that are remembered beyond one conversation, shared by the layers `entity` and `observations`.
//!
//! A [`Fact`] says something of an entity, with who said it, in which items, in which words, and since when. [`Facts`] are
//! all of one scope: one user's or one project's. A fact is refused if its quote is not in the items that it is said to
//! come from, if it would be an instruction that a tool, a file or the model gives, or if it was forgotten and comes from
//! the same items. It belongs to the least trusted of those whose words it is made of: a quote must have the fact's own
//! words, or the fact is the model's guess; and only the user replaces what the user said. Keys and tokens are [redacted](crate::redact) before anything is kept.
//!
//! [`Remembered`] reads and changes the facts in a store without an engine, and [`mirror`] writes them as Markdown files
//! and reads them back.

mod attribute;
mod instruction;
mod fact;
mod refusal;
mod tombstone;
mod spent;
mod set;
mod evidence;
mod ownership;
mod relevance;
mod meaning;
mod mention;
mod render;
mod extract;
mod learner;
mod by_hand;
mod stored;
mod resting;
mod elsewhere;
mod layer;
mod functions;
mod memory;
pub mod mirror;

pub use by_hand::{Edit, move_fact};
pub use elsewhere::forget_in_store;
pub(crate) use extract::Kind;
pub use fact::{Fact, FactId, MAX_NAME_BYTES, MAX_QUOTE_BYTES, MAX_TEXT_BYTES, Source, Speaker};
pub use functions::{FactHistory, Forget, Remember, Update};
pub use learner::Extraction;
pub(crate) use meaning::Meanings;
pub(crate) use memory::sealed::Sealed as SealedKind;
pub use memory::{FactKind, FactMemory};
pub use mention::{can_be_looked_for, mentions};
pub use refusal::Refusal;
pub(crate) use relevance::{RankedFact, Subject, ranked};
pub(crate) use render::line;
pub use render::{day, learned_in, speaker};
pub use resting::Learning;
pub(crate) use resting::{ReadingResult as LearningOutcome, RestingConversation};
pub use set::{Added, FactChange, Facts, MAX_FACTS};
pub use spent::Spent;
pub use stored::{ChangeError, Place, Remembered};
pub use tombstone::Tombstone;

#[cfg(test)]
mod tests;
