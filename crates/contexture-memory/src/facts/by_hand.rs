//! What a person does with facts: telling, editing, moving.

use super::attribute::is_single;
use super::evidence::kept_quote;
use super::fact::{FactDraft, FactId, Source, Speaker};
use super::refusal::Refusal;
use super::set::{Added, Facts};

/// What a person writes of a fact. A field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The sentence.
    pub text: Option<String>,
    /// What it is about.
    pub entity: Option<String>,
    /// Which property.
    pub attribute: Option<String>,
    /// The property's value.
    pub value: Option<String>,
}

impl Facts {
    /// Remembers what a person wrote by hand.
    ///
    /// # Errors
    /// The text or the entity is missing, or a field is too long.
    pub fn tell(&mut self, edit: Edit, at_ms: u64) -> Result<Added, Refusal> {
        let text = edit.text.unwrap_or_default();
        let entity = edit.entity.filter(|entity| !entity.trim().is_empty()).unwrap_or_else(|| "user".to_owned());
        let (attribute, value) = (edit.attribute.unwrap_or_default(), edit.value.unwrap_or_default());
        self.add(by_hand(text, entity, attribute, value, None, at_ms))
    }

    /// Remembers what an agent asks to remember, without the conversation that would show whose words it is made of: it is
    /// the agent's own statement.
    ///
    /// # Errors
    /// The text is missing or too long, or it is an instruction.
    pub fn tell_by_agent(&mut self, text: impl Into<String>, at_ms: u64) -> Result<Added, Refusal> {
        let draft = by_hand(text.into(), "user".to_owned(), String::new(), String::new(), None, at_ms);
        self.add(FactDraft { said_by: Speaker::Assistant, confirmed: false, ..draft })
    }

    /// Changes a fact as a person wrote it by hand; the old one stays in the history. Returns the new one.
    ///
    /// # Errors
    /// There is no such fact, it is not current, nothing would change, or a field is too long.
    pub fn edit(&mut self, id: &FactId, edit: Edit, at_ms: u64) -> Result<FactId, Refusal> {
        let old = self.get(id).ok_or_else(|| Refusal::Unknown(id.clone()))?.clone();
        let text = edit.text.unwrap_or(old.text.clone());
        let entity = edit.entity.unwrap_or(old.entity.clone());
        let (attribute, value) =
            (edit.attribute.unwrap_or(old.attribute.clone()), edit.value.unwrap_or(old.value.clone()));
        let is_same = (&text, &entity, &attribute, &value) == (&old.text, &old.entity, &old.attribute, &old.value);
        if is_same {
            return Err(Refusal::Unchanged);
        }
        self.update(id, by_hand(text, entity, attribute, value, Some(old.single), at_ms))
    }
}

fn by_hand(
    text: String,
    entity: String,
    attribute: String,
    value: String,
    single: Option<bool>,
    at_ms: u64,
) -> FactDraft {
    let quote = kept_quote(text.trim());
    let single = single.unwrap_or(false) || is_single(&attribute);
    FactDraft {
        text,
        entity,
        attribute,
        value,
        single,
        said_by: Speaker::User,
        source: Source::Hand,
        quote,
        at_ms,
        confirmed: true,
    }
}

/// Moves a current fact from one scope to another, for example from a project to its user.
///
/// What a project knows would then be known in every project, so it needs a person's confirmation.
///
/// # Errors
/// It was not confirmed, there is no such current fact, or the other scope refuses it. Then nothing changes.
pub fn move_fact(
    from: &mut Facts,
    to: &mut Facts,
    id: &FactId,
    is_confirmed: bool,
    at_ms: u64,
) -> Result<FactId, Refusal> {
    let fact = from.get(id).ok_or_else(|| Refusal::Unknown(id.clone()))?.clone();
    if !fact.is_current() {
        return Err(Refusal::Outdated(id.clone()));
    }
    if !is_confirmed {
        return Err(Refusal::NotConfirmed(id.clone()));
    }
    let source = fact.sources.first().cloned().unwrap_or(Source::Hand);
    let draft = FactDraft {
        text: fact.text,
        entity: fact.entity,
        attribute: fact.attribute,
        value: fact.value,
        single: fact.single,
        said_by: fact.said_by,
        source,
        quote: fact.quote,
        at_ms: fact.valid_from_ms,
        confirmed: true,
    };
    let moved = to.add(draft)?.id().clone();
    from.leave(id, at_ms);
    Ok(moved)
}
