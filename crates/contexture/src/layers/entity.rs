//! `entity`: people, projects and things, and what is known of them.
//!
//! | | |
//! | --- | --- |
//! | slot | 150, [`Slot::ENTITY`] |
//! | scope | resource |
//! | budget | 200 to 1 000 tokens |
//! | band | by churn |
//! | tools | `entity/remember`, `entity/update`, `entity/forget`, `entity/history` |
//! | data | `facts` |
//!
//! A fact says something of an entity: a sentence, and where it has one, an attribute with its value. It has who said it
//! (the user, the assistant, a tool, a file), the items that it comes from, and a quote that must be in one of them, or it
//! is refused. A newer value takes the place of an older one only for the same entity and an attribute that has one value
//! at a time, such as `lives in`; what the user said gives way only to the user. The older value is kept, is shown no
//! longer, and `history` tells of it.
//!
//! **What is shown.** Facts about the user and the project, and those that have words in common with the query and the
//! newest messages; the most relevant first while they fit, in an order that does not depend on the query. Each is one
//! line with its name, its speaker and its date. What a tool or a file said is in quotes, and is refused if it reads as an
//! instruction: a file cannot tell the agent of a later conversation what to do.
//!
//! **How it learns.** Without a model, by its functions alone. With [`Entity::with_extraction`], a model reads what was
//! said, answered or returned by tools: when 6 000 tokens are new, when the provider's cache is cold anyway, and at the end
//! of an execution; in the background, so that no response waits. It has a model name and a daily token limit of its own,
//! may find nothing, and its cost is part of the execution's and in `facts.spent`. What layers made is never read, and an
//! answer that repeats what is remembered adds nothing.
//!
//! **Forgetting** removes a fact and its older values and leaves a mark without their text, so that they are not learned
//! again from the same items. The items that it came from leave the search over past conversations, and episodes that tell
//! of it are removed. Keys and tokens are redacted before anything is kept.
//!
//! **Whose facts.** By default the user's. [`Entity::of_project`] keeps those of a project under the id `entity-project`;
//! both can be in one memory, and `contexture::project::project_of` finds the project of a directory. A fact moves from a
//! project to its user only with a confirmation (`contexture memory edit --move-to`).
//!
//! If two processes change the facts at the same time, nothing that either learned is lost and nothing that either forgot
//! returns.
//!
//! ```
//! use contexture::facts::Remember;
//! use contexture::layers::Entity;
//! use contexture::prelude::*;
//! # use contexture::testing::ScriptedModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let model = ScriptedModel::new();
//! let engine = contexture::in_memory(memory((Entity::new(),))).model(model).build()?;
//! let execution = engine.execution("thread").resource("ada").start().await?;
//! let fact = Remember { text: "Ada lives in Paris.".into(), entity: "user".into(), ..Remember::default() };
//! execution.memory().call(Entity::REMEMBER, fact).await?;
//! assert_eq!(execution.memory().read(Entity::FACTS).unwrap()[0].text, "Ada lives in Paris.");
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use contexture_core::id::ResourceKind;
use contexture_core::item::Item;
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot};

use crate::facts::{Extraction, Fact, FactLayer, Facts, Forget, History, Kind, Remember, Update};
use crate::text::block::changed_lines;

/// The default id of the layer.
pub const ID: &str = "entity";
/// The id of the layer that keeps the facts of a project.
pub const PROJECT_ID: &str = "entity-project";

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 200, max: 1_000 };

/// The layer `entity`: see [the module](self).
#[derive(Clone, Debug)]
pub struct Entity {
    layer: FactLayer,
}

impl Entity {
    /// Returns the current facts, oldest first.
    pub const FACTS: LayerData<Entity, Vec<Fact>> = LayerData::new("facts");
    /// Remembers a fact.
    pub const REMEMBER: LayerFunction<Entity, Remember, String> = LayerFunction::new("remember");
    /// Corrects or ends a fact.
    pub const UPDATE: LayerFunction<Entity, Update, String> = LayerFunction::new("update");
    /// Forgets a fact.
    pub const FORGET: LayerFunction<Entity, Forget, String> = LayerFunction::new("forget");
    /// Tells what was true and when.
    pub const HISTORY: LayerFunction<Entity, History, String> = LayerFunction::new("history");

    /// Creates the layer for the facts of a user, without extraction.
    pub fn new() -> Self {
        Self { layer: FactLayer::new(ID, Kind::Entities) }
    }

    /// Creates the layer for the facts of a project, under the id `entity-project`.
    pub fn of_project() -> Self {
        Self::new().with_id(PROJECT_ID).with_resource(ResourceKind::project())
    }

    /// Sets another id.
    pub fn with_id(self, id: impl Into<LayerId>) -> Self {
        Self { layer: self.layer.with_id(id.into()) }
    }

    /// Sets the kind of resource that the facts belong to.
    pub fn with_resource(self, kind: impl Into<ResourceKind>) -> Self {
        Self { layer: self.layer.with_resource(kind.into()) }
    }

    /// Learns facts with a model.
    pub fn with_extraction(self, extraction: Extraction) -> Self {
        Self { layer: self.layer.with_extraction(extraction) }
    }
}

impl Default for Entity {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryLayer for Entity {
    type State = Facts;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.layer.id().clone(), Slot::ENTITY, MemoryScope::Resource)
            .with_name("Entities")
            .with_budget(BUDGET)
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

#[cfg(test)]
mod tests;
