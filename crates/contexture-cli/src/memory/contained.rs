//! `contexture memory forget --containing`: forgets everything that says something.

use contexture::facts::{Edit, Fact, Facts, Place, Remembered, can_be_looked_for, mentions};

use super::forgotten::forget_elsewhere;
use super::whose::{Whose, failed, not_changed, now_ms};
use crate::failure::Failure;

/// Forgets the facts that contain a text, and the passages that contain or repeat it. Returns how many facts there were.
pub(super) async fn forget_containing(whose: &Whose, remembered: &Remembered, text: &str) -> Result<usize, Failure> {
    if !can_be_looked_for(text) {
        return Err(Failure::usage(format!("`{text}` is in too much to forget all that says it"))
            .hint("name what it is about: a name, a number, or some words"));
    }
    let has = |fact: &Fact| mentions(&fact.text, text) || mentions(&fact.quote, text);
    let mut count = 0;
    for (place, facts) in whose.all(remembered).await? {
        let ids: Vec<_> = facts.all().filter(|fact| has(fact)).map(|fact| fact.id.clone()).collect();
        for id in ids {
            let kept = remembered.load(&place).await.map_err(|error| failed(&error))?;
            // A newer value that was forgotten just now may have taken it along.
            let Ok(gone) = kept.unwrap_or_default().forget(&id, now_ms()) else { continue };
            forget_elsewhere(whose, remembered, &place, &gone).await?;
            remembered.change(&place, |facts| facts.forget(&id, now_ms())).await.map_err(not_changed)?;
            count += gone.len();
        }
    }
    // What nobody remembered as a fact is found as one that was told and forgotten at once.
    let mut facts = Facts::default();
    let edit = Edit { text: Some(text.trim().to_owned()), ..Edit::default() };
    let refused = |refusal: contexture::facts::Refusal| Failure::usage(refusal.to_string());
    let id = facts.tell(edit, now_ms()).map_err(refused)?.id().clone();
    let gone = facts.forget(&id, now_ms()).map_err(refused)?;
    forget_elsewhere(whose, remembered, &Place::new("entity", "resource", "user"), &gone).await?;
    Ok(count)
}
