//! The window: the items of one model request.
//!
//! A `Projection` has the durable part of a thread's window: the epoch with its pinned anchors, where
//! history begins, and which items are shortened. `Projection::assemble` is a pure function of it and of a
//! `WindowInput`; it never awaits. Bands are in the order of [`Band`](crate::usage::Band).
//!
//! What only the engine and its tests use is hidden.

mod policy;
mod input;
mod output;
mod room;
mod epoch;
mod block_place;
mod bands;
mod updates;
mod shown;
mod fold;
mod fit;
mod summary;
mod ledger;
mod layout;
mod projection;
mod text;
mod shorten;
mod fingerprint;

pub(crate) use bands::guidance_tokens;
#[doc(hidden)]
pub use epoch::{Churn, Epoch};
pub(crate) use fingerprint::fingerprint_text;
#[doc(hidden)]
pub use input::{Block, RenderDelta, SharedItems, Summary, WindowInput};
pub use ledger::ledger;
pub use output::Window;
#[doc(hidden)]
pub use output::{Assembly, Section, SummaryRequest};
pub use policy::{Overflow, ProjectionPolicy};
#[doc(hidden)]
pub use projection::Projection;
pub use room::MIN_WINDOW_TOKENS;
pub(crate) use room::least_history;
pub(crate) use shorten::fit_item;
pub use shorten::{Cut, fit_block, shorten};
pub(crate) use text::memory_block;
pub use text::{developer_block, escape_tags, fence_for, is_invisible, program_text};
