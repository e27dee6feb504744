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

use contexture_core::Slot;
use contexture_core::layer::BudgetConfig;

use crate::facts::{FactKind, FactMemory, Kind, SealedKind};

/// The default id of the layer.
pub const ID: &str = "observations";
/// The id of the layer that keeps the observations of a project.
pub const PROJECT_ID: &str = "observations-project";

/// The layer `observations`: see [the module](self).
pub type Observations = FactMemory<Observed>;

/// What happened and was decided, by date.
#[derive(Clone, Copy, Debug)]
pub enum Observed {}

impl FactKind for Observed {
    const ID: &'static str = ID;
    const PROJECT_ID: &'static str = PROJECT_ID;
    const NAME: &'static str = "Observations";
    const SLOT: Slot = Slot::OBSERVATIONS;
    const BUDGET: BudgetConfig = BudgetConfig::Range { min: 500, max: 2_500 };
}

impl SealedKind for Observed {
    const KIND: Kind = Kind::Observations;
}

#[cfg(test)]
mod tests {
    use contexture_core::testing::layer_conformance;

    use super::*;
    use crate::facts::Extraction;

    #[tokio::test]
    async fn conforms() {
        layer_conformance(Observations::new).await;
        layer_conformance(|| Observations::new().with_extraction(Extraction::by("small").with_batch_tokens(50))).await;
    }
}
