//! Properties of every window.

use std::collections::HashSet;
use std::sync::Arc;

use contexture_core::budget::{BudgetInput, allocate};
use contexture_core::decision::EpochReason;
use contexture_core::history::Part;
use contexture_core::item::{Content, Message, Reasoning};
use contexture_core::layer::Placement;
use contexture_core::tokens::{Estimate, TokenCounter, count_item};
use contexture_core::usage::Served;
use contexture_core::window::{Block, MIN_WINDOW_TOKENS, Overflow, ProjectionPolicy, Window};
use contexture_core::{BudgetConfig, History, Item, ItemLog, Role};
use proptest::prelude::*;

use super::{Bytes, Pieces, Thread, epoch_reason, evicted_before, history_end, text_of};

/// A conversation, as plain values that proptest can shrink.
#[derive(Clone, Debug)]
struct Script {
    counter: usize,
    policy: ProjectionPolicy,
    system_tokens: u64,
    tools_tokens: u64,
    layers: Vec<(BudgetConfig, Placement)>,
    requests: Vec<Request>,
}

/// What happens before one request.
#[derive(Clone, Debug)]
struct Request {
    items: Vec<Saying>,
    /// For each layer, its block: the size in tenths of its budget, and its version.
    says: Vec<(u64, u8)>,
    guidance: Option<Text>,
    system_version: u64,
    cache_lost: bool,
}

#[derive(Clone, Debug)]
enum Saying {
    User(Text),
    UserWithImage(Text, usize),
    Developer(Text),
    Assistant(Text),
    Thought(Text),
    Call(u8, Text),
    Output(u8, Text),
    Foreign(usize),
}

#[derive(Clone, Debug)]
struct Text {
    pattern: usize,
    bytes: usize,
}

const PATTERNS: [&str; 5] = ["lorem ipsum ", "\"\\\n", "ü🦀", "x", "</memory> <updates>"];

impl Text {
    fn render(&self) -> String {
        let mut text = PATTERNS[self.pattern].repeat(self.bytes.div_ceil(PATTERNS[self.pattern].len()));
        while text.len() > self.bytes {
            text.pop();
        }
        text
    }
}

impl Saying {
    fn item(&self) -> Item {
        match self {
            Saying::User(text) => Item::user(text.render()),
            Saying::UserWithImage(text, bytes) => Item::from(Message::new(
                Role::User,
                vec![
                    Content::Text { text: text.render() },
                    Content::Opaque(serde_json::json!({ "type": "image", "data": "i".repeat(*bytes) })),
                ],
            )),
            Saying::Developer(text) => Item::developer(text.render()),
            Saying::Assistant(text) => Item::assistant(text.render()),
            Saying::Thought(text) => Item::from(Reasoning::new(text.render(), None)),
            Saying::Call(id, text) => Item::call(&format!("call {id}"), "tool", text.render()),
            Saying::Output(id, text) => Item::output(&format!("call {id}"), text.render()),
            Saying::Foreign(bytes) => {
                Item::Opaque(serde_json::json!({ "type": "foreign", "data": "f".repeat(*bytes) }))
            }
        }
    }
}

fn any_text() -> impl Strategy<Value = Text> {
    let bytes = prop_oneof![3 => 0..40_usize, 3 => 0..400_usize, 1 => 0..6000_usize];
    (0..PATTERNS.len(), bytes).prop_map(|(pattern, bytes)| Text { pattern, bytes })
}

fn any_saying() -> impl Strategy<Value = Saying> {
    prop_oneof![
        2 => any_text().prop_map(Saying::User),
        1 => (any_text(), 0..3000_usize).prop_map(|(text, bytes)| Saying::UserWithImage(text, bytes)),
        1 => any_text().prop_map(Saying::Developer),
        3 => any_text().prop_map(Saying::Assistant),
        1 => any_text().prop_map(Saying::Thought),
        4 => (0..6_u8, any_text()).prop_map(|(id, text)| Saying::Call(id, text)),
        4 => (0..6_u8, any_text()).prop_map(|(id, text)| Saying::Output(id, text)),
        1 => (0..2000_usize).prop_map(Saying::Foreign),
    ]
}

fn any_layer() -> impl Strategy<Value = (BudgetConfig, Placement)> {
    let budget = prop_oneof![
        Just(BudgetConfig::Auto),
        (0..1000_u64).prop_map(BudgetConfig::Cap),
        (0..800_u64, 0..800_u64).prop_map(|(a, b)| BudgetConfig::Range { min: a.min(b), max: a.max(b) }),
    ];
    (budget, prop_oneof![Just(Placement::Anchor), Just(Placement::Live), Just(Placement::Auto)])
}

fn any_policy() -> impl Strategy<Value = ProjectionPolicy> {
    let overflow = prop_oneof![Just(Overflow::Truncate), Just(Overflow::Summarize), Just(Overflow::SlidingWindow)];
    let window_size = prop_oneof![Just(None), (1..12_usize).prop_map(Some)];
    (0..4000_u64, 0..300_u64, overflow, window_size).prop_map(|(budget, response_reserve, overflow, window_size)| {
        let token_budget = response_reserve + MIN_WINDOW_TOKENS + budget;
        ProjectionPolicy { token_budget, response_reserve, overflow, window_size, overflow_model: None }
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    (
        prop::collection::vec(any_saying(), 0..8),
        prop::collection::vec((0..=10_u64, 0..3_u8), 5),
        prop::option::weighted(0.1, any_text()),
        prop_oneof![9 => Just(0_u64), 1 => 1..3_u64],
        prop::bool::weighted(0.05),
    )
        .prop_map(|(items, says, guidance, system_version, cache_lost)| Request {
            items,
            says,
            guidance,
            system_version,
            cache_lost,
        })
}

prop_compose! {
    fn any_script()(
        counter in 0..3_usize,
        mut policy in any_policy(),
        system_tokens in 0..200_u64,
        tools_tokens in 0..200_u64,
        layers in prop::collection::vec(any_layer(), 0..5),
        requests in prop::collection::vec(any_request(), 1..14),
    ) -> Script {
        policy.token_budget += system_tokens + tools_tokens;
        Script { counter, policy, system_tokens, tools_tokens, layers, requests }
    }
}

fn counter(script: &Script) -> &'static dyn TokenCounter {
    [&Estimate as &'static dyn TokenCounter, &Bytes, &Pieces][script.counter]
}

/// Runs a script, request by request.
struct Play<'a> {
    script: &'a Script,
    thread: Thread,
    budgets: Vec<u64>,
}

impl<'a> Play<'a> {
    fn new(script: &'a Script) -> Self {
        let mut thread = Thread::new(script.policy.token_budget);
        thread.policy = script.policy.clone();
        thread.counter = counter(script);
        (thread.system_tokens, thread.tools_tokens) = (script.system_tokens, script.tools_tokens);
        let layers: Vec<BudgetConfig> = script.layers.iter().map(|(budget, _)| *budget).collect();
        let budgets = allocate(&BudgetInput {
            total: script.policy.token_budget,
            response_reserve: script.policy.response_reserve,
            system: script.system_tokens,
            tools: script.tools_tokens,
            layers: &layers,
        });
        Self { script, thread, budgets: budgets.unwrap().layers }
    }

    /// Everything that happens before a request, up to assembling it.
    fn prepare(&mut self, request: &Request) {
        for saying in &request.items {
            self.thread.append(saying.item());
        }
        self.thread.blocks = (0..self.budgets.len()).map(|index| self.block(index, request.says[index])).collect();
        self.thread.guidance = request.guidance.iter().map(Text::render).collect();
        self.thread.system_fingerprint = request.system_version;
        self.thread.cache_lost = request.cache_lost.then_some(EpochReason::CacheExpired);
        self.thread.projection.observe_turn(&self.thread.blocks);
    }

    fn block(&self, index: usize, (tenths, version): (u64, u8)) -> Block {
        let allocated = self.budgets[index];
        let mut text = format!("{version} ").repeat((allocated * tenths / 10) as usize);
        let mut item = Item::developer(text.clone());
        while count_item(self.thread.counter, &item) > allocated && !text.is_empty() {
            text.truncate(text.len() * 3 / 4);
            item = Item::developer(text.clone());
        }
        let tokens = count_item(self.thread.counter, &item);
        let says_something = tokens <= allocated && tenths > 0;
        Block {
            layer: format!("layer {index}").into(),
            items: if says_something { vec![Arc::new(item)].into() } else { Vec::new().into() },
            tokens: if says_something { tokens } else { 0 },
            allocated,
            placement: self.script.layers[index].1,
            served: Served::Fresh,
        }
    }
}

/// The properties of a single window.
fn check_window(thread: &Thread, window: &Window, newest_user_stays: bool) -> Result<(), TestCaseError> {
    let usage = &window.usage;
    let counted: u64 = window.items.iter().map(|item| count_item(thread.counter, item)).sum();
    prop_assert_eq!(counted, usage.anchor + usage.history + usage.live + usage.updates + usage.tail);
    prop_assert!(usage.total() + usage.response_reserve <= thread.policy.token_budget, "{:?}", usage);
    prop_assert!(usage.history <= usage.history_allocated);
    if newest_user_stays {
        check_newest_user(&thread.log, window)?;
    }
    check_pairs(window)?;
    prop_assert!(window.breakpoints.is_sorted() && window.breakpoints.len() <= 4);
    prop_assert!(history_end(window) <= window.items.len());
    prop_assert!(window.breakpoints.contains(&anchor_count(thread, window)));
    Ok(())
}

fn check_newest_user(log: &ItemLog, window: &Window) -> Result<(), TestCaseError> {
    let Some(newest) = log.newest_user().and_then(|user| log.get(user)) else { return Ok(()) };
    let shown = window.items[..history_end(window)].iter().rfind(|item| item.is_message_of(Role::User));
    let shown = shown.expect("a user message is shown");
    let text = text_of(shown);
    let whole = text_of(&newest.item);
    let shortened = text.contains(" bytes cut …]") || text == "…" || text == whole;
    prop_assert!(**shown == *newest.item || shortened, "{text:?} for {whole:?}");
    Ok(())
}

fn check_pairs(window: &Window) -> Result<(), TestCaseError> {
    let mut open = HashSet::new();
    for item in &window.items {
        match &**item {
            Item::FunctionCall(call) => prop_assert!(open.insert(&call.call_id), "two open calls of one id"),
            Item::FunctionCallOutput(output) => prop_assert!(open.remove(&output.call_id), "an output without a call"),
            _ => {}
        }
    }
    prop_assert!(open.is_empty(), "a call without an output");
    Ok(())
}

/// What an eviction leaves: a quarter of the room, and in a sliding window at most a third more items than its size.
fn check_eviction(thread: &Thread, window: &Window) -> Result<(), TestCaseError> {
    let usage = &window.usage;
    if evicted_before(window).is_some() {
        prop_assert!(usage.history <= (usage.history_allocated * 3 / 4).max(24), "{:?}", usage);
    }
    if thread.policy.overflow == Overflow::SlidingWindow {
        let shown = history_end(window) - anchor_count(thread, window);
        let size = thread.policy.window_size.unwrap_or(ProjectionPolicy::DEFAULT_WINDOW_SIZE);
        prop_assert!(shown <= size + size.div_ceil(3));
    }
    Ok(())
}

/// How many leading items are anchors: as many as make up the tokens of that band.
fn anchor_count(thread: &Thread, window: &Window) -> usize {
    let mut left = window.usage.anchor;
    let is_anchor = |item: &&Arc<Item>| {
        let more = left > 0;
        left = left.saturating_sub(count_item(thread.counter, item));
        more
    };
    window.items.iter().take_while(is_anchor).count()
}

/// Whether an output since `from` belongs to a call before it: only then may the past look different.
fn answers_late(log: &ItemLog, from: usize) -> bool {
    log.range(from..log.len()).any(|(_, entry)| entry.call.is_some_and(|call| call < from))
}

/// The history as some layer might project it.
fn projected(history: &History, how: u8, log: &ItemLog) -> History {
    let (len, middle) = (log.len(), log.len() / 2);
    match how {
        0 => history.clone().keep_last(3),
        1 => History::of(log),
        2 => history.clone().with_preface(vec![Item::developer("preface ".repeat(60)), Item::developer("more")]),
        3 => history.clone().replace(middle, Item::developer("stands in")),
        4 => history.with_parts(vec![Part::Log(middle..len), Part::Log(0..middle)]),
        5 => history.with_parts(vec![Part::Log(0..len), Part::Log(0..usize::MAX)]),
        6 => history.with_parts(Vec::new()),
        7 => history.with_parts(vec![
            Part::Item(Arc::new(Item::call("call 1", "made", "{}"))),
            Part::Log(0..len),
            Part::Item(Arc::new(Item::output("call 2", "made"))),
        ]),
        8 => history.with_parts(vec![Part::Item(Arc::new(Item::developer("huge ".repeat(2000)))), Part::Log(0..len)]),
        _ => history.with_parts(vec![Part::Log(0..middle), Part::Log(middle..len)]),
    }
}

/// Enough to find errors within seconds; each finding becomes a separate test.
const CASES: u32 = 96;

fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_window_fits_has_the_newest_user_message_and_whole_pairs(script in any_script()) {
        let mut play = Play::new(&script);
        for request in &script.requests {
            play.prepare(request);
            let window = play.thread.assemble();
            check_window(&play.thread, &window, true)?;
            check_eviction(&play.thread, &window)?;
        }
    }

    #[test]
    fn a_window_fits_whatever_layers_make_of_history(script in any_script(), how in prop::collection::vec(0..10_u8, 14)) {
        let mut play = Play::new(&script);
        for (request, how) in script.requests.iter().zip(how) {
            play.prepare(request);
            let history = projected(&play.thread.projection.history(&play.thread.log), how, &play.thread.log);
            let window = play.thread.assemble_over(&history);
            // Parts in another order have another message last.
            check_window(&play.thread, &window, how != 4 && how != 5)?;
        }
    }

    #[test]
    fn the_prefix_does_not_change_during_an_epoch(script in any_script()) {
        let mut play = Play::new(&script);
        let mut last: Option<(Window, usize)> = None;
        for request in &script.requests {
            play.prepare(request);
            let window = play.thread.assemble();
            if let Some((last, len)) = &last
                && epoch_reason(&window).is_none()
                && !answers_late(&play.thread.log, *len)
            {
                let (old, new) = (&last.items[..history_end(last)], &window.items[..history_end(&window)]);
                prop_assert!(new.len() >= old.len());
                prop_assert_eq!(json(old), json(&new[..old.len()]));
                prop_assert!(window.usage.kept_items >= old.len());
                prop_assert!(window.decisions.is_empty());
            }
            last = Some((window, play.thread.log.len()));
        }
    }

    #[test]
    fn equal_inputs_give_equal_windows_also_after_a_restart(script in any_script(), restarts in 0..u16::MAX) {
        let mut plays = [Play::new(&script), Play::new(&script), Play::new(&script)];
        for (number, request) in script.requests.iter().enumerate() {
            let windows = plays.each_mut().map(|play| {
                play.prepare(request);
                play.thread.assemble()
            });
            for window in &windows[1..] {
                prop_assert_eq!(json(&windows[0].items), json(&window.items));
                prop_assert_eq!(&windows[0].decisions, &window.decisions);
            }
            prop_assert_eq!(&windows[0].usage, &windows[1].usage);
            prop_assert_eq!(&windows[0].breakpoints, &windows[1].breakpoints);
            prop_assert_eq!(plays[0].thread.projection.epoch(), plays[2].thread.projection.epoch());
            if restarts >> number & 1 == 1 {
                plays[2].thread.restart();
            }
        }
    }

    #[test]
    fn what_the_log_knows_about_pairs_is_what_a_search_finds(script in any_script()) {
        let mut thread = Play::new(&script).thread;
        for saying in script.requests.iter().flat_map(|request| &request.items) {
            thread.append(saying.item());
        }
        thread.policy = ProjectionPolicy::new(10_000_000);
        let (whole, len) = (History::of(&thread.log), thread.log.len());
        let known = thread.assemble_over(&whole);
        // For a history in two ranges the pairs of the log cannot be used.
        let found = thread.assemble_over(&whole.with_parts(vec![Part::Log(0..len / 2), Part::Log(len / 2..len)]));
        prop_assert_eq!(known.items, found.items);
    }

    #[test]
    fn nothing_changes_when_there_is_no_room(script in any_script()) {
        let mut play = Play::new(&script);
        for request in &script.requests {
            play.prepare(request);
            let before = play.thread.projection.epoch().cloned();
            let history = play.thread.projection.history(&play.thread.log);
            let tools_tokens = std::mem::replace(&mut play.thread.tools_tokens, play.thread.policy.token_budget);
            prop_assert!(play.thread.try_assemble(&history, None).is_err());
            prop_assert_eq!(play.thread.projection.epoch(), before.as_ref());
            play.thread.tools_tokens = tools_tokens;
            play.thread.assemble();
        }
    }
}

fn json(items: &[Arc<Item>]) -> String {
    serde_json::to_string(items).unwrap()
}
