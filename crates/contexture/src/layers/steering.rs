//! `steering`: rules that tool calls and responses are held against.
//!
//! | | |
//! | --- | --- |
//! | slot | 90, [`Slot::STEERING`] |
//! | scope | execution |
//! | budget | at most 500 tokens |
//! | band | live |
//! | hooks | `before_tool_call`, `after_model_call` |
//! | data | `ledger` |
//!
//! A rule is a pattern, a predicate in Rust, or a question to a model.
//!
//! - A **pattern** ([`Pattern`], or `[[layers.steering.rule]]` in a configuration file) names a tool, a path or a command,
//!   all of which must match, and what follows: `allow`, `deny` or `guide` with a message. `*` stands for any characters;
//!   in paths `**` for any number of names.
//! - A **predicate** ([`call_rule`](Steering::call_rule), [`response_rule`](Steering::response_rule)) returns a
//!   [`SteeringDecision`].
//! - A **judge** ([`judge`](Steering::judge)) asks the layer's model, which answers `ALLOW`, `DENY: why` or `GUIDE: advice`.
//!
//! A deny of any rule wins; then an allow of a pattern ends the matter; then all guidance is given. A denied or guided
//! call does not run, and the model reads why. With [`denying_by_default`](Steering::denying_by_default) only what some
//! pattern allows runs.
//!
//! **It fails closed.** A command line is read as a list of commands: of pipes, lists, subshells, substitutions, functions
//! and loops, without `sudo`, `env`, `timeout` and the like before them, without options before a subcommand
//! (`git -C . push` is `git push`), and of lines within lines (`bash -c`, `eval`, a here-document for a shell). A pattern
//! to deny also matches what is not understood as a whole: a program that only a variable names, an alias, what a shell
//! reads from elsewhere, a script that a shell is given. Text that a command only prints or searches for is no command.
//! A pattern to allow matches only if all commands match, all words are plain, and nothing is written by redirection.
//! Paths are compared
//! without `.`, `..` and the base directory before them. They are those that a call names: a command that looks through a
//! directory (`grep -r`) or follows a link reaches others, while searches and lists of the built-in tools leave out what
//! is denied ([`Workspace::hiding`](crate::tools::Workspace::hiding)), as in `contexture chat`. A judge that hangs, fails or talks nonsense denies the call or
//! response; without a model it denies the calls that it is for, and responses pass with its question in the block.
//!
//! **What a file says is not looked into.** A program that no pattern names is allowed, whatever it reads: `make test`,
//! `npm test`, `./build.sh`, `python3 x.py`. A shell that is given a file (`sh x.sh`, `. x.sh`) may do what a pattern to
//! deny names, and is denied, except where a pattern allows the command by its name (`sh x.sh`): that settles doubt about
//! files, and no other. What programs do must be denied where they run, by the system.
//!
//! A program that can ask a person takes the calls that are not understood out of the denial with
//! [`asking_about`](Steering::asking_about), as `contexture chat` does in a terminal.
//!
//! A judge [in the background](Judge::in_background) keeps nobody waiting. Its verdict on a response is delivered when it
//! comes, exactly once: a denial or advice is the output of the next tool call, or a message before the next turn.
//!
//! Every verdict that is not a plain pass is in the `ledger`, the newest [`MAX_LEDGER`]. A child is held against the same
//! rules and starts with an empty ledger; when it returns, its entries follow the parent's. The state is never stored.

mod command;
mod judge;
mod late;
mod pattern;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::host::FsAdapter;
use contexture_core::item::{FunctionCall, Item, Role};
use contexture_core::layer::*;
use contexture_core::model::LlmResponse;
use contexture_core::{LayerId, Slot};
use serde::{Deserialize, Serialize};

use self::command::Likeness;
pub use self::judge::Judge;
use self::late::Late;
pub use self::pattern::{Pattern, RuleAction};
use crate::files::dialect::Dialects;
use contexture_text::block::{fit_parts, flat, start_of};
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "steering";
/// Most verdicts in the ledger.
pub const MAX_LEDGER: usize = 200;
/// Longest reason of a verdict, in bytes.
pub const MAX_REASON_BYTES: usize = 1_000;

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 0, max: 500 };
/// The timeout is long because a judge takes seconds.
const GATE_TIMEOUT: Duration = Duration::from_secs(45);

type CallRule = Arc<dyn Fn(&str, &FunctionCall) -> SteeringDecision + Send + Sync>;
type AsksAbout = Arc<dyn Fn(&str) -> bool + Send + Sync>;
type ResponseRule = Arc<dyn Fn(&LlmResponse) -> SteeringDecision + Send + Sync>;

/// The layer `steering`: see [the module](self).
#[derive(Clone, Default)]
pub struct Steering {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    patterns: Vec<Pattern>,
    call_rules: Vec<(String, CallRule)>,
    response_rules: Vec<(String, ResponseRule)>,
    judges: Vec<Arc<Judge>>,
    denies_by_default: bool,
    asks_about: Option<AsksAbout>,
    dialects: Dialects,
    late: Arc<Late>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteeringState {
    version: StateVersion<1>,
    ledger: VecDeque<LedgerEntry>,
    /// The number of the last late verdict that was delivered.
    delivered: u64,
}

/// A verdict other than a plain pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// The step of the execution.
    pub step: u64,
    /// What was judged: `call Bash`, or `response`.
    pub what: String,
    /// The rule.
    pub rule: String,
    /// The verdict.
    pub verdict: SteeringDecision,
}

/// The patterns that apply to a call, or may.
struct MatchingPatterns<'a>(Vec<(&'a Pattern, Likeness)>);

impl<'a> MatchingPatterns<'a> {
    /// Whether a pattern allows the command by its name: that settles what a file of it may say.
    fn is_allowed_by_name(&self) -> bool {
        self.0.iter().any(|(pattern, _)| pattern.allows_by_name())
    }

    /// The patterns that may apply to what is not understood.
    fn doubts(&self) -> impl Iterator<Item = &'a Pattern> {
        let is_settled = self.is_allowed_by_name();
        let is_doubt = move |likeness: Likeness| match likeness {
            Likeness::Unclear => true,
            Likeness::UnclearFile => !is_settled,
            Likeness::Yes | Likeness::No => false,
        };
        let denying = self.0.iter().filter(|(pattern, _)| pattern.action != RuleAction::Allow);
        denying.filter(move |(_, likeness)| is_doubt(*likeness)).map(|(pattern, _)| *pattern)
    }
}

/// The verdict of a rule.
pub(crate) struct RuleVerdict {
    rule: String,
    decision: SteeringDecision,
}

impl RuleVerdict {
    fn new(rule: &str, decision: SteeringDecision) -> Self {
        Self { rule: rule.to_owned(), decision: bounded(decision) }
    }
}

/// Shortens the reason if it is too long.
fn bounded(decision: SteeringDecision) -> SteeringDecision {
    match decision {
        SteeringDecision::Deny { reason } => SteeringDecision::deny(start_of(&reason, MAX_REASON_BYTES)),
        SteeringDecision::Guide { guidance } => SteeringDecision::guide(start_of(&guidance, MAX_REASON_BYTES)),
        SteeringDecision::Allow => SteeringDecision::Allow,
    }
}

/// Combines several decisions: the first denial, or all guidance.
fn united(verdicts: &[RuleVerdict]) -> SteeringDecision {
    let mut guidance = Vec::new();
    for RuleVerdict { rule, decision } in verdicts {
        match decision {
            SteeringDecision::Deny { reason } => return SteeringDecision::deny(format!("rule `{rule}`: {reason}")),
            SteeringDecision::Guide { guidance: advice } if !advice.trim().is_empty() => guidance.push(advice.as_str()),
            SteeringDecision::Guide { .. } | SteeringDecision::Allow => {}
        }
    }
    if guidance.is_empty() { SteeringDecision::Allow } else { SteeringDecision::guide(guidance.join("\n")) }
}

impl Steering {
    /// Returns the verdicts other than a plain pass, oldest first.
    pub const LEDGER: LayerData<Steering, Vec<LedgerEntry>> = LayerData::new("ledger");

    /// Creates the layer without rules: everything passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Adds a pattern.
    pub fn pattern(mut self, pattern: Pattern) -> Self {
        self.patterns.push(pattern);
        self
    }

    /// Adds a predicate over tool calls, which gets the tool's public name and the call.
    pub fn call_rule(
        mut self,
        name: impl Into<String>,
        rule: impl Fn(&str, &FunctionCall) -> SteeringDecision + Send + Sync + 'static,
    ) -> Self {
        self.call_rules.push((name.into(), Arc::new(rule)));
        self
    }

    /// Adds a predicate over responses, which runs before their tools.
    pub fn response_rule(
        mut self,
        name: impl Into<String>,
        rule: impl Fn(&LlmResponse) -> SteeringDecision + Send + Sync + 'static,
    ) -> Self {
        self.response_rules.push((name.into(), Arc::new(rule)));
        self
    }

    /// Adds a rule that a model judges.
    pub fn judge(mut self, judge: Judge) -> Self {
        self.judges.push(Arc::new(judge));
        self
    }

    /// Lets a tool call run only if a pattern allows it.
    pub fn denying_by_default(mut self) -> Self {
        self.denies_by_default = true;
        self
    }

    /// Sets the table of tools, which says under which names the arguments of a tool are: commands and paths are found
    /// there too. Default: the built-in table.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.dialects = dialects;
        self
    }

    /// Leaves doubt to a person: a call of these tools that is not understood as a whole, so that a pattern may be about
    /// it, is not denied. Whoever lets them run must ask about it then; [`doubt`](Self::doubt) says when.
    pub fn asking_about(mut self, tools: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.asks_about = Some(Arc::new(tools));
        self
    }

    /// The rule that may be about a call which is not understood as a whole. `fs` has the directory that paths are
    /// relative to.
    pub fn doubt(&self, tool: &str, call: &FunctionCall, fs: &dyn FsAdapter) -> Option<&Pattern> {
        let found = self.found(tool, call, fs);
        found.doubts().next()
    }

    /// The patterns of paths that some rule denies to a tool, whatever it does with them: a tool that looks through
    /// directories can leave these paths out.
    pub fn denied_paths(&self, tool: &str) -> impl Iterator<Item = &str> {
        let is_for = move |pattern: &&Pattern| pattern.denies_paths_of(tool);
        self.patterns.iter().filter(is_for).filter_map(|pattern| pattern.path.as_deref())
    }

    /// The patterns that apply to a call, or may.
    fn found(&self, name: &str, call: &FunctionCall, fs: &dyn FsAdapter) -> MatchingPatterns<'_> {
        if self.patterns.is_empty() {
            return MatchingPatterns(Vec::new());
        }
        let arguments = self.dialects.common_arguments(name, call.parsed_arguments());
        let bases = fs.base_names();
        let all = self.patterns.iter().map(|pattern| (pattern, pattern.likeness(name, &arguments, &bases)));
        MatchingPatterns(all.filter(|(_, likeness)| *likeness != Likeness::No).collect())
    }

    /// The verdicts of patterns and predicates about a call, and whether a pattern allows it.
    fn verdicts_on_call(&self, name: &str, call: &FunctionCall, fs: &dyn FsAdapter) -> (Vec<RuleVerdict>, bool) {
        let found = self.found(name, call, fs);
        let is_allowed = found.0.iter().any(|(pattern, _)| pattern.action == RuleAction::Allow);
        let own = self.call_rules.iter().map(|(rule, judge)| RuleVerdict::new(rule, judge(name, call)));
        let mut verdicts: Vec<RuleVerdict> = own.collect();
        let is_asked = self.asks_about.as_ref().is_some_and(|asks| asks(name));
        for (pattern, likeness) in &found.0 {
            let decision = match (pattern.action, likeness) {
                (RuleAction::Allow, _) => continue,
                (RuleAction::Guide, _) if is_allowed => continue,
                (_, Likeness::Yes) => pattern.decision(),
                (_, Likeness::UnclearFile) if found.is_allowed_by_name() => continue,
                (_, _) if is_asked => continue,
                (_, likeness) => pattern.decision_in_doubt(*likeness),
            };
            verdicts.push(RuleVerdict::new(&pattern.name, decision));
        }
        if self.denies_by_default && !is_allowed {
            verdicts.push(RuleVerdict::new("default", SteeringDecision::deny("no rule allows this call")));
        }
        (verdicts, is_allowed)
    }

    async fn judge_call(&self, name: &str, call: &FunctionCall, ctx: &ExecutionContext) -> Vec<RuleVerdict> {
        let mut verdicts = Vec::new();
        for judge in self.judges.iter().filter(|judge| judge.is_for_call(name)) {
            let subject = format!("The tool call `{name}` with these arguments:\n{}", call.arguments);
            verdicts.push(RuleVerdict::new(&judge.name, judge.ask(ctx, &subject).await));
        }
        verdicts
    }

    /// The verdicts of predicates and judges about a response. Starts background judges.
    async fn judge_response(&self, params: &AfterModelCallParams<SteeringState>) -> Vec<RuleVerdict> {
        let response = &params.response;
        let own = self.response_rules.iter().map(|(rule, judge)| RuleVerdict::new(rule, judge(response)));
        let mut verdicts: Vec<RuleVerdict> = own.collect();
        let is_denied = |verdict: &RuleVerdict| matches!(verdict.decision, SteeringDecision::Deny { .. });
        // Without a model, only the rules in the layer's block apply to responses.
        if verdicts.iter().any(is_denied) || params.ctx.call_model.is_none() {
            return verdicts;
        }
        let subject = format!("The response:\n{}", response.output_text());
        for judge in self.judges.iter().filter(|judge| judge.is_for_responses()) {
            match judge.is_late() {
                true => self.late.begin(judge.clone(), params.ctx.clone(), subject.clone()),
                false => verdicts.push(RuleVerdict::new(&judge.name, judge.ask(&params.ctx, &subject).await)),
            }
        }
        verdicts
    }

    /// The rules as lines for the model.
    fn lines(&self) -> Vec<String> {
        let patterns =
            self.patterns.iter().filter(|pattern| pattern.action != RuleAction::Allow).map(Pattern::in_words);
        let judges = self.judges.iter().map(|judge| format!("- {}", flat(&judge.question)));
        patterns.chain(judges).collect()
    }
}

impl SteeringState {
    fn add(&mut self, step: u64, what: &str, verdicts: Vec<RuleVerdict>) {
        let told = verdicts.into_iter().filter(|verdict| verdict.decision != SteeringDecision::Allow);
        let entries = told.map(|RuleVerdict { rule, decision }| LedgerEntry {
            step,
            what: what.to_owned(),
            rule,
            verdict: decision,
        });
        self.ledger.extend(entries);
        while self.ledger.len() > MAX_LEDGER {
            self.ledger.pop_front();
        }
    }
}

impl MemoryLayer for Steering {
    type State = SteeringState;

    fn spec(&self) -> LayerSpec {
        let timeouts = LayerTimeouts {
            before_tool_call: Some(GATE_TIMEOUT),
            after_model_call: Some(GATE_TIMEOUT),
            ..LayerTimeouts::default()
        };
        LayerSpec::new(self.id(), Slot::STEERING, MemoryScope::Execution)
            .with_name("Steering")
            .with_budget(BUDGET)
            .with_placement(Placement::Live)
            .with_timeouts(timeouts)
    }

    fn provides(&self) -> LayerProvides<SteeringState> {
        let ledger = layer_data(|state: &SteeringState| Vec::from(state.ledger.clone()));
        LayerProvides::new().data(Self::LEDGER.name(), ledger)
    }

    async fn on_item_append(
        &self,
        params: OnItemAppendParams<SteeringState>,
    ) -> HookResult<OnItemAppendResult<SteeringState>> {
        let mut items = params.items;
        if !items.iter().any(|item| item.is_message_of(Role::User)) {
            return Ok(OnItemAppendResult::items(items));
        }
        let late = self.late.after(&params.ctx.execution_id, params.state.delivered);
        let Some(newest) = late.last().map(|(number, _)| *number) else { return Ok(OnItemAppendResult::items(items)) };
        let mut state = (*params.state).clone();
        state.delivered = newest;
        let verdicts: Vec<RuleVerdict> = late.into_iter().map(|(_, verdict)| verdict).collect();
        let told = match united(&verdicts) {
            SteeringDecision::Allow => None,
            SteeringDecision::Deny { reason } => Some(format!("Your response before was not in order. {reason}")),
            SteeringDecision::Guide { guidance } => Some(format!("A word on your response before: {guidance}")),
        };
        state.add(params.ctx.step_number, "response, late", verdicts);
        if let Some(told) = told {
            items.insert(0, Item::developer(format!("[steering] {}", flat(&told))));
        }
        Ok(OnItemAppendResult::items(items).with_state(state))
    }

    async fn recall(&self, params: RecallParams<SteeringState>) -> HookResult<RecallResult<SteeringState>> {
        let lines = self.lines();
        if lines.is_empty() {
            return Ok(RecallResult::nothing());
        }
        let text = fit_parts(params.ctx.counter(), &self.id(), params.budget, lines.len(), |shown| {
            let left = lines.len() - shown;
            let rest = if left == 0 { String::new() } else { format!("\n({left} more rules hold and are not shown)") };
            format!("Tool calls and responses are held against these rules:\n{}{rest}", lines[..shown].join("\n"))
        });
        Ok(text.into())
    }

    async fn before_tool_call(
        &self,
        params: BeforeToolCallParams<SteeringState>,
    ) -> HookResult<BeforeToolCallResult<SteeringState>> {
        let (name, call, ctx) = (&*params.tool_name, &*params.call, &params.ctx);
        let mut state = (*params.state).clone();
        let late = self.late.after(&ctx.execution_id, state.delivered);
        if let Some((newest, _)) = late.last() {
            state.delivered = *newest;
            let verdicts: Vec<RuleVerdict> = late.into_iter().map(|(_, verdict)| verdict).collect();
            let decision = united(&verdicts);
            state.add(ctx.step_number, "response, late", verdicts);
            if decision != SteeringDecision::Allow {
                return Ok(BeforeToolCallResult::from(decision).with_state(state));
            }
        }
        let (mut verdicts, is_allowed) = self.verdicts_on_call(name, call, &*ctx.fs);
        if !is_allowed && united(&verdicts) == SteeringDecision::Allow {
            verdicts.extend(self.judge_call(name, call, ctx).await);
        }
        let decision = united(&verdicts);
        state.add(ctx.step_number, &format!("call {}", flat(name)), verdicts);
        let result = BeforeToolCallResult::from(decision);
        Ok(if state == *params.state { result } else { result.with_state(state) })
    }

    async fn after_model_call(
        &self,
        params: AfterModelCallParams<SteeringState>,
    ) -> HookResult<AfterModelCallResult<SteeringState>> {
        let verdicts = self.judge_response(&params).await;
        let decision = united(&verdicts);
        if decision == SteeringDecision::Allow {
            return Ok(AfterModelCallResult::allow());
        }
        let mut state = (*params.state).clone();
        state.add(params.ctx.step_number, "response", verdicts);
        Ok(AfterModelCallResult::from(decision).with_state(state))
    }

    async fn on_spawn(&self, _: SpawnParams<SteeringState>) -> HookResult<SpawnResult<SteeringState>> {
        Ok(SpawnResult::state(SteeringState::default()))
    }

    async fn on_return(&self, params: ReturnParams<SteeringState>) -> HookResult<ReturnResult<SteeringState>> {
        let mut parent = (*params.parent_state).clone();
        parent.ledger.extend(params.child_state.ledger.iter().cloned());
        parent.add(0, "", Vec::new());
        Ok(ReturnResult::state(parent))
    }

    async fn on_complete(&self, params: CompleteParams<SteeringState>) -> HookResult<CompleteResult<SteeringState>> {
        self.late.forget(&params.ctx.execution_id);
        Ok(CompleteResult::keep())
    }
}

#[cfg(test)]
mod tests;
