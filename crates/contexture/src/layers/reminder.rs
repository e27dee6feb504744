//! `reminder`: the date and time, a note after a long pause, and reminders when they are due.
//!
//! | | |
//! | --- | --- |
//! | slot | 80, [`Slot::REMINDER`] |
//! | scope | thread |
//! | budget | 40 to 200 tokens |
//! | band | live |
//! | tools | `reminder/set`, `reminder/done` |
//! | data | `reminders` |
//!
//! Every turn the model is told the date and the time, to the minute, by the engine's clock; the zone is UTC unless
//! [`with_utc_offset`](Reminder::with_utc_offset) says another. After a pause of an hour or more it is told how long the
//! user was away, since files and running programs may have changed meanwhile.
//!
//! A reminder fires by the number of turns ([`every_turns`](Reminder::every_turns)), by the time that has passed
//! ([`every`](Reminder::every)), or by a condition ([`when`](Reminder::when)) that is asked each turn and returns the
//! text, or nothing. The model sets reminders of its own with `set`, and says with `done` that a thing is done; a reminder
//! can also name the tools that do the thing ([`done_by`](Reminder::done_by)). For ten turns after that it is quiet, and
//! one with a condition fires at most every ten turns. A reminder without a text is refused, and one whose condition
//! has nothing to say is not shown: nobody is reminded of nothing.
//!
//! A child starts without its parent's reminders and counts its own turns; rules given in Rust or in the configuration
//! hold for it too. If two processes change the state at the same time, what was set last holds for each reminder.
//! No model is needed.
//!
//! ```
//! use contexture::layers::Reminder;
//! use contexture::prelude::*;
//! # use contexture::testing::{engine, ScriptedModel};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let reminder = Reminder::new().every_turns("tests", 2, "Run the tests before you go on.").done_by("tests", "run_tests");
//! # let model = ScriptedModel::new();
//! # let engine = engine(memory((reminder,))).model(model.clone()).build()?;
//! # let mut execution = engine.execution("thread").start().await?;
//! # execution.turn("One").await?;
//! # execution.turn("Two").await?;
//! # assert!(model.last_texts().join("\n").contains("Reminder `tests`: Run the tests before you go on."));
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::error::SpecError;
use contexture_core::item::{Item, Role};
use contexture_core::layer::*;
use contexture_core::log::ItemLog;
use contexture_core::{LayerId, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contexture_text::block::{fit_parts, flat, start_of};
use contexture_text::date::{about, minute, weekday};
use contexture_text::one_line::one_line;
use contexture_text::revised::Revised;
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "reminder";
/// For how many turns a reminder is silent after its action was done.
pub const QUIET_TURNS: u64 = 10;
/// The default length of a pause after which the model is told of it; see [`Reminder::with_pause`].
pub const LONG_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Most reminders that the model can set.
pub const MAX_OWN: usize = 50;
/// Longest text of a reminder, in bytes.
pub const MAX_TEXT_BYTES: usize = 400;
/// Longest name of a reminder, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 40, max: 200 };

/// The layer `reminder`: see [the module](self).
#[derive(Clone)]
pub struct Reminder {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    rules: Vec<ReminderRule>,
    pause: Duration,
    offset_minutes: i32,
}

#[derive(Clone)]
struct ReminderRule {
    name: String,
    when: When,
    done_by: Vec<String>,
}

type Condition = Arc<dyn Fn(&Moment<'_>) -> Option<String> + Send + Sync>;

#[derive(Clone)]
enum When {
    Turns(u64, String),
    Elapsed(Duration, String),
    Condition(Condition),
}

/// What a condition is evaluated on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The number of this turn, from 1.
    pub turn: u64,
    /// Time since the Unix epoch.
    pub now: Duration,
    /// The text of the newest user message.
    pub query: &'a str,
    /// The whole conversation.
    pub log: &'a ItemLog,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReminderState {
    version: StateVersion<1>,
    turn: u64,
    /// The time of the last activity, in seconds since the Unix epoch.
    active_s: Option<u64>,
    /// How long the pause before this turn was.
    pause_s: u64,
    marks: BTreeMap<String, ReminderTimes>,
    own: Revised<OwnReminder>,
}

/// When a reminder last fired, and when its action was last done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ReminderTimes {
    fired: Option<ReminderTime>,
    done: Option<ReminderTime>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
struct ReminderTime {
    turn: u64,
    time_s: u64,
}

/// A reminder that the model set for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnReminder {
    /// What it says.
    pub text: String,
    /// After how many turns it fires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns: Option<u64>,
    /// After how many minutes it fires.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub minutes: Option<u64>,
    /// Whether it fires again and again.
    pub repeat: bool,
    set: ReminderTime,
}

/// What `reminder/set` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetReminder {
    /// A short name; a reminder of the same name is replaced.
    pub name: String,
    /// What you want to be reminded of, in one sentence.
    pub text: String,
    /// Fire after this many turns of the user.
    #[serde(default)]
    pub turns: Option<u64>,
    /// Fire after this many minutes.
    #[serde(default)]
    pub minutes: Option<u64>,
    /// Fire again and again, not only once.
    #[serde(default)]
    pub repeat: bool,
}

/// What `reminder/done` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// The name of the reminder whose thing is done.
    pub name: String,
}

/// A reminder from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReminderEntry {
    /// Its name.
    pub name: String,
    /// What it says.
    pub text: String,
    /// Fires every this many turns.
    #[serde(default)]
    pub every_turns: Option<u64>,
    /// Fires every this many minutes.
    #[serde(default)]
    pub every_minutes: Option<u64>,
    /// The tools that do its action.
    #[serde(default)]
    pub done_by: Vec<String>,
}

impl Reminder {
    /// Returns all reminders that the model set for itself, by name.
    pub const REMINDERS: LayerData<Reminder, BTreeMap<String, OwnReminder>> = LayerData::new("reminders");
    /// Sets a reminder; returns a confirmation.
    pub const SET: LayerFunction<Reminder, SetReminder, String> = LayerFunction::new("set");
    /// Marks an action as done; returns a confirmation.
    pub const DONE: LayerFunction<Reminder, Done, String> = LayerFunction::new("done");

    /// Creates the layer without reminders: it shows the time and long pauses, and what the model sets.
    pub fn new() -> Self {
        Self { id: None, rules: Vec::new(), pause: LONG_PAUSE, offset_minutes: 0 }
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Adds a reminder that fires every this many turns, at least 1.
    pub fn every_turns(self, name: impl Into<String>, turns: u64, text: impl Into<String>) -> Self {
        self.with(name.into(), When::Turns(turns.max(1), text.into()))
    }

    /// Adds a reminder that fires each time this duration has passed.
    pub fn every(self, name: impl Into<String>, time: Duration, text: impl Into<String>) -> Self {
        self.with(name.into(), When::Elapsed(time, text.into()))
    }

    /// Adds a reminder that fires when a condition returns a text, at most every [`QUIET_TURNS`] turns.
    pub fn when(
        self,
        name: impl Into<String>,
        condition: impl Fn(&Moment<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.with(name.into(), When::Condition(Arc::new(condition)))
    }

    /// Declares that a call of this tool does the action of the reminder with that name.
    pub fn done_by(mut self, name: &str, tool: impl Into<String>) -> Self {
        let tool = tool.into();
        for rule in self.rules.iter_mut().filter(|rule| rule.name == name) {
            rule.done_by.push(tool.clone());
        }
        self
    }

    /// Sets the length of a pause that the model is told of.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the time zone, in minutes east of UTC; at most a day.
    pub fn with_utc_offset(mut self, minutes: i32) -> Self {
        self.offset_minutes = minutes.clamp(-24 * 60, 24 * 60);
        self
    }

    /// Adds a reminder from the configuration.
    ///
    /// # Errors
    /// It has no text, or no time at which it fires.
    pub fn with_entry(self, entry: ReminderEntry) -> Result<Self, SpecError> {
        let refuse = |field: &str, problem: &str| Err(SpecError::layer(ID, field, problem));
        if entry.text.trim().is_empty() {
            return refuse("text", "is empty");
        }
        let (name, text) = (entry.name.clone(), entry.text);
        let layer = match (entry.every_turns, entry.every_minutes) {
            (Some(turns), None) => self.every_turns(entry.name, turns, text),
            (None, Some(minutes)) => self.every(entry.name, Duration::from_secs(minutes.saturating_mul(60)), text),
            _ => return refuse("every_turns", "and `every_minutes`: exactly one of the two is needed"),
        };
        Ok(entry.done_by.into_iter().fold(layer, |layer, tool| layer.done_by(&name, tool)))
    }

    fn with(mut self, name: String, when: When) -> Self {
        self.rules.push(ReminderRule { name, when, done_by: Vec::new() });
        self
    }

    /// The reminders that are due, by name.
    fn due(&self, state: &ReminderState, moment: &Moment<'_>) -> BTreeMap<String, String> {
        let at = ReminderTime { turn: moment.turn, time_s: moment.now.as_secs() };
        let mut due = BTreeMap::new();
        for rule in &self.rules {
            if let Some(text) = state.due(rule, at, moment) {
                due.insert(rule.name.clone(), text);
            }
        }
        for (name, own) in state.own.iter() {
            let mark = state.mark(name);
            let is_due = mark.is_due(at, own.turns, own.minutes.map(|minutes| minutes.saturating_mul(60)), own.set);
            if is_due && !mark.is_quiet(at) {
                due.insert(name.to_owned(), own.text.clone());
            }
        }
        due.retain(|_, text| !text.trim().is_empty());
        due
    }

    /// The line about the time.
    fn time(&self, now: Duration) -> String {
        let offset = Duration::from_secs(u64::from(self.offset_minutes.unsigned_abs()) * 60);
        let (local, sign) = match self.offset_minutes {
            ..0 => (now.saturating_sub(offset), '-'),
            _ => (now + offset, '+'),
        };
        let minutes = self.offset_minutes.unsigned_abs();
        let zone = match minutes {
            0 => "UTC".to_owned(),
            _ => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        };
        format!("It is {}, {} {zone}.", weekday(local), minute(local))
    }
}

impl ReminderTimes {
    /// Whether the action was done recently.
    fn is_quiet(&self, at: ReminderTime) -> bool {
        self.done.is_some_and(|done| at.turn < done.turn + QUIET_TURNS)
    }

    /// Whether this many turns or seconds have passed since it fired, was done or was set, or it fired in this turn.
    fn is_due(&self, at: ReminderTime, turns: Option<u64>, seconds: Option<u64>, set: ReminderTime) -> bool {
        if self.fired.is_some_and(|fired| fired.turn == at.turn) {
            return true;
        }
        let since = [Some(set), self.fired, self.done].into_iter().flatten();
        let (turn, time_s) = since.fold((0, 0), |(turn, time_s), at| (at.turn.max(turn), at.time_s.max(time_s)));
        turns.is_some_and(|turns| at.turn.saturating_sub(turn) >= turns)
            || seconds.is_some_and(|seconds| at.time_s.saturating_sub(time_s) >= seconds)
    }
}

impl ReminderState {
    fn mark(&self, name: &str) -> ReminderTimes {
        self.marks.get(name).copied().unwrap_or_default()
    }

    /// The text of a rule, if it fires now.
    fn due(&self, rule: &ReminderRule, at: ReminderTime, moment: &Moment<'_>) -> Option<String> {
        let mark = self.mark(&rule.name);
        if mark.is_quiet(at) {
            return None;
        }
        // Time counts from the start of the conversation.
        let start =
            ReminderTime { turn: 0, time_s: self.marks.get("").and_then(|mark| mark.fired).unwrap_or(at).time_s };
        match &rule.when {
            When::Turns(turns, text) => mark.is_due(at, Some(*turns), None, start).then(|| text.clone()),
            When::Elapsed(time, text) => mark.is_due(at, None, Some(time.as_secs()), start).then(|| text.clone()),
            When::Condition(condition) => {
                let rested =
                    mark.fired.is_none_or(|fired| fired.turn == at.turn || at.turn >= fired.turn + QUIET_TURNS);
                if rested { condition(moment) } else { None }
            }
        }
    }

    /// Starts a new turn.
    fn begin_turn(&mut self, now_s: u64) {
        self.pause_s = self.active_s.map_or(0, |active_s| now_s.saturating_sub(active_s));
        self.turn += 1;
        // The mark without a name is the start of the conversation.
        self.marks
            .entry(String::new())
            .or_insert(ReminderTimes { fired: Some(ReminderTime { turn: 0, time_s: now_s }), done: None });
        let fired_before = |mark: ReminderTimes| mark.fired.is_some_and(|fired| fired.turn < self.turn);
        let over = self.own.iter().filter(|(name, own)| !own.repeat && fired_before(self.mark(name)));
        let over: Vec<String> = over.map(|(name, _)| name.to_owned()).collect();
        for name in over {
            self.own.remove(&name);
            self.marks.remove(&name);
        }
    }

    fn note_done(&mut self, name: &str, now_s: u64) {
        let at = ReminderTime { turn: self.turn, time_s: now_s };
        self.marks.entry(name.to_owned()).or_default().done = Some(at);
    }
}

/// Checks a reminder that the model wants to set.
fn check(input: &SetReminder, state: &ReminderState) -> Result<(), String> {
    let is_new = state.own.get(&input.name).is_none();
    if input.name.trim().is_empty() || input.name.len() > MAX_NAME_BYTES {
        return Err(format!("`name` must have 1 to {MAX_NAME_BYTES} bytes"));
    }
    if input.text.trim().is_empty() || input.text.len() > MAX_TEXT_BYTES {
        return Err(format!("`text` must have 1 to {MAX_TEXT_BYTES} bytes: say what to do in one sentence"));
    }
    if input.turns.is_some() == input.minutes.is_some() {
        return Err("give either `turns` or `minutes`".to_owned());
    }
    if input.turns == Some(0) || input.minutes == Some(0) {
        return Err("a reminder fires after 1 turn or minute at the earliest".to_owned());
    }
    if is_new && state.own.len() >= MAX_OWN {
        return Err(format!("there are {MAX_OWN} reminders already: end one with `reminder/done`"));
    }
    Ok(())
}

fn set(input: SetReminder, state: &ReminderState, now_s: u64) -> Result<ReminderState, String> {
    check(&input, state)?;
    let mut state = state.clone();
    let set = ReminderTime { turn: state.turn, time_s: now_s };
    let SetReminder { name, text, turns, minutes, repeat } = input;
    state.marks.remove(&name);
    state.own.set(&name, OwnReminder { text: flat(&text), turns, minutes, repeat, set });
    Ok(state)
}

impl MemoryLayer for Reminder {
    type State = ReminderState;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), Slot::REMINDER, MemoryScope::Thread)
            .with_name("Reminders")
            .with_budget(BUDGET)
            .with_placement(Placement::Live)
    }

    fn provides(&self) -> LayerProvides<ReminderState> {
        let set = layer_fn(
            "Fires after turns or minutes.",
            |input: SetReminder, state: Arc<ReminderState>, ctx: ExecutionContext| async move {
                let name = one_line(&input.name).into_owned();
                let state = set(input, &state, ctx.clock.now().as_secs())?;
                Ok(FnResult::new(format!("`{name}` is set")).with_state(state))
            },
        );
        let known: Vec<String> = self.rules.iter().map(|rule| rule.name.clone()).collect();
        let done =
            layer_fn("Its thing is done.", move |input: Done, state: Arc<ReminderState>, ctx: ExecutionContext| {
                let is_known = known.contains(&input.name);
                async move {
                    let mut state = Arc::unwrap_or_clone(state);
                    let was_own = state.own.remove(&input.name);
                    if !was_own && !is_known {
                        return Err(format!("there is no reminder `{}`", one_line(&input.name)).into());
                    }
                    match was_own {
                        true => drop(state.marks.remove(&input.name)),
                        false => state.note_done(&input.name, ctx.clock.now().as_secs()),
                    }
                    Ok(FnResult::new("done".to_owned()).with_state(state))
                }
            });
        let own = |state: &ReminderState| -> BTreeMap<String, OwnReminder> {
            state.own.iter().map(|(name, own)| (name.to_owned(), own.clone())).collect()
        };
        LayerProvides::new()
            .data(Self::REMINDERS.name(), layer_data(own))
            .function(Self::SET.name(), set)
            .function(Self::DONE.name(), done)
            .in_one_tool("Reminders for yourself.")
    }

    async fn on_item_append(
        &self,
        params: OnItemAppendParams<ReminderState>,
    ) -> HookResult<OnItemAppendResult<ReminderState>> {
        let now_s = params.ctx.clock.now().as_secs();
        let mut state = (*params.state).clone();
        if params.items.iter().any(|item| item.is_message_of(Role::User)) {
            state.begin_turn(now_s);
        }
        for output in params.items.iter().filter_map(Item::as_output).filter(|output| output.outcome.is_done()) {
            // A call is at most as far back as one response has calls.
            let call = params
                .log
                .last(MAX_CALLS_BACK)
                .rev()
                .filter_map(Item::as_call)
                .find(|call| call.call_id == output.call_id);
            let Some(call) = call else { continue };
            for rule in self.rules.iter().filter(|rule| rule.done_by.iter().any(|tool| **tool == *call.name)) {
                state.note_done(&rule.name, now_s);
            }
        }
        state.active_s = Some(now_s);
        Ok(OnItemAppendResult::items(params.items).with_state(state))
    }

    async fn recall(&self, params: RecallParams<ReminderState>) -> HookResult<RecallResult<ReminderState>> {
        let (state, now) = (&params.state, params.ctx.clock.now());
        let moment = Moment { turn: state.turn, now, query: &params.query, log: &params.log };
        let due = self.due(state, &moment);
        let mut lines = vec![self.time(now)];
        if state.pause_s >= self.pause.as_secs().max(1) {
            let pause = about(Duration::from_secs(state.pause_s));
            lines.push(format!("The conversation paused for {pause}: files and running programs may have changed."));
        }
        let line = |(name, text): (&String, &String)| {
            let text = start_of(text, MAX_TEXT_BYTES);
            format!("Reminder `{}`: {}", one_line(name), flat(&text))
        };
        lines.extend(due.iter().map(line));
        let text = fit_parts(params.ctx.counter(), &self.id(), params.budget, lines.len(), |shown| {
            let left = lines.len() - shown;
            let rest = if left == 0 { String::new() } else { format!("\n({left} more do not fit here)") };
            format!("{}{rest}", lines[..shown].join("\n"))
        });
        let mut new = (**state).clone();
        let at = ReminderTime { turn: state.turn, time_s: now.as_secs() };
        for name in due.into_keys() {
            new.marks.entry(name).or_default().fired = Some(at);
        }
        let result = RecallResult::from(text);
        Ok(if new == **state { result } else { result.with_state(new) })
    }

    async fn store(&self, params: StoreParams<ReminderState>) -> HookResult<StoreResult<ReminderState>> {
        let active_s = Some(params.ctx.clock.now().as_secs());
        Ok(StoreResult::set(ReminderState { active_s, ..(*params.state).clone() }))
    }

    fn merge(&self, ours: &ReminderState, theirs: &ReminderState) -> Option<ReminderState> {
        let mut merged = ours.clone();
        merged.turn = ours.turn.max(theirs.turn);
        merged.active_s = ours.active_s.max(theirs.active_s);
        merged.own = ours.own.merged(&theirs.own);
        for (name, mark) in &theirs.marks {
            let own = merged.marks.entry(name.clone()).or_default();
            let newest =
                |ours: Option<ReminderTime>, theirs: Option<ReminderTime>| if theirs > ours { theirs } else { ours };
            *own = ReminderTimes { fired: newest(own.fired, mark.fired), done: newest(own.done, mark.done) };
        }
        Some(merged)
    }
}

/// How many items before an output are searched for its call.
const MAX_CALLS_BACK: usize = 2_048;

impl Default for Reminder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
