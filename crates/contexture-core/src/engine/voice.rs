//! The speaker of an item, and which speakers a layer or a model may use.

use serde_json::Value;

use crate::item::{Item, Role};
use crate::layer::LayerSpec;
use crate::schema::Schema;

/// The speaker of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// The user.
    User,
    /// The model: messages, reasoning and calls.
    Model,
    /// A tool.
    Tool,
    /// The program and its layers.
    Program,
    /// An item of a provider that is not interpreted.
    Unknown,
}

/// The speaker of an item. For one that is not interpreted it is determined by its role or type.
pub(crate) fn voice(item: &Item) -> Voice {
    match item {
        Item::Message(message) => match message.role {
            Role::User => Voice::User,
            Role::Assistant => Voice::Model,
            Role::System | Role::Developer => Voice::Program,
        },
        Item::FunctionCall(_) | Item::Reasoning(_) => Voice::Model,
        Item::FunctionCallOutput(_) => Voice::Tool,
        Item::Opaque(value) => claimed_voice(value),
    }
}

fn claimed_voice(value: &Value) -> Voice {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    match (text("role"), text("type")) {
        ("user", _) => Voice::User,
        ("assistant" | "model", _) => Voice::Model,
        ("tool", _) => Voice::Tool,
        ("system" | "developer", _) => Voice::Program,
        (_, "tool_result") => Voice::Tool,
        (_, kind) if kind.ends_with("call_output") => Voice::Tool,
        (_, "function_call" | "reasoning") => Voice::Model,
        // A message without a role could be mistaken for anyone's.
        (_, "message") => Voice::User,
        _ => Voice::Unknown,
    }
}

/// Whether a layer may add an item of this speaker.
pub(crate) fn may_speak(spec: &LayerSpec, item: &Item) -> bool {
    let is_speech = matches!(item, Item::Message(_) | Item::Opaque(_));
    match voice(item) {
        Voice::Program | Voice::Unknown => is_speech,
        Voice::User | Voice::Model => is_speech && spec.speaks_for_others,
        Voice::Tool => false,
    }
}

/// Whether an item matches the layer's schema for such items; `None` if it declared none.
pub(crate) fn meets_schema(spec: &LayerSpec, item: &Item) -> Option<bool> {
    if spec.item_schemas.is_empty() {
        return None;
    }
    // Items have text keys and no foreign types, so they have a JSON form.
    let value = serde_json::to_value(item).ok()?;
    let item_type = value.get("type").and_then(Value::as_str);
    let declared = spec.item_schemas.iter().find(|schema| Some(schema.item_type.as_str()) == item_type)?;
    Some(Schema::lenient(&declared.schema).check(&value).is_ok())
}
