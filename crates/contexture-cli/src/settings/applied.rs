//! Builds layers and the table of tools from a configuration.

use std::path::PathBuf;

use super::keys;
use super::resolved::Config;
use super::row::Command;
use contexture::facts::Extraction;
use contexture::files::dialect::Dialects;
use contexture::fold::Pins;
use contexture::layer::MemoryLayer;
use contexture::layers::working_memory::{Notes, WorkingMemory};
use contexture::layers::{
    Entity, Episodic, FileReferenceOptions, Instructions, Observations, Procedural, Reminder, SemanticRecall, Steering,
    TaskState,
};
use contexture::memory::MemoryConfig;
use contexture::recall::SharedEmbedder;

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
        self.get(&keys::TOOLS).into_iter().fold(Dialects::builtin(), Dialects::with)
    }

    /// What is never folded.
    pub fn pins(&self) -> Pins {
        let roles = self.get(&keys::PIN_ROLES).into_iter().fold(Pins::new(), Pins::role);
        let tools = self.get(&keys::PIN_TOOLS).into_iter().fold(roles, Pins::tool);
        self.get(&keys::PIN_PATHS).into_iter().fold(tools, Pins::path)
    }

    /// The options of the layer `file-reference`, for a base directory.
    pub fn file_reference(&self, base: PathBuf) -> FileReferenceOptions {
        FileReferenceOptions {
            base_dir: Some(base),
            slot: self.get(&keys::FILE_SLOT),
            max_file_size: self.get(&keys::MAX_FILE_BYTES),
            follow_symlinks: self.get(&keys::FOLLOW_SYMLINKS),
            allowed_extensions: self.get(&keys::ALLOWED_EXTENSIONS),
            read_concurrency: self.get(&keys::READ_CONCURRENCY),
            ..FileReferenceOptions::default()
        }
    }

    /// The layer `working-memory`, if there is a text for it. It shows that text and does not change it.
    pub fn working_memory(&self) -> Option<WorkingMemory> {
        let text = self.get(&keys::WORKING_MEMORY_TEXT)?;
        Some(WorkingMemory::new().with_template(Notes::Text(text)).read_only())
    }

    /// The layer `instructions`, if the window is to have it.
    pub fn instructions(&self) -> Option<Instructions> {
        self.get(&keys::INSTRUCTION_FILES).then(Instructions::new)
    }

    /// The layer `procedural`, if the window is to have it.
    pub fn procedural(&self) -> Option<Procedural> {
        self.get(&keys::SKILLS).unwrap_or(self.is_for(Command::Chat)).then(Procedural::new)
    }

    /// The layer `reminder`, if the window is to have it or there are reminders.
    pub fn reminder(&self) -> Option<Reminder> {
        let entries = self.get(&keys::REMINDERS);
        if entries.is_empty() && !self.get(&keys::REMINDER_TIME) {
            return None;
        }
        let with_entry =
            |layer: Reminder, entry| layer.with_entry(entry).expect("entries are checked when they are read");
        Some(entries.into_iter().fold(Reminder::new(), with_entry))
    }

    /// Adds the layers that `[layers]` and `[memory]` switch on, for a conversation and for its window alike.
    pub fn with_layers<Ls>(&self, memory: MemoryConfig<Ls>, remembering: &Remembering) -> MemoryConfig<Ls> {
        let memory = with_some(memory, self.procedural());
        let memory = with_some(memory, self.reminder());
        let memory =
            with_some(memory, self.get(&keys::TASK_STATE).unwrap_or(self.is_for(Command::Chat)).then(TaskState::new));
        if !self.get(&keys::MEMORY_ENABLED) {
            return memory;
        }
        let Remembering { embedder, extraction } = remembering;
        let entity = extraction.iter().cloned().fold(Entity::new(), Entity::with_extraction);
        let observations = extraction.iter().cloned().fold(Observations::new(), Observations::with_extraction);
        let memory = memory.with_layer(entity).with_layer(observations);
        let recall = embedder.iter().cloned().fold(SemanticRecall::new(), SemanticRecall::sharing_embedder);
        memory.with_layer(Episodic::new()).with_layer(recall)
    }

    /// The layer `steering`, if there are rules.
    pub fn steering(&self) -> Option<Steering> {
        let (rules, denies) = (self.get(&keys::STEERING_RULES), self.get(&keys::STEERING_DEFAULT));
        if rules.is_empty() && !denies {
            return None;
        }
        let layer = rules.into_iter().fold(Steering::new(), Steering::pattern);
        Some(if denies { layer.denying_by_default() } else { layer })
    }
}
