//! Runs a tool call.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;

use super::function::call_function;
use super::shared::SharedExecution;
use super::toolbox::CallTarget;
use crate::item::FunctionCall;
use crate::layer::ACTION;
use crate::state::describe;
use crate::tool::{ToolContext, as_text};

/// Runs the tool; errors and panics become outputs for the model.
pub(crate) async fn call_tool(
    shared: &Arc<SharedExecution>,
    public_name: &str,
    call: &FunctionCall,
) -> Result<String, String> {
    let toolbox = shared.toolbox();
    let Some(target) = toolbox.get(public_name) else {
        return Err(format!("There is no tool `{public_name}`."));
    };
    let arguments = parse_arguments(public_name, &call.arguments)?;
    match target {
        CallTarget::Tool { tool, schema } => {
            schema.check(&arguments).map_err(|problem| format!("Arguments of `{public_name}`: {problem}"))?;
            let thread_id = &shared.context_data().thread_id;
            let ctx = ToolContext { execution_id: shared.id(), thread_id, call_id: &call.call_id, execution: shared };
            match AssertUnwindSafe(async { tool.call(arguments, ctx).await }).catch_unwind().await {
                Ok(Ok(text)) => Ok(text),
                Ok(Err(error)) => Err(describe(&*error)),
                Err(_) => Err(format!("`{public_name}` panicked.")),
            }
        }
        CallTarget::Functions { .. } => {
            let listed = toolbox.schemas().iter().find(|schema| schema.public_name == public_name);
            let actions = listed.map(|schema| schema.parameters["properties"][ACTION]["enum"].to_string());
            Err(format!("`{ACTION}` of `{public_name}` is one of {}", actions.unwrap_or_default()))
        }
        CallTarget::Function { layer, function } => {
            let answer = call_function(shared, layer, function, arguments).await;
            answer.map(as_text).map_err(|error| describe(&error))
        }
    }
}

/// Parses the arguments; an empty text is an empty object.
fn parse_arguments(public_name: &str, arguments: &str) -> Result<Value, String> {
    if arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(arguments).map_err(|error| format!("Arguments of `{public_name}` are not JSON: {error}."))
}
