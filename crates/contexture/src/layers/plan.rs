//! `plan`: what is to be done, step by step, agreed on before it is done.
//!
//! | | |
//! | --- | --- |
//! | slot | 240 |
//! | scope | thread |
//! | budget | 100 to 3 000 tokens |
//! | band | by churn, with a delta of the lines that changed |
//! | tools | `plan/propose`, `plan/approve`, `plan/update`, `plan/revise` |
//! | data | `plan`, `history` |
//!
//! A plan is a goal and a tree of steps, each with a status and the steps that it comes after. The model writes it with
//! `propose`. From then on it is in the *planning* phase: only tools that read may run, and the layer refuses the others
//! with a word on why. `approve` begins the *executing* phase. With [`asking`](Plan::asking) the model cannot approve its
//! own plan: the program calls [`Plan::APPROVE`] when the user said yes. When every step is done or skipped, the plan is
//! *finished*.
//!
//! While executing, `update` sets the status of a step: `pending`, `in_progress`, `done`, `failed` or `skipped`. At most
//! one step is in progress; a step begins when all that it comes after is done or skipped, and is done when all steps
//! beneath it are. `revise` adds steps, drops or rewords them; with [`asking`](Plan::asking) the plan then waits for
//! approval again. What changed, and when, is kept in `history`, the newest [`MAX_CHANGES`].
//!
//! The plan and its approval are shown in every window, word for word, as decided, with the step that is next; no fold
//! touches them. If the plan does not fit, steps that are done go first, then those that are farthest from the next one,
//! and their number is said.
//!
//! Tools that read are those that the table of tools (`files::dialect`) knows to read or search, the functions of the
//! built-in memory layers, and those named by [`with_reading_tool`](Plan::with_reading_tool), where `*` stands for any
//! characters. A tool that is not known is taken to change something.
//!
//! A child sees the plan and may update steps. When it returns, what it finished, failed or skipped is taken over; the
//! goal, the steps and the approval are the parent's. If two processes change the plan at the same time, the one with
//! more changes wins, with the steps that the other finished. No model is needed.

mod render;
mod tree;

use std::collections::VecDeque;
use std::sync::Arc;

use contexture_core::item::{FunctionCall, Item};
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::tree::Steps;
pub use self::tree::{NewStep, Reword, Status, Step};
use crate::files::dialect::{Dialects, Does};
use contexture_text::block::changed_lines;
use contexture_text::one_line::one_line;
use contexture_text::pattern::name_matches;
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "plan";
/// How many steps a plan may have.
pub const MAX_STEPS: usize = 200;
/// The largest depth of the tree of steps.
pub const MAX_DEPTH: usize = 6;
/// Longest goal, step or note, in bytes.
pub const MAX_TEXT_BYTES: usize = 1_000;
/// How many changes are remembered.
pub const MAX_CHANGES: usize = 100;

const SLOT: Slot = Slot(240);
const BUDGET: BudgetConfig = BudgetConfig::Range { min: 100, max: 3_000 };

/// Layers whose functions change nothing but their own memory.
const MEMORY_LAYERS: &[&str] = &[
    "plan",
    "reminder",
    "working-memory",
    "task-state",
    "tool-memory",
    "procedural",
    "file-reference",
    "file-history",
    "entity",
    "observations",
    "episodic",
    "semantic-recall",
];

/// The layer `plan`: see [the module](self).
#[derive(Clone)]
pub struct Plan {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    asks: bool,
    reading: Vec<String>,
    dialects: Arc<Dialects>,
}

/// How far a plan has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// There is no plan.
    #[default]
    None,
    /// It is proposed and not approved.
    Planning,
    /// It is approved and under way.
    Executing,
    /// Every step is done or skipped.
    Finished,
}

/// The layer's state: the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanState {
    version: StateVersion<1>,
    goal: String,
    phase: Phase,
    steps: Steps,
    /// The number of changes.
    revision: u64,
    /// When it was approved, in seconds since the Unix epoch, and in which revision.
    approved: Option<PlanApproval>,
    changes: VecDeque<PlanChange>,
}

/// The approval of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanApproval {
    /// When, in seconds since the Unix epoch.
    pub at_s: u64,
    /// Which revision.
    pub revision: u64,
}

/// A change of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanChange {
    /// The revision that it created.
    pub revision: u64,
    /// When, in seconds since the Unix epoch.
    pub at_s: u64,
    /// What was changed.
    pub what: String,
}

/// What `plan/propose` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Propose {
    /// What is to be reached, in one or two sentences.
    pub goal: String,
    /// The steps, in order. Steps beneath others name them in `under`.
    pub steps: Vec<NewStep>,
}

/// What `plan/update` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateStep {
    /// The id of the step.
    pub step: String,
    /// Its status from now on.
    pub status: Status,
    /// What came of it, or why it failed or was skipped.
    #[serde(default)]
    pub note: String,
}

/// What `plan/revise` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Revise {
    /// Steps to add at the end.
    #[serde(default)]
    pub add: Vec<NewStep>,
    /// Ids of steps to drop, with all beneath them.
    #[serde(default)]
    pub drop: Vec<String>,
    /// Steps to say differently.
    #[serde(default)]
    pub reword: Vec<Reword>,
}

/// What `plan/approve` is given: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Approve")]
pub struct ApprovePlan {}

impl Plan {
    /// Returns the current plan.
    pub const PLAN: LayerData<Plan, PlanState> = LayerData::new("plan");
    /// Returns the changes, oldest first.
    pub const HISTORY: LayerData<Plan, Vec<PlanChange>> = LayerData::new("history");
    /// Proposes a plan.
    pub const PROPOSE: LayerFunction<Plan, Propose, String> = LayerFunction::new("propose");
    /// Approves the plan.
    pub const APPROVE: LayerFunction<Plan, ApprovePlan, String> = LayerFunction::new("approve");
    /// Sets the status of a step.
    pub const UPDATE: LayerFunction<Plan, UpdateStep, String> = LayerFunction::new("update");
    /// Adds, drops and rewords steps.
    pub const REVISE: LayerFunction<Plan, Revise, String> = LayerFunction::new("revise");

    /// Creates the layer with a plan that the model proposes and approves itself.
    pub fn new() -> Self {
        Self { id: None, asks: false, reading: Vec::new(), dialects: Arc::new(Dialects::builtin()) }
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Lets only the program approve plans, on behalf of the user.
    pub fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Allows one more tool while planning; `*` matches any characters.
    pub fn with_reading_tool(mut self, name: impl Into<String>) -> Self {
        self.reading.push(name.into());
        self
    }

    /// Sets another table of tools.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.dialects = Arc::new(dialects);
        self
    }

    /// Whether a call only reads, or only changes memory.
    fn only_reads(&self, name: &str, call: &FunctionCall) -> bool {
        let is_memory = |layer: &str| {
            // A second layer of a kind has an id that begins like the first.
            let is_like =
                |kind: &&str| layer.strip_prefix(*kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
            layer == self.id().as_str() || MEMORY_LAYERS.iter().any(is_like)
        };
        if name.split_once('/').is_some_and(|(layer, _)| is_memory(layer)) {
            return true;
        }
        // A tool that is not in the table would be judged by its arguments, which do not say what it changes.
        // Nor is one that only a configuration says to be a reader.
        let may_read = matches!(Dialects::built_in(name), Some(Does::Read | Does::Search | Does::Editor));
        let is_known = may_read && matches!(self.dialects.does(call), Does::Read | Does::Search);
        is_known || self.reading.iter().any(|pattern| name_matches(pattern, name))
    }
}

impl PlanState {
    /// The goal.
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// The stage of the plan.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The steps, each after its parent.
    pub fn steps(&self) -> &[Step] {
        self.steps.all()
    }

    /// When it was approved, and in which revision.
    pub fn approved(&self) -> Option<PlanApproval> {
        self.approved
    }

    /// The step in progress, or the first that can begin.
    pub fn next(&self) -> Option<&Step> {
        self.steps.next()
    }

    fn note(&mut self, at_s: u64, what: String) {
        self.revision += 1;
        self.changes.push_back(PlanChange { revision: self.revision, at_s, what });
        while self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    fn propose(&self, input: Propose, at_s: u64) -> Result<PlanState, String> {
        tree::check_text("goal", &input.goal)?;
        if input.steps.is_empty() {
            return Err("`steps` is empty: a plan has at least one step".to_owned());
        }
        let mut plan = self.clone();
        plan.steps = Steps::default();
        plan.steps.add(input.steps)?;
        plan.goal = input.goal;
        plan.phase = Phase::Planning;
        plan.approved = None;
        let steps = plan.steps.all().len();
        plan.note(at_s, format!("proposed with {steps} steps"));
        Ok(plan)
    }

    fn approve(&self, at_s: u64) -> Result<PlanState, String> {
        match self.phase {
            Phase::Planning => {}
            Phase::None => return Err("there is no plan: propose one first".to_owned()),
            Phase::Executing | Phase::Finished => return Err("the plan is approved already".to_owned()),
        }
        let mut plan = self.clone();
        plan.phase = if plan.steps.are_over() { Phase::Finished } else { Phase::Executing };
        plan.note(at_s, "approved".to_owned());
        plan.approved = Some(PlanApproval { at_s, revision: plan.revision });
        Ok(plan)
    }

    fn update(&self, input: UpdateStep, at_s: u64) -> Result<PlanState, String> {
        match self.phase {
            Phase::Executing | Phase::Finished => {}
            Phase::None => return Err("there is no plan: propose one first".to_owned()),
            Phase::Planning => return Err("the plan is not approved yet, so no step has begun".to_owned()),
        }
        let mut plan = self.clone();
        plan.steps.update(&input.step, input.status, &input.note)?;
        plan.phase = if plan.steps.are_over() { Phase::Finished } else { Phase::Executing };
        plan.note(at_s, format!("step {} is {}", one_line(&input.step), input.status.in_words()));
        Ok(plan)
    }

    fn revise(&self, input: Revise, asks: bool, at_s: u64) -> Result<PlanState, String> {
        if self.phase == Phase::None {
            return Err("there is no plan: propose one first".to_owned());
        }
        let mut plan = self.clone();
        let (added, dropped, reworded) = (input.add.len(), input.drop.len(), input.reword.len());
        if added + dropped + reworded == 0 {
            return Err("nothing is to be revised: give `add`, `drop` or `reword`".to_owned());
        }
        plan.steps.drop_all(&input.drop)?;
        plan.steps.reword(input.reword)?;
        plan.steps.add(input.add)?;
        if asks {
            plan.phase = Phase::Planning;
            plan.approved = None;
        } else if plan.phase != Phase::Planning {
            plan.phase = if plan.steps.are_over() { Phase::Finished } else { Phase::Executing };
        }
        plan.note(at_s, format!("{added} steps added, {dropped} dropped, {reworded} reworded"));
        Ok(plan)
    }

    /// The confirmation after a change.
    fn told(&self) -> String {
        match (self.phase, self.next()) {
            (Phase::Planning, _) => "the plan waits for approval; until then only reading tools run".to_owned(),
            (Phase::Finished, _) => "every step is done or skipped".to_owned(),
            (_, Some(next)) => format!("next is step {}: {}", next.id, next.text),
            (_, None) => "no step can begin: one that others come after has failed".to_owned(),
        }
    }
}

impl MemoryLayer for Plan {
    type State = PlanState;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), SLOT, MemoryScope::Thread).with_name("Plan").with_budget(BUDGET)
    }

    fn provides(&self) -> LayerProvides<PlanState> {
        let propose = function("Until it is approved only reading tools run.", PlanState::propose);
        let approve = function("Work can begin.", |plan: &PlanState, _: ApprovePlan, at_s| plan.approve(at_s));
        let update = function("The status of a step.", PlanState::update);
        let asks = self.asks;
        let revise = function("Changes steps.", move |plan: &PlanState, input, at_s| plan.revise(input, asks, at_s));
        LayerProvides::new()
            .data(Self::PLAN.name(), layer_data(PlanState::clone))
            .data(Self::HISTORY.name(), layer_data(|plan: &PlanState| Vec::from(plan.changes.clone())))
            .function(Self::PROPOSE.name(), propose)
            .function(Self::APPROVE.name(), approve)
            .function(Self::UPDATE.name(), update)
            .function(Self::REVISE.name(), revise)
            .in_one_tool("Your plan. A step is `under` its whole and `after` others.")
    }

    async fn recall(&self, params: RecallParams<PlanState>) -> HookResult<RecallResult<PlanState>> {
        if params.state.phase == Phase::None {
            return Ok(RecallResult::nothing());
        }
        Ok(render::block(params.ctx.counter(), &self.id(), &params.state, params.budget).into())
    }

    async fn before_tool_call(
        &self,
        params: BeforeToolCallParams<PlanState>,
    ) -> HookResult<BeforeToolCallResult<PlanState>> {
        let approve = format!("{}/{}", self.id(), Self::APPROVE.name());
        if self.asks && *params.tool_name == *approve {
            let reason = "only the user approves a plan: show it and ask";
            return Ok(BeforeToolCallResult::deny(reason));
        }
        if params.state.phase != Phase::Planning || self.only_reads(&params.tool_name, &params.call) {
            return Ok(BeforeToolCallResult::allow());
        }
        let how = if self.asks {
            "ask the user to approve it".to_owned()
        } else {
            format!("call `{approve}` when it is complete")
        };
        let reason = format!("the plan is not approved, and only tools that read may run until then: {how}");
        Ok(BeforeToolCallResult::deny(reason))
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        changed_lines(pinned, current)
    }

    async fn on_spawn(&self, params: SpawnParams<PlanState>) -> HookResult<SpawnResult<PlanState>> {
        Ok(SpawnResult::state((*params.parent_state).clone()))
    }

    async fn on_return(&self, params: ReturnParams<PlanState>) -> HookResult<ReturnResult<PlanState>> {
        let (parent, child) = (&params.parent_state, &params.child_state);
        let mut plan = (**parent).clone();
        let taken = plan.steps.take_back(&child.steps);
        if taken == 0 || parent.goal != child.goal {
            return Ok(ReturnResult::keep());
        }
        if plan.phase == Phase::Executing && plan.steps.are_over() {
            plan.phase = Phase::Finished;
        }
        plan.note(params.ctx.clock.now().as_secs(), format!("{taken} steps brought back by a child"));
        Ok(ReturnResult::state(plan))
    }

    fn merge(&self, ours: &PlanState, theirs: &PlanState) -> Option<PlanState> {
        let (newer, older) = if theirs.revision > ours.revision { (theirs, ours) } else { (ours, theirs) };
        let mut merged = newer.clone();
        if newer.goal == older.goal {
            merged.steps.take_back(&older.steps);
        }
        Some(merged)
    }
}

/// A function of the layer that turns one plan into another, or returns why it cannot.
fn function<I, F>(description: &str, change: F) -> LayerFunctionDecl<PlanState>
where
    I: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(&PlanState, I, u64) -> Result<PlanState, String> + Send + Sync + 'static,
{
    layer_fn(description, move |input: I, plan: Arc<PlanState>, ctx: ExecutionContext| {
        let changed = change(&plan, input, ctx.clock.now().as_secs());
        async move {
            let plan = changed?;
            Ok(FnResult::new(plan.told()).with_state(plan))
        }
    })
}

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
