//! Runs `after_model_call` and `before_tool_call`: the first denial wins, guidance is joined.

use std::sync::Arc;

use super::hook_run::HookRun;
use super::shared::SharedExecution;
use crate::id::LayerId;
use crate::item::FunctionCall;
use crate::layer::*;
use crate::log::ItemLog;
use crate::model::LlmResponse;

/// The decision of all layers about a response or a call.
pub(crate) enum SteeringVerdict {
    /// Allowed.
    Pass,
    /// Denied.
    Deny { layer: LayerId, reason: String },
    /// No layer denied it, and this is their guidance.
    Guide(String),
}

/// Runs `after_model_call` of every layer, by slot.
pub(crate) async fn judge_response(
    shared: &Arc<SharedExecution>,
    log: &ItemLog,
    response: &LlmResponse,
) -> SteeringVerdict {
    let roster = shared.roster();
    if !roster.by_slot().any(|layer| layer.may_have(Hook::AfterModelCall)) {
        return SteeringVerdict::Pass;
    }
    let response = Arc::new(response.clone());
    let mut guidance = Vec::new();
    for layer in roster.by_slot() {
        let (response, log) = (response.clone(), log.clone());
        let run = shared.run(layer, Hook::AfterModelCall, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.after_model_call(AfterModelCallParams { response, log, ctx, state })
        });
        match run.await {
            HookRun::Done(answer) => match answer.decision {
                SteeringDecision::Allow => {}
                SteeringDecision::Deny { reason } => {
                    return SteeringVerdict::Deny { layer: layer.spec().id.clone(), reason };
                }
                SteeringDecision::Guide { guidance: said } => guidance.push(said),
            },
            HookRun::Absent | HookRun::Skipped | HookRun::Failed(_) => {}
        }
    }
    joined(guidance)
}

/// Runs `before_tool_call` of every layer, by slot. A failure denies the call, unless the layer's spec says otherwise.
pub(crate) async fn judge_call(
    shared: &Arc<SharedExecution>,
    log: &ItemLog,
    public_name: &Arc<str>,
    call: &Arc<FunctionCall>,
) -> SteeringVerdict {
    let mut guidance = Vec::new();
    for layer in shared.roster().by_slot() {
        let id = &layer.spec().id;
        let (tool_name, call, log) = (public_name.clone(), call.clone(), log.clone());
        let run = shared.run(layer, Hook::BeforeToolCall, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.before_tool_call(BeforeToolCallParams { tool_name, call, log, ctx, state })
        });
        match run.await {
            HookRun::Done(answer) => match answer.decision {
                SteeringDecision::Allow => {}
                SteeringDecision::Deny { reason } => return SteeringVerdict::Deny { layer: id.clone(), reason },
                SteeringDecision::Guide { guidance: said } => guidance.push(said),
            },
            HookRun::Failed(error) if layer.spec().on_gate_error == OnGateError::Deny => {
                let reason = format!("`before_tool_call` of layer `{id}` failed: {error}");
                return SteeringVerdict::Deny { layer: id.clone(), reason };
            }
            HookRun::Failed(_) | HookRun::Absent | HookRun::Skipped => {}
        }
    }
    joined(guidance)
}

fn joined(mut guidance: Vec<String>) -> SteeringVerdict {
    guidance.retain(|said| !said.trim().is_empty());
    if guidance.is_empty() { SteeringVerdict::Pass } else { SteeringVerdict::Guide(guidance.join("\n")) }
}
