//! `semantic-recall`: what past conversations say about the newest message, in short excerpts with dates.
//!
//! | | |
//! | --- | --- |
//! | slot | 400, [`Slot::SEMANTIC_RECALL`] |
//! | scope | resource, or thread |
//! | budget | 0 to 4 000 tokens |
//! | band | live |
//! | tool | `semantic-recall/search` |
//!
//! After every response the layer adds what was said, called and returned since to the host's search index
//! (`EngineBuilder::search`), in the scope of the user: all conversations of one
//! user are searched, and those of nobody else. The index is durable and grows item by item; it is never built again at a
//! start. Without an index the layer shows nothing.
//!
//! With a new message the layer looks for passages that fit it: by words with their stems (in Chinese, Japanese and Korean
//! by characters and pairs of them), by related words (`instrument` finds `guitar`), and by who said it, when, and what is around
//! it. With an [`Embedder`], what was said in quite other words is found too. Excerpts have about 150 tokens and are
//! shown with day and speaker: the best one of each conversation first, then the others. Where a passage is shown that the
//! same speaker said again later with other words, the later one is shown too. If no passage has enough of the message's words, nothing is shown. What the window
//! shows anyway is left out.
//!
//! Only what was said, and what tools returned with their calls, is searched: never what a layer made, so that memory does
//! not feed on itself, nor instructions and reasoning. What tools returned is found by rare words only. Child executions
//! add nothing; what they found is in their result.
//! [`PastIndex::forget`] removes passages so that they do not come back.
//!
//! No model call waits for it: the search starts when the message arrives and runs while the message is stored. If it is
//! not done when the request is built, the request has the passages of the message before, and the next one of the turn
//! has the new ones. With [`SemanticRecall::awaited`] a turn waits for it instead.
//!
//! The model searches with other words through `search`, which fills 2 000 tokens with the best there is. Programs use [`PastIndex`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_core::history::Part;
use contexture_core::id::ResourceKind;
use contexture_core::item::{Item, Role};
use contexture_core::layer::*;
use contexture_core::search::SearchError;
use contexture_core::{ItemLog, LayerId, Slot, ThreadId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recall::{Embedder, Extent, PastIndex, PastQuery, SharedEmbedder};
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "semantic-recall";
/// The most threads of which it is remembered how much was added; of others the index is asked.
const MAX_THREADS: usize = 64;
/// The most threads whose visible items are remembered.
const MAX_VISIBLE: usize = 64;
/// Before the first request, the newest items of this many tokens are taken to be visible.
const VISIBLE_TOKENS: u64 = 32_000;
/// The most tokens of what `search` returns.
const SEARCH_TOKENS: u64 = 2_000;

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 0, max: 4_000 };

/// The layer `semantic-recall`: see [the module](self).
#[derive(Clone, Default)]
pub struct SemanticRecall {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    /// Whose it is.
    resource: ResourceKind,
    scope: Option<MemoryScope>,
    embedder: Option<SharedEmbedder>,
    /// Whether a turn waits for the search.
    is_awaited: bool,
    /// What the last request of each thread showed of its log. It is observed anew with every request.
    visible: Arc<Mutex<HashMap<ThreadId, Vec<Range<usize>>>>>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SemanticRecallState {
    version: StateVersion<1>,
    /// The scope of the documents.
    scope_key: String,
    /// How many items of each thread were added.
    added: BTreeMap<String, usize>,
    /// Counts messages, so that a new one is a change.
    messages: u64,
    /// The newest message, and how much may be shown. It is needed before the message is in the log.
    #[serde(skip)]
    asked: Option<SemanticRecallInput>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct SemanticRecallInput {
    text: String,
    budget: u64,
    /// Whether a request after the first of the turn asked for the result again.
    again: bool,
}

/// What `semantic-recall/search` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// Words.
    pub text: String,
}

impl SemanticRecall {
    /// Searches past conversations; returns the passages as text.
    pub const SEARCH: LayerFunction<SemanticRecall, Search, String> = LayerFunction::new("search");

    /// Creates the layer for all conversations of a user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the kind of resource that the conversations belong to. Default: the user.
    pub fn with_resource(mut self, kind: impl Into<ResourceKind>) -> Self {
        self.resource = kind.into();
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Sets another scope.
    pub fn with_scope(mut self, scope: MemoryScope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Has every turn wait for the search, so that its first request has what was found: for conversations with people, who
    /// do not notice it.
    pub fn awaited(mut self) -> Self {
        self.is_awaited = true;
        self
    }

    /// Searches also by meaning, with vectors of this embedder.
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        self.sharing_embedder(SharedEmbedder::new(embedder))
    }

    /// The same with an embedder that others use too.
    pub fn sharing_embedder(mut self, embedder: SharedEmbedder) -> Self {
        self.embedder = Some(embedder);
        self
    }

    fn past(&self, ctx: &ExecutionContext, scope_key: &str) -> PastIndex {
        let past = PastIndex::new(ctx.search.clone(), scope_key);
        match &self.embedder {
            Some(embedder) => past.sharing_embedder(embedder.clone()),
            None => past,
        }
    }

    fn visible(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<Range<usize>>>> {
        // Every change is a single insertion.
        self.visible.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of a log the window shows, as far as that is known.
    fn visible_of(&self, thread: &ThreadId, log: &ItemLog) -> Vec<Range<usize>> {
        let mut ranges = self.visible().get(thread).cloned().unwrap_or_else(|| {
            let hidden = (0..log.len()).rev().find(|start| log.range_tokens(*start..log.len()) > VISIBLE_TOKENS);
            std::iter::once(hidden.map_or(0, |hidden| hidden + 1)..log.len()).collect()
        });
        // What came after the last request is in the next one.
        let known = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        ranges.push(known..usize::MAX);
        ranges
    }

    /// Adds what is new in a log to the index, and returns the state after it.
    async fn add_new(
        &self,
        ctx: &ExecutionContext,
        log: &ItemLog,
        state: &SemanticRecallState,
    ) -> HookResult<Option<SemanticRecallState>> {
        if ctx.depth > 0 || log.is_empty() {
            return Ok(None);
        }
        let thread = ctx.thread_id.as_str();
        let past = self.past(ctx, &state.scope_key);
        let from = match state.added.get(thread) {
            Some(added) => (*added).min(log.len()),
            None => first_new(&past, thread, log).await.or_else(nothing_without_index)?.unwrap_or(log.len()),
        };
        if from >= log.len() {
            return Ok(None);
        }
        let now_ms = u64::try_from(ctx.clock.now().as_millis()).unwrap_or(u64::MAX);
        if past.add_log(thread, log, from, now_ms).await.map(Some).or_else(nothing_without_index)?.is_none() {
            return Ok(None);
        }
        let mut state = state.clone();
        state.added.insert(thread.to_owned(), log.len());
        while state.added.len() > MAX_THREADS {
            let other = state.added.keys().find(|other| *other != thread).cloned();
            other.map(|other| state.added.remove(&other));
        }
        Ok(Some(state))
    }
}

/// An engine without an index has nothing to search.
fn nothing_without_index<T>(error: SearchError) -> Result<Option<T>, SearchError> {
    match error {
        SearchError::NoIndex => Ok(None),
        error => Err(error),
    }
}

/// The first item of a thread that the index does not have, if the state does not know.
async fn first_new(past: &PastIndex, thread: &str, log: &ItemLog) -> Result<Option<usize>, SearchError> {
    for position in (0..log.len()).rev() {
        let is_searched = crate::recall::Passage::of_log(thread, log, position, 0).is_some();
        if is_searched && past.has(thread, position as u64).await? {
            return Ok(Some(position + 1));
        }
        // Only the newest are looked up: a thread that was never added has none of them.
        if log.len() - position > 64 {
            break;
        }
    }
    Ok(Some(0))
}

impl MemoryLayer for SemanticRecall {
    type State = SemanticRecallState;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), Slot::SEMANTIC_RECALL, self.scope.unwrap_or(MemoryScope::Resource))
            .with_name("Semantic recall")
            .with_budget(BUDGET)
            .with_resource(self.resource.clone())
            .with_placement(Placement::Live)
            .with_recall_mode(if self.is_awaited { RecallMode::default() } else { RecallMode::Eventual })
    }

    fn provides(&self) -> LayerProvides<SemanticRecallState> {
        let layer = self.clone();
        let search = layer_fn(
            "Searches past conversations.",
            move |input: Search, state: Arc<SemanticRecallState>, ctx: ExecutionContext| {
                let layer = layer.clone();
                async move {
                    let log = ctx.log();
                    let visible = layer.visible_of(&ctx.thread_id, &log);
                    let query = PastQuery {
                        text: &input.text,
                        now_ms: u64::try_from(ctx.clock.now().as_millis()).unwrap_or(u64::MAX),
                        budget: SEARCH_TOKENS,
                        counter: ctx.counter(),
                        // Who asks for it wants the best there is.
                        extent: Extent::Full,
                        visible: Some((ctx.thread_id.as_str(), &visible)),
                    };
                    let found = layer.past(&ctx, &state.scope_key).search(query).await?;
                    let text = if found.text.is_empty() { "nothing was found".to_owned() } else { found.text };
                    Ok(FnResult::new(text))
                }
            },
        );
        LayerProvides::new().function(Self::SEARCH.name(), search)
    }

    async fn init(&self, params: InitParams<SemanticRecallState>) -> HookResult<InitResult<SemanticRecallState>> {
        let InitParams { scope_key, ctx, stored, .. } = params;
        let is_new_thread = stored.is_none() && scope_key.starts_with("thread:") && ctx.log().is_empty();
        if is_new_thread && ctx.depth == 0 {
            // A deleted thread had the same name.
            let past = self.past(&ctx, &scope_key);
            past.clear().await.map(Some).or_else(nothing_without_index)?;
        }
        Ok(InitResult { state: SemanticRecallState { scope_key, ..stored.unwrap_or_default() } })
    }

    async fn on_item_append(
        &self,
        params: OnItemAppendParams<SemanticRecallState>,
    ) -> HookResult<OnItemAppendResult<SemanticRecallState>> {
        let OnItemAppendParams { items, state, budget, .. } = params;
        let said = items.iter().rev().find(|item| item.is_message_of(Role::User)).and_then(Item::as_message);
        if let Some(message) = said {
            let asked = Some(SemanticRecallInput { text: message.text(), budget, again: false });
            let state = SemanticRecallState { asked, messages: state.messages + 1, ..(*state).clone() };
            return Ok(OnItemAppendResult::items(items).with_state(state));
        }
        let Some(asked) = state.asked.as_ref().filter(|asked| !asked.again && !self.is_awaited) else {
            return Ok(OnItemAppendResult::items(items));
        };
        // The first tool output of a turn: by now the search is done, if it was not before.
        let asked = Some(SemanticRecallInput { again: true, ..asked.clone() });
        let state = SemanticRecallState { asked, ..(*state).clone() };
        let rerender = Rerender { timing: Some(RerenderTiming::Immediate), scope: RerenderScope::OwnLayer };
        Ok(OnItemAppendResult::items(items).with_state(state).with_rerender(rerender))
    }

    async fn recall(&self, params: RecallParams<SemanticRecallState>) -> HookResult<RecallResult<SemanticRecallState>> {
        let RecallParams { log, query, ctx, state, budget, .. } = params;
        let asked = state.asked.as_ref();
        let text = asked.map_or(&*query, |asked| asked.text.as_str());
        let budget = asked.map_or(budget, |asked| asked.budget.min(budget));
        if text.trim().is_empty() {
            return Ok(RecallResult::nothing());
        }
        let visible = self.visible_of(&ctx.thread_id, &log);
        let query = PastQuery {
            text,
            now_ms: u64::try_from(ctx.clock.now().as_millis()).unwrap_or(u64::MAX),
            budget,
            counter: ctx.counter(),
            extent: Extent::Fitting,
            visible: Some((ctx.thread_id.as_str(), &visible)),
        };
        let found = self.past(&ctx, &state.scope_key).search(query).await.map(Some).or_else(nothing_without_index)?;
        Ok(found.unwrap_or_default().text.into())
    }

    async fn project_history(
        &self,
        params: ProjectHistoryParams<SemanticRecallState>,
    ) -> HookResult<ProjectHistoryResult> {
        let shown = params.history.parts().iter().filter_map(|part| match part {
            Part::Log(range) => Some(range.clone()),
            Part::Item(_) => None,
        });
        let shown = shown.collect();
        let mut visible = self.visible();
        if visible.len() >= MAX_VISIBLE && !visible.contains_key(&params.ctx.thread_id) {
            visible.clear();
        }
        visible.insert(params.ctx.thread_id.clone(), shown);
        drop(visible);
        Ok(params.history.into())
    }

    async fn store(&self, params: StoreParams<SemanticRecallState>) -> HookResult<StoreResult<SemanticRecallState>> {
        let added = self.add_new(&params.ctx, &params.log, &params.state).await?;
        Ok(added.map_or_else(StoreResult::keep, StoreResult::set))
    }

    async fn on_complete(
        &self,
        params: CompleteParams<SemanticRecallState>,
    ) -> HookResult<CompleteResult<SemanticRecallState>> {
        let added = self.add_new(&params.ctx, &params.log, &params.state).await?;
        Ok(added.map_or_else(CompleteResult::keep, CompleteResult::set))
    }

    fn merge(&self, ours: &SemanticRecallState, theirs: &SemanticRecallState) -> Option<SemanticRecallState> {
        let mut merged = ours.clone();
        for (thread, added) in &theirs.added {
            let known = merged.added.entry(thread.clone()).or_default();
            *known = (*known).max(*added);
        }
        Some(merged)
    }
}
