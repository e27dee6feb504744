//! Data and functions of a layer. Data is read from its state; functions become tools.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::ExecutionContext;
use super::hook::HookResult;
use super::state::LayerState;
use crate::error::BoxError;
use crate::schema::Schema;

/// The data and functions of a layer, by name.
///
/// Data is read from state. A function becomes a tool named `layer id/name`, unless all of them are
/// [one tool](Self::in_one_tool).
pub struct LayerProvides<S> {
    entries: Vec<(String, LayerDecl<S>)>,
    one_tool: Option<String>,
}

/// Data or a function of a layer.
pub enum LayerDecl<S> {
    /// Derived from state.
    Data(LayerDataDecl<S>),
    /// Callable by the program and by the model.
    Function(LayerFunctionDecl<S>),
}

impl<S> LayerProvides<S> {
    /// Nothing.
    pub fn new() -> Self {
        Self { entries: Vec::new(), one_tool: None }
    }

    /// Offers all functions to the model as one tool, `layer id/do`, whose argument `action` names the function.
    ///
    /// Several small tools cost several times as many tokens, in every request. `says` introduces the tool; below it each
    /// function has a line with its arguments and its description, so these should be short. Descriptions of arguments
    /// are not sent, but every call is checked against the function's whole schema. Everything else stays as it is:
    /// gates see `layer id/name` with the function's own arguments, and calls by that name work, of the model as of the
    /// program. A layer with a single function for the model keeps that as its tool.
    pub fn in_one_tool(mut self, says: impl Into<String>) -> Self {
        self.one_tool = Some(says.into());
        self
    }

    /// What introduces the one tool.
    pub(crate) fn one_tool(&self) -> Option<&str> {
        self.one_tool.as_deref()
    }

    /// Adds data.
    pub fn data(mut self, name: impl Into<String>, data: LayerDataDecl<S>) -> Self {
        self.entries.push((name.into(), LayerDecl::Data(data)));
        self
    }

    /// Adds a function.
    pub fn function(mut self, name: impl Into<String>, function: LayerFunctionDecl<S>) -> Self {
        self.entries.push((name.into(), LayerDecl::Function(function)));
        self
    }

    /// All declarations, in the order in which they were made.
    pub fn entries(&self) -> &[(String, LayerDecl<S>)] {
        &self.entries
    }
}

impl<S> Default for LayerProvides<S> {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads a value from a state of any type.
type StateGetter<S, T> = Arc<dyn Fn(&S) -> T + Send + Sync>;

/// Data that a layer derives from its state. Made by [`layer_data`].
pub struct LayerDataDecl<S> {
    pub(crate) read: StateGetter<S, Box<dyn Any + Send>>,
    pub(crate) read_json: StateGetter<S, Value>,
}

/// Declares data that is derived from state.
///
/// ```
/// use contexture_core::layer::{layer_data, LayerProvides};
/// let provides = LayerProvides::<Vec<String>>::new().data("count", layer_data(|facts: &Vec<String>| facts.len()));
/// assert_eq!(provides.entries().len(), 1);
/// ```
pub fn layer_data<S, T, F>(read: F) -> LayerDataDecl<S>
where
    T: Serialize + Send + 'static,
    F: Fn(&S) -> T + Send + Sync + 'static,
{
    let read = Arc::new(read);
    let json = read.clone();
    LayerDataDecl {
        read: Arc::new(move |state| Box::new(read(state))),
        // Data that cannot be serialised is null in JSON; typed access still returns it.
        read_json: Arc::new(move |state| serde_json::to_value(json(state)).unwrap_or(Value::Null)),
    }
}

/// What a function of a layer returns.
#[derive(Clone, Debug, PartialEq)]
pub struct FnResult<O, S> {
    /// The result itself.
    pub result: O,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
}

impl<O, S> FnResult<O, S> {
    /// A result that changes nothing.
    pub fn new(result: O) -> Self {
        Self { result, state: None }
    }

    /// Sets a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }
}

/// Why a function failed, before the names of layer and function are added.
pub(crate) enum FnFailure {
    BadInput(String),
    BadOutput(String),
    Failed(BoxError),
}

type Execute<S> = Arc<
    dyn Fn(Value, Arc<S>, ExecutionContext) -> BoxFuture<'static, Result<FnResult<Value, S>, FnFailure>> + Send + Sync,
>;

/// A function of a layer. Made by [`layer_fn`] or [`layer_fn_with_schema`].
pub struct LayerFunctionDecl<S> {
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its input.
    pub input: Value,
    /// JSON schema of its output.
    pub output: Value,
    /// Whether the schemas were given as JSON and so may be wrong.
    pub(crate) given: bool,
    pub(crate) for_program: bool,
    pub(crate) execute: Execute<S>,
}

impl<S> LayerFunctionDecl<S> {
    /// Does not offer the function to the model: only the program calls it.
    pub fn for_program(mut self) -> Self {
        self.for_program = true;
        self
    }

    /// Whether only the program calls it.
    pub fn is_for_program(&self) -> bool {
        self.for_program
    }
}

/// Declares a function whose schemas come from its Rust types.
///
/// The input is checked before `execute` runs and the output after it: what does not meet its schema is an error for the
/// caller and changes nothing.
///
/// ```
/// use contexture_core::layer::{layer_fn, FnResult, LayerProvides};
/// use std::sync::Arc;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Remember {
///     /// One fact, as a sentence.
///     fact: String,
/// }
///
/// let provides = LayerProvides::<Vec<String>>::new().function(
///     "remember",
///     layer_fn("Remembers a fact.", |input: Remember, facts: Arc<Vec<String>>, _ctx| async move {
///         let mut facts = Arc::unwrap_or_clone(facts);
///         facts.push(input.fact);
///         Ok(FnResult::new(facts.len()).with_state(facts))
///     }),
/// );
/// assert_eq!(provides.entries()[0].0, "remember");
/// ```
pub fn layer_fn<I, O, S, F, Fut>(description: impl Into<String>, execute: F) -> LayerFunctionDecl<S>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    O: Serialize + JsonSchema + Send + 'static,
    S: LayerState,
    F: Fn(I, Arc<S>, ExecutionContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HookResult<FnResult<O, S>>> + Send + 'static,
{
    let input = schemars::schema_for!(I).to_value();
    let output = schemars::schema_for!(O).to_value();
    let schemas = Arc::new((Schema::lenient(&input), Schema::lenient(&output)));
    let execute = Arc::new(execute);
    let erased: Execute<S> = Arc::new(move |arguments, state, ctx| {
        let (execute, schemas) = (execute.clone(), schemas.clone());
        Box::pin(async move {
            schemas.0.check(&arguments).map_err(FnFailure::BadInput)?;
            let input: I =
                serde_path_to_error::deserialize(arguments).map_err(|error| FnFailure::BadInput(error.to_string()))?;
            let answer = execute(input, state, ctx).await.map_err(FnFailure::Failed)?;
            let result =
                serde_json::to_value(answer.result).map_err(|error| FnFailure::BadOutput(error.to_string()))?;
            schemas.1.check(&result).map_err(FnFailure::BadOutput)?;
            Ok(FnResult { result, state: answer.state })
        })
    });
    LayerFunctionDecl {
        description: description.into(),
        input,
        output,
        given: false,
        for_program: false,
        execute: erased,
    }
}

/// Declares a function whose schemas are given as JSON; input and output are checked against them.
///
/// The schemas themselves are checked when the memory is built; see [`Schema`](crate::schema::Schema) for the supported
/// keywords.
pub fn layer_fn_with_schema<S, F, Fut>(
    description: impl Into<String>,
    input: Value,
    output: Value,
    execute: F,
) -> LayerFunctionDecl<S>
where
    S: LayerState,
    F: Fn(Value, Arc<S>, ExecutionContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HookResult<FnResult<Value, S>>> + Send + 'static,
{
    let schemas = Arc::new((Schema::lenient(&input), Schema::lenient(&output)));
    let execute = Arc::new(execute);
    let erased: Execute<S> = Arc::new(move |arguments, state, ctx| {
        let (execute, schemas) = (execute.clone(), schemas.clone());
        Box::pin(async move {
            schemas.0.check(&arguments).map_err(FnFailure::BadInput)?;
            let answer = execute(arguments, state, ctx).await.map_err(FnFailure::Failed)?;
            schemas.1.check(&answer.result).map_err(FnFailure::BadOutput)?;
            Ok(answer)
        })
    });
    LayerFunctionDecl {
        description: description.into(),
        input,
        output,
        given: true,
        for_program: false,
        execute: erased,
    }
}

/// The typed name of data of the layer `L`.
///
/// ```
/// # use contexture_core::layer::*;
/// # use contexture_core::Slot;
/// struct Facts;
///
/// impl Facts {
///     /// How many facts there are.
///     pub const COUNT: LayerData<Facts, usize> = LayerData::new("count");
/// }
/// # assert_eq!(Facts::COUNT.name(), "count");
/// ```
pub struct LayerData<L, T> {
    name: &'static str,
    types: PhantomData<fn() -> (L, T)>,
}

/// The typed name of a function of the layer `L`, from `I` to `O`.
pub struct LayerFunction<L, I, O> {
    name: &'static str,
    types: PhantomData<fn(I) -> (L, O)>,
}

impl<L, T> LayerData<L, T> {
    /// The data that `L` declares under `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, types: PhantomData }
    }

    /// The name it is declared under.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<L, I, O> LayerFunction<L, I, O> {
    /// The function that `L` declares under `name`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, types: PhantomData }
    }

    /// The name it is declared under.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

// Derived `Clone` and `Debug` would require the same of the state type, which is not needed.

impl<S> Clone for LayerProvides<S> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), one_tool: self.one_tool.clone() }
    }
}

impl<S> Clone for LayerDecl<S> {
    fn clone(&self) -> Self {
        match self {
            LayerDecl::Data(data) => LayerDecl::Data(data.clone()),
            LayerDecl::Function(function) => LayerDecl::Function(function.clone()),
        }
    }
}

impl<S> Clone for LayerDataDecl<S> {
    fn clone(&self) -> Self {
        Self { read: self.read.clone(), read_json: self.read_json.clone() }
    }
}

impl<S> Clone for LayerFunctionDecl<S> {
    fn clone(&self) -> Self {
        Self {
            description: self.description.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            given: self.given,
            for_program: self.for_program,
            execute: self.execute.clone(),
        }
    }
}

impl<S> fmt::Debug for LayerFunctionDecl<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerFunctionDecl").field("description", &self.description).field("input", &self.input).finish()
    }
}
