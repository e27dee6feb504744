//! The in-memory search index, the conformance suite for indexes, and how layers use one.

use std::sync::Arc;

use contexture_core::layer::*;
use contexture_core::search::{Found, SearchDocument, SearchError, SearchHit, SearchIndex, TermWeights};
use contexture_core::testing::{ScriptedModel, engine};
use contexture_core::{Slot, memory};
use contexture_text::search::{MemoryIndex, find_text};
use contexture_text::testing::search_conformance;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

#[tokio::test]
async fn the_index_in_memory_conforms() {
    search_conformance(async |_| Arc::new(MemoryIndex::new())).await;
}

/// An in-memory index that breaks one requirement.
struct Broken(MemoryIndex, Flaw);

#[derive(Clone, Copy, Debug)]
enum Flaw {
    ForgetsScopes,
    IgnoresLimits,
    RanksByAge,
    KeepsWhatWasReplaced,
    TakesAnything,
    IgnoresWeights,
    ReadsInItsOwnOrder,
}

impl SearchIndex for Broken {
    fn add<'a>(&'a self, scope: &'a str, mut documents: Vec<SearchDocument>) -> BoxFuture<'a, Result<(), SearchError>> {
        match self.1 {
            Flaw::ForgetsScopes => self.0.add("", documents),
            Flaw::TakesAnything => {
                documents.retain(|document| document.check().is_ok());
                self.0.add(scope, documents)
            }
            Flaw::KeepsWhatWasReplaced => Box::pin(async move {
                for document in &mut documents {
                    let ours = [document.id.clone()];
                    let old = self.0.search(scope, "parse second first word", 99).await?;
                    let before = old.into_iter().find(|hit| hit.document.id == ours[0]);
                    document.text.push_str(&before.map(|hit| hit.document.text).unwrap_or_default());
                }
                self.0.add(scope, documents).await
            }),
            _ => self.0.add(scope, documents),
        }
    }

    fn remove<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<usize, SearchError>> {
        self.0.remove(scope, ids)
    }

    fn clear<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<(), SearchError>> {
        self.0.clear(scope)
    }

    fn find<'a>(
        &'a self,
        scope: &'a str,
        terms: &'a TermWeights,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found, SearchError>> {
        match self.1 {
            Flaw::ForgetsScopes => self.0.find("", terms, limit),
            Flaw::IgnoresLimits => self.0.find(scope, terms, limit.saturating_add(1)),
            Flaw::RanksByAge => Box::pin(async move {
                let mut found = self.0.find(scope, terms, limit).await?;
                found.hits.sort_by(|one, other| one.document.id.cmp(&other.document.id));
                Ok(found)
            }),
            Flaw::IgnoresWeights => Box::pin(async move {
                let equal = terms.keys().map(|term| (term.clone(), 1.0)).collect();
                self.0.find(scope, &equal, limit).await
            }),
            _ => self.0.find(scope, terms, limit),
        }
    }

    fn get<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        match self.1 {
            Flaw::ReadsInItsOwnOrder => Box::pin(async move {
                let mut documents = self.0.get(scope, ids).await?;
                documents.sort_by(|one, other| one.id.cmp(&other.id));
                Ok(documents)
            }),
            Flaw::ForgetsScopes => self.0.get("", ids),
            _ => self.0.get(scope, ids),
        }
    }

    fn search<'a>(
        &'a self,
        scope: &'a str,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        find_text(self, scope, query, limit)
    }

    fn count<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<usize, SearchError>> {
        match self.1 {
            Flaw::ForgetsScopes => self.0.count(""),
            _ => self.0.count(scope),
        }
    }
}

#[tokio::test]
async fn the_suite_finds_every_broken_duty() {
    let check = async |flaw: Flaw, expected: &str| {
        let suite = search_conformance(async |_| Arc::new(Broken(MemoryIndex::new(), flaw)));
        let found = std::panic::AssertUnwindSafe(suite).catch_unwind().await;
        let panic = found.expect_err(&format!("{flaw:?} went unnoticed"));
        let plain = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
        let message = panic.downcast_ref::<String>().cloned().or(plain).unwrap_or_default();
        assert!(message.contains(expected), "{flaw:?} was reported as: {message}");
    };
    check(Flaw::ForgetsScopes, "`get` must read one scope only").await;
    check(Flaw::IgnoresLimits, "a limit of nothing must find nothing").await;
    check(Flaw::RanksByAge, "heavier terms must count more").await;
    check(Flaw::KeepsWhatWasReplaced, "what was replaced must not be found").await;
    check(Flaw::IgnoresWeights, "heavier terms must count more").await;
    check(Flaw::ReadsInItsOwnOrder, "`get` must return").await;
    check(Flaw::TakesAnything, "what is too large must be refused").await;
}

#[tokio::test]
async fn layers_can_use_the_index_of_the_engine() {
    let scopes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = || {
        let seen = scopes.clone();
        layer::<String>(LayerSpec::new("notes", Slot::RAG, MemoryScope::Thread))
            .init(move |params| {
                seen.lock().unwrap().push(params.scope_key.clone());
                async move {
                    let document = SearchDocument::new("1", "tea is better than coffee");
                    params.ctx.search.add(&params.scope_key, vec![document]).await?;
                    Ok(InitResult { state: params.scope_key })
                }
            })
            .recall(|params| async move {
                let hits = params.ctx.search.search(&params.state, &params.query, 1).await?;
                Ok(hits.into_iter().map(|hit| hit.document.text).collect::<String>().into())
            })
            .build()
    };
    let (model, index) = (ScriptedModel::new(), Arc::new(MemoryIndex::new()));
    let with = engine(memory((notes(),))).model(model.clone()).search(index.clone()).build().unwrap();
    let mut execution = with.execution("thread").start().await.unwrap();
    execution.turn("which tea?").await.unwrap();
    assert!(model.last_texts()[0].contains("tea is better than coffee"), "{:?}", model.last_texts());
    let _other = with.execution("other").start().await.unwrap();
    let scopes = scopes.lock().unwrap().clone();
    assert!(scopes.len() == 2 && scopes[0] != scopes[1], "each thread has its own: {scopes:?}");
    assert_eq!(index.count(&scopes[0]).await.unwrap(), 1);

    let without = engine(memory((notes(),))).model(model).build().unwrap();
    let refused = without.execution("thread").start().await.map(drop).unwrap_err();
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.starts_with("this engine was built without a search index"), "{cause}");
}
