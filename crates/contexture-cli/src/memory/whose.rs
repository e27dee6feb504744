//! Whose facts a command is about, and where they are kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;
use contexture::facts::{ChangeError, Fact, FactId, Facts, Place, Remembered};
use contexture::notes::{Note, notes};
use contexture::search::{SearchError, SearchIndex};
use contexture::store::{Place as StorePlace, PostgresIndex, PostgresStore, SqliteIndex, SqliteStore, StoreError};

use super::own::memory_path;
use crate::failure::Failure;
use crate::store::{self, Looked};

/// The store, and whose facts of it: for the stores of agents that use the library. The help leaves these flags out, as a
/// person has one memory.
#[derive(Args)]
pub(super) struct Whose {
    /// The store: a SQLite file, or a database (postgres://user@host/database); without one, your own memory
    #[arg(long, hide = true, value_name = "DB", value_parser = store::place)]
    pub(super) store: Option<StorePlace>,
    /// Only what is remembered of this conversation
    #[arg(long, hide = true, value_name = "ID")]
    pub(super) thread: Option<String>,
    /// Only what is remembered of this user or project
    #[arg(long, hide = true, value_name = "ID")]
    pub(super) resource: Option<String>,
    /// The kind of the resource, as project
    #[arg(long, hide = true, value_name = "KIND", requires = "resource")]
    pub(super) kind: Option<String>,
    /// Only what this layer remembers, as entity
    #[arg(long, hide = true, value_name = "ID")]
    pub(super) layer: Option<String>,
}

/// What to do about a store that is none.
const HINT: &str = "name the store of your agent with --store";

/// What is said of a memory that is not there yet.
pub(super) fn nothing_yet() -> Failure {
    Failure::work("nothing is remembered yet").hint(
        "`contexture memory import` takes in the sessions of your agents, and `contexture memory add \"…\"` a fact",
    )
}

/// Facts with where they are kept.
pub(super) type PlacedFacts = (Place, Facts);

impl Whose {
    /// The store that was named, or the user's own memory.
    pub(super) fn place(&self) -> Result<StorePlace, Failure> {
        match &self.store {
            Some(place) => Ok(place.clone()),
            None => {
                let path = memory_path()?;
                match path.exists() {
                    true => Ok(StorePlace::File(path)),
                    false => Err(nothing_yet()),
                }
            }
        }
    }

    /// Opens the store.
    pub(super) async fn open(&self) -> Result<Remembered, Failure> {
        match &self.place()? {
            StorePlace::File(path) if path.is_file() => {
                let store = SqliteStore::open(path).map_err(|error| Failure::of(&error).hint(HINT))?;
                Ok(Remembered::new(Arc::new(store)))
            }
            StorePlace::File(path) => Err(Failure::work(format!("there is no store `{}`", path.display())).hint(HINT)),
            StorePlace::Postgres(url) => {
                let store = PostgresStore::open_existing(url).map_err(|error| Failure::of(&error))?;
                store.check().await.map_err(|error| Failure::of(&error))?;
                Ok(Remembered::new(Arc::new(store)))
            }
        }
    }

    /// Opens the store to look into it: also one that this user cannot change. The copy exists as long as what is
    /// returned with the facts.
    pub(super) async fn look(&self) -> Result<(Remembered, Option<Looked>), Failure> {
        match &self.place()? {
            StorePlace::File(path) if path.is_file() => {
                let hinted =
                    |failure: Failure| if failure.said_hint().is_some() { failure } else { failure.hint(HINT) };
                let looked = Looked::open(path).map_err(hinted)?;
                let store = SqliteStore::open(looked.path()).map_err(|error| Failure::of(&error))?;
                Ok((Remembered::new(Arc::new(store)), Some(looked)))
            }
            _ => Ok((self.open().await?, None)),
        }
    }

    /// The search index of the store.
    pub(super) fn index(&self) -> Result<StoreIndex, Failure> {
        match &self.place()? {
            StorePlace::File(path) => Ok(StoreIndex::File(SqliteIndex::new(path))),
            StorePlace::Postgres(url) => {
                let store = PostgresStore::open(url).map_err(|error| Failure::of(&error))?;
                Ok(StoreIndex::Postgres(store.index()))
            }
        }
    }

    /// What models wrote for themselves, of those who were asked for.
    pub(super) async fn notes(&self, remembered: &Remembered) -> Result<Vec<Note>, Failure> {
        let mut notes = notes(&**remembered.store()).await.map_err(|error| failed(&error))?;
        notes.retain(|note| self.has(&note.place));
        Ok(notes)
    }

    /// The scope that was named: its kind and its owner.
    pub(super) fn scope(&self) -> Option<(String, String)> {
        let resource = self.resource.as_ref().map(|owner| (scope_of(self.kind.as_deref()), owner.clone()));
        resource.or_else(|| Some(("thread".to_owned(), self.thread.clone()?)))
    }

    fn has(&self, place: &Place) -> bool {
        let is_scope = self.scope().is_none_or(|(scope, owner)| {
            let is_kind = place.scope == scope
                || (self.kind.is_none() && scope == "resource" && place.scope.starts_with("resource."));
            is_kind && place.owner == owner
        });
        is_scope && self.layer.as_ref().is_none_or(|layer| place.layer == *layer)
    }

    /// All facts that were asked for, by place.
    pub(super) async fn all(&self, remembered: &Remembered) -> Result<Vec<PlacedFacts>, Failure> {
        let mut kept = Vec::new();
        for place in remembered.places().await.map_err(|error| failed(&error))? {
            if self.has(&place)
                && let Some(facts) = remembered.load(&place).await.map_err(|error| failed(&error))?
            {
                kept.push((place, facts));
            }
        }
        Ok(kept)
    }

    /// The fact whose name begins so, with where it is kept.
    pub(super) async fn fact(&self, remembered: &Remembered, id: &str) -> Result<(Place, Facts, FactId), Failure> {
        let id = FactId::from(id);
        if id.as_str().is_empty() {
            return Err(Failure::usage("the name of the fact is empty").hint("`contexture memory show` lists them"));
        }
        let mut found = Vec::new();
        for (place, facts) in self.all(remembered).await? {
            let ids: Vec<FactId> =
                facts.beginning(id.as_str()).into_iter().map(|fact: &Fact| fact.id.clone()).collect();
            found.extend(ids.into_iter().map(|id| (place.clone(), facts.clone(), id)));
        }
        if let Some(exact) = found.iter().position(|(_, _, other)| *other == id)
            && found.iter().filter(|(_, _, other)| *other == id).count() == 1
        {
            found.swap(0, exact);
            found.truncate(1);
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(Failure::work(format!("there is no fact `{id}`")).hint("`contexture memory show` lists them")),
            count => Err(Failure::usage(format!("{count} facts begin with `{id}`"))
                .hint("write some more characters, or name the --layer and the --resource")),
        }
    }
}

/// The search index of a store.
pub(super) enum StoreIndex {
    File(SqliteIndex),
    Postgres(PostgresIndex),
}

impl StoreIndex {
    pub(super) fn as_search(&self) -> &dyn SearchIndex {
        match self {
            StoreIndex::File(index) => index,
            StoreIndex::Postgres(index) => index,
        }
    }

    /// The names of all its scopes.
    pub(super) async fn scopes(&self) -> Result<Vec<String>, SearchError> {
        match self {
            StoreIndex::File(index) => index.scopes().await,
            StoreIndex::Postgres(index) => index.scopes().await,
        }
    }
}

/// The kind of scope that keeps the facts of a kind of resource.
pub(super) fn scope_of(kind: Option<&str>) -> String {
    match kind {
        None | Some("user") => "resource".to_owned(),
        Some(kind) => format!("resource.{kind}"),
    }
}

/// A place in words.
pub(super) fn in_words(place: &Place) -> String {
    let scope = match place.scope.strip_prefix("resource.") {
        Some(kind) => kind.to_owned(),
        None if place.scope == "resource" => "user".to_owned(),
        None => place.scope.clone(),
    };
    format!("{} of {scope} {}", place.layer, place.owner)
}

/// Runs the work of a command.
pub(super) fn wait<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn failed(error: &StoreError) -> Failure {
    Failure::of(error)
}

/// A change that was refused is wrong usage; a store that failed is not.
pub(super) fn not_changed(error: ChangeError) -> Failure {
    match error {
        ChangeError::Refused(refusal) => Failure::usage(refusal.to_string()),
        error => Failure::of(&error),
    }
}
