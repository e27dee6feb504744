//! `tool-memory`: files that the model keeps for itself, and state that tools declare.
//!
//! | | |
//! | --- | --- |
//! | slot | 110 |
//! | scope | resource, or execution |
//! | budget | auto |
//! | band | by churn, with a delta of the lines that changed |
//! | tools | `tool-memory/memory`, `tool-memory/set_state` |
//! | data | `files`, `states` |
//!
//! `memory` has the six commands of the public memory tool, so that models that were trained on it feel at home: `view`,
//! `create`, `str_replace`, `insert`, `delete` and `rename`, beneath `/memories`. The files are part of the layer's state
//! and not of any disk: no path leads anywhere else. The block lists them; their contents are read with `view`. There are
//! at most [`MAX_FILES`] files of [`MAX_FILE_BYTES`] each, and [`MAX_TOTAL_BYTES`] in all.
//!
//! A tool of the program may keep a state of its own here. It is declared with [`declare`](ToolMemory::declare), with a
//! JSON schema, set by the program through [`ToolMemory::SET_STATE`], and shown to the model, which cannot set it: such a
//! call is denied. What breaks the schema is refused and changes nothing.
//!
//! In the resource's scope the memory outlives the conversation and is shared by all threads of a user or project; in the
//! execution's it ends with the run. A child starts with a copy and brings back what it changed itself. If two processes
//! change the memory at the same time, no edit is lost: a file has the lines that either added, without those that either
//! removed, which may make it longer than the limit; a file that either deleted is gone; of the states, what was set last
//! holds. Keys and tokens are [redacted](crate::redact) before a file is kept. No model is needed.

mod commands;

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_core::error::SpecError;
use contexture_core::item::Item;
use contexture_core::layer::*;
use contexture_core::schema::Schema;
use contexture_core::{LayerId, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::commands::MemoryCommand;
use contexture_text::block::{changed_lines, fit_parts, start_of};
use contexture_text::one_line::one_line;
use contexture_text::revised::Revised;
use contexture_text::state_version::StateVersion;
use contexture_text::united::united;

/// The id of the layer.
pub const ID: &str = "tool-memory";
/// Most files.
pub const MAX_FILES: usize = 200;
/// Largest file.
pub const MAX_FILE_BYTES: usize = 64 * 1024;
/// Largest total size of all files.
pub const MAX_TOTAL_BYTES: usize = 1024 * 1024;
/// Largest state of one tool, as JSON.
pub const MAX_STATE_BYTES: usize = 16 * 1024;

const SLOT: Slot = Slot(110);
/// Most bytes of a tool's state that are shown.
const SHOWN_STATE_BYTES: usize = 2_000;

/// The layer `tool-memory`: see [the module](self).
#[derive(Clone, Debug)]
pub struct ToolMemory {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    scope: MemoryScope,
    tools: BTreeMap<String, Arc<Schema>>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolMemoryState {
    version: StateVersion<1>,
    files: Revised<String>,
    states: Revised<Value>,
}

/// What `tool-memory/set_state` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetState {
    /// The tool, as it was declared.
    pub tool: String,
    /// Its state from now on.
    pub state: Value,
}

impl ToolMemory {
    /// Returns the files by path.
    pub const FILES: LayerData<ToolMemory, BTreeMap<String, String>> = LayerData::new("files");
    /// Returns the states of tools, by name.
    pub const STATES: LayerData<ToolMemory, BTreeMap<String, Value>> = LayerData::new("states");
    /// The six commands.
    pub const MEMORY: LayerFunction<ToolMemory, MemoryCommand, String> = LayerFunction::new("memory");
    /// Sets the state of a tool; for the program only.
    pub const SET_STATE: LayerFunction<ToolMemory, SetState, String> = LayerFunction::new("set_state");

    /// Creates a memory that all threads of a user share, without tools.
    pub fn new() -> Self {
        Self { id: None, scope: MemoryScope::Resource, tools: BTreeMap::new() }
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Sets another scope.
    pub fn with_scope(mut self, scope: MemoryScope) -> Self {
        self.scope = scope;
        self
    }

    /// Adds a tool with a state that must match a JSON schema.
    ///
    /// # Errors
    /// The schema is invalid, or uses keywords that [`Schema`] cannot check.
    pub fn declare(mut self, tool: impl Into<String>, schema: &Value) -> Result<Self, SpecError> {
        let schema = Schema::new(schema).map_err(|problem| SpecError::layer(ID, "schema", problem))?;
        self.tools.insert(tool.into(), Arc::new(schema));
        Ok(self)
    }

    fn set_state(&self, input: SetState, state: &ToolMemoryState) -> Result<ToolMemoryState, String> {
        let SetState { tool, state: value } = input;
        let schema = self.tools.get(&tool).ok_or_else(|| format!("no tool `{}` is declared", one_line(&tool)))?;
        schema.check(&value)?;
        let bytes = value.to_string().len();
        if bytes > MAX_STATE_BYTES {
            return Err(format!("the state has {bytes} bytes, more than {MAX_STATE_BYTES}"));
        }
        let mut state = state.clone();
        state.states.set(&tool, value);
        Ok(state)
    }
}

impl ToolMemoryState {
    /// The files by path, and the states of tools.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        let files = self.files.iter().map(|(path, text)| (path.to_owned(), text.clone()));
        let states = self.states.iter().map(|(tool, value)| (format!("state of {tool}"), value.to_string()));
        files.chain(states).collect()
    }

    /// Deletes a file or directory; `false` if it is not there.
    pub(crate) fn delete(&mut self, path: &str) -> bool {
        commands::run(MemoryCommand::Delete { path: path.to_owned() }, &mut self.files).is_ok()
    }

    /// Everything as lines.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (tool, value) in self.states.iter() {
            let value = value.to_string();
            lines.push(format!("- state of `{}`: {}", one_line(tool), start_of(&value, SHOWN_STATE_BYTES)));
        }
        for (path, text) in self.files.newest() {
            lines.push(format!("- `{}` ({} bytes)", one_line(path), text.len()));
        }
        lines
    }
}

impl MemoryLayer for ToolMemory {
    type State = ToolMemoryState;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), SLOT, self.scope).with_name("Tool memory")
    }

    fn provides(&self) -> LayerProvides<ToolMemoryState> {
        let description = "Your own files beneath /memories, kept for later.";
        let memory = layer_fn_with_schema(
            description,
            commands::schema(),
            json!({ "type": "string" }),
            |input, state: Arc<ToolMemoryState>, _| async move {
                let command: MemoryCommand = serde_json::from_value(input)?;
                let mut new = (*state).clone();
                let told = commands::run(command, &mut new.files)?;
                let result = FnResult::new(json!(told));
                Ok(if new == *state { result } else { result.with_state(new) })
            },
        );
        let layer = self.clone();
        let set_state =
            layer_fn("Sets the state of a tool.", move |input: SetState, state: Arc<ToolMemoryState>, _| {
                let set = layer.set_state(input, &state);
                async move { Ok(FnResult::new("set".to_owned()).with_state(set?)) }
            })
            .for_program();
        let files = |state: &ToolMemoryState| -> BTreeMap<String, String> {
            state.files.iter().map(|(path, text)| (path.to_owned(), text.clone())).collect()
        };
        let states = |state: &ToolMemoryState| -> BTreeMap<String, Value> {
            state.states.iter().map(|(tool, value)| (tool.to_owned(), value.clone())).collect()
        };
        LayerProvides::new()
            .data(Self::FILES.name(), layer_data(files))
            .data(Self::STATES.name(), layer_data(states))
            .function(Self::MEMORY.name(), memory)
            .function(Self::SET_STATE.name(), set_state)
    }

    async fn before_tool_call(
        &self,
        params: BeforeToolCallParams<ToolMemoryState>,
    ) -> HookResult<BeforeToolCallResult<ToolMemoryState>> {
        Ok(match *params.tool_name == *format!("{}/{}", self.id(), Self::SET_STATE.name()) {
            true => BeforeToolCallResult::deny("the states of tools are set by the tools: use `tool-memory/memory`"),
            false => BeforeToolCallResult::allow(),
        })
    }

    async fn recall(&self, params: RecallParams<ToolMemoryState>) -> HookResult<RecallResult<ToolMemoryState>> {
        let lines = params.state.lines();
        if lines.is_empty() {
            return Ok(RecallResult::nothing());
        }
        let text = fit_parts(params.ctx.counter(), &self.id(), params.budget, lines.len(), |shown| {
            let left = lines.len() - shown;
            let rest = if left == 0 { String::new() } else { format!("\n({left} more: `view` lists them)") };
            format!("What you keep in /memories:\n{}{rest}", lines[..shown].join("\n"))
        });
        Ok(text.into())
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        changed_lines(pinned, current)
    }

    async fn on_spawn(&self, params: SpawnParams<ToolMemoryState>) -> HookResult<SpawnResult<ToolMemoryState>> {
        let parent = &params.parent_state;
        let (files, states) = (parent.files.for_child(), parent.states.for_child());
        Ok(SpawnResult::state(ToolMemoryState { version: StateVersion, files, states }))
    }

    async fn on_return(&self, params: ReturnParams<ToolMemoryState>) -> HookResult<ReturnResult<ToolMemoryState>> {
        let mut parent = (*params.parent_state).clone();
        parent.files.take_back(&params.child_state.files);
        parent.states.take_back(&params.child_state.states);
        Ok(ReturnResult::state(parent))
    }

    fn merge(&self, ours: &ToolMemoryState, theirs: &ToolMemoryState) -> Option<ToolMemoryState> {
        let (files, states) = (ours.files.merged(&theirs.files), ours.states.merged(&theirs.states));
        Some(ToolMemoryState { version: StateVersion, files, states })
    }

    fn merge_since(
        &self,
        base: Option<&ToolMemoryState>,
        ours: &ToolMemoryState,
        theirs: &ToolMemoryState,
    ) -> Option<ToolMemoryState> {
        let Some(base) = base else { return self.merge(ours, theirs) };
        let files =
            ours.files.merged_since(&base.files, &theirs.files, |base, ours, theirs| united(base, ours, theirs));
        Some(ToolMemoryState { version: StateVersion, files, states: ours.states.merged(&theirs.states) })
    }
}

impl Default for ToolMemory {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
