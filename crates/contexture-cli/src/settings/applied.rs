//! Builds layers and the table of tools from a configuration.

use std::path::PathBuf;

use super::resolved::Config;
use contexture::facts::Extraction;
use contexture::files::dialect::Dialects;
use contexture::fold::Pins;
use contexture::id::ResourceKind;
use contexture::layer::MemoryLayer;
use contexture::layers::working_memory::{Notes, WorkingMemory};
use contexture::layers::{
    Entity, Episodic, FileHistory, FileReference, FileReferenceOptions, Instructions, Observations, Plan, Procedural,
    Reminder, SemanticRecall, Steering, TaskState,
};
use contexture::memory::{MemoryConfig, memory};
use contexture::recall::SharedEmbedder;

/// What the model is told if the configuration says nothing else.
const INSTRUCTIONS: &str = "You are a coding agent in the user's terminal. You work in one directory, with the tools that \
     you have. Read before you edit, make small edits, run the tests, and say in a few plain sentences what you did. \
     Answer questions without changing anything. If the user refuses something, ask or find another way.";

/// The layers that every conversation has.
pub type ConversationLayers = (WorkingMemory, Plan, FileReference, FileHistory, Steering);

/// What remembering layers use, if a person has named it.
#[derive(Clone, Debug, Default)]
pub struct Remembering {
    /// Finds passages by their meaning.
    pub embedder: Option<SharedEmbedder>,
    /// Learns facts with a model.
    pub extraction: Option<Extraction>,
}

/// The same memory with one more layer, if there is one.
fn with_some<Ls>(memory: MemoryConfig<Ls>, layer: Option<impl MemoryLayer>) -> MemoryConfig<Ls> {
    match layer {
        Some(layer) => memory.with_layer(layer),
        None => memory,
    }
}

impl Config {
    /// The built-in table of tools, and the `[[tool]]` entries.
    pub fn dialects(&self) -> Dialects {
        self.tool().into_iter().fold(Dialects::builtin(), Dialects::with)
    }

    /// What is never folded.
    pub fn pins(&self) -> Pins {
        let roles = self.pin_roles().into_iter().fold(Pins::new(), Pins::role);
        let tools = self.pin_tools().into_iter().fold(roles, Pins::tool);
        self.pin_paths().into_iter().fold(tools, Pins::path)
    }

    /// The options of the layer `file-reference`, for a base directory.
    pub fn file_reference(&self, base: PathBuf) -> FileReferenceOptions {
        FileReferenceOptions {
            base_dir: Some(base),
            slot: self.file_reference_slot(),
            max_file_size: self.file_reference_max_file_size(),
            follow_symlinks: self.file_reference_follow_symlinks(),
            allowed_extensions: self.file_reference_allowed_extensions(),
            read_concurrency: self.file_reference_read_concurrency(),
            ..FileReferenceOptions::default()
        }
    }

    /// The layer `working-memory`, which begins with the text of the configuration.
    fn working_memory(&self) -> WorkingMemory {
        let text = self.working_memory_text();
        text.map(Notes::Text).into_iter().fold(WorkingMemory::new(), WorkingMemory::with_template)
    }

    /// How the past of a conversation is shown.
    pub fn file_history(&self) -> FileHistory {
        let history = FileHistory::default().when(self.fold()).with_pins(self.pins());
        let history = history.with_dialects(self.dialects());
        if self.verbatim() { history.verbatim() } else { history }
    }

    /// What the model is told.
    pub fn told(&self) -> String {
        let told = Some(self.instructions()).filter(|text| !text.trim().is_empty());
        told.unwrap_or_else(|| INSTRUCTIONS.to_owned())
    }

    /// The layers of a conversation, for `chat` and for its window alike.
    pub fn conversation(
        &self,
        references: FileReference,
        history: FileHistory,
        steering: Steering,
        remembering: &Remembering,
    ) -> MemoryConfig<ConversationLayers> {
        let plan = Plan::new().with_dialects(self.dialects());
        let memory = memory((self.working_memory(), plan, references, history, steering));
        let memory = with_some(memory, self.layers_instructions_files().then(Instructions::new));
        let memory = with_some(memory, self.layers_procedural_skills().then(Procedural::new));
        let memory = with_some(memory, self.reminder());
        let memory = with_some(memory, self.layers_task_state_enabled().then(TaskState::new));
        if self.memory_enabled() { self.with_memory(memory, remembering) } else { memory }
    }

    /// Adds what is remembered beyond a conversation. What happened and was learned belongs to its project, and is shown in
    /// no other; what a person told for all projects is shown in all, and only people change it.
    fn with_memory<Ls>(&self, memory: MemoryConfig<Ls>, remembering: &Remembering) -> MemoryConfig<Ls> {
        let Remembering { embedder, extraction } = remembering;
        let learned = || extraction.iter().cloned();
        let told = || Entity::new().read_only();
        let entity = || learned().fold(Entity::of_project(), Entity::with_extraction);
        let observations = || learned().fold(Observations::of_project(), Observations::with_extraction);
        let episodic = || Episodic::new().with_resource(ResourceKind::project());
        let recall = || {
            let recall = SemanticRecall::new().with_resource(ResourceKind::project()).awaited();
            embedder.iter().cloned().fold(recall, SemanticRecall::sharing_embedder)
        };
        let memory = with_some(memory, self.layers_entity_enabled().then(told));
        let memory = with_some(memory, self.layers_entity_enabled().then(entity));
        let memory = with_some(memory, self.layers_observations_enabled().then(observations));
        let memory = with_some(memory, self.layers_episodic_enabled().then(episodic));
        with_some(memory, self.layers_semantic_recall_enabled().then(recall))
    }

    /// The layer `reminder`, if the window is to have it or there are reminders.
    fn reminder(&self) -> Option<Reminder> {
        let entries = self.layers_reminder_entry();
        if entries.is_empty() && !self.layers_reminder_time() {
            return None;
        }
        let with_entry =
            |layer: Reminder, entry| layer.with_entry(entry).expect("entries are checked when they are read");
        Some(entries.into_iter().fold(Reminder::new(), with_entry))
    }

    /// The layer `steering`, if there are rules.
    pub fn steering(&self) -> Option<Steering> {
        let (rules, denies) = (self.layers_steering_rule(), self.layers_steering_deny_by_default());
        if rules.is_empty() && !denies {
            return None;
        }
        let layer = rules.into_iter().fold(Steering::new(), Steering::pattern);
        Some(if denies { layer.denying_by_default() } else { layer })
    }
}
