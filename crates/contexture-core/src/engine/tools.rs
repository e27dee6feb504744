//! Tool calls: the gates, the run, the output's way into the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;

use super::execution::Run;
use super::hook_run::HookRun;
use super::toolbox::Target;
use crate::error::Error;
use crate::item::{FunctionCall, Item};
use crate::layer::*;
use crate::tool::ToolContext;

/// What the model is told when a layer dropped the output of a tool.
const WITHHELD: &str = "The output of this call was withheld.";

impl Run {
    /// Sends items that are about to be logged through every layer, by slot. `call_id` is the call that they answer.
    pub(crate) async fn append_pipeline(&mut self, mut items: Vec<Item>, call_id: Option<&str>) -> Vec<Item> {
        let shared = self.shared.clone();
        for layer in shared.roster().by_slot() {
            if !layer.may_have(Hook::OnItemAppend) {
                continue;
            }
            let (given, log) = (items.clone(), self.log.clone());
            let run = shared.run(layer, Hook::OnItemAppend, move |state, ctx| {
                let state = layer.state_or_default(state.as_ref());
                layer.on_item_append(OnItemAppendParams { items: given, log, ctx, state })
            });
            let Some(answer) = run.await.done() else { continue };
            let answered = answer.items.len();
            items = admissible(answer.items, call_id);
            if items.len() < answered {
                let message = format!(
                    "{} items left out: a layer cannot speak for the model or for other tools",
                    answered - items.len()
                );
                self.shared.fault(Some(&layer.spec().id), Hook::OnItemAppend.as_str(), message);
            }
            if let Some(wish) = answer.rerender {
                self.wish(layer, wish);
            }
            if items.is_empty() {
                break;
            }
        }
        items
    }

    /// Asks the gates, runs the tool if they let it pass, and logs what came of it.
    pub(crate) async fn run_tool(&mut self, call: FunctionCall) -> Result<(), Error> {
        let public_name: Arc<str> = self.shared.toolbox().public_name(&call.name).into();
        let call = Arc::new(call);
        if let Some(reason) = self.gate(&public_name, &call).await {
            let denied = format!("This call was denied and did not run: {reason}");
            return self.answer_call(Item::error_output(&call.call_id, denied)).await;
        }
        if let Some(turn) = &mut self.turn {
            turn.start_tool();
        }
        self.commit().await?;
        let output = match self.call_tool(&public_name, &call).await {
            Ok(text) => Item::output(&call.call_id, text),
            Err(message) => Item::error_output(&call.call_id, message),
        };
        self.answer_call(output).await
    }

    /// Asks every layer about a call, by slot; answers the reason of the first deny.
    async fn gate(&mut self, public_name: &Arc<str>, call: &Arc<FunctionCall>) -> Option<String> {
        let shared = self.shared.clone();
        let mut guidance = Vec::new();
        for layer in shared.roster().by_slot() {
            let (name, call, log) = (public_name.clone(), call.clone(), self.log.clone());
            let run = shared.run(layer, Hook::BeforeToolCall, move |state, ctx| {
                let state = layer.state_or_default(state.as_ref());
                layer.before_tool_call(BeforeToolCallParams { tool_name: name, call, log, ctx, state })
            });
            match run.await {
                HookRun::Done(answer) => match answer.decision {
                    SteeringDecision::Allow => {}
                    SteeringDecision::Deny { reason } => return Some(reason),
                    SteeringDecision::Guide { guidance: said } => guidance.push(said),
                },
                HookRun::Failed(error) if layer.spec().on_gate_error == OnGateError::Deny => {
                    return Some(format!("the gate of layer `{}` failed: {error}", layer.spec().id));
                }
                HookRun::Failed(_) | HookRun::Absent | HookRun::Skipped => {}
            }
        }
        guidance.retain(|said: &String| !said.trim().is_empty());
        if let Some(turn) = self.turn.as_mut().filter(|_| !guidance.is_empty()) {
            turn.advise(guidance.join("\n"));
        }
        None
    }

    /// Runs the tool; whatever it does, the model gets an answer.
    async fn call_tool(&self, public_name: &str, call: &FunctionCall) -> Result<String, String> {
        let toolbox = self.shared.toolbox();
        let Some(target) = toolbox.get(public_name) else {
            return Err(format!("There is no tool `{public_name}`."));
        };
        let arguments = parse_arguments(public_name, &call.arguments)?;
        match target {
            Target::Tool { tool, schema } => {
                schema.check(&arguments).map_err(|problem| format!("Arguments of `{public_name}`: {problem}"))?;
                let (execution_id, thread_id) = (&self.shared.id, &self.thread);
                let ctx = ToolContext { execution_id, thread_id, call_id: &call.call_id };
                match AssertUnwindSafe(async { tool.call(arguments, ctx).await }).catch_unwind().await {
                    Ok(Ok(text)) => Ok(text),
                    Ok(Err(error)) => Err(crate::state::describe(&*error)),
                    Err(_) => Err(format!("`{public_name}` panicked.")),
                }
            }
            Target::Function { layer, function } => {
                let answer = self.shared.call_function(layer, function, arguments).await;
                answer.map(|value| as_text(&value)).map_err(|error| crate::state::describe(&error))
            }
        }
    }

    /// Logs the output of the call that is due, and makes it durable.
    pub(crate) async fn answer_call(&mut self, output: Item) -> Result<(), Error> {
        let call_id = output.as_output().map(|output| output.call_id.clone()).unwrap_or_default();
        let mut items = self.append_pipeline(vec![output], Some(&call_id)).await;
        // A call must have its output, right behind it, or no provider takes the conversation any more.
        match items.iter().position(|item| item.as_output().is_some()) {
            Some(output) => items[..=output].rotate_right(1),
            None => items.insert(0, Item::output(&call_id, WITHHELD)),
        }
        self.append(items.into_iter().map(Arc::new));
        if let Some(turn) = &mut self.turn {
            turn.answered();
        }
        self.commit().await
    }
}

/// What of a layer's items may be logged: no calls, no thoughts, and of outputs one alone, to the call `call_id`.
fn admissible(items: Vec<Item>, call_id: Option<&str>) -> Vec<Item> {
    let mut answered = false;
    let mut admit = |item: &Item| match item {
        Item::Message(_) | Item::Opaque(_) => true,
        Item::FunctionCall(_) | Item::Reasoning(_) => false,
        Item::FunctionCallOutput(output) => {
            let answers = call_id == Some(&*output.call_id) && !answered;
            answered |= answers;
            answers
        }
    };
    items.into_iter().filter(|item| admit(item)).collect()
}

/// The arguments as JSON; none at all is an empty object.
fn parse_arguments(public_name: &str, arguments: &str) -> Result<Value, String> {
    if arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(arguments).map_err(|error| format!("Arguments of `{public_name}` are not JSON: {error}."))
}

/// A function's answer as the model reads it: text as it is, anything else as JSON.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
