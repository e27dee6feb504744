//! Finds passages of past conversations again, for `semantic-recall` and for programs that search themselves.
//!
//! [`PastIndex`] adds the items of a log to a search index and returns what fits a question best within a number of
//! tokens.

mod when;
mod passage;
mod thesaurus;
mod question;
mod rank;
mod embed;
mod excerpt;
mod pack;
mod past;
mod reader;

pub use embed::{Embedder, SharedEmbedder};
pub use pack::{Recollection, Shown};
pub use passage::Passage;
pub(crate) use passage::forgotten_mark;
pub(crate) use past::share_of_meaning;
pub use past::{Extent, PastIndex, PastQuery};
pub use reader::PassageReader;
pub(crate) use thesaurus::is_stop_term;
pub use when::parse_time;
