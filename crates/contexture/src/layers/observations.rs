//! `observations`: what happened in earlier conversations, as dated notes.
//!
//! | | |
//! | --- | --- |
//! | slot | 200, [`Slot::OBSERVATIONS`] |
//! | scope | resource |
//! | budget | 500 to 2 500 tokens |
//! | band | by churn |
//! | tools | `observations/remember`, `observations/update`, `observations/forget`, `observations/history` |
//! | data | `facts` |
//!
//! An observation is a sentence about what happened, was decided or failed, with its date and who said it. It is the same
//! record as a fact of `entity`, mostly without attribute and value: the items that it comes from, a quote that must be
//! in one of them, and the rules for forgetting, redaction and merging are the same.
//!
//! **What is shown.** As many as fit, in order of time: those that have words in common with the query and the newest
//! messages first, then the newest. What a tool or a file said is in quotes, and is refused if it reads as an instruction.
//!
//! **How it learns.** Without a model, by its functions alone. With [`Observations::with_extraction`], a model distils the
//! conversation when 6 000 tokens are new, when the provider's cache is cold anyway, and at the end of an execution; in
//! the background, with a model name and a daily token limit of its own. When the notes have 2 000 tokens, a reflection
//! condenses the older ones: what it replaces is kept and hidden, `history` tells of it, and a reflection that is not
//! smaller than what it replaces is refused. Notes that a person confirmed are never condensed.
//!
//! [`Observations::of_project`] keeps those of a project, under the id `observations-project`.
//!
//! ```
//! use contexture::facts::Remember;
//! use contexture::layers::Observations;
//! use contexture::prelude::*;
//! # use contexture::testing::ScriptedModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let model = ScriptedModel::new();
//! let engine = contexture::in_memory(memory((Observations::new(),))).model(model).build()?;
//! let execution = engine.execution("thread").resource("ada").start().await?;
//! let note = Remember { text: "The release was moved to May.".into(), entity: "project".into(), ..Remember::default() };
//! execution.memory().call(Observations::REMEMBER, note).await?;
//! assert_eq!(execution.memory().read(Observations::FACTS).unwrap().len(), 1);
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
pub const ID: &str = "observations";
/// The id of the layer that keeps the observations of a project.
pub const PROJECT_ID: &str = "observations-project";

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 500, max: 2_500 };

/// The layer `observations`: see [the module](self).
#[derive(Clone, Debug)]
pub struct Observations {
    layer: FactLayer,
}

impl Observations {
    /// Returns the current observations, oldest first.
    pub const FACTS: LayerData<Observations, Vec<Fact>> = LayerData::new("facts");
    /// Remembers a fact.
    pub const REMEMBER: LayerFunction<Observations, Remember, String> = LayerFunction::new("remember");
    /// Corrects or ends a fact.
    pub const UPDATE: LayerFunction<Observations, Update, String> = LayerFunction::new("update");
    /// Forgets a fact.
    pub const FORGET: LayerFunction<Observations, Forget, String> = LayerFunction::new("forget");
    /// Tells what was true and when.
    pub const HISTORY: LayerFunction<Observations, History, String> = LayerFunction::new("history");

    /// Creates the layer for the observations of a user, without extraction.
    pub fn new() -> Self {
        Self { layer: FactLayer::new(ID, Kind::Observations) }
    }

    /// Creates the layer for the observations of a project, under the id `observations-project`.
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

impl Default for Observations {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryLayer for Observations {
    type State = Facts;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.layer.id().clone(), Slot::OBSERVATIONS, MemoryScope::Resource)
            .with_name("Observations")
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
mod tests {
    use contexture_core::testing::layer_conformance;

    use super::*;

    #[tokio::test]
    async fn conforms() {
        layer_conformance(Observations::new).await;
        layer_conformance(|| Observations::new().with_extraction(Extraction::by("small").with_batch_tokens(50))).await;
    }
}
