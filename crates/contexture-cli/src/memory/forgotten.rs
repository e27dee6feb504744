//! What else goes when facts are forgotten: passages of the search over past conversations, and episodes.

use contexture::facts::{Fact, Place, Remembered, forget_in_store};

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
    let removed = forget_in_store(&**remembered.store(), &*whose.index()?, place, gone).await;
    removed.map_err(|error| Failure::work(format!("remove what the facts came from: {error}")).hint("run it again"))
}
