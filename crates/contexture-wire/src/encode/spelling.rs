//! Whether names, arguments and texts are sent as they are, or as every provider accepts them.

use std::borrow::Cow;
use std::collections::HashMap;

use contexture_core::item::{Content, FunctionCall, FunctionCallOutput};
use contexture_core::model::ModelRequest;
use contexture_core::tool::wire_name;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// How names, arguments and texts are written.
pub(super) struct Spelling<'a> {
    /// The names of tools on the wire, by their public names; nothing if everything is sent as it is.
    tools: Option<HashMap<&'a str, &'a str>>,
    /// The names of the tools that calls called, for formats in which an output has it.
    calls: HashMap<&'a str, &'a str>,
}

impl<'a> Spelling<'a> {
    /// As every provider accepts them: tools have their names on the wire, arguments are an object, and blank texts are
    /// left out.
    pub(super) fn accepted(request: &'a ModelRequest) -> Self {
        let tools = request.tools.iter().map(|tool| (tool.public_name.as_str(), tool.name.as_str())).collect();
        Self { tools: Some(tools), calls: HashMap::new() }
    }

    /// As they are.
    pub(super) fn verbatim() -> Self {
        Self { tools: None, calls: HashMap::new() }
    }

    /// The same, and outputs have the names of these calls.
    pub(super) fn with_calls(self, calls: impl IntoIterator<Item = &'a FunctionCall>) -> Self {
        Self { calls: calls.into_iter().map(|call| (&*call.call_id, &*call.name)).collect(), ..self }
    }

    /// The name of a tool that was called, which may no longer exist.
    pub(super) fn name(&self, public_name: &'a str) -> Cow<'a, str> {
        match &self.tools {
            None => Cow::Borrowed(public_name),
            Some(tools) => tools.get(public_name).map_or_else(|| wire_name(public_name).into(), |name| (*name).into()),
        }
    }

    /// The name of the tool that made an output.
    pub(super) fn name_of_output(&self, output: &FunctionCallOutput) -> Cow<'a, str> {
        self.name(self.calls.get(&*output.call_id).copied().unwrap_or_default())
    }

    /// The arguments of a call, for formats in which they are a text.
    pub(super) fn arguments_text(&self, call: &'a FunctionCall) -> Cow<'a, str> {
        match self.tools.is_none() || is_object(&call.arguments) {
            true => Cow::Borrowed(&call.arguments),
            false => arguments(call).to_string().into(),
        }
    }

    /// Whether a part is sent: providers refuse empty texts.
    pub(super) fn sends(&self, content: &Content) -> bool {
        self.tools.is_none() || !matches!(content, Content::Text { text } if text.trim().is_empty())
    }
}

/// The arguments of a call as an object, which formats require. Anything else that a model wrote is wrapped in an
/// object, so that the model sees what it did.
pub(super) fn arguments(call: &FunctionCall) -> Value {
    match call.parsed_arguments() {
        Value::Object(fields) => Value::Object(fields),
        _ if call.arguments.trim().is_empty() => json!({}),
        other => json!({ "arguments": other }),
    }
}

/// Whether a text is a JSON object.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
