//! The order of layers.

use serde::{Deserialize, Serialize};

/// A position in the order of layers; lower is recalled first.
///
/// Any number is allowed. Layers in the same slot keep the order in which they were registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub i32);

impl Slot {
    /// Date, time and reminders.
    pub const REMINDER: Slot = Slot(80);
    /// Rules over tool calls and responses.
    pub const STEERING: Slot = Slot(90);
    /// What the agent keeps in mind right now.
    pub const WORKING_MEMORY: Slot = Slot(100);
    /// People, projects and things.
    pub const ENTITY: Slot = Slot(150);
    /// Dated observations distilled from the conversation.
    pub const OBSERVATIONS: Slot = Slot(200);
    /// Skills and procedures.
    pub const PROCEDURAL: Slot = Slot(250);
    /// Finished runs and their outcomes.
    pub const EPISODIC: Slot = Slot(300);
    /// Documents and files.
    pub const RAG: Slot = Slot(350);
    /// Past items that are relevant to the query.
    pub const SEMANTIC_RECALL: Slot = Slot(400);
}
