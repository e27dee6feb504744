//! `working-memory`: what the model itself wants to keep in mind.
//!
//! | | |
//! | --- | --- |
//! | slot | 100, [`Slot::WORKING_MEMORY`] |
//! | scope | thread, or resource |
//! | budget | 200 to 1 500 tokens |
//! | tool | `working-memory/update` |
//! | data | `snapshot` |
//!
//! The model is shown its notes in every window and changes them with the tool `update`. Notes are free text, which
//! every update replaces, or an object that meets a JSON schema, into which every update is merged: objects key by
//! key at any depth, `null` removes a key, anything else takes the place of what was there. An update that would
//! break the schema, or make the notes longer than [`MAX_NOTES_TOKENS`], changes nothing, and the model is told why.
//!
//! In the thread's scope notes belong to one conversation; in the resource's scope all conversations of one user or
//! project share them. If two processes change them at the same time, nothing is lost: of text, every line that
//! either has is kept; of objects, every key, and where both have one, ours.
//!
//! Stored notes that are not what the layer keeps any more, because it was given a schema or another one, are kept aside
//! under `state.backup.…` in the layer's storage, a fault tells of it, and the layer starts fresh.
//!
//! Empty notes are not shown. Without a model the layer works the same: the program calls `update` itself.
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
use contexture_core::window::fit_block;
use contexture_core::{LayerId, Slot};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The id of the layer, unless [`WorkingMemory::with_id`] says otherwise.
pub const ID: &str = "working-memory";
/// How long notes may become. A little less than the largest budget, for the block around them.
pub const MAX_NOTES_TOKENS: u64 = 1_400;

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

/// What the model keeps in mind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Notes {
    /// Free text.
    Text(String),
    /// An object that meets the layer's schema.
    Object(Map<String, Value>),
}

/// A change of the notes. The model writes it as `{"text": "…"}` or `{"changes": {…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// The whole text from now on. Only for notes that are text.
    Text(String),
    /// What is merged into the object. Only for notes that are an object.
    Changes(Map<String, Value>),
}

impl WorkingMemory {
    /// The notes as they are.
    pub const SNAPSHOT: LayerData<WorkingMemory, Notes> = LayerData::new("snapshot");
    /// Changes the notes; answers a word of confirmation.
    pub const UPDATE: LayerFunction<WorkingMemory, Update, String> = LayerFunction::new("update");

    /// Notes in free text, kept for one thread.
    pub fn new() -> Self {
        Self { id: ID.into(), scope: MemoryScope::Thread, schema: None, template: Notes::default(), read_only: false }
    }

    /// Notes in an object that meets `schema`, kept for one thread.
    ///
    /// For a Rust type, `schemars::schema_for!(Type).to_value()` is its schema.
    ///
    /// # Errors
    /// The schema is none, or says what [`Schema`] cannot check.
    pub fn object(schema: Value) -> Result<Self, SpecError> {
        let parsed = Schema::new(&schema).map_err(|problem| SpecError::layer(ID, "schema", problem))?;
        let schema = Arc::new(ObjectSchema { written: schema, schema: parsed });
        Ok(Self { schema: Some(schema), template: Notes::Object(Map::new()), ..Self::new() })
    }

    /// The same under another id: for two in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = id.into();
        self
    }

    /// The same in another scope.
    pub fn with_scope(mut self, scope: MemoryScope) -> Self {
        self.scope = scope;
        self
    }

    /// The same, beginning with these notes where none are stored.
    ///
    /// They must fit the kind of the notes and the schema, or the layer's `init` fails.
    pub fn with_template(mut self, template: Notes) -> Self {
        self.template = template;
        self
    }

    /// The same without `update`: the model sees the notes and cannot change them.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The notes after an update, or what speaks against it, in words for the model.
    fn updated(&self, notes: &Notes, update: Update) -> Result<Notes, String> {
        let notes = match (&self.schema, update) {
            (None, Update::Text(text)) => Notes::Text(text),
            (Some(_), Update::Changes(changes)) => {
                let mut object = notes.as_object();
                merge_object(&mut object, changes);
                Notes::Object(object)
            }
            (None, Update::Changes(_)) => return Err("the notes are text: answer `text`".to_owned()),
            (Some(_), Update::Text(_)) => return Err("the notes are an object: answer `changes`".to_owned()),
        };
        self.check(&notes)?;
        Ok(notes)
    }

    /// Whether the notes are what this layer keeps.
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
        let (field, kind, description) = match &self.schema {
            None => ("text", "string", TEXT_DESCRIPTION.to_owned()),
            Some(schema) => ("changes", "object", format!("{OBJECT_DESCRIPTION} {}", schema.written)),
        };
        let input = json!({
            "type": "object",
            "properties": { field: { "type": kind } },
            "required": [field],
            "additionalProperties": false,
        });
        layer_fn_with_schema(description, input, json!({ "type": "string" }), move |input, notes: Arc<Notes>, ctx| {
            let updated = serde_json::from_value(input)
                .map_err(|error| error.to_string())
                .and_then(|update| layer.updated(&notes, update));
            async move {
                let notes = updated?;
                let tokens = ctx.tokenize(&notes.to_text());
                if tokens > MAX_NOTES_TOKENS {
                    return Err(format!("they would have {tokens} tokens, more than {MAX_NOTES_TOKENS}").into());
                }
                Ok(FnResult::new(json!("updated")).with_state(notes))
            }
        })
    }
}

const TEXT_DESCRIPTION: &str =
    "Replaces your notes. They are shown to you from now on, so keep them short and leave out what is outdated.";
const OBJECT_DESCRIPTION: &str = "Merges changes into your notes, which are shown to you from now on. Objects are \
                                  merged key by key, null removes a key. The notes as a whole meet this JSON schema:";

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
        Ok(fit_block(params.ctx.counter(), &self.id, &params.state.to_text(), params.budget).into())
    }

    /// Stored notes may be of a time with another schema, or of text.
    fn check_state(&self, notes: &Notes) -> Result<(), String> {
        if notes.is_empty() { Ok(()) } else { self.check(notes) }
    }

    fn merge(&self, ours: &Notes, theirs: &Notes) -> Option<Notes> {
        let merged = match (ours, theirs) {
            (Notes::Text(ours), Notes::Text(theirs)) => Notes::Text(unite_lines(ours, theirs)),
            (Notes::Object(ours), Notes::Object(theirs)) => {
                let mut merged = theirs.clone();
                merge_object(&mut merged, ours.clone());
                Notes::Object(merged)
            }
            _ => return None,
        };
        self.check(&merged).is_ok().then_some(merged)
    }
}

impl Notes {
    /// Whether there is nothing in them.
    pub fn is_empty(&self) -> bool {
        match self {
            Notes::Text(text) => text.trim().is_empty(),
            Notes::Object(object) => object.is_empty(),
        }
    }

    /// The notes as the model reads them.
    fn to_text(&self) -> String {
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

/// Merges objects key by key, at any depth; `null` removes a key, anything else replaces what was there.
fn merge_object(target: &mut Map<String, Value>, changes: Map<String, Value>) {
    for (key, change) in changes {
        match change {
            Value::Null => {
                target.remove(&key);
            }
            Value::Object(changes) => {
                let old = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
                if !old.is_object() {
                    *old = Value::Object(Map::new());
                }
                merge_object(old.as_object_mut().expect("it was just made one"), changes);
            }
            change => {
                target.insert(key, change);
            }
        }
    }
}

/// Their lines, then those of ours that they do not have.
fn unite_lines(ours: &str, theirs: &str) -> String {
    let new = ours.lines().filter(|line| !theirs.lines().any(|their| their == *line));
    theirs.lines().chain(new).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use contexture_core::engine::{Engine, Execution};
    use contexture_core::error::FunctionError;
    use contexture_core::testing::{Recorder, ScriptedModel, engine, layer_conformance};
    use contexture_core::{Error, MemoryStore, StorageAdapter, memory};

    use super::*;

    type OneLayer = (WorkingMemory,);

    fn profile() -> WorkingMemory {
        let schema = json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "likes": { "type": "object" } },
            "additionalProperties": false,
        });
        WorkingMemory::object(schema).expect("a schema within the part that can be checked")
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn agent(layer: WorkingMemory, store: &Arc<dyn StorageAdapter>, model: &ScriptedModel) -> Engine<OneLayer> {
        engine(memory((layer,))).store(store.clone()).model(model.clone()).build().expect("a good memory")
    }

    fn forgetful() -> Arc<dyn StorageAdapter> {
        Arc::new(MemoryStore::new())
    }

    async fn started(layer: WorkingMemory) -> Execution<OneLayer> {
        agent(layer, &forgetful(), &ScriptedModel::new()).execution("thread").start().await.expect("a start")
    }

    fn notes(execution: &Execution<OneLayer>) -> Notes {
        execution.memory().read(WorkingMemory::SNAPSHOT).expect("declared data")
    }

    /// What `update` itself said.
    #[track_caller]
    fn reason(error: Error) -> String {
        match error {
            Error::Function(FunctionError::Failed { source, .. }) => source.to_string(),
            other => panic!("another error: {other}"),
        }
    }

    #[tokio::test]
    async fn conforms_in_every_form() {
        layer_conformance(WorkingMemory::new).await;
        layer_conformance(|| WorkingMemory::new().with_scope(MemoryScope::Resource)).await;
        layer_conformance(profile).await;
        // Far longer than any budget: the layer itself cuts what it shows.
        let long = Notes::Text("</memory> A line of notes.\n".repeat(2_000));
        layer_conformance(|| WorkingMemory::new().with_template(long.clone()).read_only()).await;
    }

    #[tokio::test]
    async fn the_model_sees_what_it_noted() {
        let model =
            ScriptedModel::new().calls("working-memory/update", r#"{"text":"The user is Ada."}"#).says("Noted.");
        let engine = agent(WorkingMemory::new(), &forgetful(), &model);
        let mut execution = engine.execution("thread").start().await.unwrap();
        execution.turn("I am Ada.").await.unwrap();
        execution.turn("Who am I?").await.unwrap();
        let shown = model.last_texts().join("\n");
        assert!(shown.contains("layer=\"working-memory\">\nThe user is Ada.\n</"), "{shown}");
    }

    #[tokio::test]
    async fn notes_survive_a_restart_and_are_shared_within_their_scope() {
        let store = forgetful();
        let shared = || WorkingMemory::new().with_scope(MemoryScope::Resource);
        let engine = agent(shared(), &store, &ScriptedModel::new());
        let first = engine.execution("one").resource("ada").start().await.unwrap();
        first.memory().call(WorkingMemory::UPDATE, Update::Text("Likes tea.".into())).await.unwrap();
        first.complete().await.unwrap();

        let engine = agent(shared(), &store, &ScriptedModel::new());
        let same_user = engine.execution("two").resource("ada").start().await.unwrap();
        assert_eq!(notes(&same_user), Notes::Text("Likes tea.".into()));
        let other_user = engine.execution("three").resource("bob").start().await.unwrap();
        assert_eq!(notes(&other_user), Notes::default());
    }

    #[tokio::test]
    async fn an_update_that_breaks_the_schema_changes_nothing_and_says_why() {
        let execution = started(profile()).await;
        let access = execution.memory();
        let update = |changes| access.call(WorkingMemory::UPDATE, Update::Changes(object(changes)));
        update(json!({ "name": "Ada" })).await.unwrap();
        let refused = update(json!({ "name": 7 })).await.unwrap_err();
        assert_eq!(reason(refused), "`name` is a number, expected a string");
        assert_eq!(notes(&execution), Notes::Object(object(json!({ "name": "Ada" }))));
    }

    #[tokio::test]
    async fn an_update_of_the_other_kind_is_refused() {
        let execution = started(WorkingMemory::new()).await;
        let refused = execution.memory().call(WorkingMemory::UPDATE, Update::Changes(Map::new())).await.unwrap_err();
        assert!(refused.to_string().starts_with("arguments of `working-memory/update`: "), "{refused}");
    }

    #[tokio::test]
    async fn notes_that_are_too_long_are_refused() {
        let execution = started(WorkingMemory::new()).await;
        let text = "word ".repeat(10_000);
        let refused = execution.memory().call(WorkingMemory::UPDATE, Update::Text(text)).await.unwrap_err();
        assert!(reason(refused).ends_with("tokens, more than 1400"));
        assert_eq!(notes(&execution), Notes::default());
    }

    /// Text becomes an object, an object gets another schema, and an object becomes text.
    #[tokio::test]
    async fn stored_notes_that_do_not_fit_any_more_are_kept_aside_and_reported() {
        let other = WorkingMemory::object(json!({ "type": "object", "required": ["age"] })).unwrap();
        let name = Notes::Object(object(json!({ "name": "Ada" })));
        let cases = [
            (WorkingMemory::new(), Update::Text("tea".into()), profile(), r#"{"format":1,"state":"tea"}"#),
            (
                profile(),
                Update::Changes(object(json!({ "name": "Ada" }))),
                other,
                r#"{"format":1,"state":{"name":"Ada"}}"#,
            ),
            (
                profile(),
                Update::Changes(object(json!({ "name": "Ada" }))),
                WorkingMemory::new(),
                r#"{"format":1,"state":{"name":"Ada"}}"#,
            ),
        ];
        for (before, update, after, kept) in cases {
            let store = forgetful();
            let first = agent(before, &store, &ScriptedModel::new());
            let execution = first.execution("thread").start().await.unwrap();
            execution.memory().call(WorkingMemory::UPDATE, update).await.unwrap();
            execution.complete().await.unwrap();

            let (recorder, model) = (Recorder::new(), ScriptedModel::new());
            let builder = engine(memory((after.clone(),))).store(store.clone()).model(model.clone());
            let second = builder.observer(recorder.clone()).build().unwrap();
            let mut execution = second.execution("thread").start().await.unwrap();
            assert!(notes(&execution).is_empty(), "it starts fresh");
            assert_eq!((recorder.faults().len(), recorder.faults()[0].place), (1, "restore"));
            execution.turn("hello").await.unwrap();
            assert!(!model.last_texts().iter().any(|text| text.contains("Ada") || text.contains("tea")));
            if after.schema.is_none() {
                execution.memory().call(WorkingMemory::UPDATE, Update::Text("new".into())).await.unwrap();
            }
            execution.complete().await.unwrap();
            let backups = store.list("layers/working-memory/thread/thread/state.backup.").await.unwrap();
            let aside = store.get(&backups[0]).await.unwrap().expect("it is listed").value;
            assert_eq!((backups.len(), String::from_utf8(aside).unwrap().as_str()), (1, kept));
        }
        assert!(profile().check_state(&name).is_ok() && profile().check_state(&Notes::default()).is_ok());
    }

    #[tokio::test]
    async fn read_only_notes_have_no_tool() {
        let layer = WorkingMemory::new().with_template(Notes::Text("Be kind.".into())).read_only();
        let engine = agent(layer, &forgetful(), &ScriptedModel::new());
        assert_eq!(engine.tool_schemas(), []);
        let execution = engine.execution("thread").start().await.unwrap();
        assert_eq!(notes(&execution), Notes::Text("Be kind.".into()));
    }

    #[tokio::test]
    async fn a_template_that_does_not_fit_ends_the_start() {
        let layer = profile().with_template(Notes::Text("text".into()));
        let engine = agent(layer, &forgetful(), &ScriptedModel::new());
        let refused = engine.execution("thread").start().await.err().expect("an error");
        let Error::Init { source, .. } = refused else { panic!("another error: {refused}") };
        assert_eq!(source.to_string(), "the template does not fit: the notes are text, expected an object");
    }

    #[test]
    fn a_schema_that_cannot_be_checked_is_refused_by_name() {
        let refused = WorkingMemory::object(json!({ "type": "objekt" })).unwrap_err();
        assert!(refused.to_string().starts_with("layer `working-memory`: `schema` "), "{refused}");
    }

    #[test]
    fn changes_are_merged_at_any_depth() {
        #[track_caller]
        fn check(before: Value, changes: Value, after: Value) {
            let mut merged = object(before);
            merge_object(&mut merged, object(changes));
            assert_eq!(Value::Object(merged), after);
        }
        check(json!({}), json!({ "a": 1 }), json!({ "a": 1 }));
        check(json!({ "a": { "b": 1, "c": 2 } }), json!({ "a": { "c": 3 } }), json!({ "a": { "b": 1, "c": 3 } }));
        check(json!({ "a": { "b": 1 } }), json!({ "a": { "b": null } }), json!({ "a": {} }));
        check(json!({ "a": 1 }), json!({ "a": null, "b": null }), json!({}));
        check(json!({ "a": 1 }), json!({ "a": { "b": { "c": null } } }), json!({ "a": { "b": {} } }));
        check(json!({ "a": [1, 2] }), json!({ "a": [3] }), json!({ "a": [3] }));
    }

    #[test]
    fn two_writers_lose_nothing() {
        let text = |text: &str| Notes::Text(text.into());
        let merged = WorkingMemory::new().merge(&text("tea\nours"), &text("tea\ntheirs"));
        assert_eq!(merged, Some(text("tea\ntheirs\nours")));

        let likes = |likes: Value| Notes::Object(object(json!({ "likes": likes })));
        let merged = profile().merge(&likes(json!({ "tea": 1, "rain": 1 })), &likes(json!({ "tea": 0, "snow": 1 })));
        assert_eq!(merged, Some(likes(json!({ "tea": 1, "rain": 1, "snow": 1 }))));
    }
}
