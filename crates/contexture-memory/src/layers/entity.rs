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

use contexture_core::Slot;
use contexture_core::layer::BudgetConfig;

use crate::facts::{FactKind, FactMemory, Kind, SealedKind};

/// The default id of the layer.
pub const ID: &str = "entity";
/// The id of the layer that keeps the facts of a project.
pub const PROJECT_ID: &str = "entity-project";

/// The layer `entity`: see [the module](self).
pub type Entity = FactMemory<Entities>;

/// Properties of people, projects and things.
#[derive(Clone, Copy, Debug)]
pub enum Entities {}

impl FactKind for Entities {
    const ID: &'static str = ID;
    const PROJECT_ID: &'static str = PROJECT_ID;
    const NAME: &'static str = "Entities";
    const SLOT: Slot = Slot::ENTITY;
    const BUDGET: BudgetConfig = BudgetConfig::Range { min: 200, max: 1_000 };
}

impl SealedKind for Entities {
    const KIND: Kind = Kind::Entities;
}

#[cfg(test)]
mod tests;
