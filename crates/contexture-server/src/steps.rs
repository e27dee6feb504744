//! How the plan of a conversation came about, step by step.

use std::sync::Arc;

use contexture::wire::{Plan, Segment};
use serde::{Deserialize, Serialize};

/// A change of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Requests of at least so many messages are sent by it.
    pub messages: usize,
    /// How many leading segments of the plan before stay.
    pub keep: usize,
    /// What follows them.
    pub segments: Vec<Segment>,
    /// How many messages the plan speaks of.
    pub covered: usize,
}

/// The changes of a plan, oldest first, and what they come to.
#[derive(Clone, Debug, Default)]
pub struct PlanSteps {
    steps: Vec<PlanStep>,
    plan: Arc<Plan>,
}

impl PlanSteps {
    /// Goes through changes that were kept.
    pub fn of(steps: Vec<PlanStep>) -> Self {
        let plan = Arc::new(applied(&steps));
        Self { steps, plan }
    }

    /// The changes.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// By which plan a request of so many messages is sent.
    pub fn plan_for(&self, messages: usize) -> Arc<Plan> {
        match self.count_for(messages) {
            count if count == self.steps.len() => self.plan.clone(),
            count => Arc::new(applied(&self.steps[..count])),
        }
    }

    /// The changes that concern requests of so many messages.
    pub fn until(&self, messages: usize) -> Self {
        Self::of(self.steps[..self.count_for(messages)].to_vec())
    }

    fn count_for(&self, messages: usize) -> usize {
        self.steps.iter().take_while(|step| step.messages <= messages).count()
    }

    /// Takes back what was changed for requests of at least so many messages.
    pub fn take_back(&mut self, messages: usize) {
        self.steps.retain(|step| step.messages < messages);
        self.plan = Arc::new(applied(&self.steps));
    }

    /// Notes a plan for requests of at least so many messages. Returns the change, unless there is none: messages
    /// that a plan does not speak of are sent as they came anyway.
    pub fn push(&mut self, messages: usize, plan: Plan) -> Option<&PlanStep> {
        let mut implied = (*self.plan).clone();
        implied.push_kept(implied.covered()..plan.covered());
        if implied.segments() == plan.segments() {
            return None;
        }
        let same = self.plan.segments().iter().zip(plan.segments()).take_while(|(old, new)| old == new).count();
        let segments = plan.segments()[same..].to_vec();
        self.steps.push(PlanStep { messages, keep: same, segments, covered: plan.covered() });
        self.plan = Arc::new(plan);
        self.steps.last()
    }
}

fn applied(steps: &[PlanStep]) -> Plan {
    let mut segments: Vec<Segment> = Vec::new();
    for step in steps {
        segments.truncate(step.keep);
        segments.extend(step.segments.iter().cloned());
    }
    Plan::of(segments, steps.last().map_or(0, |step| step.covered))
}
