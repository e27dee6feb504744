//! The changes of a conversation's plan.

use std::sync::Arc;

use contexture::wire::{Plan, Segment};
use serde::{Deserialize, Serialize};

/// A change of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanStep {
    /// It applies to requests with at least this many messages.
    pub messages: usize,
    /// How many leading segments of the previous plan stay.
    pub keep: usize,
    /// The segments after them.
    pub segments: Vec<Segment>,
    /// How many messages the plan covers.
    pub covered: usize,
    /// How many segments stay until the next fold.
    #[serde(default)]
    pub standing: usize,
    /// How many of the previous plan's segments stay that were standing in it.
    #[serde(default)]
    pub stayed: usize,
}

/// The changes of a plan, oldest first, and the resulting plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanHistory {
    steps: Vec<PlanStep>,
    plan: Arc<Plan>,
}

impl PlanHistory {
    /// Applies stored changes.
    pub fn of(steps: Vec<PlanStep>) -> Self {
        let plan = Arc::new(applied(&steps));
        Self { steps, plan }
    }

    /// About how many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        let of = |segment: &Segment| match segment {
            Segment::Made(text) | Segment::Told(text) => text.len(),
            Segment::Part { units, .. } => {
                units.iter().map(|unit| unit.text.as_ref().map_or(0, |text| text.len()) + 24).sum()
            }
            Segment::Keep(_) => 0,
        };
        let step = |step: &PlanStep| 64 + step.segments.iter().map(|segment| 40 + of(segment)).sum::<usize>();
        self.steps.iter().map(step).sum()
    }

    /// The changes.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// The plan for a request with this many messages.
    pub fn plan_for(&self, messages: usize) -> Arc<Plan> {
        match self.count_for(messages) {
            count if count == self.steps.len() => self.plan.clone(),
            count => Arc::new(applied(&self.steps[..count])),
        }
    }

    /// The changes that apply to requests with up to this many messages.
    pub fn until(&self, messages: usize) -> Self {
        Self::of(self.steps[..self.count_for(messages)].to_vec())
    }

    fn count_for(&self, messages: usize) -> usize {
        self.steps.iter().take_while(|step| step.messages <= messages).count()
    }

    /// Reverts the changes for requests with at least this many messages.
    pub fn take_back(&mut self, messages: usize) {
        self.steps.retain(|step| step.messages < messages);
        self.plan = Arc::new(applied(&self.steps));
    }

    /// Sets the plan for requests with at least this many messages. Returns the change, or `None` if the plan does not
    /// differ: messages that a plan does not cover are sent unchanged anyway.
    pub fn push(&mut self, messages: usize, mut plan: Plan) -> Option<&PlanStep> {
        let mut implied = (*self.plan).clone();
        implied.push_kept(implied.covered()..plan.covered());
        if implied.segments() == plan.segments() {
            return None;
        }
        let same = self.plan.segments().iter().zip(plan.segments()).take_while(|(old, new)| old == new).count();
        let segments = plan.segments()[same..].to_vec();
        plan.follow(&self.plan);
        let (covered, standing, stayed) = (plan.covered(), plan.standing(), plan.stayed());
        self.steps.push(PlanStep { messages, keep: same, segments, covered, standing, stayed });
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
    let mut plan = Plan::of(segments, steps.last().map_or(0, |step| step.covered));
    if let Some(last) = steps.last() {
        plan.stand(last.standing);
        plan.set_stayed(last.stayed);
    }
    plan
}
