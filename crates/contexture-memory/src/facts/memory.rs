//! The layer that keeps facts of one kind: `entity` and `observations` differ in what is said here of them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use contexture_core::id::ResourceKind;
use contexture_core::item::Item;
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot};
use contexture_files::dialect::Dialects;

use super::extract::Kind;
use super::fact::Fact;
use super::functions::{FactHistory, Forget, Remember, Update};
use super::layer::FactLayer;
use super::learner::Extraction;
use super::set::Facts;
use contexture_text::block::changed_lines;

/// The facts that a [`FactMemory`] keeps. Only this crate has kinds.
pub trait FactKind: sealed::Sealed + Send + Sync + 'static {
    /// The default id of the layer.
    const ID: &'static str;
    /// The id of the layer that keeps those of a project.
    const PROJECT_ID: &'static str;
    /// The name that people see.
    const NAME: &'static str;
    /// Where it is shown.
    const SLOT: Slot;
    /// How much is shown.
    const BUDGET: BudgetConfig;
}

pub(crate) mod sealed {
    /// Says which kind it is to the code that learns and shows facts.
    pub trait Sealed {
        const KIND: super::Kind;
    }
}

/// A layer that keeps facts of the kind `K`: [`Entity`](crate::layers::Entity) or
/// [`Observations`](crate::layers::Observations).
pub struct FactMemory<K> {
    layer: FactLayer,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for FactMemory<K> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for FactMemory<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layer.fmt(f)
    }
}

impl<K: FactKind> Default for FactMemory<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: FactKind> FactMemory<K> {
    /// Returns the current facts, oldest first.
    pub const FACTS: LayerData<Self, Vec<Fact>> = LayerData::new("facts");
    /// Remembers a fact.
    pub const REMEMBER: LayerFunction<Self, Remember, String> = LayerFunction::new("remember");
    /// Corrects or ends a fact.
    pub const UPDATE: LayerFunction<Self, Update, String> = LayerFunction::new("update");
    /// Forgets a fact.
    pub const FORGET: LayerFunction<Self, Forget, String> = LayerFunction::new("forget");
    /// Tells what was true and when.
    pub const HISTORY: LayerFunction<Self, FactHistory, String> = LayerFunction::new("history");

    /// Creates the layer for the facts of a user, without extraction.
    pub fn new() -> Self {
        Self::of(FactLayer::new(K::ID, K::KIND))
    }

    /// Creates the layer for the facts of a project, under the id [`FactKind::PROJECT_ID`].
    pub fn of_project() -> Self {
        Self::new().with_id(K::PROJECT_ID).with_resource(ResourceKind::project())
    }

    /// Sets another id.
    pub fn with_id(self, id: impl Into<LayerId>) -> Self {
        Self::of(self.layer.with_id(id.into()))
    }

    /// Sets the kind of resource that the facts belong to.
    pub fn with_resource(self, kind: impl Into<ResourceKind>) -> Self {
        Self::of(self.layer.with_resource(kind.into()))
    }

    /// Shows facts, and gives the model no functions to change them: people do.
    pub fn read_only(self) -> Self {
        Self::of(self.layer.read_only())
    }

    /// Learns facts with a model.
    pub fn with_extraction(self, extraction: Extraction) -> Self {
        Self::of(self.layer.with_extraction(extraction))
    }

    /// Sets the table of tools, which says under which names the arguments of a tool are: a file that it read is known by
    /// it. Default: the built-in table.
    pub fn with_dialects(self, dialects: Dialects) -> Self {
        Self::of(self.layer.with_dialects(dialects))
    }

    fn of(layer: FactLayer) -> Self {
        Self { layer, kind: PhantomData }
    }
}

impl<K: FactKind> MemoryLayer for FactMemory<K> {
    type State = Facts;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.layer.id().clone(), K::SLOT, MemoryScope::Resource)
            .with_name(K::NAME)
            .with_budget(K::BUDGET)
            .with_resource(self.layer.resource().clone())
    }

    fn provides(&self) -> LayerProvides<Facts> {
        self.layer.provides()
    }

    async fn init(&self, params: InitParams<Facts>) -> HookResult<InitResult<Facts>> {
        Ok(self.layer.init(params))
    }

    async fn recall(&self, params: RecallParams<Facts>) -> HookResult<RecallResult<Facts>> {
        self.layer.recall(params).await
    }

    async fn store(&self, params: StoreParams<Facts>) -> HookResult<StoreResult<Facts>> {
        self.layer.store(params).await
    }

    async fn on_complete(&self, params: CompleteParams<Facts>) -> HookResult<CompleteResult<Facts>> {
        self.layer.on_complete(params).await
    }

    async fn dispose(&self, _: DisposeParams<Facts>) -> HookResult<()> {
        self.layer.dispose().await;
        Ok(())
    }

    async fn on_spawn(&self, params: SpawnParams<Facts>) -> HookResult<SpawnResult<Facts>> {
        Ok(SpawnResult::state((*params.parent_state).clone()))
    }

    async fn on_return(&self, params: ReturnParams<Facts>) -> HookResult<ReturnResult<Facts>> {
        Ok(ReturnResult::state(params.child_state.merged(&params.parent_state)))
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        changed_lines(pinned, current)
    }

    fn merge(&self, ours: &Facts, theirs: &Facts) -> Option<Facts> {
        Some(ours.merged(theirs))
    }
}
