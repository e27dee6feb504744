//! Verdicts that come after what they are about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_core::ExecutionId;
use contexture_core::layer::{ExecutionContext, SteeringDecision};

use super::RuleVerdict;
use super::judge::Judge;

/// Most undelivered verdicts of one execution.
const MAX_WAITING: usize = 100;

/// Verdicts of background judges, by execution.
///
/// Each verdict has a number, and the layer's state says up to which number they were delivered. Since the state
/// changes only when a hook succeeds, each is delivered exactly once, even if the delivering hook fails.
#[derive(Default)]
pub(super) struct Late {
    executions: Mutex<HashMap<ExecutionId, LateVerdicts>>,
}

#[derive(Default)]
struct LateVerdicts {
    /// The number of the newest verdict.
    newest: u64,
    verdicts: Vec<(u64, String, SteeringDecision)>,
}

impl Late {
    fn executions(&self) -> MutexGuard<'_, HashMap<ExecutionId, LateVerdicts>> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a judge in the background.
    pub(super) fn begin(self: &Arc<Self>, judge: Arc<Judge>, ctx: ExecutionContext, subject: String) {
        self.executions().entry(ctx.execution_id.clone()).or_default();
        let late = self.clone();
        tokio::spawn(async move {
            let decision = judge.ask(&ctx, &subject).await;
            if decision != SteeringDecision::Allow {
                late.put(&ctx.execution_id, judge.name.clone(), decision);
            }
        });
    }

    /// Adds a verdict, unless the execution has ended.
    fn put(&self, execution: &ExecutionId, rule: String, decision: SteeringDecision) {
        let mut executions = self.executions();
        let Some(waiting) = executions.get_mut(execution).filter(|waiting| waiting.verdicts.len() < MAX_WAITING) else {
            return;
        };
        waiting.newest += 1;
        waiting.verdicts.push((waiting.newest, rule, decision));
    }

    /// The undelivered verdicts. Removes those that were delivered.
    pub(super) fn after(&self, execution: &ExecutionId, delivered: u64) -> Vec<(u64, RuleVerdict)> {
        let mut executions = self.executions();
        let Some(waiting) = executions.get_mut(execution) else { return Vec::new() };
        waiting.verdicts.retain(|(number, ..)| *number > delivered);
        let verdicts = waiting.verdicts.iter();
        verdicts.map(|(number, rule, decision)| (*number, RuleVerdict::new(rule, decision.clone()))).collect()
    }

    pub(super) fn forget(&self, execution: &ExecutionId) {
        self.executions().remove(execution);
    }
}
