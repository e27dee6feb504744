//! What the SQLite files of this program have in common: they are their owner's alone, they are never mistaken for
//! somebody else's, and one thread writes to them.

mod content;
mod file;
mod writer;

pub use content::FileContent;
pub(crate) use file::wait_for_lock;
pub use file::{
    LOOKED_THROUGH, Syncing, for_owner, is_busy, is_damage, migrate, prepare_to_write, put_aside, quick_check,
    used_bytes, version,
};
#[cfg(test)]
pub(crate) use writer::commit;
pub use writer::{Commits, WeakWriter, Writer};
