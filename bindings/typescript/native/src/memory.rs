//! What outlives a conversation: facts, and the search over past conversations.

use std::sync::Arc;

use contexture_in_process::{FoundPassages, Memory, NewFact};
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use crate::work::{Work, number, promised};

/// The memory that `Memory` uses.
#[napi]
pub struct NativeMemory {
    memory: Arc<Memory>,
}

/// A fact to remember.
#[napi(object)]
pub struct NewNativeFact {
    /// The fact as a sentence.
    pub text: String,
    /// What it is about.
    pub entity: Option<String>,
    /// Which property of it.
    pub attribute: Option<String>,
    /// The value of that property.
    pub value: Option<String>,
}

/// Something that is remembered.
#[napi(object)]
pub struct Fact {
    /// Its name.
    pub id: String,
    /// The fact as a sentence.
    pub text: String,
    /// What it is about: `user`, a person, a project, a thing.
    pub entity: String,
    /// Which property of it; empty where there is none.
    pub attribute: String,
    /// The value of that property.
    pub value: String,
    /// Who said it.
    #[napi(ts_type = "'user' | 'assistant' | 'tool' | 'file'")]
    pub said_by: String,
    /// Words of its source that say it.
    pub quote: String,
    /// Whether it is true now, as far as is known.
    pub is_current: bool,
    /// Since when it is true, in milliseconds since 1970.
    pub valid_from_ms: f64,
    /// Since when it is no longer true.
    pub valid_to_ms: Option<f64>,
}

/// What past conversations say about a text.
#[napi(object)]
pub struct Found {
    /// All passages as one text for a model, with dates and speakers; empty if nothing was found.
    pub text: String,
    /// Its tokens.
    pub tokens: u32,
    /// The passages: the best of each conversation first, then the others.
    pub passages: Vec<Passage>,
}

/// A part of a past conversation.
#[napi(object)]
pub struct Passage {
    /// The conversation.
    pub thread: String,
    /// Who said it.
    pub role: String,
    /// What was said, or an excerpt of it.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at_ms: Option<f64>,
    /// How well it fits.
    pub score: f64,
}

impl From<contexture_in_process::Fact> for Fact {
    fn from(fact: contexture_in_process::Fact) -> Self {
        Self {
            is_current: fact.is_current(),
            id: fact.id.as_str().to_owned(),
            text: fact.text,
            entity: fact.entity,
            attribute: fact.attribute,
            value: fact.value,
            said_by: fact.said_by.as_str().to_owned(),
            quote: fact.quote,
            valid_from_ms: fact.valid_from_ms as f64,
            valid_to_ms: fact.valid_to_ms.map(|at| at as f64),
        }
    }
}

impl From<FoundPassages> for Found {
    fn from(found: FoundPassages) -> Self {
        let passages = found.passages.into_iter().map(|passage| Passage {
            thread: passage.thread,
            role: passage.role,
            text: passage.text,
            at_ms: passage.at_ms.map(|at| at as f64),
            score: passage.score,
        });
        Self { text: found.text, tokens: number(found.tokens), passages: passages.collect() }
    }
}

/// Opens a store, which is made if it does not exist: the memory of a project, or of a user.
#[napi(ts_return_type = "Promise<NativeMemory>")]
pub fn open_memory(store: String, owner: String, is_project: bool) -> AsyncTask<Work<NativeMemory>> {
    promised(move || Ok(NativeMemory { memory: Arc::new(Memory::open(&store, &owner, is_project)?) }))
}

#[napi]
impl NativeMemory {
    /// Adds messages, as JSON, to a conversation that can be searched. Resolves to how many are new.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn import_messages(&self, thread: String, messages: String) -> AsyncTask<Work<u32>> {
        let memory = Arc::clone(&self.memory);
        promised(move || memory.import_messages(&thread, &messages).map(number))
    }

    /// Adds a recorded session of an agent. Resolves to how many messages are new.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn import_recording(&self, thread: String, bytes: &[u8]) -> AsyncTask<Work<u32>> {
        let (memory, bytes) = (Arc::clone(&self.memory), bytes.to_vec());
        promised(move || memory.import_recording(&thread, &bytes).map(number))
    }

    /// What past conversations say about a text.
    #[napi(ts_return_type = "Promise<Found>")]
    pub fn search(&self, text: String, budget: u32, is_full: bool) -> AsyncTask<Work<Found>> {
        let memory = Arc::clone(&self.memory);
        promised(move || memory.search(&text, u64::from(budget), is_full).map(Found::from))
    }

    /// Remembers a fact. Resolves to its name.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn remember(&self, fact: NewNativeFact) -> AsyncTask<Work<String>> {
        let memory = Arc::clone(&self.memory);
        let NewNativeFact { text, entity, attribute, value } = fact;
        promised(move || memory.remember(NewFact { text, entity, attribute, value }))
    }

    /// The facts; those that are no longer true too if they are asked for.
    #[napi(ts_return_type = "Promise<Array<Fact>>")]
    pub fn facts(&self, with_past: bool) -> AsyncTask<Work<Vec<Fact>>> {
        let memory = Arc::clone(&self.memory);
        promised(move || Ok(memory.facts(with_past)?.into_iter().map(Fact::from).collect()))
    }

    /// Forgets a fact for good. Resolves to how many facts are gone with it.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn forget(&self, id: String) -> AsyncTask<Work<u32>> {
        let memory = Arc::clone(&self.memory);
        promised(move || memory.forget(&id).map(number))
    }

    /// Closes the store.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let memory = Arc::clone(&self.memory);
        promised(move || {
            memory.close();
            Ok(())
        })
    }
}
