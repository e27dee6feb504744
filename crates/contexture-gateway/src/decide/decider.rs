//! Decides what is sent for a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use contexture::fold::{FoldDecision, Pins};
use contexture::wire::{Plan, Request, WireError};

use super::folding::{CurrentFolder, Folding};
use super::notes::{edits_note, note_of};
use super::outgoing::Outgoing;
use super::past::rewritten as rewritten_past;
use super::plain;
use super::policy::{
    MOST_TIMES_BUDGET, bytes_within, fits_whole, head_tokens, is_above, may_be_above, most_tokens, policy,
    requested_model, times_budget, times_budget_whole,
};
use super::prepared::{BodySizes, OwnCount, PreparedRequest, RequestedModel};
use super::progress::Progress;
use super::reason::PassReason;
use super::rewriting::{allowed, has_bound_reasoning, rewritten, unbound, without_reasoning};
use super::texts::texts_of;
use crate::accept::compaction::{compaction, is_aside};
use crate::accept::incoming::IncomingRequest;
use crate::conversation::Conversation;
use crate::conversation::decisions::DecisionEntry;
use crate::conversation::folder::{ConversationFolder, Disk, NewDecisions};
use crate::conversation::health::StopReason;
use crate::conversation::state::ConversationState;
use crate::find::index::{ConversationIndex, FoundConversation};
use crate::options::{Options, WindowEditor};
use crate::remember::passing::PassingRequest;
use crate::remember::recalled::{RecallRequest, memory_in};
use crate::write::keeper::{Keeper, Keeping};
use crate::write::{KeptVersion, Store, StoreError};

/// The folder of a request with more bytes is not kept in memory.
const LARGE_BYTES: usize = 16 << 20;

/// Decides what is sent for each request.
pub(crate) struct Decider {
    options: Arc<Options>,
    index: ConversationIndex,
    keeper: Keeper,
    folding: Folding,
    /// Whether a user paused the gateway: requests are followed, but sent as they came.
    is_paused: AtomicBool,
}

/// A request that was parsed.
#[derive(Clone, Copy)]
struct ParsedRequest<'r, 'a> {
    incoming: &'r IncomingRequest,
    request: &'r Request<'a>,
    /// The model that it names.
    requested: &'r RequestedModel,
    /// When it is to be sent.
    until: Instant,
}

/// Why nothing new was decided about a request.
enum NotDecided {
    /// For a reason that its record tells.
    Because(PassReason),
    /// Nobody waits for it any more: the request was sent meanwhile.
    TooLate,
}

impl From<PassReason> for NotDecided {
    fn from(why: PassReason) -> Self {
        Self::Because(why)
    }
}

impl Decider {
    /// Creates a decider with the conversations of a store.
    pub fn new(options: Arc<Options>, store: Option<Arc<dyn Store>>) -> Self {
        // In observe mode nothing is stored: it must not affect what is sent when the mode is off.
        let store = store.filter(|_| !options.observe && options.keeps_texts);
        let folding = Folding::new(&options, store.is_some());
        let index = ConversationIndex::new(store.clone(), options.holdout, options.place());
        let keeper = Keeper::new(store, options.clock.clone());
        Self { options, index, keeper, folding, is_paused: AtomicBool::new(false) }
    }

    /// Sends requests as they came from now on, or as decided again. What was decided before stays, and applies again
    /// after a pause: the provider may still have it in its cache.
    pub fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
    }

    /// Whether requests are sent as they came, because a user asked for it.
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// Returns what is sent for a request, with new decisions if there is time.
    pub fn decide(&self, incoming: &IncomingRequest, progress: &Progress) -> PreparedRequest {
        let request = match parsed(incoming) {
            Ok(request) => request,
            Err(why) => return self.passed(incoming, None, why),
        };
        let requested = requested_model(&self.options, &incoming.asks, Some(&request));
        progress.note_parsed(may_be_above(&request, &requested) || has_bound_reasoning(&request));
        let arrived = ParsedRequest { incoming, request: &request, requested: &requested, until: progress.until() };
        self.decided(arrived, progress).unwrap_or_else(|why| self.passed(incoming, Some(&request), why))
    }

    /// A request that is forwarded without being parsed.
    pub fn unread(&self, incoming: &IncomingRequest, why: PassReason) -> PreparedRequest {
        self.passed(incoming, None, why)
    }

    /// Applies the earlier decisions to a request for which no new ones were made in time. One that is far above its budget
    /// is folded plainly.
    pub fn fallback(
        &self,
        incoming: &IncomingRequest,
        found: Option<FoundConversation>,
        why: PassReason,
        is_far_above: bool,
    ) -> PreparedRequest {
        let Ok(request) = parsed(incoming) else { return self.passed(incoming, None, why) };
        let why = if self.is_paused() { PassReason::Paused } else { why };
        let requested = requested_model(&self.options, &incoming.asks, Some(&request));
        // It took too long already, so it does not wait for the disk.
        let arrived = ParsedRequest { incoming, request: &request, requested: &requested, until: Instant::now() };
        match found {
            Some(found) if found.conversation.beginning().is_held_out => {
                self.passed(incoming, Some(&request), why).of(found.conversation)
            }
            Some(found) => {
                let plain = is_far_above.then(|| self.plain(arrived, found.conversation.beginning().lead)).flatten();
                let Some(plan) = plain else {
                    let is_above = times_budget(&self.options, &request, &found.conversation, &requested) > 1.0;
                    let is_late = matches!(why, PassReason::TooLong) && is_above;
                    let why = if is_late { PassReason::TooLongAbove } else { why };
                    return self.replayed(arrived, found, why);
                };
                found.conversation.state().note_plan(found.messages, plan);
                self.replayed(arrived, found, PassReason::Plain)
            }
            None => {
                let may_fold =
                    !self.is_paused() && self.options.holdout == 0.0 && self.is_conversation(incoming, &request);
                let is_far_above =
                    may_fold && times_budget_whole(&self.options, &request, &requested) > MOST_TIMES_BUDGET;
                let plan = is_far_above.then(|| self.plain(arrived, request.leading_instructions())).flatten();
                match plan {
                    Some(plan) => {
                        self.prepared(incoming, Some(&request), self.applied(&request, &plan, PassReason::Plain))
                    }
                    None => self.passed(incoming, Some(&request), why),
                }
            }
        }
    }

    /// A plan without views for a request, if its provider accepts what it makes of it.
    fn plain(&self, ParsedRequest { request, requested, .. }: ParsedRequest<'_, '_>, lead: usize) -> Option<Plan> {
        let bytes = bytes_within(&self.options, request, requested, lead);
        let plan = plain::plan(request, lead, bytes)?;
        allowed(request, &plan, false).is_ok().then_some(plan)
    }

    /// Whether a request is one of a conversation that may be folded.
    fn is_conversation(&self, incoming: &IncomingRequest, request: &Request<'_>) -> bool {
        !incoming.is_count
            && !incoming.is_compaction
            && !self.options.observe
            && request.previous_response().is_none()
            && !request.is_of_thread()
            && compaction(request).is_none()
            && !is_aside(request)
            && self.theirs(request).is_none()
    }

    fn decided(&self, arrived: ParsedRequest<'_, '_>, progress: &Progress) -> Result<PreparedRequest, PassReason> {
        let ParsedRequest { incoming, request, requested, .. } = arrived;
        if incoming.is_count {
            return Ok(self.counted(arrived));
        }
        if let Some(previous) = request.previous_response() {
            progress.note_nothing();
            let why = if request.is_of_thread() { PassReason::Thread } else { PassReason::Elsewhere };
            let passed = self.passed(incoming, Some(request), why);
            return Ok(match self.index.answered(&previous, &incoming.scope) {
                Some(conversation) => passed.of(conversation),
                None => passed,
            });
        }
        if is_aside(request) {
            progress.note_nothing();
            return Err(PassReason::Aside);
        }
        let prompt =
            compaction(request).or_else(|| request.messages().len().checked_sub(1).filter(|_| incoming.is_compaction));
        // The prompt for a summary is no part of the conversation: it goes on without it, or begins anew.
        let messages = prompt.unwrap_or(request.messages().len());
        if prompt.is_some() && messages == 0 {
            return Err(PassReason::SummedUp);
        }
        let (found, is_above) = self.found(arrived, messages, progress)?;
        let passed = match () {
            () if found.conversation.beginning().is_held_out => Some(PassReason::HeldOut),
            // What it has now, it has for all requests to come.
            () if request.is_of_thread() => Some(PassReason::Thread),
            () => None,
        };
        if let Some(why) = passed {
            return Ok(self.passed(incoming, Some(request), why).of(found.conversation));
        }
        if self.is_paused() {
            // That it is sent is noted, so that nothing of it counts as new afterwards.
            return Ok(self.replayed(arrived, found, PassReason::Paused));
        }
        if let Some(why) = self.theirs(request) {
            return Ok(self.replayed(arrived, found, why));
        }
        match prompt {
            Some(_) if fits_whole(request, &found.conversation, requested) => Ok(self.summed_up(arrived, found)),
            Some(_) if !is_above => Ok(self.replayed(arrived, found, PassReason::SummedUpFolded)),
            // A summary must fit: what the provider refuses helps nobody.
            Some(_) => {
                let (found, is_above) = self.found(arrived, request.messages().len(), progress)?;
                Ok(self.folded(arrived, found, progress, is_above))
            }
            None => Ok(self.folded(arrived, found, progress, is_above)),
        }
    }

    /// The conversation that the first messages of a request continue, and whether the request is above its provider's
    /// limit unless something is decided about it.
    fn found(
        &self,
        ParsedRequest { incoming, request, requested, .. }: ParsedRequest<'_, '_>,
        messages: usize,
        progress: &Progress,
    ) -> Result<(FoundConversation, bool), PassReason> {
        let found = self.index.take(request, messages, &incoming.scope);
        let found = found.inspect_err(|_| progress.note_nothing()).map_err(PassReason::Misread)?;
        let is_above = is_above(request, &found.conversation, requested);
        // Before the conversation is told: who waits for it asks for this next.
        if is_above {
            progress.note_needed();
        }
        let is_free = !self.is_paused() && may_decide(&found.conversation.state(), messages, false).is_ok();
        if is_free
            && self.is_conversation(incoming, request)
            && times_budget(&self.options, request, &found.conversation, requested) > MOST_TIMES_BUDGET
        {
            progress.note_far_above();
        }
        progress.note_found(&found);
        Ok((found, is_above))
    }

    /// A request for a summary as it came: the summary replaces everything, so it is one of everything.
    fn summed_up(&self, arrived: ParsedRequest<'_, '_>, found: FoundConversation) -> PreparedRequest {
        let ParsedRequest { incoming, request, .. } = arrived;
        let plan = found.conversation.state().decisions().plan_for(found.messages);
        let outgoing = as_it_came(request, &plan, PassReason::SummedUp);
        // What it has is not shortened in a later request.
        let kept = self.keeper.note_point(&found.conversation, found.messages).kept();
        self.prepared(incoming, Some(request), outgoing).of(found.conversation).kept(kept)
    }

    /// A request that is sent unchanged.
    fn passed(&self, incoming: &IncomingRequest, request: Option<&Request<'_>>, why: PassReason) -> PreparedRequest {
        self.prepared(incoming, request, Outgoing::AsItCame(why))
    }

    fn prepared(
        &self,
        incoming: &IncomingRequest,
        request: Option<&Request<'_>>,
        outgoing: Outgoing,
    ) -> PreparedRequest {
        let messages = request.map_or(0, |request| request.messages().len());
        let is_beside = request.is_some_and(Request::has_cached_content);
        let sizes = BodySizes::of(&incoming.body, outgoing.body());
        let (sent, came) = (sizes.sent.text / 4, sizes.came.text / 4);
        let requested = requested_model(&self.options, &incoming.asks, request);
        PreparedRequest::new(outgoing, messages, requested, OwnCount { sent, came, is_counted: false })
            .of_sizes(sizes)
            .beside_cached_content(is_beside)
    }

    /// Applies the earlier decisions to a request that only asks for a count, without changing any state.
    fn counted(&self, ParsedRequest { incoming, request, .. }: ParsedRequest<'_, '_>) -> PreparedRequest {
        let plan = self.index.look(request, &incoming.scope).ok().flatten().unwrap_or_default();
        self.prepared(incoming, Some(request), self.applied(request, &plan, PassReason::Count))
    }

    /// Applies the earlier decisions to a request, and notes before it is sent that it was sent like that: a client
    /// that repeats it gets the same bytes, also from another gateway or after a restart.
    fn replayed(&self, arrived: ParsedRequest<'_, '_>, found: FoundConversation, why: PassReason) -> PreparedRequest {
        let ParsedRequest { incoming, request, until, .. } = arrived;
        let past = rewritten_past(request, &found, &found.conversation.state().decisions().plan_for(found.messages));
        let FoundConversation { mut conversation, messages, .. } = found;
        let mut keeping = self.keeper.note_point(&conversation, messages);
        if let Err(StoreError::Conflict) = self.keeper.wait(&keeping, &conversation, until)
            && let Ok(found) = self.index.take(request, messages, &incoming.scope)
        {
            // Another gateway went on with the conversation, and may have sent this request already.
            conversation = found.conversation;
            keeping = self.keeper.note_point(&conversation, messages);
            // What could not be written is on the record.
            let _ = self.keeper.wait(&keeping, &conversation, until);
        }
        let plan = conversation.state().decisions().plan_for(messages);
        let prepared = self.prepared(incoming, Some(request), self.applied(request, &plan, why));
        let remembered = self.remembered(&conversation, &[]);
        prepared.after_rewriting(past).remembering(remembered).of(conversation).kept(keeping.kept())
    }

    /// Why nothing new may be decided about a request, if that is because of what it asks for.
    fn theirs(&self, request: &Request<'_>) -> Option<PassReason> {
        match () {
            () if self.options.editor == WindowEditor::Theirs && request.asks_for_edits() => {
                Some(PassReason::TheirEdits)
            }
            // With it the provider expects what it has refused before.
            () if request.has_field("fallback_credit_token") => Some(PassReason::Repeated),
            () => None,
        }
    }

    /// Whether what a request asks its provider to edit is taken out of it.
    fn takes_out_edits(&self, request: &Request<'_>) -> bool {
        self.options.editor == WindowEditor::Ours && request.asks_for_edits()
    }

    /// What a plan makes of a request.
    fn applied(&self, request: &Request<'_>, plan: &Plan, why: PassReason) -> Outgoing {
        let takes_out = self.takes_out_edits(request);
        if (plan.is_as_it_came() && !takes_out) || self.options.observe {
            return Outgoing::AsItCame(why);
        }
        if self.is_paused() {
            return as_it_came(request, plan, why);
        }
        match allowed(request, plan, takes_out) {
            Ok(body) => Outgoing::Replayed { body: Bytes::from(body.into_owned().into_bytes()), why },
            Err(error) => as_it_came(request, plan, PassReason::Unfit { why: Box::new(why), error }),
        }
    }

    /// A request as what was decided before makes of it, after something new was refused; `None` if it is as it came then.
    pub fn earlier(&self, request: &Request<'_>, prepared: &PreparedRequest) -> Option<Bytes> {
        let plan = prepared.before().filter(|plan| !plan.is_as_it_came())?;
        self.applied(request, plan, PassReason::FoldRefused).body().cloned()
    }

    /// A request for which new decisions may be made.
    fn folded(
        &self,
        arrived: ParsedRequest<'_, '_>,
        found: FoundConversation,
        progress: &Progress,
        is_above: bool,
    ) -> PreparedRequest {
        match self.try_fold(arrived, &found, progress, is_above) {
            Ok(prepared) => prepared,
            Err(NotDecided::Because(why)) => self.replayed(arrived, found, why),
            Err(NotDecided::TooLate) => self.passed(arrived.incoming, Some(arrived.request), PassReason::TooLong),
        }
    }

    fn try_fold(
        &self,
        arrived: ParsedRequest<'_, '_>,
        found: &FoundConversation,
        progress: &Progress,
        is_above: bool,
    ) -> Result<PreparedRequest, NotDecided> {
        let ParsedRequest { request, requested, .. } = arrived;
        let conversation = &found.conversation;
        let mut held = conversation.folder();
        // One that read other outputs than those of this request is built again.
        held.take_if(|folder| folder.rewrites() != found.rewrites);
        may_decide(&conversation.state(), found.messages, is_above)?;
        if !is_above && !self.keeper.has_room() {
            return Err(PassReason::StoreFull.into());
        }
        let disk = self.folding.disk();
        self.adopt(request, conversation, &mut held, disk)?;
        // What the provider keeps under a name is in its count, and cannot be folded.
        let apart = if request.has_cached_content() { conversation.state().billed().account().apart() } else { 0 };
        let head = head_tokens(request, conversation.beginning().lead);
        let policy = policy(&self.options, request, conversation, requested, head + apart);
        let budget = most_tokens(&self.options, request, requested);
        let is_cold = conversation.state().billed().account().is_cold(&requested.prices, self.now_ms());
        let recall = self.recall(arrived, conversation);
        let before = held.take().map(|folder| *folder);
        let is_of_person = is_of_person(arrived.incoming, request);
        let current = self.folding.caught_up(request, found, before, &policy, is_of_person, recall.as_ref());
        let CurrentFolder { mut folder, named, notes: mut added } =
            current.map_err(|error| misread(conversation, &error))?;
        let mut new = NewDecisions { named, ..folder.request(policy.clone(), is_cold, disk) };
        let before = conversation.state().decisions().plan_for(found.messages);
        let past = rewritten_past(request, found, &before);
        new.plan.follow(&before);
        let takes_out = self.takes_out_edits(request);
        let body = rewritten(request, &folder, &new, takes_out).map_err(|error| unwritable(conversation, error))?;
        let mut notes: Vec<_> = new.decisions.iter().map(note_of).collect();
        if let Some(fold) = notes.iter_mut().rfind(|note| note.is_fold()) {
            let view = folder.files_in_view();
            (fold.in_view, fold.unseen) = (view.share, view.unseen);
        }
        notes.append(&mut added);
        notes.extend(takes_out.then(edits_note));
        let remembered = self.remembered(conversation, &new.named);
        let (sent, came) = folder.tokens();
        let tokens = OwnCount { sent: sent + head, came: came + head, is_counted: true };
        // What a large folder takes is given back at once; it is built again if the conversation goes on.
        let is_large = arrived.incoming.body.len() > LARGE_BYTES;
        if !progress.end() {
            // Usually it is noted already, since it was sent.
            let _ = self.keeper.note_point(conversation, found.messages);
            let late = too_late(folder, new).or_else(|| self.folding.undecided(request, found, &policy));
            *held = late.map(Box::new).filter(|_| !is_large);
            return Err(NotDecided::TooLate);
        }
        let has_folded = new.has_folded();
        let kept = self.keep(arrived, conversation, &folder, new)?;
        self.folding.warm(&folder);
        *held = Some(Box::new(folder)).filter(|_| !is_large);
        let (outgoing, tokens) = match self.options.observe {
            true => (Outgoing::Observed { would_send: tokens.sent }, OwnCount { sent: tokens.came, ..tokens }),
            false => (Outgoing::Decided { body }, tokens),
        };
        let prepared = PreparedRequest::new(outgoing, request.messages().len(), requested.clone(), tokens)
            .beside_cached_content(request.has_cached_content())
            .after_rewriting(past)
            .remembering(remembered);
        let prepared = if has_folded { prepared.after_plan(before) } else { prepared };
        Ok(prepared.of(conversation.clone()).with_decisions(notes).within(budget).kept(kept))
    }

    /// What recalling needs to know, if a request may get memory: one of a person's own conversation with an agent, while
    /// there is time. Titles and other requests on the side have no tools.
    fn recall<'r>(
        &'r self,
        arrived: ParsedRequest<'r, '_>,
        conversation: &'r Conversation,
    ) -> Option<RecallRequest<'r>> {
        let ParsedRequest { incoming, request, until, .. } = arrived;
        let may_recall = || !self.options.observe && Instant::now() < until && may_remember(incoming, request);
        let memory = self.options.memory.as_ref().filter(|_| may_recall())?;
        let (key, now_ms) = (incoming.scope.owner.as_str(), self.now_ms());
        Some(RecallRequest { memory, key, conversation: conversation.id(), now_ms })
    }

    /// Tokens of memory that were added to a conversation before, and those that are new.
    fn remembered(&self, conversation: &Conversation, new: &[(usize, Arc<str>)]) -> (u64, u64) {
        if self.options.memory.is_none() {
            return (0, 0);
        }
        let tokens = |text: &Arc<str>| memory_in(text).map_or(0, |memory| self.options.counter.count(memory));
        let before = conversation.state().decisions().attached().values().map(tokens).sum();
        (before, new.iter().map(|(_, text)| tokens(text)).sum())
    }

    /// What is kept of a request when its response has ended, if there is a memory.
    pub fn passing(&self, incoming: &IncomingRequest, prepared: &PreparedRequest) -> Option<PassingRequest> {
        let is_aside = incoming.is_count || incoming.is_sub_agent || incoming.is_compaction;
        let memory = self.options.memory.clone().filter(|_| !is_aside)?;
        let conversation = prepared.conversation()?.id().clone();
        let (key, format) = (incoming.scope.owner.clone(), incoming.format);
        Some(PassingRequest { memory, key, conversation, format, body: incoming.body.clone() })
    }

    /// Lets decisions that were made too late for an earlier request take effect with this one, before anything else is
    /// decided about it: if that takes long, they are sent at least.
    fn adopt(
        &self,
        request: &Request<'_>,
        conversation: &Conversation,
        held: &mut Option<Box<ConversationFolder>>,
        disk: Option<Disk<'_>>,
    ) -> Result<(), NotDecided> {
        let Some(folder) = held.as_mut().filter(|folder| folder.is_late()) else { return Ok(()) };
        let newer = request.messages().get(folder.messages()..).unwrap_or_default();
        // Otherwise files have changed since, so it is decided anew.
        let holds_on = folder.holds_on(disk, newer);
        if !holds_on || self.keeper.is_overtaken(conversation) {
            *held = None;
            return Ok(());
        }
        let mut state = conversation.state();
        let messages = request.messages().len();
        if !state.note_point(messages) {
            return Err(NotDecided::TooLate);
        }
        let mut late = folder.take_late();
        if folder.is_bound() {
            // The responses since then belong to what was sent before it.
            late.plan = without_reasoning(late.plan, request).map_err(|error| misread(conversation, &error))?;
        }
        state.decisions_mut().adopt(messages, late.decisions.iter().map(note_of).collect());
        // They are written before what is decided next, which is waited for.
        let _ = self.add(request, conversation, &mut state, folder, late);
        Ok(())
    }

    /// Keeps the decisions before any of them is sent. Returns what of them is in the store, if there is one: what is not
    /// written in time is written later, and stays valid for as long as the gateway runs.
    ///
    /// A request about which nothing new was decided does not wait for a file: it is written while the provider works,
    /// before the record for which its response waits.
    fn keep(
        &self,
        ParsedRequest { request, until, .. }: ParsedRequest<'_, '_>,
        conversation: &Conversation,
        folder: &ConversationFolder,
        new: NewDecisions,
    ) -> Result<Option<KeptVersion>, PassReason> {
        // What was decided too late for an earlier request, and takes effect with this one, may not be written yet.
        let is_behind = self.keeper.is_behind(&conversation.state());
        let is_waited_for = is_behind || !new.is_empty() || self.keeper.patience().is_some();
        if is_waited_for && self.keeper.is_overtaken(conversation) {
            return Err(PassReason::Overtaken);
        }
        let keeping = {
            let mut state = conversation.state();
            // A request without decisions is stored too; otherwise repeating it after a restart might give another
            // result.
            state.note_point(request.messages().len());
            state.health_mut().note_success();
            self.add(request, conversation, &mut state, folder, new)
        };
        if !is_waited_for {
            return Ok(keeping.kept());
        }
        match self.keeper.wait(&keeping, conversation, until) {
            // What the other gateway has sent is in the store, and is read from there as soon as that is possible.
            Err(StoreError::Conflict) => Err(PassReason::Overtaken),
            _ => Ok(keeping.kept()),
        }
    }

    /// Adds decisions to a conversation, and begins to write them.
    fn add(
        &self,
        request: &Request<'_>,
        conversation: &Conversation,
        state: &mut ConversationState,
        folder: &ConversationFolder,
        new: NewDecisions,
    ) -> Keeping {
        let texts = match self.keeper.has_store() {
            true => texts_of(request, folder, &new.decisions),
            false => Vec::new(),
        };
        state.decisions_mut().add(request.messages().len(), new);
        self.keeper.begin(conversation, state, texts)
    }

    /// Counts the signals of harm in what is new of a conversation.
    pub fn follow(&self, incoming: &IncomingRequest, conversation: &Conversation) {
        let Ok(request) = parsed(incoming) else { return };
        let is_fold = |entry: &&DecisionEntry| matches!(entry.decision, FoldDecision::Fold(_));
        let folds: Vec<usize> = {
            let state = conversation.state();
            state.decisions().entries().iter().filter(is_fold).map(|entry| entry.messages).collect()
        };
        conversation.signals().follow(request.format(), request.messages(), &self.options.dialects, &folds);
    }

    /// Whether a conversation is held out, if conversations are compared at all.
    pub fn held_out(&self, conversation: &Conversation) -> Option<bool> {
        let is_held_out = conversation.beginning().is_held_out;
        (self.options.holdout > 0.0 || is_held_out).then_some(is_held_out)
    }

    /// Evicts folders that were in use when their turn came, and begins to write what there was no room for.
    pub fn settle(&self) {
        self.index.settle();
        self.keeper.catch_up(|| self.index.all());
    }

    /// Begins to write everything that is not in the store yet.
    pub fn save_all(&self) {
        self.keeper.save_all(self.index.all());
    }

    /// How long a request waits for a store that others share; `None` if it is not shared.
    pub fn patience(&self) -> Option<Duration> {
        self.keeper.patience()
    }

    /// Writes a conversation to the store after a response. Nothing waits for it.
    pub fn save(&self, conversation: &Conversation) {
        self.keeper.save(conversation);
    }

    /// Returns a conversation by its id, if it exists.
    pub fn conversation(&self, id: &str) -> Option<Arc<Conversation>> {
        self.index.find(id)
    }

    /// Changes what is pinned in a conversation. The folder is rebuilt with the next request, so that the pins apply to
    /// earlier messages too.
    pub fn pin(&self, conversation: &Conversation, change: impl FnOnce(Pins) -> Pins) {
        *conversation.folder() = None;
        let mut state = conversation.state();
        state.decisions_mut().change_pins(change);
        self.keeper.save_pins(conversation, state.decisions().pins());
    }

    /// Removes a conversation from memory. Returns whether it was there.
    pub fn forget(&self, id: &str) -> bool {
        self.index.forget(id)
    }

    /// The conversations in memory, least recently used first.
    pub fn conversations(&self) -> Vec<Arc<Conversation>> {
        self.index.all()
    }

    /// Adds a conversation, as the one that was used last.
    pub fn insert(&self, conversation: Conversation) {
        self.index.insert(conversation);
    }

    /// The time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.keeper.now_ms()
    }
}

/// Whether a request is a person's own conversation with an agent: not a sub-agent's, and no summary.
fn is_of_person(incoming: &IncomingRequest, request: &Request<'_>) -> bool {
    !incoming.is_sub_agent && !incoming.is_compaction && compaction(request).is_none()
}

/// The same of one that is not on the side: titles and the like have no tools.
fn may_remember(incoming: &IncomingRequest, request: &Request<'_>) -> bool {
    request.has_tools() && is_of_person(incoming, request)
}

fn parsed(incoming: &IncomingRequest) -> Result<Request<'_>, PassReason> {
    let text = std::str::from_utf8(&incoming.body).map_err(|_| PassReason::NoText)?;
    let request = Request::parse(incoming.format, text).map_err(PassReason::Misread)?;
    Ok(request.addressed_to(incoming.model.as_deref()))
}

/// A request as it came, although it has a plan. Reasoning that the provider binds to what was sent by the plan is left
/// out: the provider would refuse it.
fn as_it_came(request: &Request<'_>, plan: &Plan, why: PassReason) -> Outgoing {
    match unbound(request).filter(|_| !plan.is_as_it_came()) {
        Some((body, _)) => Outgoing::Replayed { body, why },
        None => Outgoing::AsItCame(why),
    }
}

/// Whether new decisions may be made for a request with this many messages.
fn may_decide(state: &ConversationState, messages: usize, is_above: bool) -> Result<(), PassReason> {
    // Above the provider's limit it would be refused once more.
    let stopped = state.health().stopped().filter(|why| !(is_above && **why == StopReason::Refused));
    if let Some(why) = stopped {
        return Err(PassReason::Stopped(why.clone()));
    }
    let points = state.decisions().points();
    if points.contains(&messages) {
        return Err(PassReason::Repeated);
    }
    // If a decision takes long, the next request may be decided first.
    match points.last().is_some_and(|newest| *newest > messages) {
        true => Err(PassReason::LaterFirst),
        false => Ok(()),
    }
}

/// Notes that messages cannot be read. What cannot be read stays in the conversation.
fn misread(conversation: &Conversation, error: &WireError) -> PassReason {
    let why = StopReason::Misread(error.to_string());
    conversation.state().health_mut().stop(why.clone());
    PassReason::Stopped(why)
}

/// Notes that a request could not be written as decided.
fn unwritable(conversation: &Conversation, error: WireError) -> PassReason {
    match conversation.state().health_mut().note_failure(&error) {
        Some(why) => PassReason::Stopped(why),
        None => PassReason::Unwritable(error),
    }
}

/// What stays of decisions that were made too late to be sent. A fold can take effect with the next request,
/// because it rewrites the window anyway; other decisions are discarded.
fn too_late(folder: ConversationFolder, new: NewDecisions) -> Option<ConversationFolder> {
    match (new.has_folded(), new.is_empty()) {
        (true, _) => Some(folder.with_late(new)),
        (false, true) => Some(folder),
        (false, false) => None,
    }
}
