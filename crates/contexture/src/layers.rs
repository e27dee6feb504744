//! Built-in layers: one file each, its manual page on top.
//!
//! Built-in layers use only the public API and no other layer. [`working_memory`] is a good example to copy.
//! [`built_in`] lists them all.

pub mod working_memory;
pub mod reminder;
pub mod temporal;
pub mod steering;
pub mod instructions;
pub mod task_state;
pub mod plan;
pub mod procedural;
pub mod tool_memory;
pub mod history_window;
pub mod file_reference;
pub mod file_history;
mod catalog;

pub use contexture_memory::layers::{
    Entity, Episodic, Observations, SemanticRecall, entity, episodic, observations, semantic_recall,
};

pub use catalog::{BuiltIn, built_in};
pub use file_history::FileHistory;
pub use file_reference::{FileReference, FileReferenceOptions};
pub use history_window::HistoryWindow;
pub use instructions::Instructions;
pub use plan::Plan;
pub use procedural::Procedural;
pub use reminder::Reminder;
pub use steering::Steering;
pub use task_state::TaskState;
pub use temporal::Temporal;
pub use tool_memory::ToolMemory;
pub use working_memory::WorkingMemory;
