//! The tools that a layer's functions are for a model, as compact as they can be said.

use serde_json::{Map, Value, json};

use super::contract::MemoryLayer;
use super::erased::{ErasedFunction, functions_of};
use crate::model::ToolSchema;
use crate::tool::wire_name;

/// The name of the tool for all functions of a layer, after the layer's id and a slash.
const ONE_TOOL: &str = "do";
/// The argument of that tool that names the function.
pub(crate) const ACTION: &str = "action";
/// How deep schemas are written out; a schema that refers to itself would never end.
const MAX_DEPTH: usize = 6;

/// The tools that a model is offered for a layer.
pub fn tools_of<L: MemoryLayer>(layer: &L) -> Vec<ToolSchema> {
    let provides = layer.provides();
    offered_tools(layer.spec().id.as_str(), provides.one_tool(), &functions_of(&provides))
}

/// The same: one for each function, or one for all if `says` introduces it and there are several.
pub(crate) fn offered_tools(id: &str, says: Option<&str>, functions: &[ErasedFunction]) -> Vec<ToolSchema> {
    let offered: Vec<&ErasedFunction> = functions.iter().filter(|function| !function.for_program).collect();
    match says {
        Some(says) if offered.len() > 1 => {
            let tool = schema(format!("{id}/{ONE_TOOL}"), description(says, &offered), parameters(&offered));
            vec![tool]
        }
        _ => {
            let tool = |function: &&ErasedFunction| {
                let name = format!("{id}/{}", function.name);
                schema(name, function.description.clone(), without_noise(&function.input))
            };
            offered.iter().map(tool).collect()
        }
    }
}

fn schema(public_name: String, description: String, parameters: Value) -> ToolSchema {
    ToolSchema { name: wire_name(&public_name), public_name, description, parameters }
}

/// What each function does and takes: `name(needed, optional?): what it does`, a line for each.
fn description(says: &str, functions: &[&ErasedFunction]) -> String {
    let line = |function: &&ErasedFunction| {
        let required = function.input["required"].as_array().cloned().unwrap_or_default();
        let is_required = |name: &str| required.iter().any(|other| other == name);
        let properties = function.input["properties"].as_object();
        let (needed, optional): (Vec<&String>, Vec<&String>) =
            properties.into_iter().flat_map(Map::keys).partition(|name| is_required(name));
        let needed = needed.into_iter().cloned();
        let takes: Vec<String> = needed.chain(optional.into_iter().map(|name| format!("{name}?"))).collect();
        format!("\n{}({}): {}", function.name, takes.join(", "), function.description)
    };
    format!("{says}{}", functions.iter().map(line).collect::<String>())
}

/// The arguments of all functions, by type alone: what they mean is said in the description.
fn parameters(functions: &[&ErasedFunction]) -> Value {
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    let mut properties = Map::new();
    properties.insert(ACTION.to_owned(), json!({ "enum": names }));
    for function in functions {
        for (name, value) in function.input["properties"].as_object().into_iter().flatten() {
            let mut plain = by_type(value, &function.input["$defs"], MAX_DEPTH);
            let is_said = |other: &Value| plain["items"]["properties"].is_object() && *other == plain;
            if !properties.contains_key(name) && properties.values().any(is_said) {
                // What the items of another list are is not said twice.
                plain = json!({ "type": "array", "items": { "type": "object" } });
            }
            match properties.get_mut(name) {
                // Two functions that mean different things by a name: any value is let through, and checked later.
                Some(other) if *other != plain => *other = json!({}),
                Some(_) => {}
                None => drop(properties.insert(name.clone(), plain)),
            }
        }
    }
    json!({ "type": "object", "properties": properties, "required": [ACTION] })
}

/// A schema without descriptions, defaults, references and `null`.
fn by_type(schema: &Value, definitions: &Value, depth: usize) -> Value {
    let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
    if let Some(name) = name {
        return if depth == 0 { json!({}) } else { by_type(&definitions[name], definitions, depth - 1) };
    }
    let constants = schema["oneOf"].as_array().map(|all| all.iter().filter_map(|one| one.get("const")).collect());
    if let Some(constants) = constants.filter(|constants: &Vec<&Value>| !constants.is_empty()) {
        return json!({ "enum": constants });
    }
    let mut plain = Map::new();
    if let Some(kind) = schema.get("type") {
        let kinds: Vec<&Value> = kind.as_array().into_iter().flatten().filter(|kind| *kind != "null").collect();
        plain.insert("type".to_owned(), kinds.first().copied().unwrap_or(kind).clone());
    }
    if let Some(values) = schema.get("enum") {
        plain.insert("enum".to_owned(), values.clone());
    }
    let deeper = |schema: &Value| if depth == 0 { json!({}) } else { by_type(schema, definitions, depth - 1) };
    if let Some(items) = schema.get("items") {
        plain.insert("items".to_owned(), deeper(items));
    }
    if let Some(properties) = schema["properties"].as_object() {
        let properties: Map<String, Value> =
            properties.iter().map(|(name, value)| (name.clone(), deeper(value))).collect();
        plain.insert("properties".to_owned(), Value::Object(properties));
        plain.extend(schema.get("required").map(|required| ("required".to_owned(), required.clone())));
    }
    Value::Object(plain)
}

/// A schema without what is of no use to a model: the dialect, the names of Rust types, what the type of the whole
/// input is for, formats of numbers, and defaults that say nothing.
fn without_noise(schema: &Value) -> Value {
    fn clean(schema: &Value) -> Value {
        match schema {
            Value::Object(fields) => {
                let is_schema = |field: &str| !matches!(field, "properties" | "$defs" | "enum" | "const" | "required");
                let kept = fields.iter().filter(|(field, value)| match field.as_str() {
                    "$schema" | "title" | "format" => value.is_object(),
                    "default" => ![json!(null), json!(""), json!([]), json!(false)].contains(value),
                    "minimum" => *value != &json!(0),
                    // A call is checked against the whole schema anyway.
                    "additionalProperties" => *value != &json!(false),
                    _ => true,
                });
                let clean_all = |fields: &Map<String, Value>| {
                    fields.iter().map(|(name, value)| (name.clone(), clean(value))).collect::<Map<_, _>>()
                };
                let cleaned = kept.map(|(field, value)| match value {
                    Value::Object(inner) if !is_schema(field) => (field.clone(), Value::Object(clean_all(inner))),
                    value if is_schema(field) => (field.clone(), clean(value)),
                    value => (field.clone(), value.clone()),
                });
                Value::Object(cleaned.collect())
            }
            Value::Array(all) => all.iter().map(clean).collect(),
            other => other.clone(),
        }
    }
    let mut cleaned = clean(schema);
    if let (Some(fields), Some(_)) = (cleaned.as_object_mut(), schema.get("$schema")) {
        // It describes the Rust type; the function says what it does.
        fields.remove("description");
    }
    cleaned
}
