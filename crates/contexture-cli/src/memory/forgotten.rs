//! What else goes when facts are forgotten: passages of the search over past conversations, and episodes.

use contexture::facts::{Fact, Place, Remembered, forget_in_store};
use contexture::store::StorageAdapter;

use super::whose::Whose;
use crate::failure::Failure;

/// Removes what forgotten facts came from.
pub(super) async fn forget_elsewhere(
    whose: &Whose,
    remembered: &Remembered,
    place: &Place,
    gone: &[Fact],
) -> Result<(), Failure> {
    if gone.is_empty() {
        return Ok(());
    }
    let failed =
        |error: String| Failure::work(format!("remove what the facts came from: {error}")).hint("run it again");
    let index = whose.index()?;
    let scopes = index.scopes().await.map_err(|error| failed(error.to_string()))?;
    let removed = forget_in_store(&**remembered.store(), index.as_search(), &scopes, place, gone).await;
    removed.map_err(|error| failed(error.to_string()))
}

/// Removes what was forgotten from the files of the store too.
pub(super) async fn scrub(store: &dyn StorageAdapter) {
    // Somebody who reads just now keeps a part of the log for a moment; what was forgotten is gone for everyone who asks.
    let _ = store.scrub().await;
}
