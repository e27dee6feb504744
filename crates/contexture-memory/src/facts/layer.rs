//! What the layers that keep facts do in common.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contexture_core::error::BoxError;
use contexture_core::id::{LayerId, ResourceId, ResourceKind};
use contexture_core::layer::*;
use contexture_files::dialect::Dialects;

use super::elsewhere::{SearchedScope, forget_in, repeats};
use super::evidence::names;
use super::extract::Kind;
use super::fact::{Fact, FactId, normal};
use super::learner::{EngineStore, Extraction, Learner, LearningMoment, SharedLearner, ms};
use super::relevance::{Subject, ranked};
use super::render::{FactLines, TITLES, line};
use super::set::Facts;
use super::stored::Place;
use crate::recall::{Passage, PastIndex};

/// How many of the newest items of a conversation are looked at when something is forgotten in it.
const MAX_KEPT_AWAY: usize = 2_000;

/// The names of what a scope itself is, whose facts may be shown for any query.
const OWN_ENTITIES: &[&str] = &["user", "me", "the user", "project", "the project", "this project", "conversation"];

fn is_own(entity: &str) -> bool {
    OWN_ENTITIES.iter().any(|own| own.eq_ignore_ascii_case(entity.trim()))
}

/// A layer that keeps facts of one kind for one kind of resource.
#[derive(Clone)]
pub(crate) struct FactLayer {
    id: LayerId,
    resource: ResourceKind,
    kind: Kind,
    extraction: Option<Extraction>,
    /// Under which names the arguments of tools are.
    dialects: Arc<Dialects>,
    learner: Option<SharedLearner>,
    /// Whether the model has no functions to change facts.
    is_read_only: bool,
    /// The engine's store, known since the first execution.
    store: EngineStore,
    /// Whether something was forgotten that the files of the store may still have.
    has_forgotten: Arc<AtomicBool>,
}

impl fmt::Debug for FactLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactLayer").field("id", &self.id).field("extraction", &self.extraction).finish_non_exhaustive()
    }
}

impl FactLayer {
    pub(crate) fn new(id: &str, kind: Kind) -> Self {
        Self {
            id: id.into(),
            resource: ResourceKind::user(),
            kind,
            extraction: None,
            dialects: Arc::default(),
            learner: None,
            is_read_only: false,
            store: Arc::default(),
            has_forgotten: Arc::default(),
        }
    }

    pub(crate) fn with_id(self, id: LayerId) -> Self {
        Self { id, ..self }.with_learner()
    }

    pub(crate) fn with_resource(self, resource: ResourceKind) -> Self {
        Self { resource, ..self }
    }

    pub(crate) fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    pub(crate) fn with_extraction(self, extraction: Extraction) -> Self {
        Self { extraction: Some(extraction), ..self }.with_learner()
    }

    pub(crate) fn with_dialects(self, dialects: Dialects) -> Self {
        Self { dialects: Arc::new(dialects), ..self }.with_learner()
    }

    pub(super) fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    fn with_learner(mut self) -> Self {
        let learner = |extraction: &Extraction| {
            let (id, dialects, store) = (self.id.clone(), self.dialects.clone(), self.store.clone());
            Arc::new(Learner::new(extraction.clone(), self.kind, id, dialects, store))
        };
        self.learner = self.extraction.as_ref().map(learner);
        self
    }

    pub(crate) fn id(&self) -> &LayerId {
        &self.id
    }

    pub(crate) fn resource(&self) -> &ResourceKind {
        &self.resource
    }

    pub(crate) fn provides(&self) -> LayerProvides<Facts> {
        let current = layer_data(|facts: &Facts| facts.current().cloned().collect::<Vec<Fact>>());
        let provides = LayerProvides::new().data("facts", current);
        if self.is_read_only { provides } else { self.functions(provides) }
    }

    pub(crate) async fn recall(&self, params: RecallParams<Facts>) -> HookResult<RecallResult<Facts>> {
        let RecallParams { log, query, ctx, state, budget, .. } = params;
        let learned = self.learned(&ctx, &state).await;
        let facts = learned.as_ref().unwrap_or(&state);
        if let Some(learner) = &self.learner {
            learner.begin_if_due(&ctx, &log, facts, LearningMoment::TurnBegins);
        }
        let subject = Subject::of(&query, &log);
        let Some((text, used)) = self.block(&ctx, facts, &subject, budget) else {
            return Ok(RecallResult { state: learned, ..RecallResult::nothing() });
        };
        let state = (!used.is_empty()).then(|| {
            let mut facts = facts.clone();
            facts.used(&used, ms(ctx.clock.now()));
            facts
        });
        Ok(RecallResult { state: state.or(learned), ..RecallResult::from(text) })
    }

    /// The block, and the facts in it that the query asks for.
    fn block(
        &self,
        ctx: &ExecutionContext,
        facts: &Facts,
        subject: &Subject,
        budget: u64,
    ) -> Option<(String, Vec<FactId>)> {
        let mut ranked = ranked(facts, subject);
        if self.kind == Kind::Entities {
            ranked.retain(|ranked| ranked.score > 0.0 || is_own(&ranked.fact.entity));
        }
        if ranked.is_empty() {
            return None;
        }
        let lines = FactLines {
            title: TITLES[usize::from(self.kind == Kind::Observations)],
            count: ranked.len(),
            line: |at: usize| {
                let fact = ranked[at].fact;
                line(fact, !is_own(&fact.entity) && !names(&fact.text, &fact.entity))
            },
            place: |at: usize| self.place(ranked[at].fact),
        };
        let (text, shown) = lines.fitted(ctx.counter(), &self.id, budget)?;
        let asked_for = ranked[..shown].iter().filter(|ranked| ranked.score > 0.0);
        Some((text, asked_for.map(|ranked| ranked.fact.id.clone()).collect()))
    }

    /// Where a fact is shown: by entity or by time, so that the order does not change with the query.
    fn place(&self, fact: &Fact) -> (String, u64, FactId) {
        let entity = if self.kind == Kind::Entities { normal(&fact.entity) } else { String::new() };
        (entity, fact.valid_from_ms, fact.id.clone())
    }

    pub(crate) async fn store(&self, params: StoreParams<Facts>) -> HookResult<StoreResult<Facts>> {
        let learned = self.learned(&params.ctx, &params.state).await;
        if let Some(learner) = &self.learner {
            let facts = learned.as_ref().unwrap_or(&params.state);
            learner.begin_if_due(&params.ctx, &params.log, facts, LearningMoment::Running);
        }
        Ok(learned.map_or_else(StoreResult::keep, StoreResult::set))
    }

    pub(crate) async fn on_complete(&self, params: CompleteParams<Facts>) -> HookResult<CompleteResult<Facts>> {
        let Some(learner) = &self.learner else { return Ok(CompleteResult::keep()) };
        let first = learner.collect(&params.ctx, &params.state, true).await;
        let facts = first.as_ref().unwrap_or(&params.state);
        learner.begin_if_due(&params.ctx, &params.log, facts, LearningMoment::Ending);
        let last = learner.collect(&params.ctx, facts, true).await;
        Ok(last.or(first).map_or_else(CompleteResult::keep, CompleteResult::set))
    }

    /// Removes what was forgotten from the files of the store, now that the state without it is written.
    pub(crate) async fn dispose(&self) {
        if let Some(store) = self.store.get().filter(|_| self.has_forgotten.swap(false, Ordering::Relaxed)) {
            // The fact is gone all the same, and somebody who reads just now is in the way for a moment only.
            let _ = store.scrub().await;
        }
    }

    /// What was learned in the background since the last hook.
    async fn learned(&self, ctx: &ExecutionContext, facts: &Facts) -> Option<Facts> {
        self.learner.as_ref()?.collect(ctx, facts, false).await
    }

    pub(crate) fn init(&self, params: InitParams<Facts>) -> InitResult<Facts> {
        // An engine has one store, so the first one is the one.
        self.store.get_or_init(|| params.storage.adapter().clone());
        params.stored.unwrap_or_default().into()
    }

    /// Removes what forgotten facts came from in the search index and the episodes of this conversation's scopes.
    pub(super) async fn forget_elsewhere(&self, ctx: &ExecutionContext, gone: &[Fact]) {
        self.has_forgotten.store(true, Ordering::Relaxed);
        let of_resource = |(kind, owner): (&ResourceKind, &ResourceId)| {
            let scope = if *kind == ResourceKind::user() { "resource".to_owned() } else { format!("resource.{kind}") };
            (Place::new("", scope, owner.as_str()), true)
        };
        let mut scopes: Vec<SearchedScope> = ctx.resources.iter().map(of_resource).collect();
        scopes.push((Place::new("", "thread", ctx.thread_id.as_str()), true));
        let store = self.store.get().map(|store| &**store);
        let keys: Vec<String> = scopes.iter().map(|(place, _)| place.scope_key()).collect();
        let forgotten = async {
            forget_in(store, &*ctx.search, scopes, gone).await?;
            self.keep_away(ctx, &keys, gone).await
        };
        if let Err(error) = forgotten.await {
            // Without an index there is nothing to remove; else the facts themselves are gone all the same.
            ctx.trace.add_event("not removed elsewhere", &[("error", error.to_string().as_str().into())]);
        }
    }

    /// Keeps out of the search index what this conversation repeats and the index does not have yet: of this turn, and the
    /// output and the answer that follow if the model forgets by a call, since an answer may say what was forgotten.
    async fn keep_away(&self, ctx: &ExecutionContext, scopes: &[String], gone: &[Fact]) -> Result<(), BoxError> {
        const FOLLOWING: usize = 2;
        let log = ctx.log();
        let thread = ctx.thread_id.as_str();
        let tells = |position: &usize| {
            let passage = Passage::of_log(thread, &log, *position, 0);
            passage.is_some_and(|passage| gone.iter().any(|fact| repeats(&passage.text, thread, fact)))
        };
        let newest = log.len().saturating_sub(MAX_KEPT_AWAY)..log.len();
        let following = if log.open_calls().next().is_some() { FOLLOWING } else { 0 };
        let positions: Vec<u64> =
            newest.filter(tells).chain(log.len()..log.len() + following).map(|position| position as u64).collect();
        for scope in scopes {
            PastIndex::new(ctx.search.clone(), scope).forget(thread, &positions).await?;
        }
        Ok(())
    }
}
