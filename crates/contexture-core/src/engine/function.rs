//! Calls a function of a layer, for the model and for the program around the agent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::frame::HookFrame;
use super::hook_run::{FutureEnd, within};
use super::shared::SharedExecution;
use crate::error::FunctionError;
use crate::id::LayerId;
use crate::layer::*;

/// How long a function of a layer may take.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(120);

/// The place of faults in functions.
const FUNCTION: &str = "function";

/// Calls a function of a layer while no hook of the layer runs; its new state is kept only if it succeeds.
pub(crate) async fn call_function(
    shared: &Arc<SharedExecution>,
    layer: &str,
    function: &str,
    arguments: Value,
) -> Result<Value, FunctionError> {
    let name = format!("{layer}/{function}");
    let roster = shared.roster();
    let Some(layer) = roster.get(layer) else { return Err(FunctionError::Unknown { name }) };
    let id = &layer.spec().id;
    if let Some(doing) = HookFrame::running(shared.id(), id) {
        shared.fault(Some(id), FUNCTION, format!("the layer called itself from `{doing}`"));
        return Err(FunctionError::Reentrant { layer: id.clone(), doing });
    }
    if !shared.is_running(layer) {
        return Err(FunctionError::NotRunning { layer: id.clone() });
    }
    let lock = shared.lock_of(id);
    let _alone = lock.lock().await;
    let running = layer.execute(function, arguments, shared.state(id), shared.context());
    let Some(running) = running else { return Err(FunctionError::Unknown { name }) };
    let running = HookFrame::run(shared.id(), id, FUNCTION, running);
    match within(&*shared.core().host.clock, FUNCTION_TIMEOUT, running).await {
        FutureEnd::Done(Ok(answer)) => {
            let change = answer.state.map_or(StateChange::Keep, StateChange::Set);
            shared.change_state(layer, change);
            Ok(answer.result)
        }
        FutureEnd::Done(Err(FnFailure::BadInput(problem))) => Err(FunctionError::BadInput { name, problem }),
        FutureEnd::Done(Err(FnFailure::BadOutput(problem))) => {
            shared.fault(Some(id), FUNCTION, format!("result of `{name}`: {problem}"));
            Err(FunctionError::BadOutput { name, problem })
        }
        FutureEnd::Done(Err(FnFailure::Failed(source))) => Err(FunctionError::Failed { name, source }),
        FutureEnd::Panicked(message) => Err(misbehaved(shared, id, name, format!("panicked: {message}"))),
        FutureEnd::Late(limit) => {
            let message = format!("took longer than {} s and was cancelled", limit.as_secs());
            Err(misbehaved(shared, id, name, message))
        }
    }
}

/// The error of a function that panicked or was cancelled.
fn misbehaved(shared: &SharedExecution, layer: &LayerId, name: String, message: String) -> FunctionError {
    shared.fault(Some(layer), FUNCTION, format!("`{name}` {message}"));
    FunctionError::Failed { name, source: message.into() }
}
