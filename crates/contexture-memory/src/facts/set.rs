//! All facts of one scope: what is added, superseded, forgotten and undone.

use std::collections::VecDeque;
use std::sync::Arc;

use contexture_core::ThreadId;
use serde::{Deserialize, Serialize};

use super::fact::{
    Fact, FactDraft, FactId, MAX_NAME_BYTES, MAX_SOURCES, MAX_TEXT_BYTES, Speaker, coverage, hashes, name, negations,
    normal, words,
};
use super::instruction::{is_instruction, is_order};
use super::refusal::Refusal;
use super::render::{TITLES, line};
use super::spent::Spent;
use super::tombstone::Tombstone;
use contexture_text::state_version::StateVersion;

mod merge;

/// How many facts are kept, with those that were superseded.
pub const MAX_FACTS: usize = 300;
/// How many forgotten facts are known again.
const MAX_TOMBSTONES: usize = 500;
/// How many changes can be undone.
const MAX_CHANGES: usize = 50;
/// Of how many threads it is known how far they were read.
const MAX_THREADS: usize = 256;
/// The shortest and the longest name of a fact.
const ID_LEN: std::ops::RangeInclusive<usize> = 6..=26;
/// What the model says is nothing new if this share of its words is in facts.
const KNOWN_WORDS: f64 = 0.75;
/// What the model says repeats a fact if this share of the fact's words is in it.
const REPEATED_FACT: f64 = 0.7;

/// What is remembered in one scope.
///
/// A newer fact takes the place of an older one only if both are about the same entity and the same attribute, and the
/// attribute has one value at a time; what the user said gives way only to the user. The older one is kept, is shown no
/// longer, and [`history`](Facts::history) tells of it. A fact that is [forgotten](Facts::forget) leaves a tombstone, so
/// that it is not learned again from the same items.
///
/// Two writers' facts can be [merged](Facts::merged): nothing that either learned is lost, and nothing that either forgot
/// returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    version: StateVersion<1>,
    /// Oldest first.
    facts: Vec<Arc<Fact>>,
    tombstones: Vec<Tombstone>,
    changes: VecDeque<FactChange>,
    /// How far each thread was read, the newest last.
    read: VecDeque<(ThreadId, usize)>,
    spent: Spent,
    /// How many facts were dropped because there were too many.
    dropped: u64,
}

/// A change that can be undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FactChange {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What was done, as `remembered 1a2b3c`.
    pub what: String,
    /// Facts as they were before.
    before: Vec<Arc<Fact>>,
    added: Vec<FactId>,
}

/// What became of a new fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was kept.
    New(FactId),
    /// It is known already, under this name.
    Known(FactId),
}

impl Added {
    /// The fact.
    pub fn id(&self) -> &FactId {
        match self {
            Added::New(id) | Added::Known(id) => id,
        }
    }
}

impl Facts {
    /// All facts, oldest first, with those that are no longer current.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Fact> {
        self.facts.iter().map(|fact| &**fact)
    }

    /// The facts that are current, oldest first.
    pub fn current(&self) -> impl DoubleEndedIterator<Item = &Fact> {
        self.all().filter(|fact| fact.is_current())
    }

    /// The fact of that name.
    pub fn get(&self, id: &FactId) -> Option<&Fact> {
        self.all().find(|fact| fact.id == *id)
    }

    /// The facts whose names begin so; none for an empty beginning.
    pub fn beginning(&self, id: &str) -> Vec<&Fact> {
        self.all().filter(|fact| !id.is_empty() && fact.id.as_str().starts_with(id)).collect()
    }

    /// The marks of facts that were forgotten.
    pub fn tombstones(&self) -> &[Tombstone] {
        &self.tombstones
    }

    /// The changes that can be undone, oldest first.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = &FactChange> {
        self.changes.iter()
    }

    /// What learning cost so far.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// How many facts were dropped because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether nothing is or was remembered.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Everything that was ever true of an entity, oldest first; of one attribute, unless that is empty.
    pub fn history(&self, entity: &str, attribute: &str) -> Vec<&Fact> {
        let (entity, attribute) = (name(entity), normal(attribute));
        let is_meant = |fact: &&Fact| {
            name(&fact.entity) == entity && (attribute.is_empty() || normal(&fact.attribute) == attribute)
        };
        let mut facts: Vec<&Fact> = self.all().filter(is_meant).collect();
        facts.sort_by_key(|fact| fact.valid_from_ms);
        facts
    }

    /// Adds a fact.
    pub(super) fn add(&mut self, draft: FactDraft) -> Result<Added, Refusal> {
        let draft = checked(draft)?;
        if self.tombstones.iter().any(|tombstone| tombstone.blocks(&draft)) {
            return Err(Refusal::Forgotten);
        }
        if let Some(at) = self.position_of(&draft) {
            return Ok(Added::Known(self.support(at, draft)));
        }
        self.make_room()?;
        let (id, at_ms) = (self.fresh_id(&draft), draft.at_ms);
        let mut fact = draft.into_fact(id.clone());
        let before = self.supersede(&mut fact, false);
        self.facts.push(Arc::new(fact));
        self.note(FactChange { at_ms, what: format!("remembered {id}"), before, added: vec![id.clone()] });
        Ok(Added::New(id))
    }

    /// Adds what was extracted. What anyone but the user says is not added if it only repeats what is remembered, here or
    /// among `shown`: the model was shown it, and may have written it anywhere.
    pub(super) fn learn(&mut self, draft: FactDraft, shown: &[&Facts]) -> Result<Added, Refusal> {
        let known: Vec<&Fact> = std::iter::once(&*self).chain(shown.iter().copied()).flat_map(Facts::all).collect();
        let is_restated = draft.said_by != Speaker::User
            && known.iter().all(|fact| !fact.says(&draft))
            && !is_contrary(&draft, &known)
            && is_repeated(&draft, &known);
        if is_restated { Err(Refusal::Restated) } else { self.add(draft) }
    }

    /// Puts a fact in the place of another. An empty text ends the old one without another in its place.
    pub(super) fn update(&mut self, id: &FactId, draft: FactDraft) -> Result<FactId, Refusal> {
        let old = self.get(id).ok_or_else(|| Refusal::Unknown(id.clone()))?;
        if !old.is_current() {
            return Err(Refusal::Outdated(id.clone()));
        }
        if (old.said_by == Speaker::User || old.confirmed) && draft.said_by != Speaker::User {
            return Err(Refusal::UsersOwn(id.clone()));
        }
        let draft = checked(draft)?;
        if old.says(&draft) && draft.text == old.text {
            return Err(Refusal::Unchanged);
        }
        let at_ms = draft.at_ms;
        let new = self.fresh_id(&draft);
        let mut fact = draft.into_fact(new.clone());
        let mut before: Vec<Arc<Fact>> = self.end_at(id, at_ms, Some(new.clone())).into_iter().collect();
        before.extend(self.supersede(&mut fact, true));
        self.facts.push(Arc::new(fact));
        let what = format!("changed {id} to {new}");
        self.note(FactChange { at_ms, what, before, added: vec![new.clone()] });
        self.drop_surplus();
        Ok(new)
    }

    /// Ends a fact: it is no longer true, and nothing took its place.
    pub(super) fn end(&mut self, id: &FactId, said_by: Speaker, at_ms: u64) -> Result<(), Refusal> {
        let old = self.get(id).ok_or_else(|| Refusal::Unknown(id.clone()))?;
        if !old.is_current() {
            return Err(Refusal::Outdated(id.clone()));
        }
        if (old.said_by == Speaker::User || old.confirmed) && said_by != Speaker::User {
            return Err(Refusal::UsersOwn(id.clone()));
        }
        let before = self.end_at(id, at_ms, None).into_iter().collect();
        self.note(FactChange { at_ms, what: format!("ended {id}"), before, added: Vec::new() });
        Ok(())
    }

    /// Ends a fact that a newer one, which somebody said, makes untrue in other words.
    pub(super) fn make_way(&mut self, old: &FactId, new: &FactId, said_by: Speaker) -> Result<(), Refusal> {
        let at_ms = self.get(new).ok_or_else(|| Refusal::Unknown(new.clone()))?.valid_from_ms;
        let known = self.get(old).ok_or_else(|| Refusal::Unknown(old.clone()))?;
        if !known.is_current() || known.valid_from_ms > at_ms || old == new {
            return Err(Refusal::Outdated(old.clone()));
        }
        if (known.said_by == Speaker::User || known.confirmed) && said_by != Speaker::User {
            return Err(Refusal::UsersOwn(old.clone()));
        }
        let before = self.end_at(old, at_ms, Some(new.clone())).into_iter().collect();
        self.note(FactChange { at_ms, what: format!("ended {old}, since {new}"), before, added: Vec::new() });
        Ok(())
    }

    /// Replaces several facts by fewer, which say the same.
    pub(super) fn reflect(
        &mut self,
        ids: &[FactId],
        drafts: Vec<FactDraft>,
        at_ms: u64,
    ) -> Result<Vec<FactId>, Refusal> {
        let drafts = drafts.into_iter().map(checked).collect::<Result<Vec<_>, _>>()?;
        let mut added = Vec::new();
        for draft in drafts {
            let id = self.fresh_id(&draft);
            self.facts.push(Arc::new(draft.into_fact(id.clone())));
            added.push(id);
        }
        let newest = added.last().cloned();
        let before = ids.iter().filter_map(|id| self.end_at(id, at_ms, newest.clone())).collect();
        let what = format!("condensed {} into {}", ids.len(), added.len());
        self.note(FactChange { at_ms, what, before, added: added.clone() });
        self.drop_surplus();
        Ok(added)
    }

    /// Forgets a fact and the older ones whose place it took. Returns them, so that they can be removed elsewhere too.
    ///
    /// # Errors
    /// There is no such fact.
    pub fn forget(&mut self, id: &FactId, at_ms: u64) -> Result<Vec<Fact>, Refusal> {
        if self.get(id).is_none() {
            return Err(Refusal::Unknown(id.clone()));
        }
        let mut going = vec![id.clone()];
        let mut next = 0;
        while let Some(id) = going.get(next).cloned() {
            let older = self.all().filter(|fact| fact.superseded_by.as_ref() == Some(&id)).map(|fact| fact.id.clone());
            let older: Vec<FactId> = older.filter(|older| !going.contains(older)).collect();
            going.extend(older);
            next += 1;
        }
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.facts).into_iter().partition(|fact| going.contains(&fact.id));
        self.facts = kept;
        self.tombstones.extend(gone.iter().map(|fact| Tombstone::of(fact, at_ms, false)));
        self.forget_in_changes(&going);
        self.bound_tombstones();
        Ok(gone.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// Undoes the newest change, or the newest that concerns a fact. What was forgotten stays forgotten.
    ///
    /// # Errors
    /// There is nothing to undo.
    pub fn undo(&mut self, id: Option<&FactId>, at_ms: u64) -> Result<String, Refusal> {
        let concerns = |change: &FactChange, id: &FactId| {
            change.added.contains(id) || change.before.iter().any(|fact| fact.id == *id)
        };
        let at = self.changes.iter().rposition(|change| id.is_none_or(|id| concerns(change, id)));
        let change = at.and_then(|at| self.changes.remove(at)).ok_or(Refusal::NothingToUndo)?;
        for id in &change.added {
            if let Some(at) = self.facts.iter().position(|fact| fact.id == *id) {
                let fact = self.facts.remove(at);
                self.tombstones.push(Tombstone::of(&fact, at_ms, true));
            }
        }
        for fact in change.before {
            if self.tombstones.iter().any(|tombstone| tombstone.id == fact.id) {
                continue;
            }
            match self.facts.iter_mut().find(|other| other.id == fact.id) {
                Some(other) => *other = fact,
                None => self.facts.push(fact),
            }
        }
        self.bound_tombstones();
        Ok(change.what)
    }

    /// Removes a fact that is kept elsewhere from now on.
    pub(super) fn leave(&mut self, id: &FactId, at_ms: u64) {
        if let Some(at) = self.facts.iter().position(|fact| fact.id == *id) {
            let fact = self.facts.remove(at);
            self.tombstones.push(Tombstone::of(&fact, at_ms, true));
            self.forget_in_changes(std::slice::from_ref(id));
            self.bound_tombstones();
        }
    }

    /// Notes that facts were shown to a model that was asked about them.
    pub(super) fn used(&mut self, ids: &[FactId], at_ms: u64) {
        for fact in self.facts.iter_mut().filter(|fact| ids.contains(&fact.id)) {
            let fact = Arc::make_mut(fact);
            fact.uses = fact.uses.saturating_add(1);
            fact.last_used_ms = Some(at_ms);
        }
    }

    /// How far a thread was read.
    pub fn read_until(&self, thread: &ThreadId) -> usize {
        self.read.iter().find(|(id, _)| id == thread).map_or(0, |(_, item)| *item)
    }

    pub(super) fn set_read(&mut self, thread: &ThreadId, item: usize) {
        let item = item.max(self.read_until(thread));
        self.read.retain(|(id, _)| id != thread);
        self.read.push_back((thread.clone(), item));
        while self.read.len() > MAX_THREADS {
            self.read.pop_front();
        }
    }

    pub(super) fn spent_mut(&mut self) -> &mut Spent {
        &mut self.spent
    }

    /// The current fact that says the same. Sentences of the same words in another order, or with one more `not`, do not.
    fn position_of(&self, draft: &FactDraft) -> Option<usize> {
        self.facts.iter().position(|fact| fact.is_current() && fact.says(draft))
    }

    /// Adds what a second source says to a fact that is known.
    fn support(&mut self, at: usize, draft: FactDraft) -> FactId {
        let fact = &self.facts[at];
        let id = fact.id.clone();
        let is_new_source = !fact.sources.iter().any(|source| source.is_same_item(&draft.source));
        let is_better = draft.said_by > fact.said_by;
        if !is_new_source && !is_better && !draft.confirmed {
            return id;
        }
        let fact = Arc::make_mut(&mut self.facts[at]);
        // Said by the user twice, in different messages, or by hand.
        fact.confirmed |= draft.confirmed || (draft.said_by == Speaker::User && fact.said_by == Speaker::User);
        if is_better {
            (fact.said_by, fact.quote) = (draft.said_by, draft.quote);
            fact.sources.insert(0, draft.source);
        } else {
            fact.sources.push(draft.source);
        }
        fact.sources.truncate(MAX_SOURCES);
        id
    }

    /// Ends the facts whose place a new one takes; or the new one, if it is older and no correction. Returns them as they
    /// were.
    fn supersede(&mut self, new: &mut Fact, is_correction: bool) -> Vec<Arc<Fact>> {
        if !new.single || normal(&new.attribute).is_empty() {
            return Vec::new();
        }
        let (mut before, kind) = (Vec::new(), new.clone());
        for old in self.facts.iter_mut().filter(|old| old.is_current() && old.single && old.has_property_of(&kind)) {
            let is_users = old.said_by == Speaker::User || old.confirmed;
            if is_users && new.said_by != Speaker::User {
                continue;
            }
            if old.valid_from_ms > new.valid_from_ms && !is_correction {
                (new.superseded_by, new.valid_to_ms) = (Some(old.id.clone()), Some(old.valid_from_ms));
                continue;
            }
            before.push(old.clone());
            let old = Arc::make_mut(old);
            (old.superseded_by, old.valid_to_ms) = (Some(new.id.clone()), Some(new.valid_from_ms));
        }
        before
    }

    /// Ends a fact; returns it as it was, if it was current.
    fn end_at(&mut self, id: &FactId, at_ms: u64, by: Option<FactId>) -> Option<Arc<Fact>> {
        let fact = self.facts.iter_mut().find(|fact| fact.id == *id && fact.is_current())?;
        let before = fact.clone();
        let fact = Arc::make_mut(fact);
        (fact.superseded_by, fact.valid_to_ms) = (by, Some(at_ms));
        Some(before)
    }

    fn fresh_id(&self, draft: &FactDraft) -> FactId {
        let is_free =
            |id: &FactId| self.get(id).is_none() && !self.tombstones.iter().any(|tombstone| tombstone.id == *id);
        let ids = ID_LEN.map(|len| draft.id(len));
        ids.into_iter().find(is_free).unwrap_or_else(|| self.numbered_id(draft))
    }

    /// A fact that was forgotten and is told again by hand within one moment has the name of before; it gets another one.
    fn numbered_id(&self, draft: &FactDraft) -> FactId {
        let base = draft.id(*ID_LEN.start());
        let is_taken =
            |id: &FactId| self.get(id).is_some() || self.tombstones.iter().any(|tombstone| tombstone.id == *id);
        let mut number = 2;
        loop {
            let id = FactId(format!("{base}{number}"));
            if !is_taken(&id) {
                return id;
            }
            number += 1;
        }
    }

    /// Makes room for one more: the least valuable fact goes.
    fn make_room(&mut self) -> Result<(), Refusal> {
        while self.facts.len() >= MAX_FACTS {
            if !self.drop_least() {
                return Err(Refusal::Full(self.facts.len()));
            }
        }
        Ok(())
    }

    fn drop_surplus(&mut self) {
        while self.facts.len() > MAX_FACTS && self.drop_least() {}
    }

    /// Drops what was superseded first, then what nobody confirmed and was not used for longest.
    fn drop_least(&mut self) -> bool {
        let value = |fact: &Fact| {
            let last = fact.last_used_ms.unwrap_or(0).max(fact.valid_from_ms);
            (fact.is_current(), fact.confirmed, fact.said_by == Speaker::User, last)
        };
        let least = self.facts.iter().enumerate().min_by_key(|(_, fact)| value(fact));
        let Some((at, fact)) = least.filter(|(_, fact)| !(fact.is_current() && fact.confirmed)) else { return false };
        let id = fact.id.clone();
        self.facts.remove(at);
        self.forget_in_changes(&[id]);
        self.dropped += 1;
        true
    }

    /// Nothing of these facts may remain in what can be undone.
    fn forget_in_changes(&mut self, ids: &[FactId]) {
        for change in &mut self.changes {
            change.before.retain(|fact| !ids.contains(&fact.id));
            change.added.retain(|id| !ids.contains(id));
        }
        self.changes.retain(|change| !change.before.is_empty() || !change.added.is_empty());
    }

    fn note(&mut self, change: FactChange) {
        self.changes.push_back(change);
        self.bound_changes();
    }

    fn bound_changes(&mut self) {
        while self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    fn bound_tombstones(&mut self) {
        self.tombstones.sort_by_key(|tombstone| tombstone.at_ms);
        let surplus = self.tombstones.len().saturating_sub(MAX_TOMBSTONES);
        self.tombstones.drain(..surplus);
    }
}

/// Whether what is said has the words of what is known.
fn is_repeated(draft: &FactDraft, known: &[&Fact]) -> bool {
    let words = hashes(&format!("{} {}", draft.text, draft.quote));
    let mut all: Vec<u64> = known.iter().flat_map(|fact| hashes(&line(fact, true)).into_vec()).collect();
    all.extend(TITLES.iter().flat_map(|title| hashes(title).into_vec()));
    all.sort_unstable();
    coverage(&words, &all) >= KNOWN_WORDS || known.iter().any(|fact| coverage(fact.terms(), &words) >= REPEATED_FACT)
}

/// Whether what is said has the words of a fact and is something else: negated, in another order, or with other signs.
fn is_contrary(draft: &FactDraft, known: &[&Fact]) -> bool {
    let (said, terms) = (words(&draft.text), hashes(&draft.text));
    let said = bare(&said);
    let said_sorted = sorted(&said);
    let mut is_contrary = false;
    for fact in known.iter().filter(|fact| coverage(&terms, fact.terms()) >= KNOWN_WORDS) {
        let fact_words = words(&fact.text);
        let fact_words = bare(&fact_words);
        let has_same_sense = negations(&fact.text) % 2 == negations(&draft.text) % 2;
        let fact_sorted = sorted(&fact_words);
        let is_reordered = fact_words != said && fact_sorted == said_sorted;
        let is_sign = |word: &&&str| word.chars().any(|c| !c.is_alphabetic());
        let has_other_signs =
            hashes(&fact.text) == terms && fact_sorted.iter().filter(is_sign).ne(said_sorted.iter().filter(is_sign));
        if has_same_sense && !is_reordered && !has_other_signs {
            return false;
        }
        is_contrary = true;
    }
    is_contrary
}

/// Words without what separates them in a sentence.
fn bare(words: &[String]) -> Vec<&str> {
    words.iter().map(|word| word.trim_matches([',', ';', ':', '.', '!', '(', ')', '"', '\''])).collect()
}

fn sorted<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.to_vec();
    words.sort_unstable();
    words
}

/// A draft without secrets, and only if its fields are fine.
fn checked(mut draft: FactDraft) -> Result<FactDraft, Refusal> {
    for (field, text, max) in [
        ("text", &mut draft.text, MAX_TEXT_BYTES),
        ("entity", &mut draft.entity, MAX_NAME_BYTES),
        ("attribute", &mut draft.attribute, MAX_NAME_BYTES),
        ("value", &mut draft.value, MAX_NAME_BYTES),
    ] {
        *text = crate::redact::redact(text.trim()).into_owned();
        if text.len() > max {
            return Err(Refusal::TooLong { field, bytes: text.len(), max });
        }
    }
    draft.quote = crate::redact::redact(&draft.quote).into_owned();
    for (field, text) in [("text", &draft.text), ("entity", &draft.entity)] {
        if normal(text).is_empty() {
            return Err(Refusal::Empty(field));
        }
    }
    let told = [&draft.text, &draft.value, &draft.entity];
    let is_told = match draft.said_by {
        Speaker::User => false,
        Speaker::Assistant => told.into_iter().any(|text| is_order(text)),
        Speaker::Tool | Speaker::File => told.into_iter().chain([&draft.quote]).any(|text| is_instruction(text)),
    };
    if is_told {
        return Err(Refusal::Instruction(draft.said_by));
    }
    Ok(draft)
}
