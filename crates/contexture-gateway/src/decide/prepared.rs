//! A request that was decided about: what is sent, and what is needed to bill it.

use std::sync::Arc;

use bytes::Bytes;
use contexture::fold::Prices;
use contexture::wire::{Answered, AppliedEdit, Plan, Usage};

use super::outgoing::Outgoing;
use super::progress::Progress;
use super::reason::PassReason;
use super::text_bytes::text_bytes;
use crate::account::bill::{Account, Bill, billed_input};
use crate::account::cap::Spent;
use crate::account::growth::BodyBytes;
use crate::account::record::{DecidedNote, ProviderEditNote, RequestRecord, ToolsNote};
use crate::account::sent_request::{Rewritten, SentRequest};
use crate::conversation::Conversation;
use crate::conversation::state::AcceptedForm;
use crate::models::{Caching, Known};
use crate::write::KeptVersion;

/// The model that a request names, and what it costs.
#[derive(Clone, Debug)]
pub(crate) struct RequestedModel {
    /// The model, and where what is known of it was learnt.
    pub known: Known,
    /// Its name as the client wrote it.
    pub name: String,
    /// The provider's prices for the request.
    pub prices: Prices,
    /// The most tokens that the agent would send to it before it summarises its conversation, if that is known.
    pub most: Option<u64>,
}

impl RequestedModel {
    /// A model, for an agent that leaves this many tokens of a window free.
    pub fn new(known: Known, name: String, caching: Caching, leaves: u64) -> Self {
        let prices = known.model.prices(caching);
        let most = known.known_window().map(|window| window.saturating_sub(leaves));
        Self { known, name, prices, most }
    }
}

/// Tokens of a request, by our own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCount {
    /// Those that are sent.
    pub sent: u64,
    /// Those that were received.
    pub came: u64,
    /// Whether they were counted, and not only estimated from bytes.
    pub is_counted: bool,
}

/// The sizes of a request's bodies. Nothing but its bill needs them if its tokens were counted, so that they are measured
/// while the provider works.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BodySizes {
    /// What was received.
    pub came: BodyBytes,
    /// What is sent.
    pub sent: BodyBytes,
}

impl BodySizes {
    /// Measures the received body and the one that is sent in its place, if there is one.
    pub fn of(came: &[u8], sent: Option<&Bytes>) -> Self {
        let came = text_bytes(came);
        Self { came, sent: sent.map_or(came, |body| text_bytes(body)) }
    }
}

/// What the provider answers to a request as it came, after it has refused it as rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondAnswer {
    /// It accepts it, so that the rewriting was at fault.
    Accepted,
    /// It refuses it for the same reason, so that the rewriting was not at fault.
    RefusedAlike,
    /// Something else, which does not say what was at fault.
    Other,
}

/// A request that was decided about.
pub(crate) struct PreparedRequest {
    outgoing: Outgoing,
    conversation: Option<Arc<Conversation>>,
    /// Where its conversation is found, if it is sent before that.
    search: Option<Arc<Progress>>,
    /// How many messages it has.
    messages: usize,
    requested: RequestedModel,
    tokens: OwnCount,
    /// The sizes of its bodies, once they were measured.
    sizes: Option<BodySizes>,
    /// The decisions that take effect with it.
    decided: Vec<DecidedNote>,
    /// The most tokens that its window could have, by our own count.
    budget: Option<u64>,
    /// What of its conversation has to be in the store, if there is one.
    kept: Option<KeptVersion>,
    /// Whether it goes on from a content that the provider keeps under a name.
    has_apart: bool,
    /// How the client changed what it had sent before.
    rewritten: Option<Rewritten>,
    /// Tokens of memory in it: those that were sent before, and those that are new.
    memory: (u64, u64),
    /// What was decided before it, if something new was decided about it.
    before: Option<Arc<Plan>>,
    /// What of its tools is noted, if those leave that nobody calls.
    tools: Option<ToolsNote>,
}

impl PreparedRequest {
    /// A request without a conversation, about which nothing new was decided.
    pub fn new(outgoing: Outgoing, messages: usize, requested: RequestedModel, tokens: OwnCount) -> Self {
        Self {
            outgoing,
            conversation: None,
            search: None,
            messages,
            requested,
            tokens,
            sizes: None,
            decided: Vec::new(),
            budget: None,
            kept: None,
            has_apart: false,
            rewritten: None,
            memory: (0, 0),
            before: None,
            tools: None,
        }
    }

    /// Sets what of its tools is noted.
    pub fn with_tools(self, tools: Option<ToolsNote>) -> Self {
        Self { tools, ..self }
    }

    /// The conversation, as its tools are noted, if some of them were left out.
    pub fn lean_conversation(&self) -> Option<&str> {
        self.tools.as_ref().filter(|tools| tools.tokens > 0).map(|tools| &*tools.conversation)
    }

    /// Handles that its provider took it only with all tools.
    pub fn note_whole(&mut self) {
        if let Some(tools) = &mut self.tools {
            (tools.is_whole, tools.tokens) = (true, 0);
        }
    }

    /// Sets what was decided before it, for the case that what is new is refused.
    pub fn after_plan(self, before: Arc<Plan>) -> Self {
        Self { before: Some(before), ..self }
    }

    /// What was decided before it, if something new was decided about it.
    pub fn before(&self) -> Option<&Arc<Plan>> {
        self.before.as_ref()
    }

    /// Says how the client changed what it had sent before.
    pub fn after_rewriting(self, rewritten: Option<Rewritten>) -> Self {
        Self { rewritten, ..self }
    }

    /// Says whether it goes on from a content that the provider keeps under a name.
    pub fn beside_cached_content(self, has_apart: bool) -> Self {
        Self { has_apart, ..self }
    }

    /// Sets the tokens of memory in it: those that were sent before, and those that are new.
    pub fn remembering(self, memory: (u64, u64)) -> Self {
        Self { memory, ..self }
    }

    /// Sets the sizes of its bodies, which were measured before it is sent.
    pub fn of_sizes(self, sizes: BodySizes) -> Self {
        Self { sizes: Some(sizes), ..self }
    }

    /// What measures its bodies; `None` if that was done. `came` is what was received.
    pub fn measuring(&self, came: &Bytes) -> Option<impl FnOnce() -> BodySizes + Send + 'static> {
        let (came, sent) = (came.clone(), self.body().cloned());
        self.sizes.is_none().then_some(move || BodySizes::of(&came, sent.as_ref()))
    }

    /// Notes the sizes of its bodies, before it is billed.
    pub fn note_sizes(&mut self, sizes: BodySizes) {
        self.sizes = Some(sizes);
    }

    /// Sets the most tokens that its window could have, by our own count.
    pub fn within(self, budget: u64) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Sets its conversation.
    pub fn of(self, conversation: Arc<Conversation>) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    /// Says where its conversation is found, if it is sent before that.
    pub fn sent_during(self, search: Arc<Progress>) -> Self {
        Self { search: Some(search), ..self }
    }

    /// Takes the conversation that was found after it was sent: it is billed with that. Without the gateway, what came
    /// before would have been read from the provider's cache.
    pub fn take_found(&mut self) {
        let found = self.search.take().and_then(|search| search.found());
        self.conversation = self.conversation.take().or_else(|| found.map(|found| found.conversation));
    }

    /// Sets the decisions that were made.
    pub fn with_decisions(self, decided: Vec<DecidedNote>) -> Self {
        Self { decided, ..self }
    }

    /// Sets what of its conversation has to be in the store.
    pub fn kept(self, kept: Option<KeptVersion>) -> Self {
        Self { kept, ..self }
    }

    /// What is sent.
    pub fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    /// The body to send; `None` sends the received one.
    pub fn body(&self) -> Option<&Bytes> {
        self.outgoing.body()
    }

    /// Tokens that are sent and that were received, by our own count.
    pub fn own_tokens(&self) -> (u64, u64) {
        (self.tokens.sent, self.tokens.came)
    }

    /// Its conversation.
    pub fn conversation(&self) -> Option<&Arc<Conversation>> {
        self.conversation.as_ref()
    }

    /// Frees the body, which is not sent again.
    pub fn free_body(&mut self) {
        self.outgoing.free();
    }

    /// Handles that it was sent in the form that the provider had accepted before, after it had refused the newest fold,
    /// in which blocks of these kinds were.
    pub fn fall_back(&mut self, body: Bytes, kinds: Vec<Box<str>>) {
        let sent = text_bytes(&body);
        self.tokens = OwnCount { sent: sent.text / 4, is_counted: false, ..self.tokens };
        self.sizes = self.sizes.map(|sizes| BodySizes { sent, ..sizes });
        self.decided.clear();
        self.note_refusal(kinds, AcceptedForm::Earlier);
        self.outgoing = Outgoing::Replayed { body, why: PassReason::FoldRefused };
    }

    /// Handles that it was sent as it came after the provider had refused it as rewritten. If the provider accepted
    /// that, the last decisions are reverted, in which blocks of these kinds were.
    pub fn give_up(&mut self, answer: SecondAnswer, kinds: Vec<Box<str>>, accepted: AcceptedForm) {
        self.tokens.sent = self.tokens.came;
        self.sizes = self.sizes.map(|sizes| BodySizes { sent: sizes.came, ..sizes });
        self.decided.clear();
        if answer == SecondAnswer::Accepted {
            self.note_refusal(kinds, accepted);
        }
        self.outgoing = Outgoing::GivenUp(match answer {
            SecondAnswer::Accepted => PassReason::Refused,
            SecondAnswer::RefusedAlike => PassReason::RefusedAlike,
            SecondAnswer::Other => PassReason::NotAccepted,
        });
    }

    fn note_refusal(&self, kinds: Vec<Box<str>>, accepted: AcceptedForm) {
        let Some(conversation) = &self.conversation else { return };
        conversation.state().note_refusal(self.messages, kinds, accepted);
        // It has the decisions that are reverted.
        *conversation.folder() = None;
    }

    /// Adds earlier decisions that took effect with this request.
    pub fn take_adopted(&mut self) {
        if let Some(conversation) = &self.conversation {
            let adopted = conversation.state().decisions_mut().take_adopted(self.messages);
            self.decided.splice(0..0, adopted);
        }
    }

    /// Bills it with the usage that its response reported.
    pub fn bill(&self, time_ms: u64, usage: &Usage, answered: &Answered, now_ms: u64) -> Bill {
        let RequestedModel { known, prices, .. } = &self.requested;
        let model = &known.model;
        let sizes = self.sizes.unwrap_or_default();
        let sent = SentRequest {
            sent_tokens: self.tokens.sent,
            came_tokens: self.tokens.came,
            is_counted: self.tokens.is_counted,
            came_bytes: sizes.came,
            sent_bytes: sizes.sent,
            is_changed: self.body().is_some(),
            has_moved: self.decided.iter().any(DecidedNote::is_fold)
                || self.outgoing.has_given_up()
                // What was sent before a pause, or before a summary of the whole, was something else.
                || matches!(self.outgoing.why(), Some(PassReason::Paused | PassReason::SummedUp)),
            folded: DecidedNote::folded(&self.decided),
            has_apart: self.has_apart,
            rewritten: self.rewritten,
            most: self.requested.most,
            time_ms,
        };
        match &self.conversation {
            Some(conversation) => {
                conversation.state().billed_mut().note((model, prices), sent, usage, answered, now_ms)
            }
            // Without a conversation it was sent as it came, so pass-through would have cost the same.
            None => Account::default().note(model, prices, sent, usage, now_ms),
        }
    }

    /// Tokens that would be sent if more were done than to watch, by the provider's count, so that they can be compared with
    /// what was sent: of a request that nothing would be done about, all of them.
    pub fn would_send(&self, usage: &Usage) -> u64 {
        let sent = usage.total_input();
        let Some(own) = self.outgoing.would_send() else { return sent };
        (sent as f64 * (own as f64 / self.tokens.sent.max(1) as f64).min(1.0)) as u64
    }

    /// What the provider did to the window by itself, for the record.
    pub fn edit_notes(&self, answered: &Answered) -> Vec<ProviderEditNote> {
        let model = &self.requested.known.model;
        let note = |edit: &AppliedEdit| {
            let usage = edit.usage.unwrap_or_default();
            ProviderEditNote {
                kind: edit.kind.clone(),
                cleared: edit.cleared,
                cleared_tokens: edit.cleared_tokens,
                billed: billed_input(model, &usage),
                output: usage.output,
                tokens: usage.total_input() + usage.output,
            }
        };
        answered.edits.iter().map(note).collect()
    }

    /// Dollars per million input and output tokens, for what was sent and for what pass-through would have sent.
    pub fn dollars(&self, bill: &Bill) -> [Option<(f64, f64)>; 2] {
        [bill.sent, bill.passed()].map(|tokens| self.requested.known.model.dollars(tokens))
    }

    /// What its input is expected to take, by our own count and without the provider's cache.
    pub fn expected(&self) -> Spent {
        let tokens = self.tokens.sent;
        let dollars = self.requested.known.model.dollars(tokens).map(|(input, _)| input * tokens as f64 / 1e6);
        Spent {
            dollars: dollars.unwrap_or(0.0),
            tokens,
            is_guessed: dollars.is_some(),
            unpriced: u64::from(dollars.is_none()),
        }
    }

    /// The name of the model as the client wrote it.
    pub fn model_name(&self) -> &str {
        &self.requested.name
    }

    /// The version of its conversation with which it is sent, if that is kept in a store.
    pub fn kept_version(&self) -> Option<KeptVersion> {
        self.kept.clone()
    }

    /// Notes that the provider refused it, and that nothing else was sent for it: if the client sends it again, it is
    /// decided anew.
    pub fn note_refused(&self) {
        let Some(conversation) = &self.conversation else { return };
        let may_be_ours = self.body().is_some() || matches!(self.outgoing.why(), Some(PassReason::NotAccepted));
        match may_be_ours {
            true => conversation.state().note_unclear_refusal(self.messages),
            false => conversation.state().note_unsent(self.messages),
        }
        *conversation.folder() = None;
    }

    /// Handles that nothing is sent of it: what was decided about it is taken back, if anything was.
    pub fn note_unsent(&self) {
        let is_new = matches!(self.outgoing, Outgoing::Decided { .. } | Outgoing::Observed { .. });
        if let Some(conversation) = self.conversation.as_ref().filter(|_| is_new) {
            conversation.state().note_unsent(self.messages);
            *conversation.folder() = None;
        }
    }

    /// What its record says before there is a response.
    pub fn record(&self, session: &str, time_ms: u64) -> RequestRecord {
        RequestRecord {
            session: session.to_owned(),
            conversation: self.conversation.as_ref().map(|conversation| conversation.id().to_string()),
            time_ms,
            model: self.requested.name.clone(),
            is_changed: self.body().is_some(),
            passed: self.outgoing.why().map(PassReason::to_string),
            decided: self.decided.clone(),
            budget: self.budget,
            tools: self.tools.clone(),
            ..RequestRecord::default()
        }
    }

    /// What its record says when its response has ended, apart from the response itself.
    pub fn whole_record(&self, session: &str, time_ms: u64) -> RequestRecord {
        let RequestedModel { known, prices, .. } = &self.requested;
        // What was sent as it came has no memory.
        let (before, new) = if self.body().is_some() { self.memory } else { (0, 0) };
        RequestRecord {
            memory_tokens: before + new,
            memory_cost: before as f64 * prices.read + new as f64 * prices.write,
            unknown: self.conversation.as_ref().map_or(0, |found| found.state().stored_mut().take_unknown()),
            price_from: Some(known.price.clone()),
            context: Some(known.model.context),
            context_from: Some(known.window.clone()),
            ..self.record(session, time_ms)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use contexture::wire::{Format, Request};

    use super::*;
    use crate::accept::incoming::RequestScope;
    use crate::decide::policy::requested_model;
    use crate::find::index::ConversationIndex;
    use crate::options::Options;

    fn prepared(outgoing: Outgoing, request: &Request<'_>, (sent, came): (u64, u64)) -> PreparedRequest {
        let requested = requested_model(&Options::default(), &Default::default(), Some(request));
        let size = |tokens: u64| BodyBytes { text: 4 * tokens, ..BodyBytes::default() };
        PreparedRequest::new(outgoing, 1, requested, OwnCount { sent, came, is_counted: true })
            .of_sizes(BodySizes { came: size(came), sent: size(sent) })
    }

    #[test]
    fn what_is_sent_before_its_conversation_is_found_is_billed_with_it() {
        let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"Go on."}]}"#;
        let request = Request::parse(Format::Chat, body).unwrap();
        let found = ConversationIndex::new(None, 0.0, None).take(&request, 1, &RequestScope::default()).unwrap();
        let bill = |prepared: &PreparedRequest, input: u64, at: u64| {
            prepared.bill(at, &Usage { input, ..Usage::default() }, &Answered::default(), at)
        };
        let folded = Outgoing::Decided { body: Some(Bytes::from_static(b"{}")) };
        let folded = prepared(folded, &request, (20_000, 80_000)).of(found.conversation.clone());
        assert_eq!(bill(&folded, 20_000, 1_000).came, 80_000);
        // It is sent whole, and nothing of that is cached. Without the gateway all but the new part would have been.
        let search = Arc::new(Progress::new(Instant::now()));
        let late = prepared(Outgoing::AsItCame(PassReason::TooLong), &request, (90_000, 90_000));
        let mut late = late.sent_during(search.clone());
        search.note_found(&found);
        late.take_found();
        let bill = bill(&late, 90_000, 2_000);
        assert_eq!((bill.billed, bill.passed_through), (90_000.0, 0.1 * 80_000.0 + 10_000.0));
    }
}
