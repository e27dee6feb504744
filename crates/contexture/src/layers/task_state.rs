//! `task-state`: how far a task has come, what it made, and the data that it needs.
//!
//! | | |
//! | --- | --- |
//! | slot | 110 |
//! | scope | thread |
//! | budget | 100 to 800 tokens |
//! | band | by churn, with a delta of the lines that changed |
//! | tools | `task-state/checkpoint`, `task-state/record_artifact`, `task-state/set_task_data` |
//! | data | `checkpoints`, `artifacts`, `data` |
//!
//! A *checkpoint* is a point that the task has reached, with a note on what is next. An *artifact* is something that it
//! made, and where it is: a file, a branch, a page. *Data* are values by name that later steps need. The model writes
//! them with the tools and is shown them in every window, the newest first, so that they outlive every fold.
//!
//! A child starts with a copy. When it returns, what it set or removed itself is taken over, and nothing else: of several
//! children at work at the same time each brings back its own. Where two set the same name, the one that returns last
//! has its way. If two processes change the state at the same time, what was set last holds for each name.
//!
//! `set_task_data {set, remove}` leaves alone what it does not name, and a `null` in `set`, with which models pad what
//! they do not mean to touch, changes nothing. Nothing is kept beyond [`MAX_CHECKPOINTS`] checkpoints, [`MAX_ARTIFACTS`]
//! artifacts and [`MAX_VALUES`] values of [`MAX_VALUE_BYTES`] each: the oldest checkpoint goes, and other things are
//! refused with a word on what to do. No model is needed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use contexture_core::item::Item;
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use contexture_text::block::{changed_lines, fit_parts, flat, start_of};
use contexture_text::one_line::one_line;
use contexture_text::revised::Revised;
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "task-state";
/// How many checkpoints are kept.
pub const MAX_CHECKPOINTS: usize = 50;
/// How many artifacts are kept.
pub const MAX_ARTIFACTS: usize = 200;
/// How many values of data are kept.
pub const MAX_VALUES: usize = 200;
/// Largest value of data, as JSON.
pub const MAX_VALUE_BYTES: usize = 4 * 1024;
/// Longest name, place or note.
pub const MAX_TEXT_BYTES: usize = 500;

const SLOT: Slot = Slot(110);
const BUDGET: BudgetConfig = BudgetConfig::Range { min: 100, max: 800 };
/// How much of a value is shown.
const SHOWN_VALUE_BYTES: usize = 300;

/// The layer `task-state`: see [the module](self).
#[derive(Clone, Debug, Default)]
pub struct TaskState {
    /// `None`: the layer's own.
    id: Option<LayerId>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    version: StateVersion<1>,
    checkpoints: VecDeque<Checkpoint>,
    /// How many earlier checkpoints were dropped, in this execution and its parents.
    dropped: u64,
    /// How many checkpoints a child started with.
    #[serde(default)]
    given: u64,
    artifacts: Revised<Artifact>,
    data: Revised<Value>,
}

/// A point that the task has reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// What is reached, in a few words.
    pub name: String,
    /// What is next, or what to know when going on from here.
    #[serde(default)]
    pub note: String,
}

/// Something that the task made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// Where it is: a path, a branch, an address.
    pub location: String,
    /// What it is.
    #[serde(default)]
    pub note: String,
}

/// What `task-state/record_artifact` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordArtifact {
    /// A short name; an artifact of the same name is replaced.
    pub name: String,
    /// Where it is: a path, a branch, an address.
    pub location: String,
    /// What it is.
    #[serde(default)]
    pub note: String,
}

/// What `task-state/set_task_data` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetTaskData {
    /// Values by name. `null` leaves a value as it is.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Names whose values are removed.
    #[serde(default)]
    pub remove: Vec<String>,
}

impl TaskState {
    /// Returns the checkpoints, oldest first.
    pub const CHECKPOINTS: LayerData<TaskState, Vec<Checkpoint>> = LayerData::new("checkpoints");
    /// Returns the artifacts by name.
    pub const ARTIFACTS: LayerData<TaskState, BTreeMap<String, Artifact>> = LayerData::new("artifacts");
    /// Returns the data by name.
    pub const DATA: LayerData<TaskState, BTreeMap<String, Value>> = LayerData::new("data");
    /// Records a point that the task has reached.
    pub const CHECKPOINT: LayerFunction<TaskState, Checkpoint, String> = LayerFunction::new("checkpoint");
    /// Records something that the task made.
    pub const RECORD_ARTIFACT: LayerFunction<TaskState, RecordArtifact, String> = LayerFunction::new("record_artifact");
    /// Sets and removes data.
    pub const SET_TASK_DATA: LayerFunction<TaskState, SetTaskData, String> = LayerFunction::new("set_task_data");

    /// Creates the layer with an empty state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }
}

/// Checks that a text is not blank and not too long.
fn checked(field: &str, text: &str, may_be_blank: bool) -> Result<(), String> {
    match text.len() {
        bytes if bytes > MAX_TEXT_BYTES => Err(format!("`{field}` has {bytes} bytes, more than {MAX_TEXT_BYTES}")),
        _ if !may_be_blank && text.trim().is_empty() => Err(format!("`{field}` is empty")),
        _ => Ok(()),
    }
}

impl TaskRecord {
    fn is_empty(&self) -> bool {
        self.checkpoints.is_empty() && self.artifacts.is_empty() && self.data.is_empty()
    }

    fn add_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), String> {
        checked("name", &checkpoint.name, false)?;
        checked("note", &checkpoint.note, true)?;
        self.checkpoints.push_back(checkpoint);
        while self.checkpoints.len() > MAX_CHECKPOINTS {
            self.checkpoints.pop_front();
            self.dropped += 1;
        }
        Ok(())
    }

    fn add_artifact(&mut self, input: RecordArtifact) -> Result<(), String> {
        checked("name", &input.name, false)?;
        checked("location", &input.location, false)?;
        checked("note", &input.note, true)?;
        if self.artifacts.get(&input.name).is_none() && self.artifacts.len() >= MAX_ARTIFACTS {
            return Err(format!(
                "there are {MAX_ARTIFACTS} artifacts already: use the name of one that is no longer needed"
            ));
        }
        self.artifacts.set(&input.name, Artifact { location: input.location, note: input.note });
        Ok(())
    }

    /// Applies all of the change, or none of it.
    fn change_data(&mut self, input: SetTaskData) -> Result<(), String> {
        let mut data = self.data.clone();
        for name in &input.remove {
            if !data.remove(name) {
                return Err(format!("`remove` names `{}`, which is not there", one_line(name)));
            }
        }
        for (name, value) in input.set {
            checked("set", &name, false)?;
            let bytes = value.to_string().len();
            if bytes > MAX_VALUE_BYTES {
                let name = one_line(&name).into_owned();
                return Err(format!(
                    "`{name}` has {bytes} bytes, more than {MAX_VALUE_BYTES}: write it to a file and record that as an artifact"
                ));
            }
            if !value.is_null() {
                data.set(&name, value);
            }
        }
        if data.len() > MAX_VALUES {
            return Err(format!("there would be {} values, more than {MAX_VALUES}: remove some first", data.len()));
        }
        self.data = data;
        Ok(())
    }

    /// Everything as lines, the most important and the newest first.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, checkpoint) in self.checkpoints.iter().enumerate().rev() {
            let number = self.dropped + index as u64 + 1;
            let note = if checkpoint.note.is_empty() { String::new() } else { format!(": {}", flat(&checkpoint.note)) };
            lines.push(format!("- checkpoint {number}, {}{note}", flat(&checkpoint.name)));
        }
        for (name, artifact) in self.artifacts.newest() {
            let note = if artifact.note.is_empty() { String::new() } else { format!(" ({})", flat(&artifact.note)) };
            lines.push(format!("- artifact `{}`: {}{note}", one_line(name), flat(&artifact.location)));
        }
        for (name, value) in self.data.newest() {
            let value = value.to_string();
            lines.push(format!("- data `{}`: {}", one_line(name), start_of(&value, SHOWN_VALUE_BYTES)));
        }
        // Some of each kind, even if one kind has many more; the newest checkpoints stay first.
        lines
    }

    /// The total number of checkpoints, including dropped ones.
    fn reached(&self) -> u64 {
        self.dropped + self.checkpoints.len() as u64
    }
}

impl MemoryLayer for TaskState {
    type State = TaskRecord;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), SLOT, MemoryScope::Thread).with_name("Task state").with_budget(BUDGET)
    }

    fn provides(&self) -> LayerProvides<TaskRecord> {
        let checkpoint =
            layer_fn("A point that is reached.", |input: Checkpoint, state: Arc<TaskRecord>, _| async move {
                let mut state = Arc::unwrap_or_clone(state);
                state.add_checkpoint(input)?;
                Ok(FnResult::new(format!("checkpoint {}", state.reached())).with_state(state))
            });
        let artifact = layer_fn(
            "Something that was made, and where.",
            |input: RecordArtifact, state: Arc<TaskRecord>, _| async move {
                let mut state = Arc::unwrap_or_clone(state);
                state.add_artifact(input)?;
                Ok(FnResult::new("recorded".to_owned()).with_state(state))
            },
        );
        let input = json!({
            "type": "object",
            "properties": {
                "set": { "type": "object", "description": "Values by name; null leaves a value as it is." },
                "remove": { "type": "array", "items": { "type": "string" }, "description": "Names to remove." },
            },
            "additionalProperties": false,
        });
        let description = "Values for later steps, by name.";
        let data =
            layer_fn_with_schema(description, input, json!({ "type": "string" }), |input, state, _| async move {
                let mut state: TaskRecord = Arc::unwrap_or_clone(state);
                state.change_data(serde_json::from_value(input)?)?;
                Ok(FnResult::new(json!(format!("{} values", state.data.len()))).with_state(state))
            });
        LayerProvides::new()
            .data(Self::CHECKPOINTS.name(), layer_data(|state: &TaskRecord| Vec::from(state.checkpoints.clone())))
            .data(Self::ARTIFACTS.name(), layer_data(|state: &TaskRecord| owned(&state.artifacts)))
            .data(Self::DATA.name(), layer_data(|state: &TaskRecord| owned(&state.data)))
            .function(Self::CHECKPOINT.name(), checkpoint)
            .function(Self::RECORD_ARTIFACT.name(), artifact)
            .function(Self::SET_TASK_DATA.name(), data)
            .in_one_tool("How far the task is.")
    }

    async fn recall(&self, params: RecallParams<TaskRecord>) -> HookResult<RecallResult<TaskRecord>> {
        if params.state.is_empty() {
            return Ok(RecallResult::nothing());
        }
        let lines = params.state.lines();
        let text = fit_parts(params.ctx.counter(), &self.id(), params.budget, lines.len(), |shown| {
            let left = lines.len() - shown;
            let rest = if left == 0 { String::new() } else { format!("({left} more are kept and not shown)") };
            let shown = lines[..shown].iter().map(String::as_str);
            shown.chain(Some(rest.as_str()).filter(|rest| !rest.is_empty())).collect::<Vec<_>>().join("\n")
        });
        Ok(text.into())
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        changed_lines(pinned, current)
    }

    async fn on_spawn(&self, params: SpawnParams<TaskRecord>) -> HookResult<SpawnResult<TaskRecord>> {
        let parent = &params.parent_state;
        let child = TaskRecord {
            given: parent.reached(),
            artifacts: parent.artifacts.for_child(),
            data: parent.data.for_child(),
            ..(**parent).clone()
        };
        Ok(SpawnResult::state(child))
    }

    async fn on_return(&self, params: ReturnParams<TaskRecord>) -> HookResult<ReturnResult<TaskRecord>> {
        let (mut parent, child) = ((*params.parent_state).clone(), &params.child_state);
        let own = child.given.saturating_sub(child.dropped).min(child.checkpoints.len() as u64);
        for checkpoint in child.checkpoints.iter().skip(own as usize) {
            parent.add_checkpoint(checkpoint.clone())?;
        }
        parent.artifacts.take_back(&child.artifacts);
        parent.data.take_back(&child.data);
        Ok(ReturnResult::state(parent))
    }

    fn merge(&self, ours: &TaskRecord, theirs: &TaskRecord) -> Option<TaskRecord> {
        let mut merged = theirs.clone();
        for checkpoint in ours.checkpoints.iter().filter(|checkpoint| !theirs.checkpoints.contains(checkpoint)) {
            // It was checked when it was written.
            let _ = merged.add_checkpoint(checkpoint.clone());
        }
        merged.artifacts = ours.artifacts.merged(&theirs.artifacts);
        merged.data = ours.data.merged(&theirs.data);
        Some(merged)
    }
}

fn owned<V: Clone>(values: &Revised<V>) -> BTreeMap<String, V> {
    values.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use contexture_core::engine::Execution;
    use contexture_core::memory;
    use contexture_core::testing::{ScriptedModel, engine, layer_conformance};

    use super::*;

    async fn started(model: &ScriptedModel) -> Execution<(TaskState,)> {
        let engine = engine(memory((TaskState::new(),))).model(model.clone()).build().unwrap();
        engine.execution("thread").start().await.unwrap()
    }

    async fn set(execution: &Execution<(TaskState,)>, set: Value, remove: &[&str]) -> Result<String, String> {
        let input = json!({ "set": set, "remove": remove });
        let called = execution.memory().call_json("task-state/set_task_data", input).await;
        called.map(|called| called.result.to_string()).map_err(|error| match error {
            contexture_core::Error::Function(contexture_core::error::FunctionError::Failed { source, .. }) => {
                source.to_string()
            }
            other => other.to_string(),
        })
    }

    #[tokio::test]
    async fn conforms() {
        layer_conformance(TaskState::new).await;
    }

    #[tokio::test]
    async fn what_is_recorded_is_shown_in_lines() {
        let model = ScriptedModel::new()
            .calls("task-state/checkpoint", r#"{"name":"parser works","note":"next:\n</memory> the printer"}"#)
            .calls("task-state/record_artifact", r#"{"name":"report","location":"docs/report.md"}"#)
            .calls("task-state/set_task_data", r#"{"set":{"port":8080,"host":null}}"#)
            .says("Done.");
        let mut execution = started(&model).await;
        execution.turn("Go on.").await.unwrap();
        execution.turn("And now?").await.unwrap();
        let shown = model.last_texts().join("\n");
        let expected = "- checkpoint 1, parser works: next: &lt;/memory> the printer\n\
                        - artifact `report`: docs/report.md\n- data `port`: 8080\n";
        assert!(shown.contains(expected), "{shown}");
    }

    #[tokio::test]
    async fn a_change_is_made_whole_or_not_at_all() {
        let execution = started(&ScriptedModel::new()).await;
        set(&execution, json!({ "a": 1, "b": [1, 2] }), &[]).await.unwrap();
        set(&execution, json!({ "a": null, "b": [3] }), &[]).await.unwrap();
        let refused = set(&execution, json!({ "c": 1 }), &["d"]).await.unwrap_err();
        assert_eq!(refused, "`remove` names `d`, which is not there");
        let refused = set(&execution, json!({ "c": "x".repeat(MAX_VALUE_BYTES) }), &["a"]).await.unwrap_err();
        assert!(refused.contains("write it to a file"), "{refused}");
        assert_eq!(
            execution.memory().read(TaskState::DATA).unwrap(),
            BTreeMap::from([("a".to_owned(), json!(1)), ("b".to_owned(), json!([3]))])
        );
    }

    #[tokio::test]
    async fn children_at_work_at_the_same_time_bring_back_their_own() {
        let mut parent = started(&ScriptedModel::new()).await;
        set(&parent, json!({ "a": 1, "b": 1, "c": 1 }), &[]).await.unwrap();
        let point = |name: &str| Checkpoint { name: name.to_owned(), note: String::new() };
        parent.memory().call(TaskState::CHECKPOINT, point("start")).await.unwrap();
        let one = parent.spawn().await.unwrap();
        let two = parent.spawn().await.unwrap();
        assert_eq!(one.memory().read(TaskState::DATA).unwrap()["a"], json!(1), "a child knows what its parent knows");
        set(&one, json!({ "a": 2 }), &["c"]).await.unwrap();
        one.memory().call(TaskState::CHECKPOINT, point("one")).await.unwrap();
        set(&two, json!({ "b": 2 }), &[]).await.unwrap();
        two.memory().call(TaskState::CHECKPOINT, point("two")).await.unwrap();
        parent.join(two, Value::Null).await.unwrap();
        parent.join(one, Value::Null).await.unwrap();
        assert_eq!(json!(parent.memory().read(TaskState::DATA)), json!({ "a": 2, "b": 2 }));
        let names: Vec<String> =
            parent.memory().read(TaskState::CHECKPOINTS).unwrap().into_iter().map(|point| point.name).collect();
        assert_eq!(names, ["start", "two", "one"]);
    }
}
