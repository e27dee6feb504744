//! What else is removed when facts are forgotten: passages in the search index, vectors of the facts, and episodes.
//!
//! Not only the passages go that a fact came from, but all of the same scope that repeat it: an agent that was told
//! something says it again in its answers, and in what it writes. A passage repeats a fact if it has its quote or its text,
//! or if one sentence of it has what tells the fact, which is its value or else its names and numbers, and half of its
//! other words; a fact without these is repeated by most of its words. In a conversation that the fact came from, what
//! tells it is enough: nobody says "my parrot" again in every sentence.
//!
//! Other layers own these, so only their stored forms are used here: a passage is a document `thread/position` in the scope
//! `semantic-recall/…`, and an empty document in its place keeps it from being added again; episodes are records with a
//! thread, a goal and what failed.

use std::collections::{BTreeMap, BTreeSet};

use contexture_core::error::BoxError;
use contexture_core::search::{SearchDocument, SearchIndex};
use contexture_core::store::{Batch, Key, StorageAdapter, StoreError, layer_prefix, unescape_segment};
use serde_json::Value;

use super::fact::{Fact, Source, coverage, hashes};
use super::meaning::{forget_meanings, forget_meanings_in};
use super::mention::mentions;
use super::stored::Place;
use crate::recall::forgotten_mark;

const PASSAGES: &str = "semantic-recall";
const EPISODES: &str = "episodic";
/// How often a change is tried again because another writer was first.
const MAX_TRIES: usize = 8;
/// The shortest value that is looked for in what a run was for.
const MIN_VALUE_CHARS: usize = 3;

/// How many passages are looked at for each fact, at a time.
const MAX_REPEATED: usize = 256;
/// The share of a fact's words in a sentence that repeats it, and of those beside its value.
const MOST_WORDS: f64 = 0.7;
const HALF_WORDS: f64 = 0.5;

/// A scope that is looked into, and whether passages are kept away from it even if it has none of them yet.
pub(super) type SearchedScope = (Place, bool);

/// Removes what facts of a place that were forgotten came from, in all scopes of a store.
///
/// `scopes` are the names of all scopes of the index: a conversation that was imported for a user is in one that no layer
/// of the store has.
///
/// # Errors
/// The store or the index failed. It can be repeated.
pub async fn forget_in_store(
    store: &dyn StorageAdapter,
    index: &dyn SearchIndex,
    scopes: &[String],
    place: &Place,
    gone: &[Fact],
) -> Result<(), BoxError> {
    for scope in scopes.iter().filter(|scope| scope.strip_prefix(PASSAGES).is_some_and(|rest| rest.starts_with('/'))) {
        forget_passages(index, scope, &passages(gone), false).await?;
        forget_repeated(index, scope, gone).await?;
    }
    for scope in scopes {
        forget_meanings_in(index, scope, gone).await?;
    }
    let mut places: BTreeMap<Place, bool> = BTreeMap::new();
    for key in store.list(&Key::new("layers").into_prefix()).await? {
        let segments: Vec<Option<String>> = key.split('/').skip(2).take(2).map(unescape_segment).collect();
        if let [Some(scope), Some(owner)] = segments.as_slice() {
            places.insert(Place::new("", scope.as_str(), owner.as_str()), false);
        }
    }
    places.insert(Place::new("", place.scope.as_str(), place.owner.as_str()), true);
    places.extend(passages(gone).into_keys().map(|thread| (Place::new("", "thread", thread), true)));
    forget_in(Some(store), index, places, gone).await
}

/// Removes what forgotten facts came from in these scopes.
pub(super) async fn forget_in(
    store: Option<&dyn StorageAdapter>,
    index: &dyn SearchIndex,
    scopes: impl IntoIterator<Item = SearchedScope>,
    gone: &[Fact],
) -> Result<(), BoxError> {
    let passages = passages(gone);
    for (place, is_own) in scopes {
        if let Some(store) = store {
            forget_episodes(store, &place, gone).await?;
        }
        let scope = format!("{PASSAGES}/{}", place.scope_key());
        forget_passages(index, &scope, &passages, is_own).await?;
        forget_repeated(index, &scope, gone).await?;
        forget_meanings(index, &place, gone).await?;
    }
    Ok(())
}

/// Removes the passages of a scope that repeat a fact, whoever said them.
async fn forget_repeated(index: &dyn SearchIndex, scope: &str, gone: &[Fact]) -> Result<(), BoxError> {
    for fact in gone {
        let words = [fact.text.as_str(), fact.quote.as_str(), fact.value.as_str()].join(" ");
        // Each time fewer are left; what repeats a fact is among the best for its words.
        for _ in 0..MAX_TRIES {
            let hits = index.search(scope, &words, MAX_REPEATED).await?;
            let is_told = |document: &SearchDocument| {
                let thread = document.id.rsplit_once('/').map_or("", |(thread, _)| thread);
                repeats(&document.text, thread, fact)
            };
            let hits = hits.into_iter().map(|hit| hit.document);
            let ids: Vec<String> = hits.filter(is_told).map(|document| document.id).collect();
            if ids.is_empty() {
                break;
            }
            replace_by_marks(index, scope, ids).await?;
        }
    }
    Ok(())
}

/// Whether a text of a thread tells a fact again.
pub(super) fn repeats(text: &str, thread: &str, fact: &Fact) -> bool {
    if mentions(text, &fact.quote) || mentions(text, fact.text.trim_end_matches(['.', '!'])) {
        return true;
    }
    let telling = telling(fact);
    let said = hashes(&format!("{} {}", fact.text, fact.quote));
    let others: Vec<u64> = said.iter().copied().filter(|word| telling.binary_search(word).is_err()).collect();
    let is_source = is_from(fact, thread);
    text.split_inclusive(['.', '!', '?', '\n', '。', '！', '？']).any(|sentence| {
        let sentence = hashes(sentence);
        if telling.is_empty() {
            coverage(&said, &sentence) >= if is_source { HALF_WORDS } else { MOST_WORDS }
        } else {
            coverage(&telling, &sentence) >= 1.0 && (is_source || coverage(&others, &sentence) >= HALF_WORDS)
        }
    })
}

/// Words of a fact without which nobody tells it: its value, or else the names and numbers in its text that are not what
/// it is about.
fn telling(fact: &Fact) -> Box<[u64]> {
    let value = hashes(&fact.value);
    if !value.is_empty() {
        return value;
    }
    // The first word of a sentence is written like a name.
    let is_telling = |(index, word): &(usize, &str)| {
        word.contains(|c: char| c.is_ascii_digit()) || (*index > 0 && word.starts_with(char::is_uppercase))
    };
    let words = fact.text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let names: Vec<&str> = words.enumerate().filter(is_telling).map(|(_, word)| word).collect();
    let subject = hashes(&fact.entity);
    let names = hashes(&names.join(" "));
    names.iter().copied().filter(|word| subject.binary_search(word).is_err()).collect()
}

/// Whether a fact came from this thread.
fn is_from(fact: &Fact, thread: &str) -> bool {
    fact.sources.iter().any(|source| matches!(source, Source::Item { thread: from, .. } if from.as_str() == thread))
}

/// Removes passages from a scope, and keeps them away from it if it had them or is the facts' own.
async fn forget_passages(
    index: &dyn SearchIndex,
    scope: &str,
    passages: &BTreeMap<String, BTreeSet<usize>>,
    is_own: bool,
) -> Result<(), BoxError> {
    for (thread, items) in passages {
        let ids: Vec<String> = items.iter().map(|item| format!("{thread}/{item:010}")).collect();
        if is_own || !index.get(scope, &ids).await?.is_empty() {
            replace_by_marks(index, scope, ids).await?;
        }
    }
    Ok(())
}

/// Puts empty documents in the place of passages, and marks their texts as forgotten: the same text in a copy of the
/// conversation is not added again either.
async fn replace_by_marks(index: &dyn SearchIndex, scope: &str, ids: Vec<String>) -> Result<(), BoxError> {
    let documents = index.get(scope, &ids).await?;
    let texts = documents.iter().filter_map(|document| document.text.split_once('\n').map(|(_, text)| text));
    let marks: Vec<String> = texts.map(forgotten_mark).collect();
    index.remove(scope, &ids).await?;
    let empty = ids.into_iter().chain(marks).map(|id| SearchDocument::new(id, "")).collect();
    Ok(index.add(scope, empty).await?)
}

/// The items that facts came from, by thread.
fn passages(gone: &[Fact]) -> BTreeMap<String, BTreeSet<usize>> {
    let mut passages: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for source in gone.iter().flat_map(|fact| &fact.sources) {
        if let Source::Item { thread, item, .. } = source {
            passages.entry(thread.as_str().to_owned()).or_default().insert(*item);
        }
    }
    passages
}

async fn forget_episodes(store: &dyn StorageAdapter, place: &Place, gone: &[Fact]) -> Result<(), StoreError> {
    let plain = format!("{}state", layer_prefix(EPISODES, &place.scope, &place.owner));
    forget_episodes_at(store, plain.clone(), gone).await?;
    // A second layer of the kind has an id that begins like the first.
    let begin = plain.len() - plain.trim_start_matches("layers/").len() + EPISODES.len();
    let (begin, end) = plain.split_at(begin);
    for key in store.list(begin).await? {
        let own = key.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        if own.is_some_and(|own| !own.is_empty() && !own.contains('/')) {
            forget_episodes_at(store, key, gone).await?;
        }
    }
    Ok(())
}

async fn forget_episodes_at(store: &dyn StorageAdapter, key: String, gone: &[Fact]) -> Result<(), StoreError> {
    for _ in 0..MAX_TRIES {
        let Some(record) = store.get(&key).await? else { return Ok(()) };
        let Ok(mut state) = serde_json::from_slice::<Value>(&record.value) else { return Ok(()) };
        if !without_episodes(&mut state["state"], gone) {
            return Ok(());
        }
        let batch = Batch::new().expect(key.clone(), Some(record.version)).set(key.clone(), state.to_string());
        match store.apply(batch).await {
            Err(StoreError::Conflict { .. }) => {}
            applied => return applied.map(drop),
        }
    }
    Err(StoreError::Conflict { key })
}

/// Removes the episodes that tell of forgotten facts; `false` if there are none.
fn without_episodes(state: &mut Value, gone: &[Fact]) -> bool {
    let mut ids = Vec::new();
    if let Some(episodes) = state["episodes"].as_array_mut() {
        episodes.retain(|episode| {
            let is_told = gone.iter().any(|fact| tells(episode, fact));
            if is_told {
                ids.push(episode["id"].clone());
            }
            !is_told
        });
    }
    let is_changed = !ids.is_empty();
    if let Some(forgotten) = state["forgotten"].as_array_mut() {
        forgotten.extend(ids);
    }
    is_changed
}

/// Whether an episode has the words of a fact: its quote or its text, or in the same conversation its value.
fn tells(episode: &Value, fact: &Fact) -> bool {
    let texts = [&episode["goal"]].into_iter().chain(episode["failed"].as_array().into_iter().flatten());
    let told: Vec<&str> = texts.filter_map(Value::as_str).collect();
    let has = |words: &str| told.iter().any(|text| mentions(text, words));
    let is_there = episode["thread"].as_str().is_some_and(|thread| is_from(fact, thread));
    has(&fact.quote)
        || has(&fact.text)
        || (is_there && fact.value.chars().count() >= MIN_VALUE_CHARS && has(&fact.value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture_core::store::MemoryStore;
    use contexture_text::search::MemoryIndex;
    use serde_json::json;

    use super::super::{Edit, Facts};
    use super::*;

    /// A fact of the thread `t`, item 3, that was forgotten.
    fn gone() -> Vec<Fact> {
        let mut facts = Facts::default();
        let edit = Edit {
            text: Some("Ada lives in Paris.".to_owned()),
            attribute: Some("lives in".to_owned()),
            value: Some("Paris".to_owned()),
            ..Edit::default()
        };
        let id = facts.tell(edit, 1).unwrap().id().clone();
        let mut gone = facts.forget(&id, 2).unwrap();
        gone[0].sources = vec![Source::Item { thread: "t".into(), item: 3, start: 0, end: 9, name: None }];
        gone[0].quote = "I moved to Paris".to_owned();
        gone
    }

    #[tokio::test]
    async fn passages_leave_every_scope_and_stay_away() {
        let (store, index) = (MemoryStore::new(), MemoryIndex::new());
        store.set("layers/semantic-recall/resource/ada/state", "{}".into()).await.unwrap();
        let scopes = ["semantic-recall/resource:ada", "semantic-recall/thread:t", "semantic-recall/resource:bob"];
        for scope in scopes {
            let documents = [3, 4].map(|item| SearchDocument::new(format!("t/{item:010}"), "I moved to Paris"));
            index.add(scope, documents.into()).await.unwrap();
        }
        let known = ["semantic-recall/resource:bob".to_owned(), "other/resource:ada".to_owned()];
        index.add("other/resource:ada", vec![SearchDocument::new("t/0000000003", "I moved to Paris")]).await.unwrap();
        let place = Place::new("entity", "resource", "eve");
        forget_in_store(&store, &index, &known, &place, &gone()).await.unwrap();
        assert_eq!(index.search("other/resource:ada", "Paris", 9).await.unwrap().len(), 1, "it is another layer's");
        for scope in scopes {
            assert_eq!(index.search(scope, "Paris", 9).await.unwrap().len(), 0, "{scope}: item 4 repeats it");
        }
        for (scope, count) in [(scopes[0], 2), ("semantic-recall/resource:eve", 1)] {
            assert_eq!(index.count(scope).await.unwrap(), count, "an empty document keeps it away from {scope}");
        }
    }

    #[test]
    fn what_repeats_a_fact_is_told_from_what_shares_a_word_with_it() {
        let fact = &gone()[0];
        for text in [
            "assistant January 2026\nGot it: Ada lives in Paris now.",
            "So you moved to Paris, Ada. Shall I look for flats?",
            "As you said, I MOVED  to\nParis",
            "tool\nwrite_file {}\nowner: Ada, lives in: Paris",
        ] {
            assert!(repeats(text, "other", fact), "{text}");
        }
        for text in
            ["The Paris agreement was signed in 2015.", "Ada lives in Rome.", "Paris is far. Ada has a cat.", ""]
        {
            assert!(!repeats(text, "other", fact), "{text}");
        }
        for (text, is_told) in [("Paris is far. Ada has a cat.", true), ("Ada lives in Rome.", false), ("", false)] {
            assert_eq!(repeats(text, "t", fact), is_told, "{text}");
        }
    }

    #[test]
    fn a_fact_without_a_value_is_told_by_its_names_and_numbers() {
        let with_text = |text: &str| {
            let mut fact = gone().remove(0);
            (fact.text, fact.quote, fact.value, fact.entity) =
                (text.to_owned(), String::new(), String::new(), "user".to_owned());
            fact
        };
        let (parrot, door) = (with_text("The parrot is called Zanzibar."), with_text("The code of the door is 4711."));
        for (text, fact) in [("As I said, the parrot Zanzibar is yours.", &parrot), ("Open the door with 4711!", &door)]
        {
            assert!(repeats(text, "other", fact), "{text}");
        }
        for (text, fact) in [("Zanzibar sings.", &parrot), ("It is 4711, as before.", &door)] {
            assert!(repeats(text, "t", fact) && !repeats(text, "other", fact), "{text}");
        }
        for (text, fact) in [("The parrot is hungry.", &parrot), ("Close the door.", &door)] {
            assert!(!repeats(text, "t", fact), "{text}");
        }
        let hint = with_text("The hint for the gate is bluebird.");
        assert!(repeats("Your hint is bluebird, then.", "t", &hint) && !repeats("A gate.", "t", &hint));
    }

    #[tokio::test]
    async fn episodes_that_tell_of_it_are_removed() {
        let store = Arc::new(MemoryStore::new());
        let episode = |id: &str, thread: &str, goal: &str, failed: &[&str]| {
            json!({ "id": id, "thread": thread, "at_s": 1, "goal": goal, "outcome": "success", "files": [], "failed": failed,
                "uses": 0, "used_s": null })
        };
        let episodes = [
            episode("a", "x", "Help: I moved\n to PARIS last week", &[]),
            episode("b", "t", "Find a flat in Paris", &[]),
            episode("c", "x", "Find a flat in Paris", &[]),
            episode("d", "x", "Write", &["bash: ada lives in paris. not found"]),
            episode("e", "t", "Write a page", &[]),
        ];
        let state = json!({ "format": 1, "state": { "version": 1, "episodes": episodes, "forgotten": [] } });
        let key = "layers/episodic/resource/ada/state";
        store.set(key, state.to_string().into_bytes()).await.unwrap();
        let place = Place::new("entity", "resource", "ada");
        forget_in_store(&*store, &MemoryIndex::new(), &[], &place, &gone()).await.unwrap();
        let state: Value = serde_json::from_slice(&store.get(key).await.unwrap().unwrap().value).unwrap();
        let left: Vec<&str> =
            state["state"]["episodes"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!((left, &state["state"]["forgotten"]), (vec!["c", "e"], &json!(["a", "b", "d"])));
    }
}
