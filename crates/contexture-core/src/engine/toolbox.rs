//! The tools for the model: those of the program, and the functions of layers.

use std::collections::HashMap;
use std::sync::Arc;

use super::roster::Roster;
use crate::error::SpecError;
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
    by_name: HashMap<String, Target>,
    tokens: u64,
    fingerprint: u64,
}

/// A tool of the program or a function of a layer.
#[derive(Clone)]
pub(crate) enum Target {
    Tool { tool: Arc<dyn DynTool>, schema: Arc<Schema> },
    Function { layer: String, function: String },
}

impl Toolbox {
    /// The layer whose function has this public name.
    pub(crate) fn layer_of(&self, public_name: &str) -> Option<&str> {
        match self.by_name.get(public_name)? {
            Target::Function { layer, .. } => Some(layer),
            Target::Tool { .. } => None,
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
            let target = Target::Tool { tool: tool.clone(), schema };
            let description = tool.description().to_owned();
            schemas.push(toolbox.add(&subject, tool.name().to_owned(), description, parameters, target)?);
        }
        for layer in roster.by_slot() {
            let id = layer.spec().id.as_str();
            for function in layer.functions() {
                let target = Target::Function { layer: id.to_owned(), function: function.name.clone() };
                let (subject, name) = (format!("layer `{id}`"), format!("{id}/{}", function.name));
                let (description, input) = (function.description.clone(), function.input.clone());
                schemas.push(toolbox.add(&subject, name, description, input, target)?);
            }
        }
        toolbox.tokens = schemas.iter().map(|schema| schema_tokens(counter, schema)).sum();
        let json = serde_json::to_string(&schemas).expect("schemas are JSON already");
        toolbox.fingerprint = fingerprint_text([json.as_str()]);
        toolbox.schemas = schemas.into();
        Ok(toolbox)
    }

    fn add(
        &mut self,
        subject: &str,
        public_name: String,
        description: String,
        parameters: serde_json::Value,
        target: Target,
    ) -> Result<ToolSchema, SpecError> {
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
        self.by_name.insert(public_name.clone(), target.clone());
        self.by_name.insert(name.clone(), target);
        Ok(ToolSchema { name, public_name, description, parameters })
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
    pub(crate) fn get(&self, name: &str) -> Option<&Target> {
        self.by_name.get(name)
    }

    /// The public name of the tool with this public name or wire name; an unknown name is returned unchanged.
    pub(crate) fn public_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.schemas.iter().find(|schema| schema.name == name).map_or(name, |schema| &schema.public_name)
    }
}

fn schema_tokens(counter: &dyn TokenCounter, schema: &ToolSchema) -> u64 {
    crate::tokens::ITEM_OVERHEAD_TOKENS
        + counter.count(&schema.name)
        + counter.count(&schema.description)
        + counter.count(&schema.parameters.to_string())
}
