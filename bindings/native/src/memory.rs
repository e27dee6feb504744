//! What outlives a conversation: facts, and the search over past conversations.

use std::collections::HashSet;
use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use contexture::bpe::Bpe;
use contexture::facts::{ChangeError, Edit, Fact, FactId, Place, Remembered, forget_in_store};
use contexture::item::{Content, Item, Message, Role};
use contexture::memory::memory;
use contexture::recall::{Extent, PastIndex, PastQuery, parse_time};
use contexture::redact::redact;
use contexture::search::SearchIndex;
use contexture::store::{Place as StorePlace, PostgresStore, SqliteIndex, SqliteStore, StorageAdapter};
use contexture::transcript::Transcript;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::failure::{Failure, FailureKind, caught};

/// What is remembered of one user or one project. It can be used by several threads at once.
pub struct Memory {
    /// `None` after it was closed.
    opened: Mutex<Option<Arc<Opened>>>,
}

/// A fact to remember.
pub struct NewFact {
    /// The fact as a sentence.
    pub text: String,
    /// What it is about.
    pub entity: Option<String>,
    /// Which property of it.
    pub attribute: Option<String>,
    /// The value of that property.
    pub value: Option<String>,
}

/// What past conversations say about a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundPassages {
    /// All passages as one text for a model, with dates and speakers; empty if nothing was found.
    pub text: String,
    /// Its tokens.
    pub tokens: u64,
    /// The passages: the best of each conversation first, then the others.
    pub passages: Vec<FoundPassage>,
}

/// A part of a past conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundPassage {
    /// The conversation.
    pub thread: String,
    /// Who said it.
    pub role: String,
    /// What was said, or an excerpt of it.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// How well it fits.
    pub score: f64,
}

/// An open store, and whose memory is used.
struct Opened {
    store: StorePlace,
    remembered: Remembered,
    index: Index,
    whose: Place,
    runtime: Runtime,
}

/// The search index of a store.
enum Index {
    File(SqliteIndex),
    Postgres(contexture::store::PostgresIndex),
}

/// A message of a session.
#[derive(Deserialize)]
struct Said {
    id: Option<String>,
    role: String,
    text: String,
    at: Option<String>,
}

impl Memory {
    /// Opens a store, which is made if it does not exist: the memory of a project, or of a user.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn open(store: &str, owner: &str, is_project: bool) -> Result<Self, Failure> {
        let opened = caught(|| Opened::new(store, owner, is_project))?;
        Ok(Self { opened: Mutex::new(Some(Arc::new(opened))) })
    }

    /// Adds messages, as JSON, to a conversation that can be searched. Returns how many are new.
    ///
    /// # Errors
    /// A message cannot be used, the store failed, or the memory is closed.
    pub fn import_messages(&self, thread: &str, messages: &str) -> Result<usize, Failure> {
        self.used(|opened| {
            let said: Vec<Said> =
                serde_json::from_str(messages).map_err(|error| Failure::of(FailureKind::Input, &error))?;
            let items = said.into_iter().enumerate().map(|(n, said)| said.item(n)).collect::<Result<Vec<_>, _>>()?;
            opened.add(thread, items)
        })
    }

    /// Adds a recorded session of an agent. Returns how many messages are new.
    ///
    /// # Errors
    /// It is no recording, the store failed, or the memory is closed.
    pub fn import_recording(&self, thread: &str, bytes: &[u8]) -> Result<usize, Failure> {
        self.used(|opened| {
            let read = Transcript::read(BufReader::new(bytes));
            let (transcript, _) = read.map_err(|error| {
                Failure::of(FailureKind::Input, &error)
                    .with_hint("it is a recording of Claude Code, Codex, OpenCode or another agent")
            })?;
            let records = transcript.records.iter().flat_map(|record| record.items());
            let said = records.filter_map(|item| item.as_message()).enumerate();
            let items = said.map(|(n, message)| plain(n, message.role, &message.text(), None, message.meta.time_ms));
            opened.add(thread, items.collect())
        })
    }

    /// What past conversations say about a text.
    ///
    /// # Errors
    /// The store failed, or the memory is closed.
    pub fn search(&self, text: &str, budget: u64, is_full: bool) -> Result<FoundPassages, Failure> {
        self.used(|opened| opened.search(text, budget, is_full))
    }

    /// Remembers a fact. Returns its name.
    ///
    /// # Errors
    /// It is no fact, the store failed, or the memory is closed.
    pub fn remember(&self, fact: NewFact) -> Result<String, Failure> {
        self.used(|opened| {
            let NewFact { text, entity, attribute, value } = fact;
            let edit = Edit { text: Some(text), entity, attribute, value };
            let told = opened.remembered.change(&opened.whose, |facts| facts.tell(edit.clone(), now_ms()));
            let added = opened.runtime.block_on(told).map_err(not_changed)?;
            Ok(added.id().to_string())
        })
    }

    /// The facts; those that are no longer true too if they are asked for.
    ///
    /// # Errors
    /// The store failed, or the memory is closed.
    pub fn facts(&self, with_past: bool) -> Result<Vec<Fact>, Failure> {
        self.used(|opened| {
            let facts = opened.runtime.block_on(opened.remembered.load(&opened.whose)).map_err(failed)?;
            let facts = facts.unwrap_or_default();
            Ok(facts.all().filter(|fact| with_past || fact.is_current()).cloned().collect())
        })
    }

    /// Forgets a fact for good. Returns how many facts are gone with it.
    ///
    /// # Errors
    /// There is no such fact, the store failed, or the memory is closed.
    pub fn forget(&self, id: &str) -> Result<usize, Failure> {
        self.used(|opened| opened.runtime.block_on(opened.forget(&FactId::from(id))))
    }

    /// Closes the store, and waits for what it does just now.
    pub fn close(&self) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(opened);
    }

    fn used<T>(&self, work: impl FnOnce(&Opened) -> Result<T, Failure>) -> Result<T, Failure> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let closed = || Failure::new(FailureKind::Closed, "the memory is closed").with_hint("open it again");
        let opened = opened.ok_or_else(closed)?;
        caught(|| work(&opened))
    }
}

impl Opened {
    fn new(store: &str, owner: &str, is_project: bool) -> Result<Self, Failure> {
        let builder = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = builder().map_err(|error| Failure::of(FailureKind::Other, &error))?;
        let store = StorePlace::new(store);
        let (adapter, index): (Arc<dyn StorageAdapter>, Index) = match &store {
            StorePlace::File(path) => {
                let opened = SqliteStore::open(path).map_err(|error| Failure::of(FailureKind::Store, &error))?;
                (Arc::new(opened), Index::File(SqliteIndex::new(path)))
            }
            StorePlace::Postgres(url) => {
                let _entered = runtime.enter();
                let opened = PostgresStore::open(url).map_err(|error| Failure::of(FailureKind::Store, &error))?;
                runtime.block_on(opened.check()).map_err(|error| Failure::of(FailureKind::Store, &error))?;
                let index = opened.index();
                (Arc::new(opened), Index::Postgres(index))
            }
        };
        // The layers of an engine keep facts under these names, and read them.
        let (layer, scope) = if is_project { ("entity-project", "resource.project") } else { ("entity", "resource") };
        let whose = Place::new(layer, scope, owner);
        Ok(Self { store, remembered: Remembered::new(adapter), index, whose, runtime })
    }

    fn past(&self) -> PastIndex {
        let index: Arc<dyn SearchIndex> = match &self.index {
            Index::File(index) => Arc::new(index.clone()),
            Index::Postgres(index) => Arc::new(index.clone()),
        };
        PastIndex::new(index, &self.whose.scope_key())
    }

    /// Adds items to the log of a thread and to the index.
    fn add(&self, thread: &str, items: Vec<Item>) -> Result<usize, Failure> {
        let of = |error: &dyn std::error::Error| Failure::of(FailureKind::Store, error);
        let path = match &self.store {
            StorePlace::File(path) => path.clone(),
            StorePlace::Postgres(url) => url.into(),
        };
        self.runtime.block_on(async {
            let engine = contexture::open(path, memory(())).map_err(|error| of(&error))?;
            let engine = engine.build().map_err(|error| of(&error))?;
            let mut execution = engine.execution(thread).start().await.map_err(|error| of(&error))?;
            let known: HashSet<String> = execution.log().iter().filter_map(id_of).collect();
            let is_new = |item: &Item| id_of(item).is_none_or(|id| !known.contains(&id));
            let new: Vec<Item> = items.into_iter().filter(is_new).collect();
            let count = new.len();
            execution.import(new).await.map_err(|error| of(&error))?;
            // From the start, so that an import that was interrupted is completed.
            let added = self.past().add_log(thread, execution.log(), 0, now_ms()).await;
            added.map_err(|error| of(&error))?;
            execution.complete().await.map_err(|error| of(&error))?;
            Ok(count)
        })
    }

    fn search(&self, text: &str, budget: u64, is_full: bool) -> Result<FoundPassages, Failure> {
        let query = PastQuery {
            text,
            now_ms: now_ms(),
            budget,
            counter: &Bpe::o200k(),
            extent: if is_full { Extent::Full } else { Extent::Fitting },
            visible: None,
        };
        let found = self.runtime.block_on(self.past().search(query));
        let found = found.map_err(|error| Failure::of(FailureKind::Store, &error))?;
        let passages = found.shown.into_iter().map(|shown| FoundPassage {
            thread: shown.passage.thread.to_string(),
            role: shown.passage.speaker.to_string(),
            at_ms: shown.passage.at_ms,
            text: shown.excerpt,
            score: shown.score,
        });
        Ok(FoundPassages { text: found.text, tokens: found.tokens, passages: passages.collect() })
    }

    async fn forget(&self, id: &FactId) -> Result<usize, Failure> {
        let kept = self.remembered.load(&self.whose).await.map_err(failed)?;
        let gone = kept.unwrap_or_default().forget(id, now_ms()).map_err(|refusal| {
            Failure::of(FailureKind::Input, &refusal).with_hint("`facts` returns the names of facts")
        })?;
        let scopes = match &self.index {
            Index::File(index) => index.scopes().await,
            Index::Postgres(index) => index.scopes().await,
        };
        let scopes = scopes.map_err(|error| Failure::of(FailureKind::Store, &error))?;
        let index: &dyn SearchIndex = match &self.index {
            Index::File(index) => index,
            Index::Postgres(index) => index,
        };
        // The facts themselves go last: if this fails, it can be repeated.
        let removed = forget_in_store(&**self.remembered.store(), index, &scopes, &self.whose, &gone).await;
        removed
            .map_err(|error| Failure::new(FailureKind::Store, format!("remove what the facts came from: {error}")))?;
        let forgotten = self.remembered.change(&self.whose, |facts| facts.forget(id, now_ms())).await;
        forgotten.map_err(not_changed)?;
        // Somebody who reads just now keeps a part of the log for a moment.
        let _ = self.remembered.store().scrub().await;
        Ok(gone.len())
    }
}

impl Said {
    fn item(self, n: usize) -> Result<Item, Failure> {
        let role = match self.role.to_lowercase().as_str() {
            "user" | "human" => Role::User,
            "assistant" | "ai" | "model" => Role::Assistant,
            "system" | "developer" => Role::Developer,
            other => {
                let failure = Failure::new(FailureKind::Input, format!("message {n} has the role `{other}`"));
                return Err(failure.with_hint("there are user, assistant and system"));
            }
        };
        let at = match self.at.as_deref() {
            None => None,
            Some(text) => Some(parse_time(text).ok_or_else(|| {
                let failure = Failure::new(FailureKind::Input, format!("`{text}` of message {n} is no time"));
                failure.with_hint("write it as 2026-01-31T12:00:00Z")
            })?),
        };
        Ok(plain(n, role, &self.text, self.id, at))
    }
}

/// A message without secrets. Without an id it gets one from its number and text.
fn plain(n: usize, role: Role, text: &str, id: Option<String>, time_ms: Option<u64>) -> Item {
    let text = redact(text).into_owned();
    let derived = || format!("message-{n}-{:016x}", hash_of(&text));
    let id = id.unwrap_or_else(derived);
    let mut message = Message::new(role, vec![Content::Text { text }]);
    message.id = Some(id.into());
    message.meta.time_ms = time_ms;
    message.into()
}

/// A hash that stays the same for ever, since ids are made of it: FNV-1a.
fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn id_of(item: &Item) -> Option<String> {
    item.as_message()?.id.as_deref().map(str::to_owned)
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn failed(error: contexture::store::StoreError) -> Failure {
    Failure::of(FailureKind::Store, &error)
}

/// A change that was refused is wrong input; a store that failed is not.
fn not_changed(error: ChangeError) -> Failure {
    match error {
        ChangeError::Refused(refusal) => Failure::of(FailureKind::Input, &refusal),
        error => Failure::of(FailureKind::Store, &error),
    }
}
