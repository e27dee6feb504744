//! Asks layers about responses and tool calls: the first deny wins, guidance is joined.

use std::sync::Arc;

use super::hook_run::HookRun;
use super::shared::Shared;
use crate::id::LayerId;
use crate::item::FunctionCall;
use crate::layer::*;
use crate::log::ItemLog;
use crate::model::LlmResponse;

/// What the layers said about a response or a call.
pub(crate) enum Verdict {
    /// It passes.
    Pass,
    /// It does not.
    Deny { layer: LayerId, reason: String },
    /// No layer denied it, and this is their advice.
    Guide(String),
}

/// Asks every layer about a response, by slot.
pub(crate) async fn judge_response(shared: &Arc<Shared>, log: &ItemLog, response: &LlmResponse) -> Verdict {
    let roster = shared.roster();
    if !roster.by_slot().any(|layer| layer.may_have(Hook::AfterModelCall)) {
        return Verdict::Pass;
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
                SteeringDecision::Deny { reason } => return Verdict::Deny { layer: layer.spec().id.clone(), reason },
                SteeringDecision::Guide { guidance: said } => guidance.push(said),
            },
            HookRun::Absent | HookRun::Skipped | HookRun::Failed(_) => {}
        }
    }
    joined(guidance)
}

/// Asks every layer about a tool call, by slot. A layer that fails denies, unless its spec says otherwise.
pub(crate) async fn judge_call(
    shared: &Arc<Shared>,
    log: &ItemLog,
    public_name: &Arc<str>,
    call: &Arc<FunctionCall>,
) -> Verdict {
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
                SteeringDecision::Deny { reason } => return Verdict::Deny { layer: id.clone(), reason },
                SteeringDecision::Guide { guidance: said } => guidance.push(said),
            },
            HookRun::Failed(error) if layer.spec().on_gate_error == OnGateError::Deny => {
                let reason = format!("the gate of layer `{id}` failed: {error}");
                return Verdict::Deny { layer: id.clone(), reason };
            }
            HookRun::Failed(_) | HookRun::Absent | HookRun::Skipped => {}
        }
    }
    joined(guidance)
}

fn joined(mut guidance: Vec<String>) -> Verdict {
    guidance.retain(|said| !said.trim().is_empty());
    if guidance.is_empty() { Verdict::Pass } else { Verdict::Guide(guidance.join("\n")) }
}
