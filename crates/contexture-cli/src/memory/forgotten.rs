//! What else goes when facts are forgotten: passages of the search over past conversations, and episodes.

use std::path::Path;

use contexture::facts::{Fact, Place, forget_in_store};
use contexture::store::{SqliteIndex, SqliteStore};

use crate::failure::Failure;

/// Removes what forgotten facts came from.
pub(super) async fn forget_elsewhere(path: &Path, place: &Place, gone: &[Fact]) -> Result<(), Failure> {
    if gone.is_empty() {
        return Ok(());
    }
    let store = SqliteStore::open(path).map_err(|error| Failure::work(error.to_string()))?;
    let removed = forget_in_store(&store, &SqliteIndex::new(path), place, gone).await;
    removed.map_err(|error| Failure::work(format!("remove what the facts came from: {error}")).hint("run it again"))
}
