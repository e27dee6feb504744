//! The list of built-in layers, with what each says about itself.

use contexture_core::layer::{BudgetConfig, LayerDecl, MemoryLayer, MemoryScope, Placement, tools_of};
use contexture_core::model::ToolSchema;
use contexture_core::tokens::TokenCounter;
use contexture_core::{LayerId, Slot};
use serde::Serialize;

use super::*;

/// A description of a built-in layer that does not need an instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BuiltIn {
    /// Its id.
    pub id: LayerId,
    /// Its slot among the layers.
    pub slot: Slot,
    /// The default scope of its state.
    pub scope: MemoryScope,
    /// Its token budget.
    pub budget: BudgetConfig,
    /// The band of its block.
    pub placement: Placement,
    /// The functions that the model can call.
    pub tools: Vec<String>,
    /// The tools as the model is offered them: one for each function, or one for all.
    pub definitions: Vec<ToolSchema>,
    /// Its purpose in one line.
    pub says: &'static str,
}

impl BuiltIn {
    /// How many tokens the definitions of its tools take in every request.
    pub fn tool_tokens(&self, counter: &dyn TokenCounter) -> u64 {
        self.definitions.iter().map(|tool| tool.tokens(counter)).sum()
    }
}

/// All built-in layers with their defaults, by slot.
pub fn built_in() -> Vec<BuiltIn> {
    let file_reference = FileReference::new(FileReferenceOptions::default()).expect("the defaults are accepted");
    let mut layers = vec![
        entry(&Reminder::new(), "the date and time, a note after a long pause, and reminders when they are due"),
        entry(&Temporal::new(), "the time, the pause since the last turn, and a ledger of dated events"),
        entry(&Steering::new(), "rules that tool calls and responses are held against"),
        entry(&WorkingMemory::new(), "what the model itself wants to keep in mind"),
        entry(&Instructions::new(), "what a project and its user ask of every agent, from AGENTS.md and CLAUDE.md"),
        entry(&TaskState::new(), "how far a task has come, what it made, and the data that it needs"),
        entry(&Plan::new(), "what is to be done, step by step, agreed on before it is done"),
        entry(&ToolMemory::new(), "files that the model keeps for itself, and state that tools declare"),
        entry(&Entity::new(), "people, projects and things, and what is known of them"),
        entry(&Observations::new(), "what happened in earlier conversations, as dated notes"),
        entry(&Procedural::new(), "skills, which are folders with a SKILL.md, listed cheaply and opened on demand"),
        entry(&HistoryWindow::default(), "shows only the newest items of the past"),
        entry(&FileHistory::default(), "shows the past of a coding agent by what it knows about files"),
        entry(&Episodic::new(), "what earlier runs were for, how they ended, which files they changed and what failed"),
        entry(
            &SemanticRecall::new(),
            "what past conversations say about the newest message, in short excerpts with dates",
        ),
        entry(&file_reference, "shows the model the files that the user names in messages"),
    ];
    layers.sort_by_key(|layer| layer.slot);
    layers
}

fn entry<L: MemoryLayer>(layer: &L, says: &'static str) -> BuiltIn {
    let spec = layer.spec();
    let provides = layer.provides();
    let is_tool =
        |decl: &LayerDecl<L::State>| matches!(decl, LayerDecl::Function(function) if !function.is_for_program());
    let functions = provides.entries().iter().filter(|(_, decl)| is_tool(decl));
    let tools = functions.map(|(name, _)| format!("{}/{name}", spec.id)).collect();
    let (slot, scope, budget, placement) = (spec.slot, spec.scope, spec.budget, spec.placement);
    BuiltIn { id: spec.id, slot, scope, budget, placement, tools, definitions: tools_of(layer), says }
}
