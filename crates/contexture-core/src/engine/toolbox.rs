//! The tools for the model: those of the program, and the functions of layers.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::roster::Roster;
use crate::error::SpecError;
use crate::item::FunctionCall;
use crate::layer::{ACTION, ErasedFunction, offered_tools};
use crate::model::ToolSchema;
use crate::schema::Schema;
use crate::tokens::TokenCounter;
use crate::tool::{DynTool, wire_name};
use crate::window::fingerprint_text;

/// The longest wire name that every provider accepts.
const MAX_WIRE_NAME: usize = 64;

/// Every tool by name.
pub(crate) struct Toolbox {
    schemas: Arc<[ToolSchema]>,
    /// By public name and by wire name: the public name, and what is called.
    by_name: HashMap<String, (Arc<str>, CallTarget)>,
    tokens: u64,
    fingerprint: u64,
}

/// A tool of the program or a function of a layer.
#[derive(Clone)]
pub(crate) enum CallTarget {
    Tool {
        tool: Arc<dyn DynTool>,
        schema: Arc<Schema>,
    },
    Function {
        layer: String,
        function: String,
    },
    /// One tool for all functions of a layer, which an argument names.
    Functions {
        layer: String,
    },
}

impl Toolbox {
    /// The layer whose function has this public name.
    pub(crate) fn layer_of(&self, public_name: &str) -> Option<&str> {
        match self.get(public_name)? {
            CallTarget::Function { layer, .. } | CallTarget::Functions { layer } => Some(layer),
            CallTarget::Tool { .. } => None,
        }
    }

    /// Collects all tools; colliding names are an error.
    pub(crate) fn new(
        roster: &Roster,
        tools: &[Arc<dyn DynTool>],
        counter: &dyn TokenCounter,
    ) -> Result<Self, SpecError> {
        let mut toolbox = Toolbox { schemas: Arc::from([]), by_name: HashMap::new(), tokens: 0, fingerprint: 0 };
        let mut schemas = Vec::new();
        for tool in tools {
            let subject = format!("tool `{}`", tool.name());
            let parameters = tool.parameters();
            let schema = Arc::new(Schema::lenient(&parameters));
            let target = CallTarget::Tool { tool: tool.clone(), schema };
            let (name, public_name) = toolbox.add(&subject, tool.name().to_owned(), target)?;
            schemas.push(ToolSchema { name, public_name, description: tool.description().to_owned(), parameters });
        }
        for layer in roster.by_slot() {
            let id = layer.spec().id.as_str();
            for function in layer.functions() {
                let target = CallTarget::Function { layer: id.to_owned(), function: function.name.clone() };
                toolbox.add(&format!("layer `{id}`"), format!("{id}/{}", function.name), target)?;
            }
            let offered = offered_tools(id, layer.one_tool(), layer.functions());
            for tool in &offered {
                if toolbox.get(&tool.public_name).is_some() {
                    continue;
                }
                check_arguments(id, layer.functions())?;
                let target = CallTarget::Functions { layer: id.to_owned() };
                toolbox.add(&format!("layer `{id}`"), tool.public_name.clone(), target)?;
            }
            schemas.extend(offered);
        }
        toolbox.tokens = schemas.iter().map(|schema| schema.tokens(counter)).sum();
        let json = serde_json::to_string(&schemas).expect("schemas are JSON already");
        toolbox.fingerprint = fingerprint_text([json.as_str()]);
        toolbox.schemas = schemas.into();
        Ok(toolbox)
    }

    fn add(&mut self, subject: &str, public_name: String, target: CallTarget) -> Result<(String, String), SpecError> {
        let name = wire_name(&public_name);
        let refuse = |problem: String| Err(SpecError::other(subject, "name", problem));
        if public_name.is_empty() {
            return refuse("is empty".into());
        }
        if name.len() > MAX_WIRE_NAME {
            return refuse(format!("makes `{name}` on the wire, which is longer than {MAX_WIRE_NAME} characters"));
        }
        if self.by_name.contains_key(&public_name) {
            return refuse(format!("`{public_name}` is used by another tool too"));
        }
        if self.by_name.contains_key(&name) {
            return refuse(format!("`{public_name}` makes `{name}` on the wire, like another tool"));
        }
        let public: Arc<str> = public_name.as_str().into();
        self.by_name.insert(public_name.clone(), (public.clone(), target.clone()));
        self.by_name.insert(name.clone(), (public, target));
        Ok((name, public_name))
    }

    pub(crate) fn schemas(&self) -> &[ToolSchema] {
        &self.schemas
    }

    pub(crate) fn shared_schemas(&self) -> Arc<[ToolSchema]> {
        self.schemas.clone()
    }

    /// The tokens of the schemas.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The fingerprint of all tool descriptions.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The tool with this public name or wire name.
    pub(crate) fn get(&self, name: &str) -> Option<&CallTarget> {
        self.by_name.get(name).map(|(_, target)| target)
    }

    /// The call as the called function has it: a call of the one tool of a layer becomes one of the function that it
    /// names, with its own arguments. Anything else is returned unchanged, also an action that does not exist.
    pub(crate) fn unfolded(&self, call: FunctionCall) -> FunctionCall {
        let Some(CallTarget::Functions { layer }) = self.get(&call.name) else { return call };
        let Value::Object(mut arguments) = call.parsed_arguments() else { return call };
        let Some(Value::String(action)) = arguments.remove(ACTION) else { return call };
        let name = format!("{layer}/{action}");
        match self.get(&name) {
            Some(CallTarget::Function { .. }) => {
                FunctionCall { name: name.into(), arguments: Value::Object(arguments).to_string(), ..call }
            }
            _ => call,
        }
    }

    /// The public name of the tool with this public name or wire name; an unknown name is returned unchanged.
    pub(crate) fn public_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.by_name.get(name).map_or(name, |(public_name, _)| public_name)
    }
}

/// A function of a layer with one tool must not have an argument of the name that says which function is meant.
fn check_arguments(id: &str, functions: &[ErasedFunction]) -> Result<(), SpecError> {
    let clashes = |function: &&ErasedFunction| !function.for_program && !function.input["properties"][ACTION].is_null();
    match functions.iter().find(clashes) {
        None => Ok(()),
        Some(function) => {
            let field = format!("provides.{}", function.name);
            Err(SpecError::layer(id, &field, format!("has an argument `{ACTION}`, so it cannot be part of one tool")))
        }
    }
}
