//! Decides what is sent for a request.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use contexture::fold::cap::short_hash;
use contexture::fold::{FoldDecision, FoldWhen, Pins, Policy};
use contexture::fs::LocalFs;
use contexture::host::FsAdapter;
use contexture::item::{Item, Role};
use contexture::wire::{Format, Plan, Request, WireError, read, rules};

use crate::accept::incoming::{IncomingRequest, Progress, Ready};
use crate::account::models::Caching;
use crate::account::record::DecidedNote;
use crate::conversation::folder::{ConversationFolder, FoldOutcome, FolderSettings, LateDecisions};
use crate::conversation::{Adopted, Conversation, ConversationState, DecisionEntry};
use crate::decide::referenced::referenced;
use crate::find::index::{ConversationIndex, FoundConversation};
use crate::options::Options;
use crate::write::{Store, StoreError};

/// The most output tokens for which room is left.
const MOST_OUTPUT: u64 = 32_000;

/// The output tokens for which room is left if the request sets no limit.
const USUAL_OUTPUT: u64 = 8_000;

/// The part of a model's window that is used, because token counts are estimates.
const USED_SHARE: f64 = 0.95;

/// The smallest budget.
const LEAST_BUDGET: u64 = 4_000;

/// How far the bill may exceed that of pass-through before only the hard limit makes folds.
pub const MOST_EXCESS: f64 = 0.10;

/// Messages between two snapshots of a folder, from which a restart resumes.
const MESSAGES_PER_REST: usize = 40;

/// Phrases by which clients ask a model to summarise the conversation. No new decisions are made for such a request.
const COMPACTION_WORDS: &[&str] = &[
    "Your task is to create a detailed summary of the conversation so far",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Provide a detailed prompt for continuing our conversation above",
    "<state_snapshot>",
];

/// How many requests in a row may fail to be written as decided before nothing more is folded.
const MOST_FAILURES: u32 = 3;

/// Why nothing new is decided for a request in which the client summarises the conversation.
const SUMMED_UP: &str = "the client sums up the conversation by itself";

/// How the decisions for a request were kept.
enum Kept {
    /// They are in the store, if there is one.
    Whole,
    /// They could not be written to the store.
    InMemory,
    /// Another gateway continued the conversation, so they are discarded.
    Elsewhere,
}

/// Decides what is sent for each request.
pub struct Decider {
    options: Arc<Options>,
    table: ConversationIndex,
    store: Option<Arc<Store>>,
    /// The working directory of the agent.
    disk: Option<LocalFs>,
}

impl Decider {
    /// Creates a decider with the conversations of a store.
    pub fn new(options: Arc<Options>, store: Option<Arc<Store>>) -> Self {
        // In observe mode nothing is stored: it must not affect what is sent when the mode is off.
        let kept = store.clone().filter(|_| !options.observe);
        let disk = options.directory.as_deref().and_then(|directory| LocalFs::open(directory).ok());
        Self { table: ConversationIndex::new(kept.clone(), options.holdout), options, store: kept, disk }
    }

    /// Returns what is sent for a request, with new decisions if there is time.
    pub fn decide(&self, asked: &IncomingRequest, progress: &Progress) -> Ready {
        let Ok(text) = std::str::from_utf8(&asked.body) else {
            return self.passed(asked, None, "the request is no text");
        };
        let request = match Request::parse(asked.format, text) {
            Ok(request) => request,
            Err(error) => return self.passed(asked, None, &error.to_string()),
        };
        if asked.is_count {
            return self.counted(asked, &request);
        }
        let is_compaction = asked.is_compaction || is_compaction(&request);
        // The prompt for a summary is no part of the conversation: it goes on without it, or begins anew.
        let messages = request.messages().len().saturating_sub(usize::from(is_compaction));
        if is_compaction && messages == 0 {
            return self.passed(asked, Some(&request), SUMMED_UP);
        }
        let found = match self.table.take(&request, messages, &asked.scope) {
            Ok(found) => found,
            Err(error) => {
                progress.pass();
                return self.passed(asked, Some(&request), &error.to_string());
            }
        };
        progress.note(&found);
        if found.conversation.beginning.is_held_out {
            let ready = self.passed(asked, Some(&request), "held out for comparison");
            return Ready { conversation: Some(found.conversation), ..ready };
        }
        match is_compaction {
            true => self.settled(asked, &request, found, SUMMED_UP),
            false => self.folded(asked, &request, found, progress),
        }
    }

    /// A request that is forwarded without being parsed.
    pub fn unread(&self, asked: &IncomingRequest, why: &str) -> Ready {
        self.passed(asked, None, why)
    }

    /// A request that is sent unchanged.
    fn passed(&self, asked: &IncomingRequest, request: Option<&Request<'_>>, why: &str) -> Ready {
        Ready { passed: Some(why.to_owned()), ..self.ready(asked, request) }
    }

    fn ready(&self, asked: &IncomingRequest, request: Option<&Request<'_>>) -> Ready {
        let model_name = request.and_then(|request| request.model()).unwrap_or_default().into_owned();
        let known = self.options.models.find(&model_name).asked(&asked.asks);
        let caching = request.map_or(Caching::None, caching);
        let tokens = asked.body.len() as u64 / 4;
        Ready {
            body: None,
            conversation: None,
            messages: request.map_or(0, |request| request.messages().len()),
            prices: known.model.prices(caching),
            known,
            model_name,
            sent_tokens: tokens,
            came_tokens: tokens,
            would_send: None,
            has_given_up: false,
            is_unsaved: false,
            passed: None,
            decided: Vec::new(),
        }
    }

    /// Applies the earlier decisions to a request that only asks for a count, without changing any state.
    fn counted(&self, asked: &IncomingRequest, request: &Request<'_>) -> Ready {
        let plan = self.table.look(request, &asked.scope).ok().flatten();
        let plan = plan.filter(|_| !self.options.observe).unwrap_or_default();
        self.with_plan(self.ready(asked, Some(request)), request, &plan, "a count of tokens")
    }

    /// Applies the earlier decisions to a request for which no new ones were made in time.
    pub fn fallback(&self, asked: &IncomingRequest, found: Option<FoundConversation>, why: &str) -> Ready {
        let text = std::str::from_utf8(&asked.body).unwrap_or_default();
        let Ok(request) = Request::parse(asked.format, text) else { return self.passed(asked, None, why) };
        match found {
            Some(found) if !found.conversation.beginning.is_held_out => self.settled(asked, &request, found, why),
            found => {
                let conversation = found.map(|found| found.conversation);
                Ready { conversation, ..self.passed(asked, Some(&request), why) }
            }
        }
    }

    /// Applies the earlier decisions to a request, and notes before it is sent that it was sent like that: a client
    /// that repeats it gets the same bytes, also from another gateway or after a restart.
    fn settled(&self, asked: &IncomingRequest, request: &Request<'_>, found: FoundConversation, why: &str) -> Ready {
        let FoundConversation { mut conversation, messages, .. } = found;
        let mut noted = self.note_point(&conversation, messages);
        if let Err(StoreError::Conflict) = noted
            && let Ok(found) = self.table.take(request, messages, &asked.scope)
        {
            // Another gateway went on with the conversation, and may have sent this request already.
            conversation = found.conversation;
            noted = self.note_point(&conversation, messages);
        }
        let (plan, is_unsaved) = {
            let state = conversation.state();
            let is_behind = self.store.is_some() && state.saved_version < state.version;
            (state.steps.plan_for(messages), noted.is_err() || is_behind)
        };
        let ready = Ready { conversation: Some(conversation), is_unsaved, ..self.ready(asked, Some(request)) };
        self.with_plan(ready, request, &plan, why)
    }

    /// Notes in the store that a request with this many messages is sent with the earlier decisions.
    fn note_point(&self, conversation: &Conversation, messages: usize) -> Result<(), StoreError> {
        let mut state = conversation.state();
        match state.note_point(messages) {
            true => self.write(conversation, &mut state, &[]),
            false => Ok(()),
        }
    }

    fn write(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        texts: &[(String, String)],
    ) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        store.save(conversation, state, texts, self.now_ms())?;
        state.note_saved();
        Ok(())
    }

    fn with_plan(&self, ready: Ready, request: &Request<'_>, plan: &Plan, why: &str) -> Ready {
        let passed = Some(why.to_owned());
        if plan.is_as_it_came() || self.options.observe {
            return Ready { passed, ..ready };
        }
        match allowed(request, plan) {
            Ok(body) => {
                let body = Bytes::from(body.into_owned().into_bytes());
                Ready { sent_tokens: body.len() as u64 / 4, body: Some(body), passed, ..ready }
            }
            Err(error) => Ready { passed: Some(format!("{why}; {error}")), ..ready },
        }
    }

    /// A request for which new decisions may be made.
    fn folded(
        &self,
        asked: &IncomingRequest,
        request: &Request<'_>,
        found: FoundConversation,
        progress: &Progress,
    ) -> Ready {
        let conversation = found.conversation.clone();
        let mut ready = self.ready(asked, Some(request));
        ready.conversation = Some(conversation.clone());
        let mut live = conversation.live();
        let why_not = why_not(&conversation.state(), found.messages);
        if let Some(why) = why_not {
            return self.settled(asked, request, found, &why);
        }
        if !self.adopt(request, &conversation, &mut live) {
            return ready;
        }
        let head = head_tokens(request, conversation.beginning.lead);
        let policy = self.policy(request, &conversation, &ready, head);
        let is_cold = conversation.state().account.is_cold(&ready.prices, self.now_ms());
        let disk = self.disk.as_ref().map(|disk| disk as &dyn FsAdapter);
        let (mut awake, named) = match self.caught_up(request, &conversation, live.take(), &policy) {
            Ok(caught_up) => caught_up,
            Err(error) => {
                // What cannot be read stays in the conversation.
                let why = format!("nothing more is folded: {error}");
                conversation.state().stopped = Some(why.clone());
                return self.settled(asked, request, found, &why);
            }
        };
        let outcome = awake.request(policy, is_cold, disk);
        let is_valid = !outcome.has_folded || awake.is_paired();
        let body = allowed(request, &outcome.plan)
            .and_then(|body| is_valid.then_some(body).ok_or_else(|| WireError::OtherRequest.to_string()));
        let body = match body {
            Ok(body) => body,
            Err(error) => {
                let why = self.note_failure(&conversation, &error);
                return self.settled(asked, request, found, &why);
            }
        };
        let (sent, came) = awake.tokens();
        (ready.sent_tokens, ready.came_tokens) = (sent + head, came + head);
        ready.decided = outcome.decisions.iter().map(note_of).collect();
        ready.decided.extend(named.as_ref().map(|_| note("reference", "a message names files")));
        let named: Vec<(usize, Arc<str>)> = named.into_iter().map(|text| (found.messages - 1, text)).collect();
        let is_changed = !outcome.plan.is_as_it_came();
        let body = is_changed.then(|| Bytes::from(body.into_owned().into_bytes()));
        if !progress.end() {
            *live = too_late(awake, outcome, named);
            // Usually it is noted already, since it was sent; an error is told with the next decision.
            let _ = self.note_point(&conversation, found.messages);
            return ready;
        }
        match self.keep(request, &conversation, &awake, outcome, named) {
            Kept::Elsewhere => {
                let why = "another gateway went on with the conversation meanwhile";
                return self.settled(asked, request, found, why);
            }
            Kept::InMemory => (*live, ready.is_unsaved) = (Some(awake), true),
            Kept::Whole => *live = Some(awake),
        }
        match self.options.observe {
            true => Ready { would_send: Some(ready.sent_tokens), sent_tokens: ready.came_tokens, ..ready },
            false => Ready { body, ..ready },
        }
    }

    /// The folder after all messages of a request, and the text for files that its newest message names.
    fn caught_up(
        &self,
        request: &Request<'_>,
        conversation: &Conversation,
        live: Option<ConversationFolder>,
        policy: &Policy,
    ) -> Result<(ConversationFolder, Option<Arc<str>>), WireError> {
        let mut awake = self.awake(request, conversation, live, policy)?;
        let named = self.named_files(request, &awake);
        if let Some(text) = &named {
            awake.attach(request.messages().len() - 1, text.clone());
        }
        awake.catch_up(request.messages())?;
        Ok((awake, named))
    }

    /// Lets decisions that were made too late for an earlier request take effect with this one, before anything else is
    /// decided about it: if that takes long, they are sent at least. Returns whether there is still time to decide.
    fn adopt(&self, request: &Request<'_>, conversation: &Conversation, live: &mut Option<ConversationFolder>) -> bool {
        let Some(awake) = live.as_mut().filter(|live| live.is_late()) else { return true };
        let disk = self.disk.as_ref().map(|disk| disk as &dyn FsAdapter);
        if !awake.holds_on(disk, request.messages().get(awake.messages()..).unwrap_or_default()) {
            // Files have changed since, so it is decided anew.
            *live = None;
            return true;
        }
        let messages = request.messages().len();
        let mut state = conversation.state();
        if self.is_elsewhere(conversation, &state) {
            *live = None;
            return true;
        }
        if !state.note_point(messages) {
            // It was sent meanwhile.
            return false;
        }
        let LateDecisions { plan, decisions, named } = awake.take_late();
        state.adopted = Some(Adopted { messages, notes: decisions.iter().map(note_of).collect() });
        // If they cannot be written, they stay valid for as long as the gateway runs.
        let _ = self.add(request, conversation, &mut state, awake, plan, decisions, named);
        true
    }

    /// Notes that a request could not be written as decided. Returns why nothing new is decided for it.
    fn note_failure(&self, conversation: &Conversation, error: &str) -> String {
        let mut state = conversation.state();
        state.failures += 1;
        if state.failures < MOST_FAILURES {
            return format!("what was decided cannot be written: {error}");
        }
        let why = format!("nothing more is folded: {error}");
        state.stopped = Some(why.clone());
        why
    }

    /// The text to send after the newest message for the files that it names.
    fn named_files(&self, request: &Request<'_>, awake: &ConversationFolder) -> Option<Arc<str>> {
        let directory = self.options.directory.as_deref()?;
        let messages = request.messages();
        let newest = messages.last().filter(|raw| raw.get().contains('#') && awake.messages() < messages.len())?;
        let units = read(request.format(), newest, None).ok()?;
        referenced(Path::new(directory), &units, &*self.options.counter).map(Arc::from)
    }

    fn policy(&self, request: &Request<'_>, conversation: &Conversation, ready: &Ready, head: u64) -> Policy {
        let output = request.most_output().unwrap_or(USUAL_OUTPUT).min(MOST_OUTPUT);
        let usual = (ready.known.model.context.saturating_sub(output) as f64 * USED_SHARE) as u64;
        let (ratio, is_dearer) = {
            let account = conversation.state().account;
            (account.ratio(), account.is_dearer(MOST_EXCESS))
        };
        let total = (self.options.budget.unwrap_or(usual) as f64 / ratio) as u64;
        let budget = total.saturating_sub(head).max(LEAST_BUDGET);
        let when = if is_dearer { FoldWhen::Forced } else { FoldWhen::Pays };
        let pins = self.options.pins.clone().and(&conversation.state().pins);
        Policy::new(budget).with_prices(ready.prices).when(when).with_pins(pins)
    }

    /// The conversation's folder in its state after the last request.
    fn awake(
        &self,
        request: &Request<'_>,
        conversation: &Conversation,
        live: Option<ConversationFolder>,
        policy: &Policy,
    ) -> Result<ConversationFolder, WireError> {
        let (mut points, decisions, rested, attached) = {
            let state = conversation.state();
            (state.points.clone(), state.decisions.clone(), state.rested.clone(), state.attached.clone())
        };
        // This request may be noted already.
        points.retain(|point| *point < request.messages().len());
        let newest = points.last().copied().unwrap_or(conversation.beginning.lead);
        let known = |messages: usize| points.contains(&messages);
        let decided_after = |messages: usize| decisions.iter().filter(move |decided| decided.messages > messages);
        let live = live.filter(|live| live.messages() == newest || known(live.messages()));
        let is_live = live.is_some();
        let settings = FolderSettings {
            dialects: self.options.dialects.clone(),
            directory: self.options.directory.clone(),
            can_show: self.store.is_some(),
            counter: self.options.counter.clone(),
        };
        let new = || {
            ConversationFolder::new(
                conversation.beginning.format,
                conversation.beginning.lead,
                policy.clone(),
                &settings,
                attached.clone(),
            )
        };
        let rested = rested.filter(|rested| known(rested.messages));
        let woken = || rested.and_then(|rested| new().woken(request.messages(), &rested).ok());
        let mut live = live.or_else(woken).unwrap_or_else(new);
        let messages = live.messages();
        if messages == newest {
            return Ok(live);
        }
        for (message, text) in attached.range(messages..) {
            live.attach(*message, text.clone());
        }
        let later: Vec<usize> = points.iter().copied().filter(|point| *point > messages).collect();
        // A folder in memory has all decisions: each was made with it.
        let decisions = decided_after(messages).filter(|_| !is_live).map(|decided| decided.decision.clone()).collect();
        live.rebuilt(request.messages(), &later, decisions)
    }

    /// Keeps the decisions before any of them is sent.
    fn keep(
        &self,
        request: &Request<'_>,
        conversation: &Conversation,
        awake: &ConversationFolder,
        outcome: FoldOutcome,
        named: Vec<(usize, Arc<str>)>,
    ) -> Kept {
        let messages = request.messages().len();
        let mut state = conversation.state();
        if self.is_elsewhere(conversation, &state) {
            return Kept::Elsewhere;
        }
        // A request without decisions is stored too; otherwise repeating it after a restart might give another result.
        state.note_point(messages);
        state.failures = 0;
        let FoldOutcome { plan, decisions, has_folded: _ } = outcome;
        match self.add(request, conversation, &mut state, awake, plan, decisions, named) {
            Ok(()) => Kept::Whole,
            // The decisions stay valid for as long as the gateway runs.
            Err(_) => Kept::InMemory,
        }
    }

    /// Adds decisions to a conversation, with the plan from them, and writes them.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the parts of one decision, in the order in which it is made"
    )]
    fn add(
        &self,
        request: &Request<'_>,
        conversation: &Conversation,
        state: &mut ConversationState,
        awake: &ConversationFolder,
        plan: Plan,
        decisions: Vec<FoldDecision>,
        named: Vec<(usize, Arc<str>)>,
    ) -> Result<(), StoreError> {
        let messages = request.messages().len();
        let texts = self.store.as_ref().map(|_| texts_of(request, awake, &decisions)).unwrap_or_default();
        state.attached.extend(named);
        state.steps.push(messages, plan);
        state.decisions.extend(decisions.into_iter().map(|decision| DecisionEntry { messages, decision }));
        self.write(conversation, state, &texts)
    }

    /// Whether another gateway has written to a conversation since this one did.
    fn is_elsewhere(&self, conversation: &Conversation, state: &ConversationState) -> bool {
        let written = self.store.as_ref().and_then(|store| store.version(conversation.id()).ok().flatten());
        written.is_some_and(|version| version != state.saved_version)
    }

    /// Writes a conversation to the store after a response. Nothing waits for it.
    pub fn save(&self, conversation: &Conversation) {
        let Some(store) = &self.store else { return };
        let is_rested = conversation.note_rest(MESSAGES_PER_REST);
        let rested = conversation.state().rested.clone().filter(|_| is_rested);
        if let Some(rested) = rested {
            // If this fails, the conversation is replayed after a restart.
            let _ = store.save_rest(conversation, &rested);
        }
        // What cannot be written now is written with the next decision.
        let _ = self.write(conversation, &mut conversation.state(), &[]);
    }

    /// Returns a conversation by its id, if it exists.
    pub fn conversation(&self, id: &str) -> Option<Arc<Conversation>> {
        self.table.find(id)
    }

    /// Changes what is pinned in a conversation. The folder is rebuilt with the next request, so that the pins apply to
    /// earlier messages too.
    pub fn pin(&self, conversation: &Conversation, change: impl FnOnce(Pins) -> Pins) {
        *conversation.live() = None;
        let mut state = conversation.state();
        state.pins = change(std::mem::take(&mut state.pins));
        state.rested = None;
        if let Some(store) = &self.store {
            // Pins that cannot be written stay in effect for as long as the gateway runs.
            let _ = store.save_pins(conversation.id(), &state.pins);
        }
    }

    /// Removes a conversation from memory. Returns whether it was there.
    pub fn forget(&self, id: &str) -> bool {
        self.table.forget(id)
    }

    /// The time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.options.clock.now().as_millis() as u64
    }
}

/// A request as a plan says, if its provider accepts it like that.
fn allowed<'a>(request: &Request<'a>, plan: &Plan) -> Result<Cow<'a, str>, String> {
    let body = request.rewritten(plan).map_err(|error| error.to_string())?;
    let Some(broken) = rules::broken(request.format(), &body).filter(|_| !plan.is_as_it_came()) else {
        return Ok(body);
    };
    // What the client sends itself is the provider's to judge.
    let own = rules::broken(request.format(), request.body());
    match own.is_some_and(|own| std::ptr::eq(own.rule, broken.rule)) {
        true => Ok(body),
        false => Err(format!("the provider would refuse {broken}")),
    }
}

/// What the client asks the provider to cache.
fn caching(request: &Request<'_>) -> Caching {
    match (request.format(), request.marks()) {
        (Format::Messages, marks) if marks.count == 0 => Caching::None,
        (Format::Messages, marks) if marks.asks_for_hour => Caching::Hour,
        _ => Caching::Minutes,
    }
}

/// Tokens of everything before the messages that can be folded.
fn head_tokens(request: &Request<'_>, lead: usize) -> u64 {
    let lead: usize = request.messages().iter().take(lead).map(|message| message.get().len()).sum();
    (request.other_bytes() + lead) as u64 / 4
}

/// What stays of decisions that were made too late to be sent. A fold can take effect with the next request,
/// because it rewrites the window anyway; other decisions are discarded.
fn too_late(
    awake: ConversationFolder,
    outcome: FoldOutcome,
    named: Vec<(usize, Arc<str>)>,
) -> Option<ConversationFolder> {
    match (outcome.has_folded, outcome.decisions.is_empty() && named.is_empty()) {
        (true, _) => Some(awake.with_late(LateDecisions { plan: outcome.plan, decisions: outcome.decisions, named })),
        (false, true) => Some(awake),
        (false, false) => None,
    }
}

/// Why no new decisions are made for a request with this many messages, if that is so.
fn why_not(state: &ConversationState, messages: usize) -> Option<String> {
    let is_repeat = state.points.contains(&messages).then(|| "the client repeats it".to_owned());
    // If a decision takes long, the next request may be decided first.
    let is_late = state.points.last().is_some_and(|newest| *newest > messages);
    let is_late = is_late.then(|| "a later request was decided before it".to_owned());
    state.stopped.clone().or(is_repeat).or(is_late)
}

/// Whether the client asks the model to summarise the conversation.
fn is_compaction(request: &Request<'_>) -> bool {
    let asks = |text: &str| COMPACTION_WORDS.iter().any(|words| text.contains(words));
    // Outputs of tools may contain the same words.
    let is_asked = |item: &Item| {
        item.as_message().is_some_and(|message| message.role != Role::Assistant && asks(&message.text_cow()))
    };
    let Some(last) = request.messages().last().filter(|_| request.messages().len() > 1) else { return false };
    let in_words =
        || read(request.format(), last, None).is_ok_and(|units| units.iter().any(|unit| is_asked(&unit.item)));
    request.asks_for_compaction() || (asks(last.get()) && in_words())
}

/// The full texts that were shortened, each with the hash by which the shortened text refers to it.
fn texts_of(request: &Request<'_>, awake: &ConversationFolder, decisions: &[FoldDecision]) -> Vec<(String, String)> {
    let mut shortened: Vec<(usize, &str)> = Vec::new();
    let mut outputs: Vec<(String, String)> = Vec::new();
    for decision in decisions {
        match decision {
            FoldDecision::Shorten { position, text, .. } => shortened.push((*position, text)),
            FoldDecision::Fold(fold) => {
                shortened.extend(fold.shortened.iter().map(|(at, text)| (*at, &**text)));
                let cut = fold.cut_said.iter().chain(&fold.cut_told).chain(&fold.cut_records);
                shortened.extend(cut.map(|cut| (cut.position, cut.hash.as_str())));
                outputs.extend(fold.head.iter().flat_map(|piece| awake.recorded_outputs(piece)));
            }
            FoldDecision::BringBack(_) | FoldDecision::Cold { .. } | FoldDecision::Disk(_) => {}
        }
    }
    let text = |at: usize| {
        let (message, unit) = awake.place_of(at)?;
        let mut units = read(request.format(), request.messages().get(message)?, None).ok()?;
        match (unit < units.len()).then(|| units.swap_remove(unit))?.item {
            Item::Message(message) => Some(message.text()),
            Item::FunctionCallOutput(output) => Some(output.output),
            _ => None,
        }
    };
    let named = |(at, shown): (usize, &str)| {
        let text = text(at)?;
        let hash = short_hash(&text);
        // A text without a hash was only reformatted, so there is nothing to restore.
        shown.contains(&hash).then_some((hash, text))
    };
    shortened.into_iter().filter_map(named).chain(outputs).collect()
}

fn note(what: &str, reason: &str) -> DecidedNote {
    DecidedNote { what: what.to_owned(), reason: reason.to_owned(), ..DecidedNote::default() }
}

/// Describes a decision in plain words.
fn note_of(decision: &FoldDecision) -> DecidedNote {
    match decision {
        FoldDecision::Fold(fold) => DecidedNote {
            before_tokens: fold.before_tokens,
            after_tokens: fold.after_tokens,
            cost: fold.cost,
            saves_per_request: fold.saves_per_request,
            ..note("fold", &fold.reason)
        },
        FoldDecision::BringBack(_) => note("bring back", "a file was touched or named again"),
        FoldDecision::Cold { .. } => note("cold", "the provider's cache had expired"),
        FoldDecision::Disk(checked) => note("disk", &checked.reason()),
        FoldDecision::Shorten { reason, .. } => note("shorten", reason),
    }
}
