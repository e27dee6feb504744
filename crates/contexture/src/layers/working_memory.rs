//! `working-memory`: what the model itself wants to keep in mind.
//!
//! | | |
//! | --- | --- |
//! | slot | 100, [`Slot::WORKING_MEMORY`] |
//! | scope | thread, or resource |
//! | budget | 200 to 1 500 tokens |
//! | band | by churn |
//! | tool | `working-memory/update` |
//! | data | `snapshot` |
//!
//! The model is shown its notes in every window and changes them with the tool `update`. Notes are free text, which
//! every update replaces, or an object that meets a JSON schema. `{set, remove}` changes an object: `set` is merged key by
//! key at any depth, where what is absent or `null` stays as it is (models pad what they do not mean to touch with
//! `null`) and anything else, a list too, takes the place of what was there; `remove` names what goes, as in `likes.tea`,
//! or `/likes/tea` for keys with dots. An update that would break the schema, nest deeper than [`MAX_DEPTH`] or make the
//! notes longer than [`MAX_NOTES_TOKENS`] changes nothing at all, and the model is told why.
//!
//! In the thread's scope notes belong to one conversation; in the resource's scope all conversations of one user or
//! project share them. If two processes change them at the same time, nothing is lost: of text, every line that
//! either has is kept; of objects, every key, and where both have one, ours.
//!
//! Stored notes that are not what the layer keeps any more, because it was given a schema or another one, are kept aside
//! under `state.backup.…` in the layer's storage, a fault tells of it, and the layer starts fresh.
//!
//! Keys and tokens are [redacted](crate::redact) before notes are kept. Empty notes are not shown. Without a model the layer works the same: the program calls `update` itself.
//!
//! ```
//! use contexture::layers::working_memory::{Notes, Update, WorkingMemory};
//! use contexture::prelude::*;
//! # use contexture::testing::ScriptedModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let model = ScriptedModel::new();
//! let engine = contexture::in_memory(memory((WorkingMemory::new(),))).model(model).build()?;
//! let execution = engine.execution("thread").start().await?;
//! let notes = execution.memory();
//! notes.call(WorkingMemory::UPDATE, Update::Text("The user's name is Ada.".into())).await?;
//! assert_eq!(notes.read(WorkingMemory::SNAPSHOT), Some(Notes::Text("The user's name is Ada.".into())));
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use contexture_core::error::SpecError;
use contexture_core::layer::*;
use contexture_core::schema::Schema;
use contexture_core::{LayerId, Slot};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::redact::{redact, redact_value, secrets};
use contexture_text::block::fit_text;

/// The default id of the layer; [`WorkingMemory::with_id`] sets another one.
pub const ID: &str = "working-memory";
/// Longest notes: a little less than the largest budget, to leave room for the block around them.
pub const MAX_NOTES_TOKENS: u64 = 1_400;

/// The largest nesting depth of notes that are an object.
pub const MAX_DEPTH: usize = 8;

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 200, max: 1_500 };

/// The layer `working-memory`: see [the module](self).
#[derive(Clone, Debug)]
pub struct WorkingMemory {
    id: LayerId,
    scope: MemoryScope,
    /// `None`: free text.
    schema: Option<Arc<ObjectSchema>>,
    template: Notes,
    read_only: bool,
}

#[derive(Debug)]
struct ObjectSchema {
    written: Value,
    schema: Schema,
}

/// The notes of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Notes {
    /// Free text.
    Text(String),
    /// An object that matches the layer's schema.
    Object(Map<String, Value>),
}

/// A change of the notes. The model writes it as `{"text": "…"}` or `{"set": {…}, "remove": […]}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenUpdate", into = "WrittenUpdate")]
pub enum Update {
    /// The whole text from now on. Only for notes that are text.
    Text(String),
    /// What changes in the object. Only for notes that are an object.
    Object {
        /// What is merged into it; `null` leaves a value as it is.
        set: Map<String, Value>,
        /// The paths of values that go.
        remove: Vec<String>,
    },
}

/// An update in JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remove: Option<Vec<String>>,
}

impl Update {
    /// These values are merged into the object.
    pub fn set(set: Map<String, Value>) -> Self {
        Update::Object { set, remove: Vec::new() }
    }

    /// These paths go.
    pub fn remove(paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Update::Object { set: Map::new(), remove: paths.into_iter().map(Into::into).collect() }
    }
}

impl From<Update> for WrittenUpdate {
    fn from(update: Update) -> Self {
        match update {
            Update::Text(text) => Self { text: Some(text), set: None, remove: None },
            Update::Object { set, remove } => Self { text: None, set: Some(set), remove: Some(remove) },
        }
    }
}

impl TryFrom<WrittenUpdate> for Update {
    type Error = &'static str;

    fn try_from(written: WrittenUpdate) -> Result<Self, Self::Error> {
        match written {
            WrittenUpdate { text: Some(text), set: None, remove: None } => Ok(Update::Text(text)),
            WrittenUpdate { text: Some(_), .. } => Err("give either `text` or `set` and `remove`"),
            WrittenUpdate { text: None, set, remove } => {
                Ok(Update::Object { set: set.unwrap_or_default(), remove: remove.unwrap_or_default() })
            }
        }
    }
}

impl WorkingMemory {
    /// Returns the notes.
    pub const SNAPSHOT: LayerData<WorkingMemory, Notes> = LayerData::new("snapshot");
    /// Changes the notes; returns a confirmation.
    pub const UPDATE: LayerFunction<WorkingMemory, Update, String> = LayerFunction::new("update");

    /// Creates notes in free text, kept for one thread.
    pub fn new() -> Self {
        Self { id: ID.into(), scope: MemoryScope::Thread, schema: None, template: Notes::default(), read_only: false }
    }

    /// Creates notes as an object that matches `schema`, kept for one thread.
    ///
    /// The schema of a Rust type is `schemars::schema_for!(Type).to_value()`.
    ///
    /// # Errors
    /// The schema is invalid, or uses keywords that [`Schema`] cannot check.
    pub fn object(schema: Value) -> Result<Self, SpecError> {
        let parsed = Schema::new(&schema).map_err(|problem| SpecError::layer(ID, "schema", problem))?;
        let schema = Arc::new(ObjectSchema { written: schema, schema: parsed });
        Ok(Self { schema: Some(schema), template: Notes::Object(Map::new()), ..Self::new() })
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets another scope.
    pub fn with_scope(mut self, scope: MemoryScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the initial notes, used if none are stored.
    ///
    /// They must match the kind of the notes and the schema, or the layer's `init` fails.
    pub fn with_template(mut self, template: Notes) -> Self {
        self.template = template;
        self
    }

    /// Removes `update`: the model sees the notes but cannot change them.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The notes after an update, or why it is refused, in words for the model.
    fn updated(&self, notes: &Notes, update: Update) -> Result<Notes, String> {
        let notes = match (&self.schema, update) {
            (None, Update::Text(text)) => Notes::Text(text),
            (Some(_), Update::Object { set, remove }) => {
                let mut object = notes.as_object();
                for path in &remove {
                    remove_path(&mut object, path)?;
                }
                merge_object(&mut object, set, MAX_DEPTH)?;
                Notes::Object(object)
            }
            (None, Update::Object { .. }) => return Err("the notes are text: answer `text`".to_owned()),
            (Some(_), Update::Text(_)) => return Err("the notes are an object: answer `set` and `remove`".to_owned()),
        };
        let notes = notes.redacted();
        self.check(&notes)?;
        Ok(notes)
    }

    /// Whether the notes match the kind and schema of this layer.
    fn check(&self, notes: &Notes) -> Result<(), String> {
        match (&self.schema, notes) {
            (None, Notes::Text(_)) => Ok(()),
            (Some(schema), Notes::Object(object)) => schema.schema.check(&Value::Object(object.clone())),
            (None, Notes::Object(_)) => Err("the notes are an object, expected text".to_owned()),
            (Some(_), Notes::Text(_)) => Err("the notes are text, expected an object".to_owned()),
        }
    }

    /// The function `update`, described for the model.
    fn update_function(&self) -> LayerFunctionDecl<Notes> {
        let layer = self.clone();
        let (properties, required, description) = match &self.schema {
            None => (json!({ "text": { "type": "string" } }), json!(["text"]), TEXT_DESCRIPTION.to_owned()),
            Some(schema) => {
                let remove = json!({ "type": ["array", "null"], "items": { "type": "string" } });
                let properties = json!({ "set": { "type": ["object", "null"] }, "remove": remove });
                (properties, json!([]), format!("{OBJECT_DESCRIPTION} {}", schema.written))
            }
        };
        let input = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        layer_fn_with_schema(description, input, json!({ "type": "string" }), move |input, notes: Arc<Notes>, ctx| {
            let has_secret = !secrets(&input.to_string()).is_empty();
            let updated = serde_json::from_value(input)
                .map_err(|error| error.to_string())
                .and_then(|update| layer.updated(&notes, update));
            async move {
                let notes = updated?;
                let tokens = ctx.tokenize(&notes.to_text());
                if tokens > MAX_NOTES_TOKENS {
                    return Err(format!("they would have {tokens} tokens, more than {MAX_NOTES_TOKENS}").into());
                }
                let told = if has_secret { UPDATED_WITHOUT_SECRETS } else { "updated" };
                Ok(FnResult::new(json!(told)).with_state(notes))
            }
        })
    }
}

const UPDATED_WITHOUT_SECRETS: &str =
    "updated; a secret in it was replaced by its kind, since keys and passwords are not kept";
const TEXT_DESCRIPTION: &str = "Replaces your notes, which you always see: keep them short.";
const OBJECT_DESCRIPTION: &str = "Changes your notes, which are shown to you from now on. `set` is merged into them key \
                                  by key; what is absent or null stays as it is, lists are replaced. `remove` names \
                                  what goes, as in `a.b`. The notes as a whole meet this JSON schema:";

impl MemoryLayer for WorkingMemory {
    type State = Notes;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id.clone(), Slot::WORKING_MEMORY, self.scope)
            .with_name("Working memory")
            .with_budget(BUDGET)
    }

    fn provides(&self) -> LayerProvides<Notes> {
        let provides = LayerProvides::new().data(Self::SNAPSHOT.name(), layer_data(Notes::clone));
        match self.read_only {
            true => provides,
            false => provides.function(Self::UPDATE.name(), self.update_function()),
        }
    }

    async fn init(&self, params: InitParams<Notes>) -> HookResult<InitResult<Notes>> {
        if let Some(state) = params.stored {
            return Ok(InitResult { state });
        }
        if !self.template.is_empty() {
            self.check(&self.template).map_err(|problem| format!("the template does not fit: {problem}"))?;
        }
        Ok(InitResult { state: self.template.clone() })
    }

    async fn recall(&self, params: RecallParams<Notes>) -> HookResult<RecallResult<Notes>> {
        if params.state.is_empty() {
            return Ok(RecallResult::nothing());
        }
        Ok(fit_text(params.ctx.counter(), &self.id, &params.state.to_text(), params.budget).into())
    }

    /// Stored notes may have been written with another schema, or as text.
    fn check_state(&self, notes: &Notes) -> Result<(), String> {
        if notes.is_empty() { Ok(()) } else { self.check(notes) }
    }

    fn merge(&self, ours: &Notes, theirs: &Notes) -> Option<Notes> {
        let merged = match (ours, theirs) {
            (Notes::Text(ours), Notes::Text(theirs)) => Notes::Text(unite_lines(ours, theirs)),
            (Notes::Object(ours), Notes::Object(theirs)) => {
                let mut merged = theirs.clone();
                merge_object(&mut merged, ours.clone(), MAX_DEPTH).ok()?;
                Notes::Object(merged)
            }
            _ => return None,
        };
        self.check(&merged).is_ok().then_some(merged)
    }
}

impl Notes {
    /// Whether they are empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Notes::Text(text) => text.trim().is_empty(),
            Notes::Object(object) => object.is_empty(),
        }
    }

    /// The notes without keys and passwords.
    fn redacted(self) -> Self {
        match self {
            Notes::Text(text) => Notes::Text(redact(&text).into_owned()),
            Notes::Object(mut object) => {
                object.iter_mut().for_each(|(name, value)| redact_value(name, value));
                Notes::Object(object)
            }
        }
    }

    /// The notes as shown to the model.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Notes::Text(text) => text.clone(),
            Notes::Object(object) => Value::Object(object.clone()).to_string(),
        }
    }

    fn as_object(&self) -> Map<String, Value> {
        match self {
            Notes::Object(object) => object.clone(),
            Notes::Text(_) => Map::new(),
        }
    }
}

impl Default for WorkingMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Notes {
    fn default() -> Self {
        Notes::Text(String::new())
    }
}

/// Merges objects key by key; `null` leaves a value as it is, anything else replaces what was there.
fn merge_object(target: &mut Map<String, Value>, set: Map<String, Value>, depth: usize) -> Result<(), String> {
    if depth == 0 {
        return Err(format!("the notes would nest deeper than {MAX_DEPTH} levels"));
    }
    for (key, value) in set {
        match value {
            Value::Null => {}
            Value::Object(set) => {
                let old = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
                if !old.is_object() {
                    *old = Value::Object(Map::new());
                }
                merge_object(old.as_object_mut().expect("it was just made one"), set, depth - 1)?;
            }
            value if depth_of(&value) >= depth => {
                return Err(format!("the notes would nest deeper than {MAX_DEPTH} levels"));
            }
            value => {
                target.insert(key, value);
            }
        }
    }
    Ok(())
}

/// The nesting depth of lists and objects.
fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// Removes the value at a path: `a.b`, or `/a/b` for keys with dots.
fn remove_path(object: &mut Map<String, Value>, path: &str) -> Result<(), String> {
    let missing = || format!("`remove` names `{path}`, which is not there");
    let names: Vec<String> = match path.strip_prefix('/') {
        Some(pointer) => pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect(),
        None => path.split('.').map(str::to_owned).collect(),
    };
    let (last, parents) = names.split_last().ok_or_else(missing)?;
    let mut inner = object;
    for name in parents {
        inner = inner.get_mut(name).and_then(Value::as_object_mut).ok_or_else(missing)?;
    }
    inner.remove(last).map(drop).ok_or_else(missing)
}

/// Their lines, then those of ours that they lack.
fn unite_lines(ours: &str, theirs: &str) -> String {
    let new = ours.lines().filter(|line| !theirs.lines().any(|their| their == *line));
    theirs.lines().chain(new).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
