//! `temporal`: the time, the pause since the last turn, and a ledger of dated events.
//!
//! | | |
//! | --- | --- |
//! | slot | 80, [`Slot::REMINDER`] |
//! | scope | resource |
//! | budget | 40 to 600 tokens |
//! | band | live |
//! | tools | `temporal/add`, `temporal/search` |
//! | data | `events` |
//!
//! Every turn the model is told the date and the time by the engine's clock, in UTC, and after a pause of an hour or more
//! how long it was. The ledger has events with a date: what happened, and what is planned. The model or the program adds
//! one with [`add`](Temporal::ADD), now or at a date, and finds them by words, by a span of time, or both with
//! [`search`](Temporal::SEARCH). A turn shows the events that are near, up to a week ago and a month ahead, and those that
//! have words of the newest message; what is shown is never written, so only adding costs anything.
//!
//! A child starts with a copy, and what it adds comes back. If two processes add events at the same time, both are kept.
//! Nothing is kept beyond [`MAX_EVENTS`] events of [`MAX_TEXT_BYTES`]: the oldest goes. No model is needed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::item::Role;
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contexture_text::block::{fit_parts, flat};
use contexture_text::date::{about, days, minute, weekday};
use contexture_text::search::query_terms;
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "temporal";
/// How many events are kept.
pub const MAX_EVENTS: usize = 1_000;
/// Longest text of an event.
pub const MAX_TEXT_BYTES: usize = 500;

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 40, max: 600 };
const DAY: Duration = Duration::from_secs(86_400);
/// How far back and ahead an event is near.
const NEAR: (Duration, Duration) = (Duration::from_secs(7 * 86_400), Duration::from_secs(30 * 86_400));
/// Most events that are shown because they are near, and because they have words of the message.
const MOST_SHOWN: (usize, usize) = (10, 5);
/// Most events that a search returns.
const MOST_FOUND: usize = 50;
/// The pause from which on the model is told, and how exactly the last turn's time is kept.
const PAUSE: Duration = Duration::from_secs(3_600);
const PRECISION: Duration = Duration::from_secs(600);

/// The layer `temporal`: see [the module](self).
#[derive(Clone, Debug, Default)]
pub struct Temporal {
    /// `None`: the layer's own.
    id: Option<LayerId>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    version: StateVersion<1>,
    /// In order of time.
    events: BTreeSet<DatedEvent>,
    /// About when the last turn was, in seconds since the Unix epoch, and how long the pause before it.
    active_s: u64,
    pause_s: u64,
}

/// Something that happened or will happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DatedEvent {
    /// When, in seconds since the Unix epoch.
    pub at_s: u64,
    /// What.
    pub text: String,
}

/// What `temporal/add` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddEvent {
    /// What happened or will happen, in one sentence.
    pub text: String,
    /// When, in UTC: `2026-05-01` or `2026-05-01 14:00`. Without it: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What `temporal/search` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchEvents {
    /// Words of the events. Without it: all in the span of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The earliest day or moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The latest day, all of it, or moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Temporal {
    /// Returns the events, oldest first.
    pub const EVENTS: LayerData<Temporal, Vec<DatedEvent>> = LayerData::new("events");
    /// Adds an event.
    pub const ADD: LayerFunction<Temporal, AddEvent, String> = LayerFunction::new("add");
    /// Finds events by words and by time.
    pub const SEARCH: LayerFunction<Temporal, SearchEvents, Vec<String>> = LayerFunction::new("search");

    /// Creates the layer with an empty ledger.
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
}

/// A day, as its first and last second, or a moment.
fn span(text: &str) -> Result<(u64, u64), String> {
    let refuse = || format!("`{}` is no date: write `2026-05-01` or `2026-05-01 14:00`", flat(text));
    let mut numbers = text.trim().trim_end_matches('Z').split(['-', ' ', 'T', ':']).map(str::parse::<u64>);
    let mut next = || numbers.next().transpose().map_err(|_| refuse());
    let (Some(year), Some(month), Some(day)) = (next()?, next()?, next()?) else { return Err(refuse()) };
    let start = days(year, month, day).ok_or_else(refuse)? * DAY.as_secs();
    match (next()?, next()?) {
        (None, _) => Ok((start, start + DAY.as_secs() - 1)),
        (Some(hour @ 0..24), Some(minute @ 0..60)) => {
            let at = start + hour * 3_600 + minute * 60;
            Ok((at, at))
        }
        _ => Err(refuse()),
    }
}

impl DatedEvent {
    fn line(&self) -> String {
        format!("- {}: {}", minute(Duration::from_secs(self.at_s)).trim_end_matches(" 00:00"), self.text)
    }

    /// How many of these terms it has.
    fn shared(&self, terms: &[String]) -> usize {
        query_terms(&self.text).iter().filter(|term| terms.contains(term)).count()
    }
}

impl Ledger {
    fn add(&mut self, input: AddEvent, now: Duration) -> Result<String, String> {
        let text = flat(&input.text);
        if text.is_empty() || text.len() > MAX_TEXT_BYTES {
            return Err(format!("`text` has {} bytes; it is a sentence of at most {MAX_TEXT_BYTES}", text.len()));
        }
        let at_s = input.at.map_or(Ok(now.as_secs() / 60 * 60), |at| span(&at).map(|(start, _)| start))?;
        let event = DatedEvent { at_s, text: crate::redact::redact(&text).into_owned() };
        let line = event.line();
        self.events.insert(event);
        while self.events.len() > MAX_EVENTS {
            self.events.pop_first();
        }
        Ok(format!("noted {line}"))
    }

    fn search(&self, input: &SearchEvents) -> Result<Vec<String>, String> {
        let from = input.from.as_deref().map_or(Ok(0), |from| span(from).map(|(start, _)| start))?;
        let to = input.to.as_deref().map_or(Ok(u64::MAX), |to| span(to).map(|(_, end)| end))?;
        let terms = query_terms(input.query.as_deref().unwrap_or_default());
        let within = self.events.iter().filter(|event| (from..=to).contains(&event.at_s));
        let mut found: Vec<(usize, &DatedEvent)> = within.map(|event| (event.shared(&terms), event)).collect();
        found.retain(|(shared, _)| *shared > 0 || input.query.is_none());
        found.sort_by_key(|(shared, event)| (std::cmp::Reverse(*shared), event.at_s));
        Ok(found.into_iter().take(MOST_FOUND).map(|(_, event)| event.line()).collect())
    }

    /// The events that a turn shows, in order of time: those that are near, and those that a message speaks of.
    fn shown(&self, now: Duration, query: &str) -> BTreeSet<&DatedEvent> {
        let (back, ahead) = (now.saturating_sub(NEAR.0).as_secs(), (now + NEAR.1).as_secs());
        let mut near: Vec<&DatedEvent> =
            self.events.iter().filter(|event| (back..=ahead).contains(&event.at_s)).collect();
        near.sort_by_key(|event| event.at_s.abs_diff(now.as_secs()));
        let terms = query_terms(query);
        let mut matching: Vec<(usize, &DatedEvent)> =
            self.events.iter().rev().map(|event| (event.shared(&terms), event)).collect();
        matching.retain(|(shared, _)| *shared > 0);
        matching.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        let matching = matching.into_iter().take(MOST_SHOWN.1).map(|(_, event)| event);
        near.into_iter().take(MOST_SHOWN.0).chain(matching).collect()
    }
}

impl MemoryLayer for Temporal {
    type State = Ledger;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), Slot::REMINDER, MemoryScope::Resource)
            .with_name("Time and events")
            .with_budget(BUDGET)
            .with_placement(Placement::Live)
    }

    fn provides(&self) -> LayerProvides<Ledger> {
        let add =
            layer_fn("Notes an event.", |input: AddEvent, ledger: Arc<Ledger>, ctx: ExecutionContext| async move {
                let mut ledger = Arc::unwrap_or_clone(ledger);
                let noted = ledger.add(input, ctx.clock.now())?;
                Ok(FnResult::new(noted).with_state(ledger))
            });
        let search =
            layer_fn("Finds events by words and time.", |input: SearchEvents, ledger: Arc<Ledger>, _| async move {
                Ok(FnResult::new(ledger.search(&input)?))
            });
        LayerProvides::new()
            .data(Self::EVENTS.name(), layer_data(|ledger: &Ledger| ledger.events.iter().cloned().collect::<Vec<_>>()))
            .function(Self::ADD.name(), add)
            .function(Self::SEARCH.name(), search)
            .in_one_tool("A ledger of dated events, past and planned.")
    }

    async fn on_item_append(&self, params: OnItemAppendParams<Ledger>) -> HookResult<OnItemAppendResult<Ledger>> {
        let (now_s, ledger) = (params.ctx.clock.now().as_secs(), &params.state);
        let result = OnItemAppendResult::items(params.items);
        let begins = result.items.iter().any(|item| item.is_message_of(Role::User));
        let passed = Duration::from_secs(now_s.saturating_sub(ledger.active_s));
        let is_quiet = passed < PRECISION && (!begins || ledger.pause_s == 0);
        if is_quiet {
            return Ok(result);
        }
        let paused = begins && passed >= PAUSE && ledger.active_s > 0;
        let pause_s = if begins { if paused { passed.as_secs() } else { 0 } } else { ledger.pause_s };
        Ok(result.with_state(Ledger { active_s: now_s, pause_s, ..(**ledger).clone() }))
    }

    async fn recall(&self, params: RecallParams<Ledger>) -> HookResult<RecallResult<Ledger>> {
        let (ledger, now) = (&params.state, params.ctx.clock.now());
        let mut lines = vec![format!("It is {}, {} UTC.", weekday(now), minute(now))];
        if ledger.pause_s > 0 {
            lines.push(format!("The last turn was {} ago.", about(Duration::from_secs(ledger.pause_s))));
        }
        lines.extend(ledger.shown(now, &params.query).into_iter().map(DatedEvent::line));
        let text = fit_parts(params.ctx.counter(), &self.id(), params.budget, lines.len(), |shown| {
            let left = lines.len() - shown;
            let rest = if left == 0 { String::new() } else { format!("\n({left} more do not fit here)") };
            format!("{}{rest}", lines[..shown].join("\n"))
        });
        Ok(text.into())
    }

    async fn on_spawn(&self, params: SpawnParams<Ledger>) -> HookResult<SpawnResult<Ledger>> {
        Ok(SpawnResult::state((*params.parent_state).clone()))
    }

    async fn on_return(&self, params: ReturnParams<Ledger>) -> HookResult<ReturnResult<Ledger>> {
        let merged = self.merge(&params.parent_state, &params.child_state);
        Ok(merged.map_or_else(ReturnResult::keep, ReturnResult::state))
    }

    fn merge(&self, ours: &Ledger, theirs: &Ledger) -> Option<Ledger> {
        let mut merged = ours.clone();
        merged.events.extend(theirs.events.iter().cloned());
        while merged.events.len() > MAX_EVENTS {
            merged.events.pop_first();
        }
        merged.active_s = ours.active_s.max(theirs.active_s);
        Some(merged)
    }
}

#[cfg(test)]
mod tests {
    use contexture_core::engine::{Engine, Execution};
    use contexture_core::memory;
    use contexture_core::testing::{CountingIds, ManualClock, ScriptedModel, layer_conformance};
    use serde_json::Value;

    use super::*;

    async fn started(model: &ScriptedModel) -> (Execution<(Temporal,)>, ManualClock) {
        let clock = ManualClock::new();
        let builder =
            Engine::builder(memory((Temporal::new(),)), Arc::new(clock.clone()), Arc::new(CountingIds::new()));
        let engine = builder.model(model.clone()).build().unwrap();
        (engine.execution("thread").resource("ada").start().await.unwrap(), clock)
    }

    async fn add(execution: &Execution<(Temporal,)>, text: &str, at: Duration) {
        let event = AddEvent { text: text.to_owned(), at: Some(minute(at)) };
        execution.memory().call(Temporal::ADD, event).await.unwrap();
    }

    #[tokio::test]
    async fn conforms() {
        layer_conformance(Temporal::new).await;
    }

    #[tokio::test]
    async fn a_turn_shows_the_time_the_pause_what_is_near_and_what_the_message_speaks_of() {
        let model = ScriptedModel::new();
        let (mut execution, clock) = started(&model).await;
        clock.advance(100 * DAY);
        let now = contexture_core::clock::Clock::now(&clock);
        add(&execution, "The server was moved to Oslo", now - 90 * DAY).await;
        add(&execution, "Ada had lunch", now - 80 * DAY).await;
        add(&execution, "The release is planned", now + 3 * DAY).await;
        execution.turn("hello").await.unwrap();
        let block = |model: &ScriptedModel| {
            model.last_texts().into_iter().find(|text| text.starts_with("<memory")).unwrap_or_default()
        };
        let shown = block(&model);
        assert!(shown.contains(&format!("It is {}, {} UTC.", weekday(now), minute(now))), "{shown}");
        assert!(
            shown.contains("The release is planned") && !shown.contains("Oslo") && !shown.contains("ago"),
            "{shown}"
        );
        clock.advance(Duration::from_secs(3 * 3_600));
        execution.turn("Where is the server?").await.unwrap();
        let shown = block(&model);
        assert!(shown.contains("The last turn was 3 hours ago.") && shown.contains("Oslo"), "{shown}");
        assert!(!shown.contains("lunch"), "{shown}");
        execution.turn("Thanks").await.unwrap();
        assert!(!block(&model).contains("ago"));
    }

    #[tokio::test]
    async fn events_are_found_by_words_and_by_time() {
        let (execution, _) = started(&ScriptedModel::new()).await;
        for (at, text) in [("2026-05-01", "The tests were slow"), ("2026-05-02 14:00", "The tests are fast")] {
            let event = AddEvent { text: text.to_owned(), at: Some(at.to_owned()) };
            execution.memory().call(Temporal::ADD, event).await.unwrap();
        }
        let search = async |query: Option<&str>, from: Option<&str>, to: Option<&str>| {
            let [query, from, to] = [query, from, to].map(|text| text.map(str::to_owned));
            execution.memory().call(Temporal::SEARCH, SearchEvents { query, from, to }).await.unwrap().result
        };
        let (slow, fast) = ("- 2026-05-01: The tests were slow", "- 2026-05-02 14:00: The tests are fast");
        assert_eq!(search(Some("fast tests"), None, None).await, [fast, slow]);
        assert_eq!(search(Some("weather"), None, None).await, [""; 0]);
        assert_eq!(search(None, Some("2026-05-02"), None).await, [fast]);
        assert_eq!(search(None, None, Some("2026-05-02")).await, [slow, fast]);
        assert_eq!(search(Some("tests"), None, Some("2026-05-01")).await, [slow]);
        for at in ["soon", "2026-13-01", "2026-05-01 25:00", "2026-05"] {
            let event = AddEvent { text: "x".to_owned(), at: Some(at.to_owned()) };
            assert!(execution.memory().call(Temporal::ADD, event).await.is_err(), "{at}");
        }
    }

    #[tokio::test]
    async fn what_a_child_adds_comes_back() {
        let (mut parent, _) = started(&ScriptedModel::new()).await;
        add(&parent, "before", DAY).await;
        let child = parent.spawn().await.unwrap();
        add(&child, "by the child", 2 * DAY).await;
        add(&parent, "meanwhile", 3 * DAY).await;
        parent.join(child, Value::Null).await.unwrap();
        let texts: Vec<String> =
            parent.memory().read(Temporal::EVENTS).unwrap().into_iter().map(|event| event.text).collect();
        assert_eq!(texts, ["before", "by the child", "meanwhile"]);
    }
}
